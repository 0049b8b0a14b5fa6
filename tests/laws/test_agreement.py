"""``inspect`` says that nothing is to repair exactly where ``repair`` plans nothing, for all damages of the oracle."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckpt import inspect, repair
from tests.conftest import CopyOf
from tests.laws.agreement import find_disagreements
from tests.laws.next_obeyed import oracle_cases
from tests.restart.oracle.cases import Case
from tests.support.files import rewrite
from tests.support.places import SAMPLE_NAMES, SAMPLES
from tests.support.spark import mutations
from tests.support.spark.live import EVERY_CASE

_CASES = oracle_cases()
_KINDS = (
    "-line-ends",
    "blank-line-at-end",
    "byte-order-mark",
    "stale-crc",
    "crc-orphan-commit-old",
    "commit-latest-v2",
)
_QUICK = [case for case in _CASES if case.name.endswith(_KINDS) and "uncommitted" not in case.name][::4]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in _QUICK])
def test_both_say_the_same_of_a_damage(case: Case, tmp_path: Path) -> None:
    checkpoint = mutations.copy_of(case.folder, tmp_path / "checkpoint", case.mutations)
    assert [*find_disagreements(checkpoint, case.folder)] == []


@pytest.mark.slow
def test_both_say_the_same_of_every_damage(tmp_path: Path) -> None:
    found = {}
    for number, case in enumerate(_CASES if EVERY_CASE else _CASES[3::24]):
        checkpoint = mutations.copy_of(case.folder, tmp_path / str(number), case.mutations)
        found[case.name] = [*find_disagreements(checkpoint, case.folder)]
        shutil.rmtree(checkpoint)
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_both_say_the_same_of_a_sample(sample: str, copy_of: CopyOf) -> None:
    assert [*find_disagreements(copy_of(sample))] == []


def _miscount(checkpoint: Path) -> Iterator[str]:
    """Record another number of shuffle partitions in the newest offsets, which is wrong: no key is in a wrong place."""
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    recorded = newest.read_text()
    for number in (1, 3, 4):
        newest.write_text(re.sub(r'("spark.sql.shuffle.partitions":)"\d+"', rf'\1"{number}"', recorded))
        yield from find_disagreements(checkpoint)
        findings = inspect(str(checkpoint)).findings
        yield from (f"{number}: {finding.path}" for finding in findings if finding.code == "CKPT324")


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["aggregation-changelog-4.2", "join-hdfs-3.5", "tws-rocksdb-4.2"])
def test_where_the_number_of_partitions_is_wrong_no_key_is(sample: str, copy_of: CopyOf) -> None:
    assert [*_miscount(copy_of(sample))] == []


@pytest.mark.slow
@pytest.mark.parametrize("sample", [name for name in SAMPLE_NAMES if (SAMPLES / name / "state").is_dir()])
def test_where_the_number_of_partitions_is_wrong_no_key_is_in_any_sample(sample: str, copy_of: CopyOf) -> None:
    assert [*_miscount(copy_of(sample))] == []


def test_a_leftover_checksum_of_a_temporary_file_is_left_alone_until_asked(copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-4.2")
    leftover = checkpoint / "commits" / "..5.00000000-0000-4000-8000-000000000000.tmp.crc"
    leftover.write_bytes(b"crc\0\0\0\2\0")
    assert [*find_disagreements(checkpoint)] == []
    assert not repair(str(checkpoint))[0].steps
    assert [step.path for step in repair(str(checkpoint), leftovers=True)[0].steps] == [f"commits/{leftover.name}"]


def test_line_ends_that_git_changed_are_put_back_and_undone(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    mutations.apply(checkpoint, [{"op": "line_ends", "path": "**/*", "keep_crc": True}])
    changed = {path: path.read_bytes() for path in before}
    assert changed != before
    inspection = inspect(str(checkpoint))
    assert inspection.sound
    assert {rated.code for rated in inspection.findings} >= {"CKPT515"}
    assert not {"CKPT503", "CKPT323"} & {rated.code for rated in inspection.findings}
    _, receipt = repair(str(checkpoint), leftovers=True, apply=True, grace=0)
    assert receipt.applied, receipt.problem
    assert {path: path.read_bytes() for path in before} == before
    repair(str(checkpoint), undo=receipt.backup)
    assert {path: path.read_bytes() for path in before} == changed


def test_a_blank_line_that_a_start_reads_is_taken_off_as_the_checksum_proves(copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-4.2")
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    data = newest.read_bytes()
    newest.write_bytes(data + b"\n\n")
    inspection = inspect(str(checkpoint))
    assert inspection.cause.file == f"offsets/{newest.name}"  # type: ignore[union-attr]
    assert len(inspection.sources) == 1
    assert {len(batch.advanced) for batch in inspection.batches} == {1}
    plan, receipt = repair(str(checkpoint), apply=True, grace=0)
    assert (plan.chosen.name, plan.rows, receipt.applied) == ("tidy", "none", True)  # type: ignore[union-attr]
    assert newest.read_bytes() == data
    assert inspect(str(checkpoint)).sound


def test_a_blank_line_in_all_offsets_is_no_other_source_either(copy_of: CopyOf) -> None:
    """Each file has as many lines as the one before, and Spark counts one source too many in both."""
    checkpoint = copy_of("stateless-4.2")
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        rewrite(file, lambda text: text + "\n\n")
    inspection = inspect(str(checkpoint))
    assert {forecast.outcome.runs for forecast in inspection.forecasts} == {False}
    assert len(inspection.sources) == 1
    repair(str(checkpoint), apply=True, grace=0)
    assert inspect(str(checkpoint)).sound


def test_a_blank_line_in_old_offsets_is_no_other_source(copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-4.2")
    rewrite(checkpoint / "offsets" / "0", lambda text: text + "\n\n")
    inspection = inspect(str(checkpoint))
    assert inspection.sound
    assert {len(batch.advanced) for batch in inspection.batches} == {1}
    assert [(rated.code, rated.path) for rated in inspection.findings if rated.code in ("CKPT106", "CKPT515")] == [
        ("CKPT515", "offsets/0")
    ]
    assert [*find_disagreements(checkpoint)] == []
