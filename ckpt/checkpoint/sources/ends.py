"""The end of the latest batch of one source, and what another end does: rows that are skipped, or read again.

Somebody types the other end: Spark takes most mistakes in an offset silently, and reads other rows than were meant, so
it is checked before anything is planned.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

from ckpt.advice import Words
from ckpt.errors import UsageError, one_line
from ckpt.model import Json
from ckpt.texts import mask_json

MOST_ON_PAGE = 500  # characters of an offset


@dataclass(frozen=True, slots=True)
class RequestedEnd:
    """The new end of one source; of Kafka without the partitions that are to be left out."""

    value: Json
    left_out: frozenset[tuple[str, int]] = frozenset()  # partitions of Kafka that were given as null
    said: tuple[Words, ...] = ()  # by the source, where it was asked for this end
    ahead: bool | None = None  # of the old end, as the source says; None: offsets show it, or it was not asked
    renamed: Mapping[str, str] = field(default_factory=dict)  # topics of Kafka that moved: what each is called now

    @property
    def text(self) -> str:
        """JSON as it is written into an offset file."""
        return json.dumps(self.value, separators=(",", ":"), ensure_ascii=False)


def parse_json(text: str, what: str | Words) -> Json:
    """Parse JSON that somebody typed. Raises UsageError, which begins with ``what``."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError.of("{what} names {name} twice", what=what, name=one_line(twice))
        return value

    def never(word: str) -> NoReturn:
        raise UsageError.of("{what} contains {word}, which is not JSON", what=what, word=word)

    try:
        value: Json = json.loads(text, object_pairs_hook=once, parse_constant=never)
        json.dumps(value, ensure_ascii=False).encode()  # not half of a character
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos + 1}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        raise UsageError.of("{what} is not JSON{where}", what=what, where=where) from error
    return value


def cut_json(value: Json) -> str:
    """Return typed JSON in one line of an error message, cut after 120 characters."""
    return _cut(one_line(json.dumps(value, ensure_ascii=False)), 120)


def show_offset(value: Json, most: int, *, ascii_only: bool = False) -> str:
    """Return an offset as JSON, cut after so many characters. One that is a text may be a token: it is not shown."""
    return "a text" if isinstance(value, str) else _cut(mask_json(json.dumps(value, ensure_ascii=ascii_only)), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


Record = TypeVar("Record")
Span = tuple[Json, Json]  # two offsets as the log has them; None is the beginning of the source


class CannotEndThere(Exception):
    """A source cannot get the requested end; the text says why."""


class BeforeBatch(CannotEndThere):
    """The end would be before the start of the latest batch: only a rewind goes back there."""


class BatchPlanned(CannotEndThere):
    """The latest batch is planned and not committed, and has to keep its range."""


@dataclass(frozen=True, slots=True)
class LatestEnd(Generic[Record]):
    """One source in the latest batch of a checkpoint."""

    batch: int
    committed: bool
    index: int  # of the source in the query
    value: Json  # ``offset`` as in the log
    offset: Record  # the end of the batch
    start: Record | None  # of the batch; None: the beginning of the source, or not known
    start_known: bool
    newest_entry: int | None = None  # of a file source: the newest in its log


@dataclass(frozen=True, slots=True)
class MovedEnd:
    """The consequences of a new end at the next start."""

    ahead: tuple[Span, ...] = ()  # from the old end to the new one, where that is later
    back: tuple[Span, ...] = ()  # from the new end to the old one, where that is earlier
    warnings: tuple[Words, ...] = ()


def move_along(latest: LatestEnd[Record], new: RequestedEnd, old: int, to: int, *warnings: Words) -> MovedEnd:
    """Move the end of a source whose offsets are in one order: ahead, rows are skipped; back, they are read again."""
    if to >= old:
        return MovedEnd(ahead=((latest.value, new.value),) if to > old else (), warnings=warnings)
    return MovedEnd(back=((new.value, latest.value),), warnings=warnings)
