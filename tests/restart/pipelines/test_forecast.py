"""Recorded runs of pipelines are compared with the forecast for the version that ckpt chooses, and rows counted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.checkpoint.reader import NotACheckpoint
from ckpt.errors import CkptError, StorageError
from ckpt.inspection.inspection import Inspection
from tests.restart.pipelines.cases import ADOPTED, ALL, CASES, REFRESHED, SINK, SIZE, TWO, Case
from tests.restart.pipelines.record import ANSWERS, ASKED, FLOWS

RECORDED: dict[str, Any] = {minor: ANSWERS.read(minor)["answers"] for minor in ASKED}
OLD = 3 * SIZE  # rows before the damage
LOST = {"higher-empty-cleaned", "higher-metadata-only", "deleted-cleaned"}
"""The table drops the batch, whose id it has from another version: CKPT256, or the checkpoint is gone."""
STATE_OF_DROPPED = {"higher-empty-keyed", "deleted-keyed"}
"""The table drops the first batches before they are computed, so the next one lacks their state."""


@pytest.fixture
def flow(case: Case, tmp_path: Path) -> Path:
    """The folder of a flow as it is before the second run."""
    folder = tmp_path / "storage/_checkpoints/spark_catalog/default" / case.table / case.table
    shutil.copytree(FLOWS / f"as-it-is{'-keyed' * case.keyed}", folder)
    case.damage(folder)
    return folder


def look(flow: Path) -> Inspection | None:
    """Inspect a flow; None where the version that runs use is a file, or there is none."""
    try:
        return ckpt.inspect(str(flow))
    except (StorageError, NotACheckpoint):
        return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_forecast_is_what_the_run_did(case: Case, flow: Path) -> None:
    inspection = look(flow)
    for minor in ASKED:
        run = RECORDED[minor][case.name]["run"]
        if inspection is None:
            assert (run["version"], run["committed"][:1]) == (("0", [0]) if case.name == "renamed" else (None, []))
            continue
        told = next(f for f in inspection.forecasts if (f.spark, f.progress) == (minor, "sync"))
        if run["version"] is not None:
            chosen = Path(inspection.checkpoint.uri)
            assert run["version"] == ("0" if chosen == flow else chosen.name)
        if case.name in STATE_OF_DROPPED:
            assert told.outcome.runs
            assert "1.delta" in run["error"]
        elif told.outcome.runs:
            assert (run["error"], run["committed"][0]) == (None, told.batch_id)
        else:
            assert told.error in run["error"]
            assert run["committed"] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rows_are_lost_only_where_a_finding_or_an_empty_checkpoint_says_so(case: Case, flow: Path) -> None:
    inspection = look(flow)
    codes = set() if inspection is None else {rated.finding.diagnosis.code for rated in inspection.findings}
    assert ("CKPT256" in codes) == (case.name.startswith("higher-") and "-renamed" not in case.name)
    for minor in ASKED:
        run = RECORDED[minor][case.name]["run"]
        ran = bool(run["committed"]) and run["error"] is None
        lost = case.name in LOST
        assert run["rows"] == [OLD if lost or not ran else OLD + SIZE] * 2
        if lost:
            assert {"CKPT256", "CKPT602"} & codes


@pytest.mark.parametrize("minor", ASKED)
def test_remedies_lose_nothing_and_repeat_what_they_announce(minor: str) -> None:
    followed = [case for case in ALL if case.remedy is not None]
    assert len(followed) >= 8
    for case in followed:
        answer = RECORDED[minor][case.name]
        rows, distinct = answer["afterwards"]["rows"]
        assert answer["remedy"]["applied"], case.name
        assert answer["afterwards"]["error"] is None, case.name
        assert distinct == OLD + 2 * SIZE, case.name
        assert rows == distinct or answer["remedy"]["repeats"], case.name


@pytest.mark.parametrize("minor", ASKED)
def test_a_flow_that_takes_over_a_checkpoint_continues_exactly(minor: str) -> None:
    for case in (*ADOPTED, *REFRESHED):
        answer = RECORDED[minor][case.name]
        assert answer["run"]["rows"] == [OLD + SIZE] * 2, case.name
        assert answer["afterwards"]["rows"] == [OLD + 2 * SIZE] * 2, case.name
    assert {RECORDED[minor][case.name]["run"]["version"] for case in ADOPTED} == {"0"}
    assert {RECORDED[minor][case.name]["run"]["version"] for case in REFRESHED} == {"1"}


@pytest.mark.parametrize("minor", ASKED)
def test_two_flows_lose_rows_and_the_union_of_their_sources_does_not(minor: str) -> None:
    answer = RECORDED[minor][TWO]
    assert answer["rows"][0][0] < 2 * OLD
    assert answer["union"] == [2 * (OLD + 2 * SIZE)] * 2


@pytest.mark.parametrize("minor", ASKED)
def test_a_sink_has_a_folder_of_one_name(minor: str) -> None:
    assert RECORDED[minor][SINK]["folders"] == [f"_checkpoints/{SINK}/into_{SINK}"]


def test_enough_starts_are_recorded() -> None:
    starts = sum("run" in answer for answers in RECORDED.values() for answer in answers.values())
    assert starts >= 40


def test_a_flow_without_a_version_begins_with_0(tmp_path: Path) -> None:
    folder = tmp_path / "storage/_checkpoints/c/d/t/f"
    shutil.copytree(FLOWS / "as-it-is" / "0", folder / "zero")
    with pytest.raises(NotACheckpoint, match="without a version: its next run starts version 0 from nothing"):
        ckpt.inspect(str(folder))


def test_a_file_in_place_of_a_version_is_no_checkpoint(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "file-with-a-number")
    folder = tmp_path / "storage/_checkpoints/c/d/t/f"
    shutil.copytree(FLOWS / "as-it-is", folder)
    case.damage(folder)
    with pytest.raises(CkptError, match="9"):
        ckpt.inspect(str(folder))
