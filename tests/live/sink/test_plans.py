"""Plans for one sink (`--sink`): what they promise is what `ckpt inspect --sink` says once they are applied."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ckpt import open_checkpoint
from ckpt.changes.check_fix import Cost
from ckpt.changes.fixes.repair import FixName, repair
from ckpt.changes.fixes.repair_async import repair_async
from ckpt.changes.offsets.plan import offsets_set
from ckpt.changes.plan import OTHERS_REPEAT, SINK_DROPS, SINK_REPEATS, First
from ckpt.changes.rewind.plan import Replayed
from ckpt.changes.rewind.rewind import rewind
from ckpt.inspection.checks.sink import SinkOutcome
from ckpt.inspection.inspection import inspect
from ckpt.live.sink.reader import read_sink
from ckpt.restart.findings import Asked
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases.model import delete_logs, write
from tests.support.remedies import NOW, remove

BACK_TO = 2
KAFKA = "kafka://broker:9092/orders"


def table(place: Path, query: str, last: int | None) -> str:
    """A Delta table by its log, without a row: a transaction for each batch."""
    log = place / "_delta_log"
    log.mkdir(parents=True)
    for batch in range((-1 if last is None else last) + 1):
        txn = {"txn": {"appId": query, "version": batch, "lastUpdated": int(time.time() * 1000)}}
        (log / f"{batch:020}.json").write_text(json.dumps(txn))
    if last is None:
        (log / f"{0:020}.json").write_text("{}")
    return str(place)


def files(place: Path, _: str, last: int | None) -> str:
    """The log of a file sink."""
    log = place / "_spark_metadata"
    log.mkdir(parents=True)
    for batch in range((-1 if last is None else last) + 1):
        (log / str(batch)).write_text("v1")
    return str(place)


def query_of(checkpoint: Path) -> str:
    return str(json.loads((checkpoint / "metadata").read_text())["id"])


@pytest.mark.parametrize("sink", [table, files])
@pytest.mark.parametrize("last", [None, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("replay", Replayed)
@pytest.mark.parametrize("sample", ["kafka-4.2", "aggregation-hdfs-4.2"])
def test_a_rewind_promises_what_inspect_says_afterwards(
    sample: str, replay: Replayed, last: int | None, sink: Any, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of(sample)
    place = sink(tmp_path / "sink", query_of(checkpoint), last)
    plan = rewind(str(checkpoint), to_batch=BACK_TO, replay=replay, sink=place)[0]
    assert plan.refused is None
    assert plan.sink is not None
    receipt = rewind(str(checkpoint), to_batch=BACK_TO, replay=replay, sink=place, **NOW)[1]
    assert receipt.applied, receipt.problem

    seen = inspect(open_checkpoint(str(checkpoint)), progress=Asked.SYNC, sink=read_sink(place)).sink

    assert seen is not None
    assert (plan.sink.outcome, plan.sink.dropped, plan.sink.said) == (seen.outcome, seen.dropped, seen.said)
    if seen.outcome is SinkOutcome.UNKNOWN_QUERY:
        assert plan.any_sink, "what it says of every sink stays"
        assert "says more" not in " ".join(map(str, plan.notices)), "the sink was asked"
    else:
        assert plan.any_sink is None
        assert (plan.skips is not None) == (seen.dropped is not None)
        assert plan.repeats is None
        firsts = {SinkOutcome.DROPS: First.SINK, SinkOutcome.PASSES_OVER: First.NOTHING}
        stateful = sample.startswith("aggregation") and seen.outcome is SinkOutcome.PASSES_OVER
        assert plan.first is (First.NOOP if stateful else firsts.get(seen.outcome, First.NOTHING))


def test_what_a_sink_drops_has_to_be_accepted(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    place = table(tmp_path / "table", query_of(checkpoint), 4)
    words = ("rewind", checkpoint, "--to-batch", BACK_TO, "--replay", "new", "--sink", place)
    page = ckpt(*words).stdout
    assert f"--replay new --sink {place} --accept-skip --apply" in page
    assert "_spark_metadata" not in page
    run = ckpt(*words, "--apply", "--grace", 0)
    assert run.exit_code == 3
    assert "the sink would drop new rows of batches 3 to 4" in run.stdout
    behind = table(tmp_path / "behind", query_of(checkpoint), 2)
    assert ckpt(*words[:-1], behind, "--apply", "--grace", 0).exit_code == 0


def test_kafka_drops_nothing(copy_of: CopyOf) -> None:
    checkpoint = str(copy_of("kafka-4.2"))
    anywhere = rewind(checkpoint, to_batch=BACK_TO, replay=Replayed.NEW)[0]
    plan = rewind(checkpoint, to_batch=BACK_TO, replay=Replayed.NEW, sink=KAFKA)[0]
    assert (anywhere.skips, anywhere.first) == (SINK_DROPS, First.SINK)
    assert (plan.skips, plan.first, plan.any_sink) == (None, First.NOTHING, None)
    assert (anywhere.repeats, plan.repeats) == (OTHERS_REPEAT, SINK_REPEATS)


def test_a_sink_is_not_read_for_an_undo(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    run = ckpt("rewind", copy_of("kafka-4.2"), "--undo", tmp_path / "backup", "--sink", tmp_path / "nothing")
    assert run.exit_code == 2
    assert "--sink" in run.refusal()


def test_a_sink_that_cannot_be_read_stops_a_plan(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    run = ckpt("rewind", copy_of("kafka-4.2"), "--to-batch", BACK_TO, "--sink", tmp_path / "nothing")
    assert run.exit_code == 3
    assert "nothing" in run.refusal()


@pytest.mark.parametrize(("last", "cost"), [(4, Cost.FINISHED_AGAIN), (5, Cost.MAY_LOSE)])
def test_fixes_cost_what_they_cost_in_this_sink(last: int, cost: Cost, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2", write("offsets/5", ""))
    place = table(tmp_path / "table", query_of(checkpoint), last)
    plan = repair(str(checkpoint), sink=place, choose=FixName.PLAN_AGAIN)[0]
    assert plan.chosen is not None
    assert plan.chosen.cost is cost
    assert (plan.skips is not None) == (cost is Cost.MAY_LOSE)
    assert plan.any_sink is None


def test_a_lost_id_is_named_in_the_command(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    query = query_of(checkpoint)
    place = table(tmp_path / "table", query, 5)
    remove(checkpoint / "metadata")
    assert f"--query-id {query}" in ckpt("repair", checkpoint, "--sink", place).stdout
    assert "--query-id ID" in ckpt("repair", checkpoint).stdout


@pytest.mark.parametrize(("last", "drops"), [(4, False), (5, True)])
def test_new_offsets_of_a_batch_that_the_sink_has_lose_rows(
    last: int, drops: bool, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of("kafka-4.2", *delete_logs(commits=[5]))
    place = table(tmp_path / "table", query_of(checkpoint), last)
    plan = offsets_set(str(checkpoint), shift=["orders/0=-1"], sink=place)[0]
    assert plan.refused is None
    assert ("the sink would drop new rows of batch 5" in str(plan.skips)) == drops
    assert plan.any_sink is None


def test_offsets_of_a_committed_batch_are_written_again(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    place = table(tmp_path / "table", query_of(checkpoint), 5)
    plan = offsets_set(str(checkpoint), shift=["orders/0=-1"], sink=place)[0]
    assert plan.sink is not None
    assert plan.sink.outcome is SinkOutcome.CONTINUES
    assert plan.repeats is not None


def test_a_gap_is_not_repaired_for_a_sink_that_would_drop_rows(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("async-kafka-4.2")
    place = table(tmp_path / "table", query_of(checkpoint), 99)
    assert "would drop new rows" in str(repair_async(str(checkpoint), sink=place)[0].refused)
    plan = repair_async(str(checkpoint), sink=KAFKA)[0]
    assert plan.steps
    assert KAFKA in str(plan.warnings[-1])


@pytest.mark.parametrize("reached", [True, False])
def test_the_next_command_names_the_sink_that_was_asked(
    reached: bool, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of("stateless-4.2", write("offsets/5", ""))
    sink = table(tmp_path / "sink", query_of(checkpoint), 5) if reached else str(tmp_path / "nothing")
    (step, *_) = ckpt("inspect", checkpoint, "--sink", sink, "-o", "json").json()["next"]
    assert step["command"] == ["ckpt", "repair", str(checkpoint), *(["--sink", sink] if reached else [])]
    if reached:
        (step, *_) = ckpt(*step["command"][1:], "-o", "json").json()["next"]
        assert ["--sink", sink] == step["command"][3:5]


@pytest.mark.parametrize("writers", [0, 1])
def test_a_table_that_nobody_wrote_to_by_id_drops_nothing(writers: int, copy_of: CopyOf, tmp_path: Path) -> None:
    """As one that foreachBatch merges into; a table with a transaction may have one of this query under `txnAppId`."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    remove(newest)
    newest.write_text("")
    log = tmp_path / "sink" / "_delta_log"
    log.mkdir(parents=True)
    entries: list[dict[str, Any]] = [{"metaData": {"id": "t", "createdTime": 1_000, "configuration": {}}}]
    entries += [{"txn": {"appId": "orders", "version": 1, "lastUpdated": 1}}] * writers
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, entries)))

    plan = repair(str(checkpoint), sink=str(tmp_path / "sink"), choose=FixName.PLAN_AGAIN)[0]

    assert plan.refused is None
    assert (plan.first, plan.skips is None, plan.any_sink is None) == (
        (First.SINK, False, False) if writers else (First.NOTHING, True, True)
    )
    assert plan.repeats is not None
