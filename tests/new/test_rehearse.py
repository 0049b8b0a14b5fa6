"""``ckpt.rehearse`` with real queries: what they do on the copy, and that nothing else is written."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

import ckpt
from tests.changes.applying import tree
from tests.new.evolve.running import Inputs
from tests.support.services.fixtures import Upload
from tests.support.spark.live import trace
from tests.support.spark.queries import drain, own_session

pytestmark = pytest.mark.spark


def count_rows(spark: Any, folders: list[Path], keys: str = "id % 3 AS k", **options: str) -> Any:
    reader = spark.readStream.schema("id LONG").options(maxFilesPerTrigger="1", **options)
    frames = [reader.json(str(folder)) for folder in folders]
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.union(other)
    return frame.selectExpr(keys).groupBy("k").count()


def run_count(spark: Any, root: Path) -> None:
    """Run the query over all files of `a`, and stop it."""
    drain(count_rows(own_session(spark, partitions=2), [root / "a"]), root / "cp", "update", "noop")


@pytest.fixture(scope="module")
def root(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of `a`, one of which the query has read, and two of `b`; its checkpoint, and its sink."""
    root = tmp_path_factory.mktemp("rehearse")
    inputs = Inputs(spark, root)
    inputs.put("a")
    run_count(spark, root)
    for tag in "aabb":
        inputs.put(tag)
    return root


def list_leftovers() -> set[str]:
    return {path.name for path in Path(gettempdir()).glob("ckpt-rehearse-*")}


def test_a_changed_query_runs_beside_the_old_one(spark: Any, root: Path) -> None:
    before, leftovers = trace(root), list_leftovers()
    old, new = (count_rows(spark, [root / tag for tag in tags]) for tags in ("a", "ab"))

    rehearsal = ckpt.rehearse(root / "cp", to=new, batches=2, old_query=old, output_mode="update")

    assert rehearsal.starts
    assert (rehearsal.new.evolved, rehearsal.new.refused) == (True, None)
    assert [(batch.batch, batch.rows_in) for batch in rehearsal.new.batches] == [(1, 6), (2, 6)]
    assert rehearsal.old is not None
    assert [(batch.batch, batch.rows_in, batch.rows_out) for batch in rehearsal.old.batches] == [(1, 3, 3), (2, 3, 3)]
    assert all(batch.ms > 0 for batch in rehearsal.new.batches)
    counts = [
        {row.key["key_k"]: tuple(side and side["value_count"] for side in (row.before, row.after)) for row in unit.rows}
        for query in (rehearsal.new, rehearsal.old)
        for unit in query.state
    ]
    assert counts == [{0: (1, 5), 1: (1, 5), 2: (1, 5)}, {0: (1, 3), 1: (1, 3), 2: (1, 3)}]
    page = str(rehearsal)
    assert page.startswith("THE QUERY STARTS")
    assert "rows in" in page
    assert len(repr(rehearsal)) < 300
    assert trace(root) == before
    assert list_leftovers() <= leftovers


def test_a_query_that_fails_is_explained(spark: Any, root: Path) -> None:
    before, leftovers = trace(root), list_leftovers()

    rehearsal = ckpt.rehearse(
        root / "cp", to=count_rows(spark, [root / "a"], "CAST(id AS STRING) AS k"), output_mode="update"
    )

    assert not rehearsal.starts
    assert rehearsal.new.batches == ()
    assert rehearsal.new.refused is not None
    assert "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE" in str(rehearsal.new.error)
    assert rehearsal.new.explanation is not None
    assert rehearsal.new.explanation.matches
    assert str(rehearsal).startswith("THE QUERY FAILS")
    assert trace(root) == before
    assert list_leftovers() <= leftovers


def test_sources_that_a_batch_would_change_are_refused(spark: Any, root: Path) -> None:
    before = trace(root)
    for frame, words in (
        (count_rows(spark, [root / "a"], cleanSource="delete"), "cleanSource=delete"),
        (spark.readStream.format("socket").options(host="localhost", port=1).load().selectExpr("1 AS k"), "source 0"),
    ):
        with pytest.raises(ckpt.UsageError, match=words):
            ckpt.rehearse(root / "cp", to=frame, output_mode="append")
    assert trace(root) == before


def test_the_same_query_ends_with_its_rows(spark: Any, root: Path) -> None:
    rehearsal = ckpt.rehearse(root / "cp", to=count_rows(spark, [root / "a"]), batches=5, output_mode="update")

    assert (rehearsal.new.end, rehearsal.new.evolved) == (ckpt.types.RehearsalEnd.NO_MORE_ROWS, False)
    assert len(rehearsal.new.batches) == 2


