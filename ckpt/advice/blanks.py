"""The blanks of a text or a call: those that ckpt fills in for one checkpoint, and those that only the user knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import lru_cache

from ckpt.texts import name_files


class Blank(Enum):
    """A blank that ckpt fills in once it knows the checkpoint; until then a text shows its value."""

    CHECKPOINT = "CHECKPOINT"
    PATH = "the file named"  # the places of a finding, relative to the checkpoint
    BATCH = "N"  # the batch that the first of these places belongs to


class Hole(StrEnum):
    """A word of a call that only the user knows, as it is shown: with one, no program can make the call."""

    NEW = "NEW"  # a new checkpoint
    COPY = "COPY"  # a copy of the checkpoint
    QUERY = "query.json"  # the description of the query that is to be started
    OLD_QUERY = "old.json"  # the description of the query that wrote the checkpoint
    ID = "ID"  # a query id
    BACKUP = "BACKUP"  # of an earlier change
    FLOW = "FLOW"  # the folder of a flow of a pipeline
    N = "N"  # a batch
    URI = "URI"  # a sink
    OUTPUT = "OUTPUT"  # the output folder of a file sink
    VERSION = "V"  # of a table
    TABLE = "TABLE"
    HOST = "HOST:PORT"
    SOURCE = "I"  # the number of a source
    OFFSETS = "OFFSETS"  # of a source
    FILE = "FILE"
    FOLDER = "FOLDER"
    DIR = "DIR"
    VALUE = "VALUE"
    JSON = "JSON"  # an offset of a source
    OLD_TO_NEW = "OLD=NEW"  # two names


NUMBERS = (Hole.N, Hole.SOURCE)
"""Words that a number is put for."""
CHECKPOINT, PATH, BATCH = Blank.CHECKPOINT, Blank.PATH, Blank.BATCH


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about one checkpoint that fill in blanks; a blank without its fact stays."""

    checkpoint: str | None = None
    paths: tuple[str, ...] = ()  # the places of a finding, relative to the checkpoint; "" is the checkpoint itself
    sink: str | None = None  # the URI of the sink that was asked
    sink_kind: str | None = None  # of that sink, if it keeps no batch ids: see ``ckpt.restart.sinks``
    deep: bool = False  # every byte of the state was read
    source_options: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # that asking its sources needs
    files: Mapping[Hole, str] = field(default_factory=dict)  # that the user has named

    def name(self, blank: Blank) -> str | None:
        """Return what fills a blank; None where that is unknown."""
        if blank is Blank.CHECKPOINT:
            return self.checkpoint
        if not self.paths:
            return None
        first = self.paths[0]
        if blank is Blank.BATCH:
            numbers = "".join(char if char.isdecimal() else " " for char in first.rpartition("/")[2]).split()
            return numbers[0] if numbers else None
        return _name_places(self.paths)


@lru_cache(maxsize=16)
def _name_places(paths: tuple[str, ...]) -> str:
    """All places of one code: each of its findings has the same."""
    return name_files(paths) or "the checkpoint"
