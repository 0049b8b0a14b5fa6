"""A batch that was committed and never computed: its commit goes, a usual start computes it, and no row is lost."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ckpt import Inspection, explain, inspect, repair
from ckpt.advice import Instruction
from ckpt.changes.plan import First
from ckpt.formats.statefiles import version_of
from tests.live.sink.stateful import BATCHES, NUMBERS, Numbers
from tests.support.places import SAMPLES
from tests.support.remedies import NOW, remove
from tests.support.spark.queries import STATE_STORES, own_session

SAMPLES_WITH_STATE = (
    "aggregation-hdfs-3.5",
    "aggregation-hdfs-4.2",
    "aggregation-rocksdb-4.2",
    "aggregation-changelog-4.2",
    "dedup-hdfs-4.0",
    "join-changelog-4.2",
    "dedup-aggregation-hdfs-4.2",
    "session-window-changelog-4.2",
    "windowed-aggregation-rocksdb-4.3",
)


def copy_of(sample: str, to: Path) -> Path:
    return shutil.copytree(SAMPLES / sample, to / "checkpoint")


def newest_of(checkpoint: Path) -> int:
    """The newest committed batch."""
    return max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))


def lose(folder: Path, *versions: int, checksums: bool = True) -> None:
    """Remove the state of some versions, with the hidden checksums of the files or without."""
    for file in [file for file in folder.rglob("*") if file.is_file()]:
        hidden = file.name.startswith(".")
        if version_of(file.name) in versions and "_metadata" not in str(file) and (checksums or not hidden):
            file.unlink()


def codes(inspection: Inspection) -> set[str]:
    """Codes, without the one that a partition without a folder has on any local path."""
    return {rated.code for rated in inspection.troubles} - {"CKPT513"}


@pytest.mark.parametrize("sample", SAMPLES_WITH_STATE)
def test_state_that_is_nowhere_was_not_computed(sample: str, tmp_path: Path) -> None:
    checkpoint = copy_of(sample, tmp_path)
    newest = newest_of(checkpoint)
    lose(checkpoint / "state", newest + 1)

    found, (plan, _) = inspect(checkpoint), repair(checkpoint)

    assert codes(found) == {"CKPT428"}
    assert next(call for call in found.advice.calls).name == "repair"
    assert plan.chosen is not None
    assert (plan.chosen.name.value, plan.first) == ("run-again", First.NOTHING)
    assert {step.path for step in plan.steps if "/." not in step.path} == {f"commits/{newest}"}
    assert {plan.inspection_after.counted[0].batch_id} == {newest} if plan.inspection_after else False


@pytest.mark.parametrize("sample", SAMPLES_WITH_STATE)
def test_files_that_had_checksums_were_lost(sample: str, tmp_path: Path) -> None:
    checkpoint = copy_of(sample, tmp_path)
    newest = newest_of(checkpoint)
    had = [*(checkpoint / "state").rglob(f".{newest + 1}.*.crc")]
    lose(checkpoint / "state", newest + 1, checksums=False)

    assert codes(inspect(checkpoint)) & {"CKPT301", "CKPT428"} == {"CKPT301" if had else "CKPT428"}


@pytest.mark.parametrize(
    ("folder", "batches", "found", "first"),
    [
        ("state/0/0", (0,), "CKPT301", First.NOOP_IF_WRITTEN),  # a part of the rows, or lost files: unknown
        ("state/1", (0,), "CKPT428", First.NOOP_IF_WRITTEN),  # one operator of two
        ("state", (0,), "CKPT428", First.NOTHING),
        ("state", (-1, 0), "CKPT428", First.SINK),  # two batches in a row
        ("state/0/0", (-1, 0), "CKPT301", First.SINK),
        ("state", (-3, 0), "CKPT301", None),  # older state is not complete
    ],
)
def test_what_is_lost_is_told_apart(
    folder: str, batches: tuple[int, ...], found: str, first: First | None, tmp_path: Path
) -> None:
    checkpoint = copy_of("dedup-aggregation-hdfs-4.2", tmp_path)
    for snapshot in (checkpoint / "state").rglob("*.snapshot"):
        remove(snapshot)
    newest = newest_of(checkpoint)
    lose(checkpoint / folder, *(newest + 1 + batch for batch in batches))

    assert codes(inspect(checkpoint)) & {"CKPT301", "CKPT428"} == {found}
    plan = repair(checkpoint)[0]
    assert (None if plan.refused else plan.first) is first


def test_a_damaged_file_beside_a_missing_one_proves_nothing_of_other_partitions(tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", tmp_path)
    newest = newest_of(checkpoint)
    lose(checkpoint / "state/0/0", newest + 1)
    (checkpoint / f"state/0/1/{newest + 1}.delta").write_bytes(b"")

    assert codes(inspect(checkpoint)) >= {"CKPT301", "CKPT302"}
    assert repair(checkpoint)[0].first is First.NOOP_IF_WRITTEN


def test_in_format_2_the_commit_names_what_was_computed(tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-format2-4.2", tmp_path)
    lose(checkpoint / "state", newest_of(checkpoint) + 1)

    assert "CKPT428" not in codes(inspect(checkpoint))
    assert repair(checkpoint)[0].first is First.NOOP


@pytest.mark.parametrize("planned", [1, 2])
def test_batch_0_was_never_computed(planned: int, tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", tmp_path)
    lose(checkpoint / "state", *range(1, 11))
    for log, kept in (("offsets", planned), ("commits", 1)):
        for file in (checkpoint / log).iterdir():
            if int(file.name.removeprefix(".").removesuffix(".crc")) >= kept:
                file.unlink()

    found, (plan, _) = inspect(checkpoint), repair(checkpoint)

    assert codes(found) == {"CKPT428"}
    assert plan.refused is None
    assert {step.path for step in plan.steps if "/." not in step.path} == {"commits/0", *(["offsets/1"][: planned - 1])}


def test_without_a_schema_the_state_was_lost(tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", tmp_path)
    for partition in ("0", "1"):
        shutil.rmtree(checkpoint / "state/0" / partition)

    assert codes(inspect(checkpoint)) == {"CKPT304"}


class Written:
    """Numbers without duplicates, a file of them in each batch, into a function of foreachBatch that adds rows."""

    def __init__(self, spark: Any, folder: Path, store: str, partitions: int = 2) -> None:
        self._spark, self._in = own_session(spark, STATE_STORES[store], partitions), folder / "in"
        self.rows: Counter[int] = Counter()
        self._in.mkdir()

    def add(self, name: str, *numbers: int) -> None:
        (self._in / name).write_text("".join(json.dumps({"id": number}) + "\n" for number in numbers))

    def start(
        self, checkpoint: Path, *, skip: tuple[int, ...] = (), part: int = -1, only: str = "", **trigger: Any
    ) -> str:
        """Run it, while the function leaves batches out, or reads one partition of one; what it failed with."""

        def write(batch: Any, number: int) -> None:
            if number == part:
                self._spark.sparkContext.runJob(batch.rdd, lambda rows: [len([*rows])], [0])
            elif number not in skip:
                self.rows.update(row.id for row in batch.collect())

        rows = self._spark.readStream.schema("id LONG").option("maxFilesPerTrigger", "1").json(str(self._in))
        writer = rows.dropDuplicates(["id"]).writeStream.option("checkpointLocation", str(checkpoint))
        to = writer.format(only) if only else writer.foreachBatch(write)
        try:
            to.trigger(**(trigger or {"availableNow": True})).start().awaitTermination(300)
        except Exception as error:
            return str(error)
        return ""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("store", "skip", "starts"),
    [("hdfs", (1,), 1), ("rocksdb", (1,), 2), ("changelog", (0,), 1), ("hdfs", (0,), 2), ("changelog", (1, 2), 2)],
)
def test_each_row_is_written_once_by_who_obeys(
    store: str, skip: tuple[int, ...], starts: int, spark: Any, tmp_path: Path
) -> None:
    query, checkpoint = Written(spark, tmp_path, store), tmp_path / "checkpoint"
    for batch in range(4):
        query.add(f"{batch}.json", *range(batch * 5, batch * 5 + 10))
    for start in range(starts):
        said = query.start(checkpoint, skip=skip)
        assert start or {match.error.id for match in explain(said).matches} == {"cause-in-the-driver-log"}
    assert (checkpoint / "commits" / str(skip[-1])).exists()
    assert codes(inspect(checkpoint)) == {"CKPT428"}

    plan, receipt = repair(checkpoint, backup=str(tmp_path / "backup"), **NOW)

    assert (receipt.applied, plan.first in (First.NOTHING, First.SINK)) == (True, True)
    moved = checkpoint.rename(tmp_path / "elsewhere")  # nothing of it is in the memory of this application
    assert inspect(moved).sound
    assert query.start(moved) == ""
    query.add("later.json", *range(30))
    assert query.start(moved) == ""
    assert query.rows == Counter(range(30)), "each number once, and the state knows all that were written"


@pytest.mark.spark
@pytest.mark.parametrize(("store", "part"), [("rocksdb", 0), ("hdfs", 1)])
def test_of_a_part_both_starts_are_left_open(store: str, part: int, spark: Any, tmp_path: Path) -> None:
    query, checkpoint = Written(spark, tmp_path, store, partitions=4), tmp_path / "checkpoint"
    for batch in range(3):
        query.add(f"{batch}.json", *range(batch * 50, batch * 50 + 100))
    assert query.start(checkpoint, part=part) != ""
    found = inspect(checkpoint)
    assert codes(found) == {"CKPT304" if part == 0 else "CKPT301"}
    assert next(call for call in found.advice.calls).name == "repair"

    plan, receipt = repair(checkpoint, sink="append", backup=str(tmp_path / "backup"), **NOW)

    assert (receipt.applied, plan.first) == (True, First.NOOP_IF_WRITTEN)
    assert any(
        "covered only part of the rows. If the sink has all rows of the batch" in str(text) for text in plan.notices
    )
    moved = checkpoint.rename(tmp_path / "elsewhere")
    assert query.start(moved) == "", "the sink does not have them, so as usual"
    assert query.rows == Counter(range(200))


@pytest.mark.spark
def test_into_noop_its_rows_would_be_lost(spark: Any, tmp_path: Path) -> None:
    query, checkpoint = Written(spark, tmp_path, "hdfs"), tmp_path / "checkpoint"
    for batch in range(3):
        query.add(f"{batch}.json", *range(batch * 10, batch * 10 + 10))
    assert query.start(checkpoint, skip=(1,)) != ""

    plan, receipt = repair(checkpoint, sink="append", backup=str(tmp_path / "backup"), **NOW)

    assert (receipt.applied, plan.first) == (True, First.NOTHING)
    assert not (checkpoint / "ckpt-first-start").exists()
    wrong = shutil.copytree(checkpoint, tmp_path / "wrong")
    assert query.start(wrong, only="noop", once=True) == query.start(wrong) == ""
    assert (len(query.rows), query.rows.total()) == (20, 20), "ten numbers are in no sink, and never will be"


def run_numbers(spark: Any, folder: Path) -> tuple[Numbers, Path]:
    """Run all batches of a query into a file sink; the query, and the folder with its checkpoint and its sink."""
    query, place = Numbers(spark, folder), folder / "query"
    for batch in range(BATCHES):
        query.add(batch)
    assert query.start(place) == ""
    return query, place


@pytest.mark.spark
def test_of_a_file_sink_with_older_batches_the_first_step_is_the_sink(spark: Any, tmp_path: Path) -> None:
    query, place = run_numbers(spark, tmp_path)
    shutil.rmtree(place / "checkpoint")
    assert query.start(place) == "", "it passes every batch over"

    found = inspect(place / "checkpoint", sink=str(place / "out"))

    assert {"CKPT411", "CKPT428"} <= codes(found)
    assert found.troubles[0].code == "CKPT411"
    assert isinstance(next(found.advice.all_steps()).do, Instruction)
    assert not any(step.needs_copy for step in found.advice.all_steps())
    query.add(BATCHES)
    assert query.start(tmp_path / "new") == "", "a new checkpoint and a new place"
    assert query.times(tmp_path / "new") == dict.fromkeys(range(NUMBERS), 1)


@pytest.mark.spark
def test_of_a_file_sink_that_has_the_batch_one_start_into_noop_comes_first(spark: Any, tmp_path: Path) -> None:
    query, place = run_numbers(spark, tmp_path)
    lose(place / "checkpoint" / "state", BATCHES)  # looks as if it had not been computed
    query.add(BATCHES)

    plan, receipt = repair(place / "checkpoint", sink=str(place / "out"), backup=str(tmp_path / "backup"), **NOW)

    assert (receipt.applied, plan.first) == (True, First.NOOP)
    assert query.start(place, noop=True) == query.start(place) == ""
    assert query.times(place) == dict.fromkeys(range(NUMBERS), 1)
