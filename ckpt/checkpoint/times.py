"""A time as the address of a batch: the one that was the newest committed then, by the times that a checkpoint has.

A batch is committed after it is planned, and before the next one is. Its offsets say when it was planned, by the clock
of the driver. When its commit was written only the time of the file says, and that of a copied file is the time of the
copy: it counts where it is between the two plans, and that of the commit before is, too. What two batches, or none,
can have been is refused with both.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Set
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import time
from typing import NamedTuple, TypeAlias

from ckpt.checkpoint.checkpoint import COMMITS, Checkpoint
from ckpt.errors import CkptError, UsageError, one_line
from ckpt.model import BatchAt
from ckpt.texts import instant, span

BatchOrTime: TypeAlias = int | datetime
"""A batch by its number, or the newest that was committed at a time; one without a zone is UTC."""
_AGO = re.compile(r"-(?=\d)(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")
_FORMS = 'write a time as 2026-05-31T07:30:00Z, "2026-05-31 09:30 Europe/Berlin", or -2h for two hours ago'
_SHOWN = 4  # batches that a refusal names


def parse_time(text: str) -> datetime:
    """Parse a time: ISO 8601, with or without a zone or the name of one behind it, or how long ago, such as ``-1d12h``.

    Raises UsageError.
    """
    if (ago := _AGO.fullmatch(text)) is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in ago.groups())
        return datetime.now(UTC) - timedelta(days, seconds, minutes=minutes, hours=hours)
    moment, _, zone = text.rpartition(" ")
    named = zone[:1].isalpha()
    try:
        parsed = datetime.fromisoformat(moment if named else text)
    except ValueError:
        parsed = None
    if parsed is None or text.isdecimal() or (named and parsed.tzinfo is not None):  # 20260531 is a batch, not a day
        raise UsageError(f"{one_line(text)!r} is no time: {_FORMS}")
    if not named:
        return parsed
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return parsed.replace(tzinfo=ZoneInfo(zone))
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise UsageError(f"this machine knows no time zone {one_line(zone)}") from None


def read_time(moment: datetime) -> tuple[int, str]:
    """A time as ms since 1970, and in words. Raises UsageError where the clocks of its zone showed it twice, or not."""
    if moment.tzinfo is None:
        ms = _to_ms(moment.replace(tzinfo=UTC))
        return ms, f"{_spell(ms)} (UTC, as no zone was given)"
    later = moment.replace(fold=1)
    if moment.utcoffset() != later.utcoffset() and not moment.fold:
        either = " or ".join(sorted({_spell(moment), _spell(later)}))
        local = f"{moment.isoformat(' ')[:16]} {moment.tzinfo}"
        raise UsageError(f"{one_line(local)} is not one time, because the clocks were changed: write {either}")
    return _to_ms(moment), _spell(moment)


def _to_ms(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _spell(moment: datetime | int) -> str:
    """A time in UTC, with its ms where it has any."""
    ms = moment if isinstance(moment, int) else _to_ms(moment)
    return instant(ms) if ms % 1000 == 0 else f"{instant(ms)[:-1]}.{ms % 1000:03}Z"


class NotHere(CkptError):
    """The batch of a time may be older than all that the logs still have."""


class _Stage(NamedTuple):
    """From a recorded time on: what can have been the newest committed batch, and why it is not known which."""

    begin_ms: int
    newest: Set[int | None]  # None: none of those that are here
    why: str = ""


class _Timeline:
    """Recorded times at which the batches of a checkpoint were planned and committed."""

    def __init__(self, checkpoint: Checkpoint, now_ms: int) -> None:
        self.now_ms, self.ids = now_ms, checkpoint.offsets.ids
        self.committed = [batch for batch in self.ids if batch in checkpoint.commits]
        self.planned = {batch: ms for batch in self.ids if (ms := checkpoint.planned_ms(batch))}
        self.next = dict(pairwise(self.ids))
        infos = checkpoint.listing.in_folder(COMMITS)
        times = ((batch, info.mtime_ms) for batch in self.committed if (info := infos.get(str(batch))) is not None)
        self.files = {batch: ms for batch, ms in times if ms is not None}
        self.unit = 0 if any(ms % 1000 for ms in self.files.values()) else 999  # some storages know seconds only
        before, self.written = None, dict[int, tuple[int, int]]()
        for batch in self.committed:
            if self._fits(batch) and (batch in self.next if before is None else self._fits(before)):
                ms = self.files[batch]
                self.written[batch] = max(ms, self.planned[batch]), min(ms + self.unit, self._find_end(batch))
            before = batch
        self.stages = [stage for stage in self._list_stages() if stage.begin_ms]

    def _find_end(self, batch: int) -> int:
        return self.planned.get(self.next[batch], -1) if batch in self.next else self.now_ms

    def _fits(self, batch: int) -> bool:
        ms = self.files.get(batch)
        return ms is not None and 0 < self.planned.get(batch, 0) <= ms + self.unit and ms <= self._find_end(batch)

    def _find_latest(self, batch: int) -> int:
        """The latest time at which a batch can have been committed, no later than its copy; 0 where none is known."""
        ends = self.planned.get(self.next.get(batch, -1), 0), self.files.get(batch, 0)
        return min(filter(None, ends), default=0)

    def _list_stages(self) -> Iterator[_Stage]:
        """List all recorded times in the order of the batches; 0 is one that is not known."""
        newest: Set[int | None] = {None}
        begin, why = 0, ""
        for before, batch in pairwise((None, *self.ids)):
            assert batch is not None
            planned, known = self.planned.get(batch, 0), self.written.get(batch)
            following = self.committed[bisect_left(self.committed, batch) :][:1]
            if before is not None and batch > before + 1:
                why, newest = f"{span('batch', before + 1, batch - 1)} left no offsets", newest | {*following}
                yield _Stage(begin, newest, why)
            if batch not in self.committed:
                if batch in self.next:
                    why, newest = f"batch {batch} has no commit", newest | {*following}
                yield _Stage(begin := planned or begin, newest, why)
                continue
            if not planned:
                why, newest = f"offsets/{batch} has no time", newest | {batch}
                yield _Stage(begin, newest, why)
            if known is None:
                why, newest = why or f"no file shows when batch {batch} was committed", newest | {batch}
            yield _Stage(begin := planned or begin, newest, why)
            first, last = known or (0, self._find_latest(batch))
            if first < last:
                yield _Stage(first, newest | {batch}, why or "the storage keeps times in seconds")
            if last:
                newest, why, begin = {batch}, "", last
                yield _Stage(begin, newest)

    def find(self, ms: int) -> tuple[Set[int | None], str, str]:
        """Find what can have been the newest committed batch, why it is not known, and a step back of the clock."""
        newest: Set[int | None] = set()
        why, steps = "", list[str]()
        ends = [*(stage.begin_ms for stage in self.stages[1:]), self.now_ms + 1]
        longest = max((b - a.begin_ms for a, b in zip(self.stages, ends[:-1], strict=False)), default=0)
        for (begin, known, doubt), end in zip(self.stages, ends, strict=True):
            if begin <= ms < end:
                newest, why = newest | known, why or doubt
            elif end < begin:
                steps.append(f"the clock went back from {_spell(begin)} to {_spell(end)}")
                if 2 * end - begin - longest <= ms <= 2 * begin - end + longest:  # it ran on for a while before that
                    newest, why = newest | known, why or steps[-1]
        return newest, why if len(newest) > 1 or why not in steps else "", "; ".join(steps[:1])

    def describe(self, batch: int | None) -> str:
        """Describe a batch with its times."""
        if batch is None:
            return f"none, or one before batch {self.ids[0]}"
        planned = f"planned {_spell(self.planned[batch])}" if batch in self.planned else "planned at an unknown time"
        by = f"committed by {_spell(self._find_latest(batch) or self.now_ms)}"
        done = f"committed {_spell(self.written[batch][0])}" if batch in self.written else by
        return f"batch {batch} ({planned}, {done if batch in self.committed else 'not committed'})"


def find_batch(checkpoint: Checkpoint, batch: BatchOrTime | None) -> int | None:
    """Find the batch that was the newest committed one at a time; a number, or None, is returned as it is.

    The complete logs have to be read. Raises UsageError for a time to come, or that a zone does not have, and CkptError
    with the batches that it can be, and their times, where the files do not show which.
    """
    if not isinstance(batch, datetime):
        return batch
    ms, spelled = read_time(batch)
    line = _Timeline(checkpoint, int(time() * 1000))
    if ms > line.now_ms:
        raise UsageError(f"{spelled} is still to come: here it is {_spell(line.now_ms)}")
    if not line.stages:
        raise CkptError(f"{checkpoint.uri}: no offsets say when a batch was planned: name the batch by its number")
    newest, why, step = line.find(ms)
    if not newest - {None}:
        oldest = line.describe(next(iter(line.committed), line.ids[0]))
        raise NotHere(f"{checkpoint.uri}: no batch here was committed at {spelled}: the oldest is {oldest}")
    if len(newest) > 1 or why:
        named = [line.describe(each) for each in sorted(newest, key=lambda each: -1 if each is None else each)]
        names = " or ".join([*named[:_SHOWN], *([f"{len(named) - _SHOWN} more"] if len(named) > _SHOWN else [])])
        error = NotHere if None in newest else CkptError
        raise error(f"{checkpoint.uri}: at {spelled} it may be {names}: {why}. Name the batch by its number")
    known = BatchAt(max(filter(None, newest), default=0))
    following = line.next.get(known)
    then = f", and the next is {line.describe(following)}" if following is not None else ""
    files = " and of the files of commits/" if line.written.keys() & {known, following} else ""
    known.says = f"{spelled} is {line.describe(known)}{then}, by the times in offsets/{files}{step and f'; {step}'}"
    return known
