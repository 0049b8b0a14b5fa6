"""``ckpt prune`` takes only what no start and no rewind needs, and gives it back."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.changes.prune.plan import PrunePlan, PruneReason, plan_prune
from ckpt.changes.rewind.plan import Replayed, list_possible_targets
from ckpt.changes.steps import sidecar
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.chains import oldest_needed
from ckpt.storage import open_storage
from tests.changes.applying import facts, obey, take_back
from tests.changes.prune.aged import STATEFUL, aged, state_files
from tests.commands import contract
from tests.conftest import Ckpt
from tests.support.places import SAMPLES, some_quick

NOW: dict[str, Any] = {"apply": True, "grace": 0}
CHANGELOG, ROCKSDB = "aggregation-changelog-4.2", "aggregation-rocksdb-4.2"
HDFS, FORMAT_2 = "aggregation-hdfs-4.2", "aggregation-format2-4.2"


def outcomes(checkpoint: Path) -> list[Any]:
    found = ckpt.inspect(ckpt.open_checkpoint(str(checkpoint)))
    return [(one.spark, one.progress, one.outcome, one.batch_id, one.error) for one in found.forecasts]


def targets(checkpoint: Path) -> list[Any]:
    found = read_checkpoint(open_storage(str(checkpoint)), batches=0)
    return [list_possible_targets(found, way) for way in Replayed]


def kinds(plan: PrunePlan) -> dict[PruneReason, set[str]]:
    return {one.kind: set(one.paths) for one in plan.pruned}


@pytest.mark.parametrize("keep", [1, 3])
@pytest.mark.parametrize("sample", some_quick(STATEFUL, 12))
def test_what_could_be_done_before_can_be_done_after(sample: str, keep: int, tmp_path: Path) -> None:
    checkpoint = aged(sample, tmp_path / "checkpoint", keep)
    before, starts, ways = facts(checkpoint), outcomes(checkpoint), targets(checkpoint)
    verified = ckpt.state_verify(str(checkpoint), jobs=1)

    _, receipt = ckpt.prune(str(checkpoint), **NOW)

    assert receipt.problem is None
    assert outcomes(checkpoint) == starts
    assert targets(checkpoint) == ways
    now = ckpt.state_verify(str(checkpoint), jobs=1)
    assert now.loadable == verified.loadable
    assert {one.path for one in now.damages} <= {one.path for one in verified.damages}
    assert not ckpt.prune(str(checkpoint))[0].steps
    if receipt.backup is not None:
        assert ckpt.prune(str(checkpoint), undo=receipt.backup, grace=0)[1].undone
    assert facts(checkpoint) == before


@pytest.mark.parametrize("keep", [1, 2, 4])
@pytest.mark.parametrize("sample", some_quick([HDFS, CHANGELOG, ROCKSDB, FORMAT_2], 3))
def test_rows_of_every_batch_that_is_kept_are_the_same(sample: str, keep: int, tmp_path: Path) -> None:
    checkpoint = aged(sample, tmp_path / "checkpoint", keep)
    plan, receipt = ckpt.prune(str(checkpoint), **NOW)
    assert receipt.applied
    kept = read_checkpoint(open_storage(str(checkpoint)), batches=0).commits.ids
    assert len(kept) == keep
    assert plan.keep_batches == max(keep, 2), "the newest batch may have to run again"
    for batch in kept:
        found = ckpt.state_diff(str(SAMPLES / sample), str(checkpoint), from_batch=batch, to_batch=batch)
        assert [(unit.added, unit.removed, unit.changed) for unit in found.units] == [(0, 0, 0)]
        assert ckpt.state_count(str(checkpoint), batch=batch).units[0].rows > 0


@pytest.mark.parametrize("sample", some_quick(STATEFUL, 4))
def test_nothing_goes_where_the_logs_hold_every_batch(sample: str) -> None:
    plan = plan_prune(open_storage(str(SAMPLES / sample)))
    assert {one.kind for one in plan.pruned} <= {PruneReason.ORPHAN, PruneReason.TEMPORARY, PruneReason.KILLED_TASK}
    assert plan.oldest_version in (0, 1)


@pytest.mark.parametrize(
    ("sample", "keep", "left"),
    [
        (HDFS, 1, {"8.snapshot", "9.delta", "10.delta"}),
        (HDFS, 3, {"8.delta", "8.snapshot", "9.delta", "10.delta"}),
        (HDFS, 4, {"4.delta", "4.snapshot", *(f"{n}.delta" for n in range(5, 11)), "8.snapshot"}),
        (CHANGELOG, 1, {"9.changelog", "9.zip", "10.changelog"}),
        (CHANGELOG, 3, {"6.changelog", "6.zip", "7.changelog", "8.changelog", "9.changelog", "9.zip", "10.changelog"}),
        (ROCKSDB, 2, {"5.zip", "6.zip"}),
    ],
)
def test_state_begins_at_the_snapshot_that_the_oldest_batch_needs(
    sample: str, keep: int, left: set[str], tmp_path: Path
) -> None:
    checkpoint = aged(sample, tmp_path / "checkpoint", keep)
    ckpt.prune(str(checkpoint), **NOW)
    names = {file.name for file in (checkpoint / "state/0/0").glob("[0-9]*.*")}
    assert names == left | ({"8.delta"} if sample == HDFS and keep == 1 else set())


def test_more_batches_are_kept_on_request_and_never_fewer_than_the_logs_hold(tmp_path: Path) -> None:
    storage = open_storage(str(aged(ROCKSDB, tmp_path / "checkpoint", 3)))
    assert [plan_prune(storage, keep).oldest_version for keep in (None, 1, 3, 4, 5, 100)] == [4, 4, 4, 3, 2, 0]
    assert [plan_prune(storage, keep).keep_batches for keep in (None, 1, 4)] == [3, 3, 4]


def test_ssts_of_versions_that_stay_stay(tmp_path: Path) -> None:
    checkpoint = aged(ROCKSDB, tmp_path / "checkpoint", 2)
    folder = checkpoint / "state/0/0/SSTs"
    some = next(folder.glob("*.sst"))
    shutil.copyfile(some, folder / "000099-0f0e0d0c-0000-4000-8000-000000000000.sst")
    before = {path for path in state_files(checkpoint) if "SSTs" in path}

    plan, _ = ckpt.prune(str(checkpoint), **NOW)

    gone = before - state_files(checkpoint)
    assert gone == kinds(plan)[PruneReason.ORPHAN]
    assert "state/0/0/SSTs/000099-0f0e0d0c-0000-4000-8000-000000000000.sst" in gone
    assert 0 < len(gone) < len(before)
    assert ckpt.state_verify(str(checkpoint), jobs=1).damages == ()


def test_an_sst_is_left_where_a_zip_that_stays_cannot_be_read(tmp_path: Path) -> None:
    checkpoint = aged(ROCKSDB, tmp_path / "checkpoint", 3)
    (checkpoint / "state/0/0/5.zip").write_bytes(b"no zip")
    plan = plan_prune(open_storage(str(checkpoint)))
    assert not any(path.startswith("state/0/0/SSTs") for path in kinds(plan)[PruneReason.ORPHAN])
    assert any(path.startswith("state/0/1/SSTs") for path in kinds(plan)[PruneReason.ORPHAN])


@pytest.mark.parametrize(("sample", "snapshot"), [(HDFS, "8.snapshot"), (ROCKSDB, "5.zip")])
def test_older_state_stays_where_the_snapshot_that_replaces_it_is_damaged(
    sample: str, snapshot: str, tmp_path: Path
) -> None:
    checkpoint = aged(sample, tmp_path / "checkpoint", 2)
    file = checkpoint / "state/0/0" / snapshot
    file.write_bytes(file.read_bytes()[:-30])
    plan = plan_prune(open_storage(str(checkpoint)))
    assert not any(path.startswith("state/0/0/") for step in plan.pruned for path in step.paths)
    assert plan.refused is not None or any(path.startswith("state/0/1/") for one in plan.pruned for path in one.paths)


def test_a_lineage_is_followed_and_not_the_newest_zip(tmp_path: Path) -> None:
    """A zip of a task that no commit names is newer than the one that the state rests on: the lineage passes it by."""
    checkpoint = aged(FORMAT_2, tmp_path / "checkpoint", 4)
    folder = checkpoint / "state/0/0"
    commit = json.loads((checkpoint / "commits/4").read_text().splitlines()[1])
    assert commit["stateUniqueIds"]
    zip_ = next(folder.glob("3_*.zip"))
    stray = folder / "4_00000000-0000-4000-8000-000000000000.zip"
    shutil.copyfile(zip_, stray)
    (folder / "5_00000000-0000-4000-8000-000000000000.changelog").write_bytes(b"")

    plan = plan_prune(open_storage(str(checkpoint)))

    assert kinds(plan)[PruneReason.KILLED_TASK] == {
        "state/0/0/5_00000000-0000-4000-8000-000000000000.changelog",
    }
    old = kinds(plan)[PruneReason.OLD_VERSION]
    assert not any(path.startswith(("state/0/0/3_", "state/0/0/4_")) for path in old)
    assert any(path.startswith("state/0/0/1_") for path in old)


def test_a_store_whose_lineage_cannot_be_read_stays_as_it_is(tmp_path: Path) -> None:
    checkpoint = aged(FORMAT_2, tmp_path / "checkpoint", 4)
    for file in (checkpoint / "state/0/0").glob("5_*.changelog"):
        file.write_bytes(b"in another codec")
    plan = plan_prune(open_storage(str(checkpoint)))
    paths = {path for one in plan.pruned for path in one.paths}
    assert not any(path.startswith("state/0/0/") for path in paths)
    assert any(path.startswith("state/0/1/") for path in paths)


def test_a_store_whose_names_and_commits_are_of_different_formats_stays_as_it_is(tmp_path: Path) -> None:
    checkpoint = aged(FORMAT_2, tmp_path / "checkpoint", 2)
    folder = checkpoint / "state/0/0"
    for file in folder.glob("*_*.*"):
        file.rename(folder / f"{file.name.partition('_')[0]}{file.name[file.name.index('.') :]}")
    plan = plan_prune(open_storage(str(checkpoint)))
    assert not any(path.startswith("state/0/0/") for one in plan.pruned for path in one.paths)


def test_what_interrupted_writes_left_goes(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(SAMPLES / "stateless-4.2", checkpoint)
    left = ("offsets/.7.0f0e.tmp", "commits/.7.0f0e.tmp", "commits/..7.0f0e.tmp.crc")
    for name in left:
        (checkpoint / name).write_bytes(b"x")
    (checkpoint / "notes.tmp").write_bytes(b"mine")
    before = facts(checkpoint)
    assert ckpt.inspect(ckpt.open_checkpoint(str(checkpoint))).space.temporary == 3

    _, receipt = ckpt.prune(str(checkpoint), **NOW)

    assert before.keys() - facts(checkpoint).keys() == set(left)
    assert receipt.applied


def test_no_plan_where_state_is_damaged_or_nothing_says_what_is_needed(tmp_path: Path) -> None:
    damaged = aged(HDFS, tmp_path / "damaged", 1)
    (damaged / "state/0/0/9.delta").unlink()
    assert "state is damaged" in str(plan_prune(open_storage(str(damaged))).refused)
    odd = aged(HDFS, tmp_path / "odd", 1)
    (odd / "offsets/007").write_bytes(b"")
    plan = plan_prune(open_storage(str(odd)))
    assert plan.steps == ()
    assert plan.oldest_version is None
    lost = aged(ROCKSDB, tmp_path / "lost", 2)
    shutil.rmtree(lost / "commits")
    assert plan_prune(open_storage(str(lost))).oldest_version is None
    found = ckpt.open_checkpoint(str(odd))
    assert oldest_needed(found.offsets, found.commits) is None


def test_inspect_says_as_much_as_names_do(tmp_path: Path) -> None:
    for sample in (HDFS, CHANGELOG, ROCKSDB):
        checkpoint = aged(sample, tmp_path / sample, 2)
        space = ckpt.inspect(ckpt.open_checkpoint(str(checkpoint))).space
        plan = plan_prune(open_storage(str(checkpoint)))
        old = kinds(plan)[PruneReason.OLD_VERSION]
        files = {step.path: step for step in plan.steps}
        hidden = {sidecar(path) for path in old}
        sizes = [(checkpoint / path).stat().st_size for path in files if path in old | hidden]
        assert space.old_versions == sum(sizes) > 0
        assert (space.orphans is None) == (sample in (ROCKSDB, CHANGELOG))


def test_the_command(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = aged(ROCKSDB, tmp_path / "checkpoint", 2)
    document = ckpt("prune", checkpoint, "-o", "json").json()
    assert contract.disagreements(document, "prune") == []
    assert document["bytes"] == sum(one["bytes"] for one in document["pruned"]) > 0
    page = ckpt("prune", checkpoint, "--keep-batches", "3")
    assert f"ckpt prune {checkpoint} --keep-batches 3 --apply" in page.stdout
    assert "could be deleted" in ckpt("inspect", checkpoint, "-v").stdout
    before = facts(checkpoint)
    take_back(ckpt, checkpoint, obey(ckpt, checkpoint, "prune", checkpoint), before)
    done = ckpt("prune", checkpoint, "--apply", "--grace", "0", "-o", "json")
    assert contract.disagreements(done.json(), "prune") == []
    assert ckpt("prune", checkpoint, "--keep-batches", "0").exit_code == 2


def test_nothing_goes_while_a_start_may_fall_back_to_it(tmp_path: Path) -> None:
    """Damage in the middle of a file shows in no name, size or end: Spark 4.2 loads older files then."""
    checkpoint = aged("aggregation-hdfs-4.2", tmp_path / "checkpoint", 2)
    assert ckpt.prune(str(checkpoint))[0].pruned
    for snapshot in checkpoint.glob("state/0/*/8.snapshot"):
        data = bytearray(snapshot.read_bytes())
        data[30:34] = b"UUUU"
        snapshot.unlink()
        snapshot.write_bytes(data)
        snapshot.with_name(f".{snapshot.name}.crc").unlink(missing_ok=True)
    plan, _ = ckpt.prune(str(checkpoint))
    assert plan.refused is not None
    assert "8.snapshot" in str(plan.refused)
