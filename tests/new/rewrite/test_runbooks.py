"""``docs/runbooks/rewrite.md``, ``edit-state.md`` and ``bootstrap.md``, carried out as they are written."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ckpt as library
from tests.conftest import Ckpt
from tests.new.rewrite.runbook_steps import blocks
from tests.support.places import SAMPLES
from tests.support.spark.queries import STATE_STORES, drain, own_session


def test_rewrite(ckpt: Ckpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLES / "dedup-aggregation-hdfs-4.2", "checkpoints/orders")
    told = {}
    for _, words in blocks("rewrite.md"):
        ran = ckpt(*words.split())
        assert ran.exit_code == 0, ran
        told[words.partition(" --")[0], "--plan" in words] = ran.stdout
    assert told["rewrite checkpoints/orders checkpoints/orders-new", True].split("\n")[3].startswith("PLANNED")
    assert "8 partitions" in told["rewrite checkpoints/orders checkpoints/orders-new", False]
    old, new = (told[f"state count checkpoints/{name}", False].splitlines() for name in ("orders", "orders-new"))
    assert old == new
    assert old[0] == "29 rows as of batch 3"


def test_edit_state(ckpt: Ckpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a query with a window, whose times pandas writes without a zone."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLES / "windowed-aggregation-hdfs-4.2", "checkpoints/orders")
    names: dict[str, Any] = {}
    for kind, text in blocks("edit-state.md"):
        if kind == "python":
            exec(text, names)
        else:
            ran = ckpt(*text.split())
            assert ran.exit_code == 0, ran
    before, after = (
        {(row["key_window_start"], row["key_key"]): row for row in library.read_state_arrow(path).to_pylist()}
        for path in ("checkpoints/orders", "checkpoints/orders-new")
    )
    changed = {key: row for key, row in after.items() if row != before.get(key)}
    assert {key for _, key in changed} == {4, 1000}
    assert {key for _, key in set(before) - set(after)} == {3}
    assert all(row["value_count"] == before[key]["value_count"] - 1 for key, row in changed.items() if key[1] == 4)
    assert datetime(2023, 11, 14, 22, 13, 24, tzinfo=UTC) in {start for start, key in changed if key == 1000}


@pytest.mark.spark
def test_bootstrap(spark: Any, ckpt: Ckpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The totals are those of all rows, of which the stream has seen the last ones only."""
    monkeypatch.chdir(tmp_path)
    seen: list[dict[str, tuple[int, int]]] = []

    def keep(rows: Any, batch: int) -> None:
        seen.append({row.user: (row.orders, row.amount) for row in rows.collect()})

    def arrive(name: str, *rows: tuple[str, int]) -> None:
        lines = [json.dumps({"user": user, "amount": amount}) for user, amount in rows]
        (tmp_path / "history" / f"{name}.json").write_text("\n".join(lines))

    (tmp_path / "history").mkdir()
    arrive("old", ("ada", 5), ("bob", 7), ("ada", 1))
    own = own_session(spark, STATE_STORES["rocksdb"], partitions=3)
    *first, (_, last) = blocks("bootstrap.md")
    names: dict[str, Any] = {"spark": own, "keep": keep}
    for kind, text in first:
        if kind == "python":
            exec(_absolute(text, tmp_path), names)
        else:
            ran = ckpt(*text.split())
            assert ran.exit_code == 0, ran
    assert seen == [], "the first start goes into noop"
    frame = own.read.parquet(str(tmp_path / "state/operator-0"))
    library.write_state({"operator 0": frame}, "checkpoints/of-a-frame", like="checkpoints/first")
    loaded = [library.read_state_arrow(f"checkpoints/{name}").to_pylist() for name in ("orders", "of-a-frame")]
    assert loaded[0] == loaded[1]
    arrive("new", ("ada", 10), ("eve", 2))
    exec(_absolute(last, tmp_path), names)
    assert seen == [{"ada": (3, 16), "eve": (1, 2)}]
    rows = library.read_state_arrow("checkpoints/orders").to_pylist()
    assert sorted(row["key_user"] for row in rows) == ["ada", "bob", "eve"] == sorted({row["key_user"] for row in rows})


@pytest.mark.spark
def test_an_outer_join_puts_out_rows_that_were_not_joined(spark: Any, tmp_path: Path) -> None:
    """Of two rows that the state begins with one says that it was joined already; both expire."""
    own, at = (
        own_session(spark, partitions=2),
        pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
    )

    def arrive(side: str, user: str, time: str) -> None:
        row = {"side": side, "user": user, "at": f"2026-01-01T{time}:00Z"}
        (tmp_path / f"in/{side} {user}.json").write_text(json.dumps(row))

    def start(checkpoint: str, condition: str = "true") -> list[tuple[str, str | None]]:
        rows = own.readStream.schema("side STRING, user STRING, at TIMESTAMP").json(str(tmp_path / "in"))
        rows = rows.where(condition)
        left = rows.where("side = 'left'").selectExpr("user", "at").withWatermark("at", "1 hour")
        right = rows.where("side = 'right'").selectExpr("user AS other", "at AS then").withWatermark("then", "1 hour")
        joined = left.join(right, functions.expr("user = other AND then BETWEEN at AND at + INTERVAL 1 HOUR"), "left")
        return sorted((row.user, row.other) for batch in drain(joined, tmp_path / checkpoint).values() for row in batch)

    functions = pytest.importorskip("pyspark.sql.functions")
    (tmp_path / "in").mkdir()
    arrive("left", "ann", "00:00")
    start("first", "rand() < 0")
    left = pa.table({"key_field0": ["ann", "bob"], "value_user": ["ann", "bob"], "value_at": at})
    sides = {
        "operator 0, left side": left.append_column("matched", pa.array([True, False])),
        "operator 0, right side": library.read_state_arrow(str(tmp_path / "first"), side="right"),
    }
    library.write_state(sides, str(tmp_path / "new"), like=str(tmp_path / "first"))
    arrive("left", "zed", "12:00")
    arrive("right", "zed", "12:30")
    assert start("new") == [("bob", None), ("zed", "zed")]


def _absolute(text: str, folder: Path) -> str:
    """For the session, which was started elsewhere."""
    for name in ("history", "checkpoints", "state"):
        text = text.replace(f'"{name}', f'"{folder}/{name}')
    return text
