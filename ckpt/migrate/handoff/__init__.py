"""From an old query to a new one with a checkpoint of its own, not a row lost or read twice (``ckpt handoff``)."""

from ckpt.migrate.handoff.caveats import SinkMeaning
from ckpt.migrate.handoff.plan import Handoff, Later, hand_off, plan_handoff
from ckpt.migrate.handoff.positions import Position, Positions, positions, show_offsets
from ckpt.migrate.handoff.snippets import Language, snippet
from ckpt.migrate.handoff.starts import Begin, SourceStart, file_path

__all__ = [
    "Begin",
    "Handoff",
    "Language",
    "Later",
    "Position",
    "Positions",
    "SinkMeaning",
    "SourceStart",
    "file_path",
    "hand_off",
    "plan_handoff",
    "positions",
    "show_offsets",
    "snippet",
]
