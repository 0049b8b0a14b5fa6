"""Windows made of old ones: which of them Spark then emits as a query does that has run from the beginning."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ckpt
from ckpt.new.evolve.origins import MadeWindow
from ckpt.new.rewrite.reshaping import _make_windows
from ckpt.query.compare_queries import is_made_of
from ckpt.query.description import DescribedWindow
from ckpt.types import Knowledge
from tests.new.evolve.columns_run import _open
from tests.new.evolve.running import write_rows
from tests.support.spark.queries import drain

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def list_windows(window: DescribedWindow, time: int) -> list[int]:
    """List the starts of the windows that a time is in."""
    return [
        start
        for start in range(time - window.length_us + 1, time + 1)
        if (start - window.offset_us) % window.slide_us == 0
    ]


def test_a_time_is_in_the_same_windows_whether_it_was_in_old_ones_first() -> None:
    """Each time counts once in each new window, however many old ones it is in."""
    choose, made = random.Random(5), 0
    for _ in range(800):
        old, new = (DescribedWindow("t", choose.randint(1, 9), choose.randint(1, 6), 0) for _ in range(2))
        if not is_made_of(old, new) or old.slide_us > old.length_us:
            continue
        made += 1
        for time in range(20):
            starts = list_windows(old, time)
            windows = pa.StructArray.from_arrays([pa.array(starts), pa.array(starts)], ["start", "end"])
            parts = MadeWindow(old.length_us, new.length_us, new.slide_us, new.offset_us)
            _, sums = _make_windows(windows, parts)
            own = [each["start"] for each in sums.to_pylist() if each["start"] <= time < each["end"]]
            assert sorted(own) == list_windows(new, time), (old, new, time)
    assert made > 20


@pytest.mark.parametrize(
    ("old", "new", "made"),
    [
        ((10, 2), (20, 2), True),
        ((10, 2), (10, 4), True),
        ((5, 5), (30, 5), True),
        ((5, 2), (10, 2), False),  # two old ones do not follow each other
        ((10, 2), (10, 3), False),
        ((10, 2), (15, 2), False),
        ((10, 2), (5, 1), False),
    ],
)
def test_which_windows_are_made_of_old_ones(old: tuple[int, int], new: tuple[int, int], made: bool) -> None:
    assert is_made_of(*(DescribedWindow("t", *each, 0) for each in (old, new))) is made
    assert not is_made_of(DescribedWindow("t", *old, 0), DescribedWindow("t", *new, 1)) or old[1] == 1


class Windows:
    """Counts by window of rows of which each comes a second after the one before; files of 20."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session, self.folder = session, folder

    def put(self, *numbers: int) -> None:
        for number in numbers:
            times = [(BEGIN + timedelta(seconds=20 * number + each)).isoformat() for each in range(20)]
            write_rows(self.folder / "in" / f"{number}.json", [{"at": time} for time in times], 1.7e9 + number)

    def build(self, window: tuple[int, int]) -> Any:
        from pyspark.sql import functions

        rows = self.session.readStream.schema("at TIMESTAMP").option("maxFilesPerTrigger", 1)
        rows = rows.json(str(self.folder / "in")).withWatermark("at", "0 seconds")
        return rows.groupBy(functions.window("at", *(f"{each} seconds" for each in window))).count()

    def run(self, window: tuple[int, int], checkpoint: str) -> dict[int, int]:
        """Return the count by the start of each window, in seconds; each is emitted once."""
        frame = self.build(window).selectExpr("CAST(window.start AS LONG) AS start", "count")
        rows = [row for batch in drain(frame, checkpoint).values() for row in batch]
        counts = {row["start"] - int(BEGIN.timestamp()): row["count"] for row in rows}
        assert len(counts) == len(rows)
        return counts


@pytest.mark.spark
@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [((10, 2), (20, 2), Knowledge.FROM_NOW_ON), ((10, 2), (10, 4), Knowledge.FULL)],
)
def test_open_windows_are_those_of_a_query_from_the_beginning(
    spark: Any, tmp_path: Path, old: tuple[int, int], new: tuple[int, int], verdict: Knowledge
) -> None:
    """In append mode, after the watermark has evicted some: all but those that the plan names."""
    windows = Windows(_open(spark, {}), tmp_path)
    windows.put(0, 1, 2)
    windows.run(old, str(tmp_path / "old"))
    has, wants = (
        ckpt.describe_query(windows.build(each), output_mode="append", checkpoint=str(tmp_path / "old"))
        for each in (old, new)
    )
    plan, _ = ckpt.evolve(
        str(tmp_path / "old"), str(tmp_path / "new"), to=wants, from_query=has, accept_from_now_on=True, jobs=1
    )
    assert (plan.written, plan.verdict) == (True, verdict)

    windows.put(3, 4)
    counts = windows.run(new, str(tmp_path / "new"))
    control = windows.run(new, str(tmp_path / "control"))
    watermark = 59  # the time of the last row of before
    still = {start: count for start, count in control.items() if start + new[0] > watermark}
    assert counts.keys() == still.keys()
    lacking = {start for start, count in counts.items() if count != still[start]}
    assert lacking == {start for start in still if start + old[0] <= watermark and new[0] > old[0]}
    if lacking:
        first, last = (f"{BEGIN + timedelta(seconds=each(lacking)):%H:%M:%S}" for each in (min, max))
        why = str(plan.operators[0].why)
        assert f"{first}Z to" in why
        assert f"{last}Z have only" in why
