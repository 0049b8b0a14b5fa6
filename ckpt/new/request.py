"""The request for a new checkpoint, whichever command makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from ckpt.new.placing import Placing, Watcher, choose_new_options, open_new

if TYPE_CHECKING:
    from ckpt.new.exchange import Exchange

Key: TypeAlias = Mapping[str, str | None]
"""Columns of a grouping key and their values as text, as for ``state_show``; None is NULL."""


class Rewriting(TypedDict, total=False):
    """Options of ``merge`` and ``split``, as ``rewrite`` has them."""

    to_storage_options: Mapping[str, str] | None  # for NEW; by default ``storage_options``, in storage of one kind
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
    old: str  # the checkpoint that it is made of
    options: Mapping[str, str] = field(default_factory=dict)  # for the file system of that one
    to_storage_options: Mapping[str, str] | None = None  # for its own; None: as ``choose_new_options`` has it
    provider: str | None = None  # None: as in the old one; so are the next two
    partitions: int | None = None
    format_version: int | None = None
    keys: tuple[Key, ...] = ()  # whose rows are left out
    where: str | None = None  # the condition of rows that are not
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

    @property
    def own_options(self) -> Mapping[str, str]:
        """Options for its own file system. Raises UsageError."""
        return choose_new_options(self.uri, self.old, self.options, self.to_storage_options)

    def open(self) -> Placing:
        """Open the place where it is to be. Raises StorageError, UsageError."""
        return open_new(self.uri, self.own_options, tasks_write=self.tasks_write)
