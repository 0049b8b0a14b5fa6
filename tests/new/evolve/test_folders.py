"""A pattern of folders in place of one of them: the watermark, or ``maxFileAge``, drops what the others have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.new.evolve.running import write_rows
from tests.support.spark.queries import drain, own_session

pytestmark = pytest.mark.spark


def test_old_rows_of_a_folder_more_are_dropped_and_evolve_says_so(spark: Any, tmp_path: Path) -> None:
    session = own_session(spark, partitions=1)

    def make(folder: str) -> Any:
        rows = session.readStream.schema("id LONG, t TIMESTAMP").option("maxFilesPerTrigger", "1")
        return rows.json(str(tmp_path / "in" / folder)).withWatermark("t", "30 seconds").dropDuplicates(["id", "t"])

    def run(folder: str, checkpoint: Path) -> list[int]:
        return sorted(row.id for batch in drain(make(folder), checkpoint).values() for row in batch)

    for number, folder in enumerate("ab"):
        for minute in range(2):
            rows = [{"id": number * 100 + second, "t": f"2024-01-01T01:{minute:02}:{second:02}Z"} for second in (0, 50)]
            write_rows(tmp_path / "in" / folder / f"{minute}.json", rows, 1.7e9 + minute)
    old, new, control = (tmp_path / name for name in ("old", "new", "control"))
    assert run("a", old) == [0, 0, 50, 50]
    wants = {name: ckpt.describe_query(make(name), checkpoint=str(old)) for name in ("a", "[ab]")}
    readiness = ckpt.preflight(str(old), expect=wants["[ab]"], from_query=wants["a"])
    assert readiness.go
    assert [rated.finding.diagnosis.code for rated in readiness.warnings] == ["CKPT481"]
    to_both: dict[str, Any] = {"to": wants["[ab]"], "from_query": wants["a"]}
    refused, _ = ckpt.evolve(str(old), str(new), **to_both)
    assert refused.needs_acceptance
    plan, _ = ckpt.evolve(str(old), str(new), **to_both, accept_from_now_on=True)
    assert (plan.refused, plan.verdict.value, plan.written) == (None, "from-now-on", False)

    assert run("[ab]", control) == [0, 0, 50, 50, 100, 100, 150, 150]
    assert run("[ab]", old) == [150]  # three of four rows of the folder are older than the watermark


def test_without_a_watermark_old_files_of_a_folder_more_are_passed_over(spark: Any, tmp_path: Path) -> None:
    session = own_session(spark, partitions=1)

    def run(folder: str, checkpoint: Path) -> list[int]:
        return [row[0] for batch in drain(make(folder), checkpoint, "update").values() for row in batch][-1:]

    def make(folder: str) -> Any:
        return session.readStream.schema("id LONG").json(str(tmp_path / "in" / folder)).groupBy().count()

    for age_days, folder in enumerate(("a", "b", "bold")):
        write_rows(tmp_path / "in" / folder / "0.json", [{"id": 1}], 1.7e9 - 4 * 86_400 * age_days)
    old, control = tmp_path / "old", tmp_path / "control"
    assert run("a", old) == [1]
    wants = {name: ckpt.describe_query(make(name), output_mode="update", checkpoint=str(old)) for name in ("a", "*")}
    plan, _ = ckpt.evolve(str(old), str(tmp_path / "new"), to=wants["*"], from_query=wants["a"], plan=True)
    assert plan.needs_acceptance
    assert "maxFileAge" in str(plan.refused)
    assert (run("*", old), run("*", control)) == ([2], [3])
