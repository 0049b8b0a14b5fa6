"""Checkpoints of real-time mode and of continuous processing: what a page says, and what a repair writes."""

import json

import pytest

import ckpt as library
from ckpt.advice import Do, Instruction
from ckpt.changes.fixes.repair import FixName
from ckpt.versions import Progress
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases import younger
from tests.restart.oracle.cases.model import delete_logs, write
from tests.support.places import SAMPLES

UNDOES = "Real-time mode wrote this checkpoint. A start in that mode deletes the uncommitted offsets/1"


def test_an_aggregation_of_real_time_mode_is_not_damaged(ckpt: Ckpt) -> None:
    page = ckpt("inspect", SAMPLES / younger.AGGREGATE).stdout
    assert "CKPT125" in page
    assert "CKPT318" not in page
    assert "from a copy" not in page


@pytest.mark.parametrize("sample", [younger.AGGREGATE, "real-time-4.3"])
def test_a_rewind_says_that_a_start_in_real_time_mode_undoes_it(sample: str) -> None:
    plan, _ = library.rewind(str(SAMPLES / sample), to_batch=0)
    assert any(str(text).startswith(UNDOES) for text in plan.warnings)
    anew, _ = library.rewind(str(SAMPLES / sample), to_batch=0, replay="new")
    assert anew.steps
    assert not any(UNDOES in str(text) for text in anew.warnings)


def test_a_rewind_of_micro_batches_says_nothing_of_real_time_mode() -> None:
    plan, _ = library.rewind(str(SAMPLES / "stateless-4.3"), to_batch=1)
    assert plan.steps
    assert not any("eal-time" in str(text) for text in plan.warnings)


def test_setting_offsets_of_a_planned_batch_says_that_a_start_in_real_time_mode_undoes_it(copy_of: CopyOf) -> None:
    checkpoint = copy_of("real-time-4.3", *delete_logs(commits=[1]))
    plan, _ = library.offsets_set(str(checkpoint), to={"orders": {"0": 60, "1": 60}})
    assert plan.steps
    assert any(str(text).startswith(UNDOES) for text in plan.warnings)


def test_a_query_killed_in_its_first_real_time_batch_gets_both_ways_out(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(younger.AGGREGATE, *younger.FIRST_BATCH)
    inspection = library.inspect(str(checkpoint))
    assert [step.do for step in inspection.advice.all_steps()] == [
        Instruction(Do.WAIT),
        Instruction(Do.START),
        Instruction(Do.DELETE, ("state",)),
    ]
    assert "CKPT112" not in ckpt("inspect", checkpoint).stdout
    with_state = copy_of(younger.AGGREGATE, *younger.FIRST_BATCH, write("state/0/0/1.delta", "x"), to="other")
    assert "CKPT215" not in ckpt("inspect", with_state).stdout


def test_micro_batches_get_the_metadata_that_spark_took(copy_of: CopyOf) -> None:
    """The newest committed epoch gets what the recorded start had (``younger.IN_MICRO_BATCHES``), but for the time."""
    checkpoint = copy_of(younger.CONTINUOUS, *delete_logs(commits=[younger.L]))
    committed = younger.L - 1
    plan, receipt = library.repair(str(checkpoint), apply=True)
    assert plan.chosen is not None
    assert plan.chosen.name is FixName.TO_MICRO_BATCH
    assert receipt.applied
    written, proven = ((checkpoint / f"offsets/{committed}").read_text(), younger.IN_MICRO_BATCHES)
    assert _without_time(written) == _without_time(proven)
    assert not (checkpoint / f"offsets/{younger.L}").exists()
    starts = [f for f in library.inspect(str(checkpoint)).forecasts if f.progress is Progress.SYNC]
    assert {(f.outcome.value, f.batch_id) for f in starts} == {("resumes", committed + 1)}


def _without_time(text: str) -> list[object]:
    version, metadata, *sources = text.split("\n")
    return [version, json.loads(metadata) | {"batchTimestampMs": None}, *sources]


def test_a_rate_source_cannot_change_to_micro_batches(ckpt: Ckpt) -> None:
    page = " ".join(ckpt("repair", SAMPLES / "continuous-4.2").stdout.split())
    assert "only a Kafka source has the same offsets in micro-batches" in page
    steps = ckpt("repair", SAMPLES / "continuous-4.2", "-o", "json").json()["next"]
    assert [step["do"] for step in steps] == ["start"]


def test_a_new_query_continues_after_an_epoch() -> None:
    handoff = library.handoff(str(SAMPLES / younger.CONTINUOUS))
    assert handoff.refused is None
    assert handoff.sources[0].options["startingOffsets"] == '{"orders":{"0":51,"1":49}}'
    assert any("written by continuous processing" in str(text) for text in (*handoff.doubts, *handoff.warnings))


def test_an_entry_that_was_cut_off_is_found_in_the_log_of_a_named_source(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("named-file-sources-4.3", write("sources/alpha/4", ""))
    run = ckpt("repair", checkpoint, "-o", "json")
    assert run.exit_code == 1
    assert [step["path"] for step in run.json()["steps"]] == ["sources/alpha/4"]
