"""Plots as data: bars with heights between 0 and 1, at most a few hundred of them: of partitions, and over time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import Batch
from ckpt.texts import plural, span

MOST_BARS = 240
_UNITS = 3  # plots of how far the sources advanced


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what it says when it is pointed at, and how it looks."""

    height: float  # 0 to 1
    says: str
    kind: str = "plain"  # plain, bad, gap or unknown


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars beside one another, with what stands at the ends of both axes."""

    name: str
    bars: tuple[Bar, ...]
    top: str  # the value of a bar of full height
    first: str
    last: str
    note: str = ""  # a sentence: what is to be seen, for somebody who does not see it


def chart_partitions(
    name: str, values: Sequence[tuple[int, int | None]], shown: Callable[[int], str], compared: str
) -> Chart | None:
    """A bar for each partition, or for the largest of some neighbours; None where no value is known.

    ``compared`` says what the largest is, in the sentence below: ``the largest``.
    """
    known = [value for _, value in values if value is not None]
    if not known:
        return None
    highest, middle = max(known), median(known)
    bars = []
    step = -(-len(values) // MOST_BARS)  # neighbours share a bar where there are too many
    for run in (values[at : at + step] for at in range(0, len(values), step)):
        here = [(value, partition) for partition, value in run if value is not None]
        label = span("partition", run[0][0], run[-1][0])
        if not here:
            bars.append(Bar(0.0, f"{label}: unknown", "unknown"))
            continue
        value, partition = max(here)
        which = "" if len(run) == 1 else f", {compared} is partition {partition} with"
        bars.append(Bar(value / highest if highest else 0.0, f"{label}{which}: {shown(value)}"))
    where = next(partition for partition, value in values if value == highest)
    times = f", {highest / middle:,.1f} times the median" if middle and len(known) > 1 else ""
    note = f"{compared.capitalize()} is partition {where}: {shown(highest)}{times}."
    return Chart(name, tuple(bars), shown(highest), str(values[0][0]), str(values[-1][0]), note)


@dataclass(slots=True)
class TimelineStep:
    """Batches with neighbouring ids, of which some may be missing."""

    first: int
    last: int
    batches: int = 0
    seconds: list[float] = field(default_factory=list)  # from the planning of the batch before to that of each
    amounts: Counter[str] = field(default_factory=Counter)  # by unit
    uncommitted: int = 0
    unreadable: int = 0
    missing: int = 0
    backwards: int = 0
    lag: float | None = None  # seconds from the watermark to the planning of the last batch
    planned_ms: int | None = None  # the last batch

    @property
    def label(self) -> str:
        """The batches in words."""
        return span("batch", self.first, self.last)

    @property
    def status(self) -> str:
        """Problems of the batches in words."""
        counts = (
            (self.uncommitted, "uncommitted"),
            (self.missing, "missing"),
            (self.unreadable, "unreadable"),
            (self.backwards, "with offsets that went back"),
        )
        parts = [f"{count:,} {word}" for count, word in counts if count]
        return ", ".join(parts) or "all committed"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The batches that were read."""

    steps: tuple[TimelineStep, ...]
    charts: tuple[Chart, ...]
    units: tuple[str, ...]
    batches: int
    older: int  # batches that were not read


