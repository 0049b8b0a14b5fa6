"""How a new query begins to read a source so that it reads on exactly after an offset of an old one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

NOT_READ = "its offset is not JSON, and cannot be read; name an older batch, or put the file back from a copy"
"""The reason for refusing a source whose line in the offset file is damaged."""


class Begin(StrEnum):
    """How a new query comes to begin with a source."""

    EXACT = "exact"  # by the options or the filter given here: exactly after the batch
    EARLIEST = "earliest"  # a recreated Kafka topic: from its earliest rows, by the options given here
    UNREAD = "unread"  # the old query had read nothing of it: as the old one began
    FROM_ZERO = "from-zero"  # from its beginning, whatever is asked for: the source cannot do otherwise
    REFUSED = "refused"  # no option says where


@dataclass(frozen=True, slots=True)
class StartFacts:
    """Facts of a checkpoint about a source, besides its offset."""

    seen: Sequence[str] | str | None = None  # of a file source: the files that were read, or why that is not known
    recreated: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Of a Kafka source: topics that were recreated after the batch, and the partitions that they have."""
    event_hubs: bool = False  # offsets of Azure Event Hubs cannot be told from those of Kafka


@dataclass(frozen=True, slots=True)
class ReaderStart:
    """The beginning of a reader; ``options`` are those of ``DataStreamReader``."""

    begin: Begin
    options: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # options of the old query that would override these, or conflict with them
    seen: tuple[str, ...] = ()  # files that it must leave out: values of ``_metadata.file_path``
    conditions: tuple[str, ...] = ()  # what must hold besides, and ckpt cannot see
    refused: str | None = None  # why no option says where to start, and the remedy
