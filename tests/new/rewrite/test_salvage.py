"""``ckpt rewrite --salvage``: what can be read of damaged state is taken, and what is lost is named and accepted."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.state.reading.choose import StateDamaged
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.new.rewrite.continuing import frames, state
from tests.new.rewrite.record import MAIN
from tests.new.rewrite.salvaged import DAMAGES, SUITE
from tests.support.places import SAMPLES, some_quick

ANSWERS = SUITE.recorded(MAIN)
AGGREGATION = "aggregation-hdfs-4.2"


@pytest.mark.parametrize("case", [*SUITE.wanted(MAIN)])
def test_a_query_continued_with_what_was_salvaged(case: str) -> None:
    """Keys of whole partitions as on the intact checkpoint, those of the lost one as if they were new."""
    answer = ANSWERS[case]
    assert answer["state"] == answer["expected"]
    assert answer["rows"][1:] == [0, 0], "rows that neither of the two put out, or that both did and it did not"
    if "session" not in case and "windowed" not in case:
        assert answer["rows"][0] > 0
    assert sum(count for count, _ in answer["state"].values()) > 0
    partition, damage = DAMAGES[case.partition(": ")[2]][0], case.partition(": ")[2]
    goes_back = answer["again"] is not None
    assert answer["lost"] == ([] if goes_back else [[0, partition]])
    assert answer["again"] == ([4, 4] if goes_back else None)
    assert not goes_back or damage == "the newest version is lost"  # where the copy has an older one of all partitions
    assert goes_back or damage != "the newest version is lost" or "hdfs" not in case


@pytest.mark.parametrize(
    ("sample", "lost"),
    [
        (AGGREGATION, "state/0/1"),
        ("join-changelog-4.2", "state/0/1/left-keyToNumValues"),
        ("tws-event-time-changelog-4.2", "state/0/1"),
        ("dedup-aggregation-hdfs-4.2", "state/1/1"),
    ],
)
@pytest.mark.parametrize("form", some_quick([{}, {"partitions": 3}], 2), ids=str)
def test_an_operator_in_a_partition_is_lost_as_a_whole(
    sample: str, lost: str, form: dict[str, Any], copy_of: CopyOf, tmp_path: Path
) -> None:
    damaged = copy_of(sample)
    shutil.rmtree(damaged / lost)
    with pytest.raises(StateDamaged):
        ckpt.rewrite(str(damaged), str(tmp_path / "new"), **form)
    made = ckpt.rewrite(str(damaged), str(tmp_path / "new"), salvage=True, accept_loss=True, **form)
    operator, partition = map(int, lost.split("/")[1:3])
    assert made.salvage is not None
    assert [(part.operator, part.partition) for part in made.salvage.lost] == [(operator, partition)]
    expected = {}
    for label, table in frames(SAMPLES / sample, partition_id=True).items():
        others = not label.startswith(f"operator {operator}")
        kept = [row for row in table.to_pylist() if others or row["partition_id"] != partition]
        expected[label] = sorted(str({k: v for k, v in row.items() if k != "partition_id"}) for row in kept)
    assert state(tmp_path / "new") == expected
    assert ckpt.inspect(str(tmp_path / "new")).sound
    assert ckpt.state_verify(str(tmp_path / "new")).damages == ()


def test_nothing_is_written_unless_the_loss_is_accepted(copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path) -> None:
    damaged, new = copy_of(AGGREGATION), tmp_path / "new"
    shutil.rmtree(damaged / "state/0/1")
    words = ("rewrite", damaged, new, "--salvage")
    refused = ckpt(*words)
    assert refused.exit_code == 3
    assert "1 partition of state is lost: --accept-loss accepts that" in " ".join(refused.stdout.split())
    planned = ckpt(*words, "--plan", "-o", "json")
    assert planned.exit_code == 3
    assert ckpt(*words, "--plan", "--accept-loss").exit_code == 0
    document = planned.json()
    assert contract.disagreements(document, "rewrite") == []
    assert [(part["operator"], part["partition"], part["keys"]) for part in document["lost"]] == [(0, 1, None)]
    assert not new.exists()
    assert ckpt(*words, "--accept-loss").exit_code == 0


def test_keys_that_a_snapshot_records_are_counted(copy_of: CopyOf, tmp_path: Path) -> None:
    damaged = copy_of("aggregation-rocksdb-4.2")
    for table in (damaged / "state/0/1/SSTs").iterdir():
        table.write_bytes(bytes(table.stat().st_size))
    made = ckpt.rewrite(str(damaged), str(tmp_path / "new"), salvage=True, plan=True)
    assert made.salvage is not None
    whole = ckpt.read_state_arrow(str(SAMPLES / "aggregation-rocksdb-4.2"), partition_id=True).to_pylist()
    assert [part.keys for part in made.salvage.lost] == [sum(row["partition_id"] == 1 for row in whole)]


def test_the_newest_batch_at_which_nothing_is_lost_is_taken(copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path) -> None:
    """Its later batches run again, so the page says what their sink may do."""
    damaged = copy_of(AGGREGATION)
    for version in ("9", "10"):
        (damaged / f"state/0/1/{version}.delta").unlink()
        (damaged / f"state/0/1/{version}.snapshot").unlink(missing_ok=True)
    words = ("rewrite", damaged, tmp_path / "new", "--salvage", "--accept-loss")
    page = " ".join(ckpt(*words).stdout.split())
    assert "as of batch 7: batches 8 to 9 are read again" in page
    assert f"ckpt inspect {tmp_path / 'new'} --sink URI" in page
    starts = ckpt("inspect", tmp_path / "new", "--spark", "4.2", "-o", "json").json()["restart"]
    assert {start["batch_id"] for start in starts if start["outcome"] == "resumes"} == {8}


@pytest.mark.parametrize("lost", ["state/0/0", "state/0", "state/0/0 and 1"])
def test_what_cannot_be_salvaged_is_refused(lost: str, copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path) -> None:
    """A state schema is in the first partition; a new checkpoint of the query has the same one."""
    damaged = copy_of("dedup-aggregation-hdfs-4.2" if lost == "state/0" else AGGREGATION)
    if lost.endswith("1"):
        for file in (damaged / "state/0").glob("[01]/*.*"):
            file.unlink()
    else:
        shutil.rmtree(damaged / lost)
    run = ckpt("rewrite", damaged, tmp_path / "new", "--salvage", "--accept-loss")
    assert (run.exit_code, run.stdout) == (3, "")
    assert not (tmp_path / "new").exists()
    says = {
        "state/0/0": "into noop with a new checkpoint",
        "state/0": "this is not all of the state",
        "state/0/0 and 1": "no partition of the state can be read",
    }
    assert says[lost] in run.stderr


def test_intact_state_is_rewritten_as_ever(tmp_path: Path) -> None:
    made = ckpt.rewrite(str(SAMPLES / AGGREGATION), str(tmp_path / "new"), salvage=True)
    assert made.written
    assert made.salvage is not None
    assert (made.salvage.costs, made.batch) == ("", 9)
    assert json.loads((tmp_path / "new/metadata").read_text())["id"] == made.query_id
