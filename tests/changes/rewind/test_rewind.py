"""``ckpt rewind`` on real samples: what holds of every plan, what is refused, what it says and exits with."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.apply import ApplyOptions
from ckpt.changes.rewind.plan import Replayed, RewindPlan, plan_rewind
from ckpt.changes.rewind.rewind import rewind
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.restart.findings import Severity
from ckpt.restart.sinks import Ids
from ckpt.storage import open_storage
from ckpt.versions import Progress
from tests.changes.applying import apply, facts, obey, take_back, undo
from tests.changes.fixes.async_gap.test_laws import told
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLE_NAMES, SAMPLES, some_quick

WITHOUT = ("async-3.5", "continuous-4.2", "continuous-kafka-4.2")
WHOLE = [name for name in SAMPLE_NAMES if "damaged" not in name and name not in WITHOUT]
HDFS, FORMAT_2 = "aggregation-hdfs-4.2", "aggregation-format2-4.2"
NOW = ("--apply", "--accept-skip", "--accept-replay", "--grace", 0)


def planned(top: Path, batch: int, replayed: Replayed = Replayed.SAME) -> RewindPlan:
    return plan_rewind(open_storage(str(top)), batch, replayed)


def inspected(top: Path) -> Inspection:
    return inspect(read_checkpoint(open_storage(str(top)), batches=0))


def troubles(found: Inspection) -> set[str]:
    return {one.finding.diagnosis.code for one in found.findings if one.severity is not Severity.NOTE}


def possible(sample: str, replayed: Replayed) -> list[int]:
    spans = rewind(str(SAMPLES / sample), to_batch=0, replay=replayed)[0].possible
    return [batch for first, last in spans for batch in range(first, last + 1)]


def without(files: dict[str, Any], touched: set[str]) -> dict[str, Any]:
    return {path: of for path, of in files.items() if path not in touched}


@pytest.mark.slow
@pytest.mark.parametrize("replayed", Replayed)
@pytest.mark.parametrize("sample", WHOLE)
def test_planned_applied_and_taken_back(sample: str, replayed: Replayed, copy_of: CopyOf, tmp_path: Path) -> None:
    batches = possible(sample, replayed)
    latest = max(inspected(SAMPLES / sample).checkpoint.offsets.ids)
    for number, batch in enumerate(sorted({*batches[:1], *batches[len(batches) // 2 :][:1], *batches[-2:-1]})):
        top = copy_of(sample, to=f"{number}")
        before, found = facts(top), inspected(top)
        plan = planned(top, batch, replayed)
        assert facts(top) == before, "planning changes nothing"
        if plan.refused and "_stateSchema" in str(plan.refused):
            return  # its schemas are at another path: ckpt relocate first
        assert plan.refused is None
        if not plan.steps:
            continue
        backup = tmp_path / f"{number}.backup"
        receipt = apply(plan, top, backup)
        assert receipt.applied, receipt.problem
        now = inspected(top)
        assert told(now.forecasts) == told(plan.after), "the promise is kept"
        for one in (f for f in now.counted if f.progress is Progress.SYNC and f.outcome.runs):
            assert (one.batch_id, one.reexecutes) == (batch + 1, replayed is Replayed.SAME and batch < latest)
        if not any("still will not start" in str(warning) for warning in plan.warnings):
            assert not troubles(now) - troubles(found)
        touched = {step.path for step in plan.steps}
        after = facts(top)
        assert after.keys() & touched == {step.path for step in plan.steps if step.after is not None}
        assert without(after, touched) == without(before, touched)
        again = planned(top, batch, replayed)
        assert (again.needed, again.steps) == (False, ())
        for _ in range(2):
            assert undo(top, backup).undone
            assert facts(top) == before


@pytest.mark.parametrize("sample", some_quick(WHOLE, 3))
def test_every_batch_that_is_offered_can_be_gone_back_to_and_no_other(sample: str) -> None:
    top = SAMPLES / sample
    ids = inspected(top).checkpoint.offsets.ids
    offered = possible(sample, Replayed.NEW)
    for batch in sorted({*ids[-3:], *ids[:2], ids[-1] + 1}):
        plan = planned(top, batch, Replayed.NEW)
        if plan.refused and "_stateSchema" in str(plan.refused):
            continue
        assert (plan.refused is None) == (batch in offered), plan.refused


REFUSED = {
    "never planned": (HDFS, 99, [], "batch 99 was never planned: the latest is 9"),
    "its offsets": (HDFS, 5, ["offsets/5"], "offsets/5 is missing"),
    "its commit": (HDFS, 5, ["commits/5"], "commits/5 is missing"),
    "a delta": (HDFS, 5, ["state/0/1/6.delta"], "state/0/1/6.delta"),
    "a changelog": (FORMAT_2, 5, ["state/0/1/6_*.changelog", "state/0/1/6_*.zip"], "state/0/1/6_"),
    "a store of a join": (
        "join-hdfs-3.5",
        2,
        ["state/0/0/right-keyToNumValues/3.delta"],
        "right-keyToNumValues/3.delta",
    ),
    "a partition": (HDFS, 5, ["state/0/1/*"], "state/0/1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_batch_that_cannot_be_gone_back_to_is_refused_by_the_file_that_is_missing(
    case: str, copy_of: CopyOf, ckpt: Ckpt
) -> None:
    sample, batch, lost, named = REFUSED[case]
    top = copy_of(sample)
    for pattern in lost:
        for path in top.glob(pattern):
            path.unlink()
    for snapshot in top.glob("state/**/*.snapshot"):
        snapshot.unlink()
    run = ckpt("rewind", top, "--to-batch", batch, "--replay", "new", *NOW, "-o", "json")
    document = run.json()
    assert run.exit_code == 3
    assert named in document["refused"]
    assert (document["steps"], document["applied"]) == ([], False)
    spans = document["possible"]
    assert not any(first <= batch <= last for first, last in spans)
    assert ckpt("rewind", top, "--to-batch", batch, "--replay", "new").exit_code == 3


@pytest.mark.parametrize(("lost", "source"), [((4,), "offsets/3"), (range(5), "offsets/5")])
def test_the_offsets_before_are_written_where_they_are_missing(
    lost: Iterable[int], source: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    """A start after a committed batch looks for them, and reads nothing from them (`tests/changes/oracle`)."""
    top = copy_of(HDFS)
    for batch in lost:
        (top / f"offsets/{batch}").unlink()
    before = facts(top)
    run = ckpt("rewind", top, "--to-batch", 5, "--replay", "new", *NOW, "-o", "json").json()
    written = [(step["action"], step["path"], step["from"]) for step in run["steps"] if step["action"] == "create"]
    assert ("create", "offsets/4", source) in written
    assert (run["applied"], run["refused"]) == (True, None)
    assert (top / "offsets/4").read_bytes() == (top / source).read_bytes()
    assert inspected(top).counted[0].batch_id == 6
    assert ckpt("rewind", top, "--undo", run["backup"], "--grace", 0).exit_code == 0
    assert facts(top) == before


def test_same_names_the_other_way_where_only_that_is_possible(copy_of: CopyOf) -> None:
    top = copy_of(HDFS)
    (top / "offsets" / "6").unlink()
    assert str(planned(top, 5).refused).endswith('; with `replay="new"` also 5')


def test_same_keeps_the_offsets_of_the_next_batch_and_needs_them(copy_of: CopyOf) -> None:
    top = copy_of(HDFS)
    same, new = (planned(top, 5, way) for way in (Replayed.SAME, Replayed.NEW))
    assert {s.path for s in new.steps} - {s.path for s in same.steps} == {"offsets/6", "offsets/.6.crc"}
    (top / "offsets" / "6").unlink()
    assert "offsets/6 is missing" in str(planned(top, 5).refused)
    assert planned(top, 5, Replayed.NEW).refused is None


@pytest.mark.parametrize(
    ("batch", "replayed", "asked"),
    [
        (9, Replayed.NEW, ()),
        (8, Replayed.SAME, ("accept_replay",)),
        (8, Replayed.NEW, ("accept_skip", "accept_replay")),
        (7, Replayed.SAME, ("accept_skip", "accept_replay")),
    ],
)
def test_what_it_costs_has_to_be_accepted(
    batch: int, replayed: Replayed, asked: Iterable[str], copy_of: CopyOf, ckpt: Ckpt
) -> None:
    top = copy_of(HDFS)
    names = ("accept_skip", "accept_replay")
    before = facts(top)
    for given in ([], ["accept_skip"], ["accept_replay"]):
        wanted = [name for name in asked if name not in given]
        if wanted:
            skip, replay = "accept_skip" in given, "accept_replay" in given
            how = ApplyOptions(apply=True, grace=0, accept_skip=skip, accept_replay=replay)
            _, receipt = rewind(str(top), to_batch=batch, replay=replayed, **how)
            assert [name for name in names if f"`{name}`" in str(receipt.problem)] == wanted
            assert facts(top) == before
    run = ckpt("rewind", top, "--to-batch", batch, "--replay", replayed, "--apply", "--grace", 0)
    assert run.exit_code == (3 if asked else 0)
    assert facts(top) == before
    for name in asked:
        assert f"--{name.replace('_', '-')}" in " ".join(run.stdout.split())


def test_only_a_replay_over_other_ranges_names_cures_of_sinks(copy_of: CopyOf) -> None:
    top = copy_of("named-sink-4.3")
    latest = max(inspected(top).checkpoint.commits.ids)
    one, two = planned(top, latest - 1).any_sink, planned(top, latest - 2).any_sink
    assert one is not None
    assert two is not None
    assert (one.ids, one.named, two.ids, two.named) == (Ids.SAME, "NoopTable", Ids.REUSED, "NoopTable")
    assert not any("RESTORE" in str(sink.says) for sink in one.kinds)
    says = {sink.kind: str(sink.says) for sink in two.kinds}
    assert f"version after batch {latest - 2}" in says["delta"]
    assert f"_spark_metadata/{latest - 1} and every entry" in says["file"]


def test_rows_that_are_read_again_must_still_be_there(copy_of: CopyOf) -> None:
    warnings = " ".join(map(str, planned(copy_of("kafka-4.2", to="kafka"), 2).warnings))
    assert "still have all rows that are read again: leave failOnDataLoss on" in warnings
    assert "failOnDataLoss" not in " ".join(map(str, planned(copy_of(HDFS), 2).warnings))


@pytest.mark.parametrize("sample", [HDFS, "join-changelog-4.2", "file-source-4.2"])
def test_from_the_plan_to_the_end_and_back_by_the_commands_that_are_printed(
    sample: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    top = copy_of(sample, to="100%20 sure")
    before = facts(top)
    run = ckpt("rewind", top, "--to-batch", 2, "--replay", "new", "-o", "json")
    assert contract.disagreements(run.json(), "rewind") == []
    done = obey(ckpt, top, "rewind", top, "--to-batch", 2, "--replay", "new")
    assert "REWOUND to batch 2" in done
    take_back(ckpt, top, done, before)


def test_without_a_batch_it_says_which_there_are(ckpt: Ckpt) -> None:
    run = ckpt("rewind", f"sample_checkpoints/{HDFS}")
    assert run.exit_code == 2
    assert "--to-batch: 0 to 9" in run.refusal()


def test_undo_takes_no_other_option(ckpt: Ckpt, copy_of: CopyOf) -> None:
    run = ckpt("rewind", copy_of(HDFS), "--undo", "somewhere", "--to-batch", 3)
    assert run.exit_code == 2
    assert "--to-batch" in run.refusal()
