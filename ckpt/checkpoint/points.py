"""Points: complete copies of the checkpoints of queries, kept in one folder by a schedule (``ckpt copy --keep``).

A point has the name of the time when it was made, in UTC, and of its newest committed batch, and needs no other point.
Its newest offsets are written last; before that ckpt's mark is in their place.
"""

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS
from ckpt.errors import StorageError, UsageError, one_line
from ckpt.formats.metadata import parse_metadata
from ckpt.formats.offsets import UNFINISHED
from ckpt.model import QueryMetadata
from ckpt.storage import Folder, Root, Storage
from ckpt.storage.base import TEMPORARY, temporary

_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)Z-batch-(0|[1-9]\d{0,17})", re.ASCII)
_PERIODS: Mapping[str, Callable[[datetime], object]] = {
    "last": lambda time: time,
    "hourly": lambda time: (time.date(), time.hour),
    "daily": lambda time: time.date(),
    "weekly": lambda time: time.isocalendar()[:2],
    "monthly": lambda time: (time.year, time.month),
    "yearly": lambda time: time.year,
}


class Point(NamedTuple):
    """A point by its name; points sort by time."""

    time: datetime  # in UTC; no batch of it was committed later
    batch: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.time:%Y-%m-%dT%H-%M-%SZ}-batch-{self.batch}"


class Kept(NamedTuple):
    """What a folder has."""

    points: Mapping[str, tuple[Point, ...]]  # by the id of their query, each oldest first
    unfinished: tuple[str, ...]  # names of what interrupted runs have left


def parse_point(name: str) -> Point | None:
    """Parse the name of a point; None where it is none.

    >>> parse_point("2026-11-27T14-05-00Z-batch-1234").name, parse_point("orders")
    ('2026-11-27T14-05-00Z-batch-1234', None)
    """
    if match := _NAME.fullmatch(name):
        with suppress(ValueError):  # there is no such day
            return Point(datetime.strptime(match[1] + "+0000", "%Y-%m-%dT%H-%M-%S%z"), int(match[2]))
    return None


def parse_rule(text: str) -> dict[str, int]:
    """Parse which points stay, such as ``hourly=24,daily=7``. Raises UsageError."""
    parts = [part.strip().partition("=") for part in text.split(",")]
    rule = {name: int(count) for name, _, count in parts if name in _PERIODS and re.fullmatch("[0-9]{1,6}", count)}
    if len(rule) < len(parts) or not any(rule.values()):
        given, names = one_line(text), ", ".join(_PERIODS)
        raise UsageError.of("{--keep} {given}: write hourly=24,daily=7; known are {names}", given=given, names=names)
    return rule


def choose_removed(points: Collection[Point], rule: Mapping[str, int]) -> list[Point]:
    """Choose the points of one query that go: neither the newest of all, nor of one of the last periods with points."""
    newest_first = sorted(points, reverse=True)
    kept = set(newest_first[:1])
    for period, count in rule.items():
        newest: dict[object, Point] = {}
        for point in newest_first:
            newest.setdefault(_PERIODS[period](point.time), point)
        kept.update([*newest.values()][:count])
    return [point for point in sorted(points) if point not in kept]


def list_points(folder: Root, level: Folder | None = None) -> Kept:
    """List the points directly in a folder, whose first level may be known. Raises NotFound, StorageError."""
    points, unfinished = dict[str, tuple[Point, ...]](), list[str]()
    level = folder.list_level() if level is None else level
    for name in sorted(level.folders - level.links):
        made = name.removeprefix(".").removesuffix(TEMPORARY)
        if (point := parse_point(made)) is None or name not in (made, temporary(made)):
            continue
        query_id = _find_query(folder.below(name), point.batch) if name == made else ""
        if query_id:
            points[query_id] = (*points.get(query_id, ()), point)
        elif query_id is not None:
            unfinished.append(name)
    return Kept(points, tuple(unfinished))


def _find_query(point: Storage, batch: int) -> str | None:
    """Find the id of the query of a point; "" where it is unfinished, None where it is no longer as it was made."""
    with suppress(StorageError):
        tree = point.list_tree()
        logs = (filter(str.isdecimal, tree.in_folder(folder)) for folder in (OFFSETS, COMMITS))
        planned, committed = (max(map(int, names), default=-1) for names in logs)
        if not tree.files or (planned >= 0 and point.read(f"{OFFSETS}/{planned}") == UNFINISHED):
            return ""
        metadata = parse_metadata(METADATA, point.read(METADATA))
        if committed == batch in (planned, planned - 1) and isinstance(metadata, QueryMetadata):
            return metadata.query_id
    return None
