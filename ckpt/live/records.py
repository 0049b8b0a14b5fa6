"""Answers of sources, as facts; ``ckpt.live.forecast`` says what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.file_logs import name_folder
from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.kind import Unit
from ckpt.checkpoint.sources.plugins import PluginOffset

if TYPE_CHECKING:
    from ckpt.formats.iceberg import IcebergSnapshot

Part = tuple[str, int]
"""A topic, and the number of one of its partitions."""


@dataclass(frozen=True, slots=True)
class TopicNow:
    """A topic of a broker."""

    id: str | None  # None: there is no such topic
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Younger:
    """A row that a batch has read by the checkpoint, and that is younger than the batch: so it was not there."""

    batch: int
    offset: int


@dataclass(frozen=True, slots=True)
class PartitionNow:
    """A partition of a topic: it has the rows from ``earliest`` up to, and without, ``latest``."""

    earliest: int
    latest: int
    younger: Younger | None = None


@dataclass(frozen=True, slots=True)
class KafkaNow:
    """The topics of a source, as the Kafka cluster has them."""

    unit: ClassVar = Unit.OFFSETS  # of what waits to be read, or is lost
    topics: Mapping[str, TopicNow]  # of the checkpoint, and those subscribed to, as far as they were named
    partitions: Mapping[Part, PartitionNow]
    subscribed: frozenset[str] | None = None  # None: not given
    fail_on_data_loss: bool = True


@dataclass(frozen=True, slots=True)
class FileNow:
    """A data file that a query has still to read."""

    rows: int | None  # by the statistics; None: not recorded
    there: bool | None = True  # None: it was not looked for
    path: str = ""  # as the file system spells it: below the table, or a URI
    modified_ms: int = 0


@dataclass(frozen=True, slots=True)
class VersionNow:
    """A version of a Delta table, as a streaming query sees it."""

    version: int
    files: tuple[FileNow, ...] = ()  # that it added, in the order in which they are read
    takes_rows: bool = False  # it also removed files whose rows are not in others
    fits: bool = True  # the columns that it had can be read as those of the newest version


class DeltaOption(StrEnum):
    """Options of a Delta reader that decide what stops it; each is off if it is not given."""

    LOSES = "failOnDataLoss=false"
    SKIPS_CHANGES = "skipChangeCommits"
    IGNORES_CHANGES = "ignoreChanges"
    IGNORES_DELETES = "ignoreDeletes"


@dataclass(frozen=True, slots=True)
class DeltaNow:
    """A Delta table, as a streaming query sees it."""

    unit: ClassVar = Unit.FILES
    table_id: str
    first: int  # the first version that is there as changes; the log may know older ones by their outcome only
    latest: int
    versions: tuple[VersionNow, ...]  # those that a start looks at
    before: DeltaOffset | None = None  # the end of the batch before the latest, which a start goes back to
    begins_readable: bool = True  # the table as it was when the query began, where a start needs that
    snapshot: tuple[FileNow, ...] | None = None  # its files; None: not needed, or not looked at
    fits: bool = True  # the columns where a start goes back to can be read as those of the newest version
    changed_in: int | None = None  # since which version the columns are those of the newest, if looked for
    rewritten: int | None = None  # a version that is younger than the batch which has read it
    fitting_batch: int | None = None  # the newest batch that ends before the table does
    options: frozenset[DeltaOption] = frozenset()
    most_files: int = 1000  # in a batch


class IcebergOption(StrEnum):
    """Options of an Iceberg reader that decide what stops it; each is off if it is not given."""

    SKIPS_OVERWRITES = "streaming-skip-overwrite-snapshots"
    SKIPS_DELETES = "streaming-skip-delete-snapshots"


@dataclass(frozen=True, slots=True)
class IcebergNow:
    """An Iceberg table, as a streaming query sees it."""

    unit: ClassVar = Unit.FILES
    table_id: str
    read_from: str  # the metadata file
    chain: "tuple[IcebergSnapshot, ...]"  # the current snapshot and its ancestors, the oldest first
    branched: Mapping[int, int | None]
    """Snapshots of the checkpoint that are there and not in the chain: which of the chain they descend from."""
    cut_after: int | None = None  # the parent of the oldest in the chain, which has expired; None: there was none
    first: IcebergOffset | None = None  # where the query began: a start with trigger availableNow goes back there
    younger: bool = False  # all of the chain is younger than the plan of the latest batch
    options: frozenset[IcebergOption] = frozenset()
    most_files: int = 2**31 - 1  # in a batch
    most_rows: int = 2**31 - 1
    in_future: bool = False  # it is older than stream-from-timestamp


@dataclass(frozen=True, slots=True)
class FilesNow:
    """The folder of a file source, compared with the log of the source."""

    unit: ClassVar = Unit.FILES
    files: int  # that Spark lists
    seen: int  # that the log of the source names
    unseen: int  # that the next batch, or a later one, reads
    old: int = 0  # that no batch reads, because they are older than ``maxFileAge``
    oldest_ms: int = 0  # how much older than the newest that was read
    planned: int = 0  # of the latest batch
    gone: tuple[str, ...] = ()  # of these, those that are not there
    apart: int = 0  # of these, those in other folders, where nobody looked
    refused: str | None = None  # of these, the first that Spark does not take for one of the folder
    partitions: bool = False  # it has folders such as ``day=1``
    place: str = ""  # the folder
    changed: int = 0  # that were written again after a batch before the latest had read them
    changed_last: int = 0  # the same of the latest batch
    elsewhere: bool = False  # all that were read are in other folders


@dataclass(frozen=True, slots=True)
class PluginNow:
    """A source of a plugin: it has the rows from one offset up to, and without, another."""

    earliest: PluginOffset
    latest: PluginOffset
    unit: str  # in which the plugin counts


@dataclass(frozen=True, slots=True)
class NotAsked:
    """No answer, because ckpt did not ask the source."""

    reason: str  # without a full stop


@dataclass(frozen=True, slots=True)
class Unreached:
    """No answer, because ckpt asked the source and could not reach it."""

    reason: str  # without a full stop


Now = KafkaNow | DeltaNow | IcebergNow | FilesNow | PluginNow
"""The state of a source that answered."""
Answer = Now | NotAsked | Unreached
"""The state of a source now, or why it is not known."""


@dataclass(frozen=True, slots=True)
class LiveSource:
    """One source of a query, and what it answered."""

    index: int
    answer: Answer
    name: str | None = None  # in the query, which its folder of the checkpoint then has

    @property
    def folder(self) -> str:
        """The folder of the source in the checkpoint."""
        return name_folder(self.index, self.name)

    @property
    def not_asked(self) -> str | None:
        """Why ckpt did not ask the source, without a full stop; None where it did."""
        return self.answer.reason if isinstance(self.answer, NotAsked) else None

    @property
    def unreached(self) -> str | None:
        """Why ckpt could not reach the source, without a full stop; None where it could, or did not ask."""
        return self.answer.reason if isinstance(self.answer, Unreached) else None
