"""A deduplication that gets an expiry keeps its keys, until the newest of them expires."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.types import Knowledge
from tests.new.evolve.columns_run import _open
from tests.new.evolve.running import write_rows
from tests.support.spark.queries import drain

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FILES = (
    [("a", 0), ("b", 55), ("c", 60)],  # the old query; the watermark is 50 s then
    [("b", 60), ("c", 61), ("d", 62)],  # repeats
    [("e", 75), ("b", 64), ("a", 66)],  # likewise; the watermark is 65 s then
    [("f", 90)],  # and 80 s
    [("d", 91)],
    [("c", 92)],
)


class Rows:
    """A deduplication of ids, whose delay is 10 s."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session, self.folder = session, folder

    def put(self, *numbers: int) -> None:
        for number in numbers:
            rows = [
                {"id": own, "number": number, "at": (BEGIN + timedelta(seconds=at)).isoformat()}
                for own, at in FILES[number]
            ]
            write_rows(self.folder / "in" / f"{number}.json", rows, 1.7e9 + number)

    def build(self, columns: tuple[str, ...], *, within: bool) -> Any:
        rows = self.session.readStream.schema("id STRING, number INT, at TIMESTAMP").option("maxFilesPerTrigger", 1)
        rows = rows.json(str(self.folder / "in")).withWatermark("at", "10 seconds")
        return rows.dropDuplicatesWithinWatermark([*columns]) if within else rows.dropDuplicates([*columns])

    def run(self, frame: Any, checkpoint: str) -> list[tuple[str, int]]:
        """Return ids with the number of their file."""
        rows = [(row["id"], row["number"]) for batch in drain(frame, checkpoint).values() for row in batch]
        return sorted(rows, key=lambda row: (row[1], row[0]))


@pytest.mark.spark
@pytest.mark.parametrize(("columns", "verdict"), [(("id",), Knowledge.UNKNOWN), (("id", "at"), Knowledge.FULL)])
def test_keys_stay_until_the_newest_expires(
    spark: Any, tmp_path: Path, columns: tuple[str, ...], verdict: Knowledge
) -> None:
    rows = Rows(_open(spark, {}), tmp_path)
    old, new, control = (str(tmp_path / name) for name in ("old", "new", "control"))
    rows.put(0)
    before = rows.run(rows.build(columns, within=False), old)
    has, wants = (
        ckpt.describe_query(rows.build(columns, within=within), output_mode="append", checkpoint=old)
        for within in (False, True)
    )
    plan, _ = ckpt.evolve(old, new, to=wants, from_query=has, jobs=1)
    assert (plan.refused, plan.written, plan.verdict) == (None, True, verdict)
    expires = {row["value_expiresAtMicros"] for row in ckpt.read_state_arrow(new).to_pylist()}
    assert {int(each.timestamp() * 1000) if isinstance(each, datetime) else each // 1000 for each in expires} == {
        int(BEGIN.timestamp() * 1000) + 70_001
    }

    rows.put(1, 2, 3, 4, 5)
    after = rows.run(rows.build(columns, within=True), new)
    wanted = rows.run(rows.build(columns, within=True), control)
    assert [row for row in wanted if row[1] == 0] == before
    if verdict is Knowledge.FULL:
        assert before + after == wanted
    else:  # the query from the beginning has forgotten a, whose row came 60 s before
        assert [row for row in wanted if row not in before + after] == [("a", 2)]
        assert len(before + after) == len(wanted) - 1
        assert ("c", 5) in after, "evicted"
