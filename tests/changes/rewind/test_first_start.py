"""What a batch that was taken back, and that has to run into noop first, leaves for whoever comes next."""

import json
from pathlib import Path

import pytest

from ckpt import inspect, open_checkpoint
from ckpt.changes.plan import First
from ckpt.changes.rewind.plan import Replayed
from ckpt.changes.rewind.rewind import rewind
from ckpt.checkpoint.checkpoint import FIRST_START
from ckpt.new.copy.copy import copy
from tests.conftest import Ckpt, CopyOf
from tests.live.sink.test_plans import KAFKA, query_of, table
from tests.support.remedies import NOW, remove
from tests.support.spark.live import trace

SAMPLE, NEWEST = "aggregation-hdfs-4.2", 9


def held(checkpoint: Path, ckpt: Ckpt, *words: object) -> bool:
    document = ckpt("preflight", checkpoint, *words, "-o", "json").json()
    return "CKPT419" in {one["code"] for one in document["holds"]}


@pytest.fixture
def back(copy_of: CopyOf) -> Path:
    checkpoint = copy_of(SAMPLE)
    plan, receipt = rewind(str(checkpoint), to_batch=NEWEST - 1, **NOW)
    assert (plan.first, receipt.applied) == (First.NOOP, True)
    assert (checkpoint / FIRST_START).exists()
    return checkpoint


def test_it_counts_until_the_batch_is_committed(back: Path, ckpt: Ckpt) -> None:
    assert held(back, ckpt)
    assert ckpt("inspect", back).exit_code == 1
    (back / "commits" / str(NEWEST)).write_text((back / "commits" / "8").read_text())
    assert not held(back, ckpt)


def test_it_does_not_count_for_another_plan_of_the_batch(back: Path, ckpt: Ckpt) -> None:
    offsets = back / "offsets" / str(NEWEST)
    version, head, *sources = offsets.read_text().splitlines()
    again = json.dumps(json.loads(head) | {"batchTimestampMs": 1})
    remove(offsets)
    offsets.write_text("\n".join((version, again, *sources)))
    assert not held(back, ckpt)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"batch": null}', "\x00" * 100])
def test_if_it_cannot_be_read_the_sink_is_asked_before_a_start_into_noop(text: str, back: Path, ckpt: Ckpt) -> None:
    (back / FIRST_START).write_text(text)
    assert [one["code"] for one in ckpt("preflight", back, "-o", "json").json()["holds"]] == ["CKPT420"]
    page = " ".join(ckpt("inspect", back).stdout.split())
    assert "only after one start into noop" not in page
    assert f"first find out whether the sink has that batch: {FIRST_START} cannot be read" in page
    assert f"batch {NEWEST} runs next, but {FIRST_START} cannot be read: " in page
    assert f" ckpt inspect {back} --sink URI" in page


@pytest.mark.parametrize(("text", "code"), [(None, "CKPT419"), ("[]", "CKPT420")])
def test_a_rewritten_checkpoint_has_it_too(text: str | None, code: str, back: Path, ckpt: Ckpt, tmp_path: Path) -> None:
    if text is not None:
        (back / FIRST_START).write_text(text)
    page = " ".join(ckpt("rewrite", back, tmp_path / "new").stdout.split())
    assert "once into noop" not in page
    assert page.index("--sink URI") < page.index("Start the query with this checkpointLocation")
    assert [one["code"] for one in ckpt("preflight", tmp_path / "new", "-o", "json").json()["holds"]] == [code]


def test_a_sink_that_was_asked_knows_better(back: Path, ckpt: Ckpt, tmp_path: Path) -> None:
    has, lacks = (table(tmp_path / str(last), query_of(back), last) for last in (NEWEST, NEWEST - 1))
    codes = [one["code"] for one in ckpt("preflight", back, "--sink", has, "-o", "json").json()["holds"]]
    assert codes == ["CKPT417"]
    assert ckpt("preflight", back, "--sink", lacks).exit_code == 0
    assert held(back, ckpt, "--sink", KAFKA), "which knows nothing"


def test_a_copy_has_it_too(back: Path, ckpt: Ckpt, tmp_path: Path) -> None:
    copy(str(back), str(tmp_path / "copy"))
    assert held(tmp_path / "copy", ckpt)


def test_it_goes_by_an_undo(copy_of: CopyOf) -> None:
    checkpoint = copy_of(SAMPLE)
    before = trace(checkpoint).keys()
    receipt = rewind(str(checkpoint), to_batch=NEWEST - 1, **NOW)[1]
    undone = rewind(str(checkpoint), undo=receipt.backup, grace=0)[1]
    assert (undone.undone, trace(checkpoint).keys()) == (True, before)


def test_another_rewind_is_not_held_by_it(back: Path, ckpt: Ckpt) -> None:
    receipt = rewind(str(back), to_batch=NEWEST - 3, replay=Replayed.NEW, backup=f"{back}-backup", **NOW)[1]
    assert receipt.applied, receipt.problem
    assert not held(back, ckpt)


def test_a_plan_names_it_once_and_promises_what_inspect_says(copy_of: CopyOf) -> None:
    checkpoint = copy_of(SAMPLE)
    plan = rewind(str(checkpoint), to_batch=NEWEST - 1)[0]
    assert [step.path for step in plan.steps].count(FIRST_START) == 1
    rewind(str(checkpoint), to_batch=NEWEST - 1, **NOW)
    after, now = plan.inspection_after, inspect(open_checkpoint(str(checkpoint)))
    assert after is not None
    assert (after.verdict, len(after.findings)) == (now.verdict, len(now.findings))


def test_a_query_without_state_needs_none(copy_of: CopyOf) -> None:
    plan = rewind(str(copy_of("kafka-4.2")), to_batch=4)[0]
    assert FIRST_START not in {step.path for step in plan.steps}


def test_a_move_to_another_provider_asks_the_sink_before_the_first_start(back: Path, ckpt: Ckpt) -> None:
    page = " ".join(ckpt("migrate", "provider", back, "--to", "rocksdb").stdout.split())
    assert page.index("--sink URI") < page.index("Start the same query")
