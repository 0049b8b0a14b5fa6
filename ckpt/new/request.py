"""The request for a new checkpoint, whichever command makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from ckpt.new.placing import Placing, Watcher, open_new

if TYPE_CHECKING:
    from ckpt.new.exchange import Exchange


class Rewriting(TypedDict, total=False):
    """Options of ``merge`` and ``split``, as ``rewrite`` has them."""

    provider: str | None
    partitions: int | None
    format_version: int | None
    accept_loss: bool  # of ``split``: that no condition keeps a row
    accept_fewer_versions: bool
    plan: bool
    jobs: int | None
    engine: "Exchange | None"
    watcher: Watcher | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCheckpoint:
    """A request for a new checkpoint: where it is and in which form, who writes it, and what is accepted."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)  # for the file systems of the old one and the new one
    provider: str | None = None  # None: as in the old one; so are the next two
    partitions: int | None = None
    format_version: int | None = None
    new_id: bool = False
    accept_loss: bool = False
    accept_fewer_versions: bool = False
    plan: bool = False  # only say what would be written
    jobs: int | None = None  # processes at a time; None: as many as are worth it
    engine: "Exchange | None" = None  # who makes state files, if not processes of this machine
    watcher: Watcher | None = None

    @property
    def tasks_write(self) -> bool:
        """True if tasks write state files themselves."""
        return self.engine is not None and self.engine.writes

    def open(self) -> Placing:
        """Open the place where it is to be. Raises StorageError, UsageError."""
        return open_new(self.uri, self.options, tasks_write=self.tasks_write)
