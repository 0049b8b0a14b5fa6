"""Plots as data: bars with heights between 0 and 1, at most a few hundred of them, however many values there are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from ckpt.texts import span

MOST_BARS = 240


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


def _runs(values: Sequence[tuple[int, int | None]], most: int = MOST_BARS) -> list[Sequence[tuple[int, int | None]]]:
    """Neighbours together, so that there are at most so many groups, all but the last equally large."""
    step = max(1, -(-len(values) // most))
    return [values[at : at + step] for at in range(0, len(values), step)]


def chart_partitions(
    name: str, values: Sequence[tuple[int, int | None]], shown: Callable[[int], str], compared: str
) -> Chart | None:
    """A bar for each partition, or for the largest of some neighbours; None where no value is known.

    Args:
        name: What the values are.
        values: Each partition and its value; None is not known.
        shown: A value as text.
        compared: What the largest is, in the sentence below: ``the largest``.

    """
    known = [value for _, value in values if value is not None]
    if not known:
        return None
    highest, middle = max(known), median(known)
    bars = []
    for run in _runs(values):
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
