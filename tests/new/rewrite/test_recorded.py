"""Queries continued on new checkpoints as on old ones (``record.py``), also in a planned batch (``planned.py``)."""

import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.live.sink.stateful import BATCHES, NEWEST, NUMBERS, Numbers
from tests.new.fill.test_import_state import exported
from tests.new.rewrite import record
from tests.new.rewrite.planned import CASES, PASSED, PLANNED, SUITE, Case
from tests.new.rewrite.record import MAIN, TRANSFORM
from tests.support.places import SAMPLES
from tests.support.spark import queries
from tests.support.spark.samples import SAMPLES as ALL

PLANNED_ANSWERS = SUITE.recorded(MAIN)
ANSWERS = record.SUITE.answers.read_all()
RECORDED = [(minor, case) for minor in ANSWERS for case in record.cases(minor)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_continued_as_on_the_old_checkpoint(case: Case) -> None:
    """Each batch has equal rows, through another SIGKILL, and state is equal; or both queries fail in one way."""
    answer = PLANNED_ANSWERS[case.name]
    old, new, planned_state = answer["old"], answer["new"], answer["state of the batch"]
    carried = not (case.partial or case.store == "format2")
    assert planned_state == ("none" if not carried else "left-out" if case.shape or case.version == 2 else "written")
    ran = str(PLANNED) in new["rows"][0]
    assert ran == (case.how != PASSED or planned_state == "left-out")
    if case.how == PASSED and ran:  # into noop; a batch that is skipped moves no watermark, so that others come later
        del new["rows"][0][str(PLANNED)]
        early = [[answer["rows"][0].pop(str(PLANNED + later))[0] for later in (1, 2)] for answer in (old, new)]
        assert sum(early[0]) == sum(early[1])
        assert early[0] == early[1] or case.query in ("join", TRANSFORM)
    assert new == old
    assert ("error" in old) == (case.how == PASSED and planned_state == "none" and case.query != "limit")
    assert any(rows for rows, _ in old.get("state", {"": [1, ""]}).values())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sink", "has_batch", "form"),
    [
        ("parquet", True, {"provider": "rocksdb", "partitions": 3}),
        ("parquet", False, {"provider": "rocksdb", "partitions": 3}),
        ("delta", True, {"partitions": 2}),
        ("parquet", True, None),
    ],
    ids=str,
)
def test_a_sink_has_every_row_once(
    sink: str, has_batch: bool, form: dict[str, Any] | None, spark: Any, tmp_path: Path
) -> None:
    """Sinks with and without the planned batch; without a form, state is exported and imported, and noop is first."""
    query, place, old = Numbers(spark, tmp_path, sink), tmp_path / "query", tmp_path / "old"
    for batch in range(BATCHES):
        query.add(batch)
    assert query.start(place) == ""
    (place / "checkpoint").rename(old)
    for name in (str(NEWEST), f".{NEWEST}.crc"):
        (old / "commits" / name).unlink()
        if not has_batch:
            (place / "out/_spark_metadata" / name).unlink()

    new, out = str(place / "checkpoint"), str(place / "out")
    if form is None:
        made = ckpt.import_state(str(exported(old, tmp_path / "export")), new, like=str(old))
        assert made.planned_state == "left-out"
        codes = {rated.finding.diagnosis.code for rated in ckpt.inspect(new, sink=out).findings}
        assert "CKPT417" in codes
        assert query.start(place, noop=True) == ""
    else:
        made = ckpt.rewrite(str(old), new, **form)
        assert made.planned_state == "written"
    assert made.planned == NEWEST
    query.add(0)
    query.add(BATCHES)
    assert query.start(place) == ""
    assert query.times(place) == dict.fromkeys(range(NUMBERS), 1)


@pytest.mark.spark
def test_a_start_as_the_page_says_commits_the_batch_of_a_query_with_ttl(spark: Any, tmp_path: Path) -> None:
    old, copied = tmp_path / "old", tmp_path / "copied"
    shutil.copytree(SAMPLES / "tws-rocksdb-4.2", old)
    newest = max(int(path.name) for path in (old / "commits").glob("[0-9]*"))
    for name in (str(newest), f".{newest}.crc"):
        (old / "commits" / name).unlink()
    ckpt.copy(str(old), str(copied))
    parts = [str(tmp_path / name) for name in ("one", "two")]
    divide = partial(ckpt.split, str(copied), parts, where=["key_key < 2", "key_key >= 2"], plan=True)
    committed = f"commits/{newest}"
    remedy = f"start the query once with trigger processingTime='1 hour', and stop it when {committed} appears"
    assert remedy in str(divide().refused)
    (sample,) = [sample for sample in ALL if sample.name == "tws-rocksdb-4.2"]
    trigger = {"processingTime": "1 hour"}
    query = queries.start(spark, queries.QUERIES[sample.query], copied, store="rocksdb", trigger=trigger)
    try:
        deadline = time.monotonic() + 120
        while not (copied / committed).exists() and query.isActive and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        query.stop()
    checkpoint = ckpt.open_checkpoint(str(copied))
    assert (checkpoint.offsets.latest, checkpoint.commits.latest) == (newest, newest)
    assert divide().refused is None


@pytest.mark.parametrize(("minor", "case"), [pytest.param(*one, id=f"{one[0]}-{one[1].name}") for one in RECORDED])
def test_a_query_continued_as_on_the_old_checkpoint(minor: str, case: record.Case) -> None:
    """The same rows in each batch, through a SIGKILL and a restart, and equal state when it was killed again."""
    told = ANSWERS[minor]["cases"][case.name]
    assert told["new"] == told["old"]
    first, second = told["old"]["rows"].values()
    killed = max(map(int, first))
    assert killed in map(int, second), "the batch in which it was killed ran again"
    first_kill, last_kill = record.killed(minor, case)
    assert max(map(int, second)) >= killed + last_kill - first_kill
    assert any(rows for rows, _ in told["old"]["state"].values())