def test_a_checkpoint_on_remote_storage(spark: Any, root: Path, memory_uri: Upload) -> None:
    """The rehearsal runs on a local copy of it; the data frame of the old query says what that had computed."""
    uri, options = memory_uri(root / "cp")
    before = tree(uri, options)
    rows = [count_rows(spark, [root / tag for tag in tags]) for tags in ("a", "ab")]

    rehearsal = ckpt.rehearse(
        uri, to=rows[1], batches=1, old_query=rows[0], storage_options=options, output_mode="update"
    )

    assert (rehearsal.starts, rehearsal.new.evolved, rehearsal.new.knows_less) == (True, True, ())
    assert [batch.rows_in for batch in rehearsal.new.batches] == [6]
    assert tree(uri, options) == before


@pytest.fixture(scope="module")
def at_rest(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that has read all of its two files, one in each batch."""
    root = tmp_path_factory.mktemp("at-rest")
    inputs = Inputs(spark, root)
    inputs.put("a")
    inputs.put("a")
    run_count(spark, root)
    return root


@pytest.mark.parametrize(
    ("keys", "with_old", "starts", "headline"),
    [
        ("id % 3 AS k", False, True, "THE QUERY STARTS: it ran 1 batch on a temporary copy"),
        ("CAST(id AS STRING) AS k", False, False, "THE QUERY FAILS after 0 batches"),
        ("id % 2 AS k", True, True, "THE QUERY STARTS, BUT DO NOT START IT: "),
        ("id + CAST(raise_error('no') AS LONG) AS k", False, False, "NOT KNOWN TO START: its sources have no new rows"),
        ("id % 2 AS k, id", True, True, "THE QUERY STARTS: it ran 1 batch on a temporary copy"),
    ],
    ids=("same", "other-type", "other-key", "error", "evolved"),
)
def test_without_new_rows_it_reads_those_of_a_batch_again(
    spark: Any, at_rest: Path, keys: str, with_old: bool, starts: bool, headline: str
) -> None:
    """Spark compares schemas once it plans a batch: without one nothing would be known."""
    before = trace(at_rest)
    old = count_rows(spark, [at_rest / "a"])
    new = old.select("*") if keys.endswith("id") else count_rows(spark, [at_rest / "a"], keys)
    if keys.endswith("id"):  # one aggregate more: on a copy that ckpt.evolve has made
        rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(str(at_rest / "a"))
        new = rows.selectExpr("id % 3 AS k", "id").groupBy("k").agg({"*": "count", "id": "sum"})

    rehearsal = ckpt.rehearse(at_rest / "cp", to=new, old_query=old if with_old else None, output_mode="update")

    page = " ".join(str(rehearsal).split())
    assert (rehearsal.starts, page.startswith(headline)) == (starts, True), page
    assert rehearsal.new.again == 1
    assert any(text in page for text in ("reread batch 1", "batch 1, which it read again"))
    assert [batch.rows_in for batch in rehearsal.new.batches] == ([3] if starts else [])
    assert rehearsal.new.state == ()  # these rows are in it twice
    assert ("CKPT447" in page.partition(" it ran ")[0]) is headline.endswith("IT: ")
    assert trace(at_rest) == before


def test_without_any_row_to_read_nothing_was_tried(spark: Any, at_rest: Path, tmp_path: Path) -> None:
    """No log says where a batch with rows began: the page has preflight's answer instead."""
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(str(at_rest / "a"))
    drain(rows, tmp_path / "cp", sink="noop")
    for folder in ("offsets", "commits"):  # as if batch 2 had no rows, and earlier batches were purged
        shutil.copy(tmp_path / "cp" / folder / "1", tmp_path / "cp" / folder / "2")
        (tmp_path / "cp" / folder / "0").unlink()

    same = ckpt.rehearse(tmp_path / "cp", to=rows)
    counted = ckpt.rehearse(tmp_path / "cp", to=count_rows(spark, [at_rest / "a"]), output_mode="update", evolve=False)

    for rehearsal, answer in ((same, "new batch 3"), (counted, "CKPT434")):
        assert (rehearsal.starts, rehearsal.new.batches, rehearsal.new.again) == (False, (), None)
        page = " ".join(str(rehearsal).split())
        assert page.startswith("NOT TRIED: its sources have no new rows")
        assert answer in page
