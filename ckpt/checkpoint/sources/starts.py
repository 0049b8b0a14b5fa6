"""How a new query begins to read a source so that it reads on exactly after an offset of an old one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

NOT_READ = "its offset is not JSON, and cannot be read; name an older batch, or restore the file from a copy"
"""The reason for refusing a source whose line in the offset file is damaged."""


class StartingPoint(StrEnum):
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

    begin: Annotated[
        StartingPoint,
        "`unread`: the old query had read nothing from it, so it starts as that query did; `earliest`: a Kafka topic "
        "was recreated, and the new query reads it from its earliest row",
    ]
    options: Annotated[Mapping[str, str], "object: options of `DataStreamReader` and their values, all strings"] = (
        field(default_factory=dict)
    )
    without: Annotated[tuple[str, ...], "options of the old reader to leave out"] = ()
    seen: Annotated[tuple[str, ...], "file source: values that `_metadata.file_path` must not have"] = ()
    conditions: tuple[str, ...] = ()  # what must hold besides, and ckpt cannot see
    refused: Annotated[str | None, "why, and the remedy"] = None
