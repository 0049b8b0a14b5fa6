"""Whether the batch of a sink is the one that the checkpoint planned, by times alone: no Spark."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.live.sink.test_plans import files, query_of, table
from tests.support.remedies import remove

LAST, MINUTE = 5, 60_000


def planned_ms(checkpoint: Path, batch: int = LAST) -> int:
    planned: int = json.loads((checkpoint / "offsets" / str(batch)).read_text().splitlines()[1])["batchTimestampMs"]
    return planned


def written(place: Path, batch: int, time_ms: int) -> None:
    """Have a sink say that it wrote a batch at a time."""
    version = place / "_delta_log" / f"{batch:020}.json"
    if version.exists():
        action = json.loads(version.read_text())
        action["txn"]["lastUpdated"] = time_ms
        version.write_text(json.dumps(action))
        return
    entry = place / "_spark_metadata" / str(batch)
    names = '"path":"file:/x","size":1,"isDir":false,"blockReplication":1,"blockSize":1,"action":"add"'
    entry.write_text(f'v1\n{{{names},"modificationTime":{time_ms}}}')


@pytest.fixture
def checkpoint(copy_of: CopyOf) -> Path:
    """A checkpoint whose files have the times at which they were written."""
    top = copy_of("kafka-4.2")
    for batch in range(LAST + 1):
        seconds = planned_ms(top, batch) / 1000
        os.utime(top / "offsets" / str(batch), (seconds, seconds))
    return top


def judged(ckpt: Ckpt, checkpoint: Path, place: str) -> tuple[str, set[str], int]:
    run = ckpt("inspect", checkpoint, "--sink", place, "-o", "json")
    codes = {one["code"] for one in run.json()["findings"] if one["code"].startswith("CKPT41")}
    return run.json()["sink"]["outcome"], codes, run.exit_code


PLANNED = [
    (1, "passes-over", "CKPT416"),
    (-1, "may-drop", "CKPT411"),
    (-MINUTE + 1, "may-drop", "CKPT411"),
    (-MINUTE - 1, "drops", "CKPT411"),
]


@pytest.mark.parametrize(("after_ms", "outcome", "code"), PLANNED)
def test_a_txn_app_id_by_which_the_query_writes(
    after_ms: int, outcome: str, code: str, ckpt: Ckpt, checkpoint: Path, tmp_path: Path
) -> None:
    place = table(tmp_path / "sink", "orders", LAST)
    for batch in range(LAST):
        written(Path(place), batch, planned_ms(checkpoint, batch) + 1)
    remove(checkpoint / "commits" / str(LAST))
    written(Path(place), LAST, planned_ms(checkpoint) + after_ms)
    assert judged(ckpt, checkpoint, place) == (outcome, {code}, int(code != "CKPT416"))
    page = ckpt("inspect", checkpoint, "--sink", place).stdout
    assert "if the query writes with the txnAppId orders: " in " ".join(page.split())


def test_a_txn_app_id_of_another_job(ckpt: Ckpt, checkpoint: Path, tmp_path: Path) -> None:
    place = table(tmp_path / "sink", "orders", LAST)
    for batch in range(LAST + 1):
        written(Path(place), batch, planned_ms(checkpoint, 0) - MINUTE + batch)
    assert judged(ckpt, checkpoint, place) == ("unknown-query", {"CKPT414"}, 1)


@pytest.mark.parametrize("sink", [table, files])
@pytest.mark.parametrize(("after_ms", "outcome", "code"), PLANNED)
def test_a_batch_that_runs_again(
    sink: object, after_ms: int, outcome: str, code: str, ckpt: Ckpt, checkpoint: Path, tmp_path: Path
) -> None:
    assert callable(sink)
    place = sink(tmp_path / "sink", query_of(checkpoint), LAST)
    remove(checkpoint / "commits" / str(LAST))
    written(Path(place), LAST, planned_ms(checkpoint) + after_ms)
    assert judged(ckpt, checkpoint, place) == (outcome, {code}, int(code != "CKPT416"))
    plan = ckpt("repair", checkpoint, "--sink", place, "-o", "json").json()
    assert plan["steps"] == []


COMMITTED = [(1, "continues", False), (-1, "continues", True), (-MINUTE - 1, "lacks", True)]


@pytest.mark.parametrize("sink", [table, files])
@pytest.mark.parametrize(("after_ms", "outcome", "dropped"), COMMITTED)
def test_a_committed_batch(
    sink: object, after_ms: int, outcome: str, dropped: bool, ckpt: Ckpt, checkpoint: Path, tmp_path: Path
) -> None:
    assert callable(sink)
    place = sink(tmp_path / "sink", query_of(checkpoint), LAST)
    written(Path(place), LAST, planned_ms(checkpoint) + after_ms)
    codes = {"CKPT411"} if dropped else set()
    assert judged(ckpt, checkpoint, place) == (outcome, codes, int(dropped))


def test_without_a_time_nothing_is_said(ckpt: Ckpt, checkpoint: Path, tmp_path: Path) -> None:
    place = table(tmp_path / "table", query_of(checkpoint), LAST)
    for version in Path(place).glob("_delta_log/*.json"):
        version.write_text(version.read_text().replace('"lastUpdated"', '"other"'))
    assert judged(ckpt, checkpoint, place) == ("continues", set(), 0)
    remove(checkpoint / "commits" / str(LAST))
    assert judged(ckpt, checkpoint, place) == ("may-drop", {"CKPT411"}, 1)


def test_a_storage_that_knows_whole_seconds_only(ckpt: Ckpt, checkpoint: Path, tmp_path: Path) -> None:
    place = files(tmp_path / "sink", "", LAST)
    written(Path(place), LAST, planned_ms(checkpoint) // 1000 * 1000)
    assert judged(ckpt, checkpoint, place) == ("continues", set(), 0)


def test_a_driver_whose_clock_is_ahead_of_the_storage(ckpt: Ckpt, checkpoint: Path, tmp_path: Path) -> None:
    """The offsets were stored 30 s before their own time: the clock of the storage is that of the sink."""
    place = files(tmp_path / "sink", "", LAST)
    for batch in range(LAST + 1):
        stored_s = planned_ms(checkpoint, batch) / 1000 - 30
        os.utime(checkpoint / "offsets" / str(batch), (stored_s, stored_s))
    written(Path(place), LAST, planned_ms(checkpoint) - 29_000)
    assert judged(ckpt, checkpoint, place) == ("continues", set(), 0)
    written(Path(place), LAST, planned_ms(checkpoint) - 31_000)
    assert judged(ckpt, checkpoint, place) == ("continues", {"CKPT411"}, 1)


def test_an_entry_that_was_copied_has_the_time_of_its_files(ckpt: Ckpt, checkpoint: Path, tmp_path: Path) -> None:
    """A copy of the output has new times; what an entry names was written when the batch was."""
    place = files(tmp_path / "sink", "", LAST)
    written(Path(place), LAST, planned_ms(checkpoint) - 2 * MINUTE)
    assert judged(ckpt, checkpoint, place)[0] == "lacks"


@pytest.mark.parametrize(("last", "drops"), [(LAST, False), (LAST + 1, True)])
def test_code_with_a_transaction_id_may_drop_what_a_query_would_write(
    last: int, drops: bool, ckpt: Ckpt, checkpoint: Path, tmp_path: Path
) -> None:
    place = table(tmp_path / "table", "orders", last)
    findings = ckpt("inspect", checkpoint, "--sink", place, "-o", "json").json()["findings"]
    (detail,) = [one["detail"] for one in findings if one["code"] == "CKPT414"]
    assert (f"with the txnAppId orders drops batches up to {last}" in detail) == drops


def test_a_version_whose_batch_is_another_one_is_not_gone_back_to(ckpt: Ckpt, checkpoint: Path, tmp_path: Path) -> None:
    """The table has rows of a batch that another copy of the checkpoint ran, over a range that is not this one."""
    sink = table(tmp_path / "sink", query_of(checkpoint), LAST)
    for batch in range(LAST + 1):
        other = batch >= LAST - 1
        written(Path(sink), batch, planned_ms(checkpoint, batch) + (-MINUTE - 1 if other else 1))
    words = ("rewind", checkpoint, "--sink", sink, "-o", "json", "--to-sink-version")
    refused = ckpt(*words, LAST - 1)
    assert "is a different one" in refused.json()["refused"]
    assert refused.json()["steps"] == []
    assert ckpt(*words, LAST - 2).json()["refused"] is None
