"""Points: complete copies of the checkpoints of queries, kept in one folder by a schedule (``ckpt copy --keep``).

A point has the name of the time when it was made, in UTC, and of its newest committed batch, and needs no other point.
Its newest offsets are written last; before that ckpt's mark is in their place.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS
from ckpt.checkpoint.pipelines import list_if_there
from ckpt.errors import StorageError, UsageError, one_line
from ckpt.formats.metadata import parse_metadata
from ckpt.formats.offsets import UNFINISHED
from ckpt.model import QueryMetadata
from ckpt.storage import Folder, Root, Storage
from ckpt.storage.base import TEMPORARY, temporary

_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)Z-batch-(0|[1-9]\d{0,17})", re.ASCII)
_PERIODS = {"last": "%F %T", "hourly": "%F %H", "daily": "%F", "weekly": "%G %V", "monthly": "%Y %m", "yearly": "%Y"}


class Point(NamedTuple):
    """A point by its name; points sort by time."""

    time: datetime  # in UTC; no batch of it was committed later
    batch: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.time:%Y-%m-%dT%H-%M-%SZ}-batch-{self.batch}"


def parse_point(name: str) -> Point | None:
    """Parse the name of a point, such as ``2026-11-27T14-05-00Z-batch-1234``; None where it is none."""
    if match := _NAME.fullmatch(name):
        with suppress(ValueError):  # there is no such day
            return Point(datetime.strptime(match[1] + "+0000", "%Y-%m-%dT%H-%M-%S%z"), int(match[2]))
    return None


def parse_rule(text: str) -> dict[str, int]:
    """Parse which points stay, such as ``hourly=24,daily=7``. Raises UsageError."""
    parts = [part.strip().partition("=") for part in text.split(",")]
    rule = {name: int(count) for name, _, count in parts if name in _PERIODS and re.fullmatch("[0-9]{1,6}", count)}
    if len(rule) < len(parts) or not any(rule.values()):
        names = ", ".join(_PERIODS)
        raise UsageError.of(
            "{--keep} {rule}: write hourly=24,daily=7; the periods are {names}", rule=one_line(text), names=names
        )
    return rule


def choose_removed(points: Iterable[Point], rule: Mapping[str, int]) -> list[Point]:
    """Choose the points of one query that go: neither the newest of all, nor of one of the last periods with points."""
    ordered = sorted(points)
    kept = set(ordered[-1:])
    for period, count in rule.items():
        newest = {(f"{point.time:{_PERIODS[period]}}", period == "last" and point.batch): point for point in ordered}
        kept.update([*newest.values()][::-1][:count])
    return [point for point in ordered if point not in kept]


def list_points(folder: Root, level: Folder | None = None) -> tuple[dict[str, tuple[Point, ...]], list[str]]:
    """List the points directly in a folder, by the id of their query, and the names of what is unfinished there.

    ``level`` is its first level, if that is known. Raises NotFound, StorageError.
    """
    points, unfinished = dict[str, tuple[Point, ...]](), list[str]()
    level = folder.list_level() if level is None else level
    for name in sorted(level.folders - level.links):
        made = name.removeprefix(".").removesuffix(TEMPORARY)
        if (point := parse_point(made)) is not None and name in (made, temporary(made)):
            query_id = _find_query(folder.below(name), point.batch) if name == made else ""
            if query_id:
                points[query_id] = (*points.get(query_id, ()), point)
            elif query_id is not None:
                unfinished.append(name)
    return points, unfinished


def _find_query(point: Storage, batch: int) -> str | None:
    """Find the id of the query of a point; "" where it is unfinished, None where it is no longer as it was made."""
    with suppress(StorageError):
        logs = (filter(str.isdecimal, list_if_there(point, folder).files) for folder in (OFFSETS, COMMITS))
        planned, committed = (max(map(int, names), default=-1) for names in logs)
        if not point.list_tree().files if planned < 0 else point.read(f"{OFFSETS}/{planned}") == UNFINISHED:
            return ""
        metadata = parse_metadata(METADATA, point.read(METADATA))
        if committed == batch in (planned, planned - 1) and isinstance(metadata, QueryMetadata):
            return metadata.query_id
    return None
