"""A key column more whose value in all old rows is NULL: `--default COLUMN=null`."""

from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.new.evolve.columns_run import _open
from tests.new.evolve.running import write_rows
from tests.support.spark.queries import drain


@pytest.mark.spark
def test_old_groups_are_those_of_null(spark: Any, tmp_path: Path) -> None:
    session = _open(spark, {})

    def build(*keys: str) -> Any:
        rows = session.readStream.schema("k INT, v INT, ready BOOLEAN").json(str(tmp_path / "in"))
        return rows.groupBy(*keys).agg({"v": "sum", "*": "count"})

    def run(frame: Any, checkpoint: str) -> dict[Any, Any]:
        batches = drain(frame, checkpoint, "update").values()
        return {(row["k"], row["ready"]): row for batch in batches for row in batch if "ready" in frame.columns}

    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    write_rows(tmp_path / "in" / "0.json", [{"k": n % 3, "v": n} for n in range(30)], 1.7e9)
    run(build("k"), old)
    has, wants = (
        ckpt.describe_query(build(*keys), output_mode="update", checkpoint=old) for keys in (["k"], ["k", "ready"])
    )
    plan, _ = ckpt.evolve(old, new, to=wants, from_query=has, default={"ready": "null"}, jobs=1)
    assert (plan.refused, plan.written) == (None, True)
    later = [{"k": n % 3, "v": n, "ready": (None, True, False)[n // 3 % 3]} for n in range(18)]
    write_rows(tmp_path / "in" / "1.json", later, 1.7e9 + 1)
    got = run(build("k", "ready"), new)
    assert got == run(build("k", "ready"), str(tmp_path / "control"))
    assert len(got) == 9
