"""Folders of state that were copied into others: found, and moved up by ``repair``."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt.advice import Instruction
from tests.conftest import Ckpt, CopyOf
from tests.laws.agreement import find_disagreements
from tests.support.spark.live import trace
from tests.support.spark.queries import drain, own_session

NOW: dict[str, Any] = {"apply": True, "grace": 0}


def nest(top: Path, shape: str) -> None:
    """Move folders as ``mv`` and ``cp -r`` do if the target exists already: into it."""
    state, away = top / "state", top / "away"
    match shape:
        case "partition":  # mv state/0/1 state/0/0
            (state / "0/1").rename(state / "0/0/1")
        case "operator":  # mv away/0 state/0, which is there and empty
            (state / "0").rename(away)
            (state / "0").mkdir()
            away.rename(state / "0/0")
        case "operator into its partition 0":  # mv away/0 state/0/0
            (state / "0").rename(away)
            (state / "0/0").mkdir(parents=True)
            away.rename(state / "0/0/0")
        case "state":
            state.rename(away)
            state.mkdir()
            away.rename(state / "state")
        case "state, and a partition in it":
            nest(top, "state")
            (state / "state/0/1").rename(state / "state/0/0/1")


SHAPES = ["partition", "operator into its partition 0", "state", "state, and a partition in it", "operator"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sample", ["aggregation-hdfs-3.5", "aggregation-changelog-4.2"])
def test_it_is_one_finding_and_moved_up(sample: str, shape: str, copy_of: CopyOf, ckpt: Ckpt) -> None:
    top = copy_of(sample)
    was = _files(top)
    nest(top, shape)
    nested = _files(top)
    inspected = ckpt("inspect", top, "-o", "json").json()
    assert [found["code"] for found in inspected["findings"] if found["severity"] != "note"] == ["CKPT338"]
    assert inspected["next"][0]["command"][1:] == ["repair", str(top)]
    plan, receipt = library.repair(str(top), **NOW)
    assert (receipt.applied, plan.rows, plan.replay) == (True, "unknown", ())
    assert (
        _files(top).items()
        >= {at: was[at] for at in was if "_metadata" not in at or not shape.startswith("operator")}.items()
    )
    assert ckpt("inspect", top).exit_code == 0
    library.repair(str(top), undo=receipt.backup, grace=0)
    assert _files(top) == nested


def test_a_handoff_with_empty_state_names_the_repair_first(copy_of: CopyOf, ckpt: Ckpt) -> None:
    top = copy_of("aggregation-hdfs-3.5")
    nest(top, "partition")
    page = " ".join(ckpt("handoff", top).stdout.split())
    assert f"First see whether ckpt repair {top} restores it." in page


def test_more_than_a_plan_holds_is_moved_by_hand(copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch) -> None:
    top = copy_of("aggregation-hdfs-3.5")
    nest(top, "partition")
    for module in ("ckpt.changes.fixes.tidy", "ckpt.restart.batch"):
        monkeypatch.setattr(f"{module}.LARGEST_CHANGE", 100)
    (trouble,) = library.inspect(str(top)).troubles
    assert trouble.code == "CKPT338"
    assert [*find_disagreements(top)] == []
    assert trouble.advice
    assert [step.do.do if isinstance(step.do, Instruction) else step.do.name for step in trouble.advice.steps] == [
        "change",
        "inspect",
    ]
    assert not library.repair(str(top))[0].steps


def _files(top: Path) -> dict[str, bytes]:
    return {path: of_file[3] for path, of_file in trace(top).items() if (top / path).is_file()}


def test_a_file_in_its_place_with_other_content_is_not_replaced(copy_of: CopyOf, ckpt: Ckpt) -> None:
    top = copy_of("aggregation-hdfs-3.5")
    nest(top, "partition")
    (top / "state/0/1/_metadata").mkdir(parents=True)
    (top / "state/0/1/_metadata/schema").write_text("of another query")
    (top / "state/0/0/1/_metadata").mkdir()
    shutil.copy(top / "state/0/0/_metadata/schema", top / "state/0/0/1/_metadata/schema")
    plan, receipt = library.repair(str(top), **NOW)
    assert not receipt.applied
    assert "state/0/1/_metadata/schema" in str(plan.refused)


def test_a_partition_that_has_state_of_its_own_takes_none(copy_of: CopyOf) -> None:
    """The copy in it may be of any age."""
    top = copy_of("aggregation-hdfs-3.5")
    shutil.copytree(top / "state/0/1", top / "state/0/0/1")
    assert library.inspect(str(top)).sound
    shutil.copytree(top / "state/0/0/1", top / "state/0/0/2")
    (top / "state/0/1/6.delta").unlink()
    assert not any("0/0" in step.path for step in library.repair(str(top))[0].steps if step.before is None)


@pytest.mark.spark
def test_the_query_fails_before_and_continues_with_its_rows(spark: Any, tmp_path: Path) -> None:
    source, top = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    session = own_session(spark, partitions=4)

    def run(number: int) -> dict[int, int]:
        (source / f"{number}.json").write_text("".join(f'{{"k": {key}}}\n' for key in range(20)))
        counts = session.readStream.schema("k long").json(str(source)).groupBy("k").count()
        return {row["k"]: row["count"] for batch in drain(counts, top, "update").values() for row in batch}

    run(0)
    run(1)
    for partition in (1, 2, 3):
        (top / f"state/0/{partition}").rename(top / f"state/0/0/{partition}")
    forecast = library.inspect(str(top), spark=["4.2"]).forecasts[0]
    with pytest.raises(Exception, match=str(forecast.error)):
        run(2)
    assert library.repair(str(top), **NOW)[1].applied
    assert run(3) == dict.fromkeys(range(20), 4)
