"""``ckpt migrate real-time``, and the repair that it names; that Spark continues is in ``restart/realtime``."""

from pathlib import Path

import pytest

import ckpt as library
from ckpt.migrate.switches import migrate_real_time
from ckpt.restart.findings import Asked
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases.model import delete_logs
from tests.restart.realtime import cases
from tests.support.places import SAMPLES
from tests.support.spark import mutations

COUNTS = "aggregation-hdfs-4.2"


def _read_kafka(tmp_path: Path, name: str) -> Path:
    return mutations.copy_of(SAMPLES / name, tmp_path / name, cases.read_kafka(name))


@pytest.mark.parametrize(
    ("sample", "outcome", "exit_code"),
    [
        ("kafka-4.2", "commit", 1),
        ("real-time-4.3", "already", 0),
        ("real-time-aggregation-4.3", "already", 0),
        (COUNTS, "no-way", 3),
        ("continuous-kafka-4.2", "refused", 3),
    ],
)
def test_what_is_said_of_samples(ckpt: Ckpt, sample: str, outcome: str, exit_code: int) -> None:
    run = ckpt("migrate", "real-time", SAMPLES / sample, "-o", "json")
    assert contract.disagreements(run.json(), "migrate real-time") == []
    assert (run.json()["outcome"], run.exit_code) == (outcome, exit_code)
    assert (run.json()["refused"] is None) == (exit_code < 3)
    page = ckpt("migrate", "real-time", SAMPLES / sample)
    assert page.exit_code == exit_code


def test_state_goes_over_by_a_rewrite(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _read_kafka(tmp_path, COUNTS)
    move = migrate_real_time(str(checkpoint))
    (command,) = [step.words for step in move.steps if step.words]
    new = f"{checkpoint}-real-time"
    assert command == ("ckpt", "rewrite", str(checkpoint), str(new), "--provider", "rocksdb", "--format-version", "2")
    assert ckpt(*command[1:]).exit_code == 0
    assert migrate_real_time(new).outcome.value == "already"
    assert (
        library.inspect(new, spark=["4.3"], progress=Asked.REALTIME).verdict
        == "Restarts in real-time mode with new batch 10"
    )


def test_a_planned_batch_is_said_to_be_deleted(tmp_path: Path) -> None:
    checkpoint = _read_kafka(tmp_path, COUNTS)
    mutations.apply(checkpoint, delete_logs(commits=[9]))
    move = migrate_real_time(str(checkpoint))
    assert any(str(warning).startswith("Batch 9 is planned but not committed") for warning in move.warnings)


def test_a_commit_gets_version_2_only_if_that_is_chosen(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    assert ckpt("repair", checkpoint).exit_code == 0
    planned = ckpt("repair", checkpoint, "--choose", "to-real-time")
    assert f"ckpt repair {checkpoint} --choose to-real-time --apply" in " ".join(planned.stdout.split())
    plan, receipt = library.repair(str(checkpoint), choose="to-real-time", apply=True)
    assert receipt.applied
    assert (checkpoint / "commits" / "5").read_text() == 'v2\n{"nextBatchWatermarkMs":0}'
    assert migrate_real_time(str(checkpoint)).outcome.value == "already"
    library.repair(str(checkpoint), undo=receipt.backup)
    assert (checkpoint / "commits" / "5").read_text() == (SAMPLES / "kafka-4.2" / "commits" / "5").read_text()
    assert plan.chosen is not None


def test_a_commit_of_a_query_with_state_stays(tmp_path: Path) -> None:
    checkpoint = _read_kafka(tmp_path, COUNTS)
    plan, _ = library.repair(str(checkpoint), choose="to-real-time")
    assert "the query is stateful" in str(plan.refused)
    assert plan.steps == ()
