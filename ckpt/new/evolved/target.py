"""Where ``ckpt evolve`` writes, and who does the work."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ckpt.new.copy.placing import Watcher

if TYPE_CHECKING:
    from ckpt.new.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Target:
    """The new checkpoint, and who writes it."""

    uri: str | None  # None: there is none, the old one is changed in place
    new_id: bool = False
    plan: bool = False  # only say what would be written
    jobs: int | None = None
    by: "Exchange | None" = None
    watcher: Watcher | None = None
