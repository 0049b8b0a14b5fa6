"""From one way of keeping state to another (``ckpt migrate``): nothing here changes a checkpoint."""

from ckpt.migrate.changelog import ChangelogSwitch, Outcome, To, switch_changelog
from ckpt.migrate.provider import MoveOutcome, ProviderMove, ToProvider, move_provider
from ckpt.migrate.ways import Comparison, Verdict

__all__ = [
    "ChangelogSwitch",
    "Comparison",
    "MoveOutcome",
    "Outcome",
    "ProviderMove",
    "To",
    "ToProvider",
    "Verdict",
    "move_provider",
    "switch_changelog",
]