def make_timeline(checkpoint: Checkpoint, batches: Sequence[Batch]) -> Timeline | None:
    """Of the batches given, oldest first; None without any."""
    if not batches:
        return None
    first, last = batches[0].batch_id, batches[-1].batch_id
    width = max(1, -(-(last - first + 1) // MOST_BARS))
    steps = [TimelineStep(begin, min(begin + width - 1, last)) for begin in range(first, last + 1, width)]
    _count(steps, batches, width)
    _count_gaps(steps, checkpoint.offsets.missing, width)
    units = tuple(unit for unit, _ in sum((step.amounts for step in steps), Counter()).most_common(_UNITS))
    charts = tuple(_make_charts(steps, units))
    return Timeline(tuple(steps), charts, units, len(batches), len(checkpoint.offsets.ids) - len(batches))


def _count(steps: Sequence[TimelineStep], batches: Iterable[Batch], width: int) -> None:
    before: int | None = None
    for batch in batches:
        step = steps[(batch.batch_id - steps[0].first) // width]
        step.batches += 1
        step.uncommitted += not batch.committed
        step.unreadable += batch.unreadable is not None
        for advance in batch.advanced:
            if advance is not None:
                step.backwards += bool(advance.went_back)
                if advance.amount is not None and advance.amount >= 0:
                    step.amounts[advance.unit] += advance.amount
        if batch.timestamp_ms is not None:
            if before is not None:
                step.seconds.append(max(0, batch.timestamp_ms - before) / 1000)
            before = step.planned_ms = batch.timestamp_ms
            if batch.watermark_ms:
                step.lag = max(0, batch.timestamp_ms - batch.watermark_ms) / 1000


def _count_gaps(steps: Sequence[TimelineStep], missing: Iterable[tuple[int, int]], width: int) -> None:
    first = steps[0].first
    for begin, end in missing:
        if end < first:
            continue
        for step in steps[max(0, (begin - first) // width) : (end - first) // width + 1]:
            step.missing += min(end, step.last) - max(begin, step.first) + 1


def _make_charts(steps: Sequence[TimelineStep], units: Iterable[str]) -> Iterator[Chart]:
    slowest = [max(step.seconds) if step.seconds else None for step in steps]
    yield from _make_chart("Time since the batch before in the log", "the longest", steps, slowest, _duration)
    for unit in units:
        amounts = [float(step.amounts[unit]) if step.batches else None for step in steps]
        shown = ("{:,.0f} " + unit).format
        yield from _make_chart(f"{unit.capitalize()} read", "the most", steps, amounts, shown)
    yield from _make_chart(
        "From the watermark to the planning of the batch", "the longest", steps, [step.lag for step in steps], _duration
    )
    yield _chart_statuses(steps)


def _make_chart(
    name: str,
    compared: str,
    steps: Sequence[TimelineStep],
    values: Sequence[float | None],
    shown: Callable[[float], str],
) -> Iterator[Chart]:
    highest = max((value for value in values if value is not None), default=0)
    if not highest:
        return
    bars = tuple(
        Bar(0.0, f"{step.label}: unknown", "unknown")
        if value is None
        else Bar(value / highest, f"{step.label}: {shown(value)}")
        for step, value in zip(steps, values, strict=True)
    )
    where = next(step for step, value in zip(steps, values, strict=True) if value == highest)
    note = f"{compared.capitalize()} is {shown(highest)}, at {where.label}."
    yield Chart(name, bars, shown(highest), str(steps[0].first), str(steps[-1].last), note)


def _chart_statuses(steps: Sequence[TimelineStep]) -> Chart:
    """Bars of three heights: committed low, gaps in the middle, and what is to be looked at high."""
    bars = []
    for step in steps:
        bad = step.uncommitted or step.unreadable or step.backwards
        height, kind = (1.0, "bad") if bad else (0.6, "gap") if step.missing else (0.3, "plain")
        bars.append(Bar(height, f"{step.label}: {step.status}", kind))
    totals = Counter[str]()
    for step in steps:
        totals.update(uncommitted=step.uncommitted, missing=step.missing, unreadable=step.unreadable)
    counts = ", ".join(f"{count:,} {word}" for word, count in totals.items() if count) or "all committed, none missing"
    batches = plural(sum(step.batches for step in steps), "batch")
    note = f"{batches}: {counts}. Low bars are committed, middle ones missing, high ones need a look."
    return Chart("Committed and missing", tuple(bars), "", str(steps[0].first), str(steps[-1].last), note)


def _duration(seconds: float) -> str:
    """``0.8 s``, ``3 min 20 s``, ``2 d 4 h``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if minutes < 60:
        return f"{minutes} min {int(seconds % 60)} s"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{days:,} d {hours % 24} h"
