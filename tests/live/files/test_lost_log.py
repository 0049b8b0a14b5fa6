"""The log of a file source is lost or cut, or a file goes while it is read: advice is obeyed, and rows are counted."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ckpt import explain, open_checkpoint
from ckpt.changes.fixes.repair import repair
from ckpt.inspection.inspection import inspect
from ckpt.live.asking import ask_sources
from tests.laws.next_obeyed import End, obey
from tests.live.first_remedy import ckpt
from tests.support.remedies import remove

pytestmark = pytest.mark.spark
_EACH = 10  # rows of a file


class Query:
    """A query of a folder of files, whose sink takes every batch, and what came into that sink."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.checkpoint = spark, folder / "in", folder / "checkpoint"
        self.seen: Counter[int] = Counter()  # how often the sink got each file
        self.files = 0
        self.folder.mkdir()

    def add(self, files: int = 1) -> None:
        for _ in range(files):
            first = self.files * _EACH
            rows = "".join(f'{{"id": {row}}}\n' for row in range(first, first + _EACH))
            (self.folder / f"{self.files:02}.json").write_text(rows)
            self.files += 1

    def start(self, checkpoint: Path | None = None, before: Callable[[], object] = lambda: None) -> str:
        """Read what is there; the error, if there is one. ``before`` is called before a batch is read."""

        def keep(rows: Any, _: int) -> None:
            before()
            counts = Counter(row.id // _EACH for row in rows.collect())
            self.seen.update({file: count // _EACH for file, count in counts.items()})

        reader = self.spark.readStream.format("json").schema("id BIGINT").load(str(self.folder))
        writer = reader.writeStream.option("checkpointLocation", str(checkpoint or self.checkpoint))
        try:
            writer.foreachBatch(keep).trigger(availableNow=True).start().awaitTermination(60)
        except Exception as error:
            return str(error)
        return ""

    @property
    def lost(self) -> set[int]:
        return {*range(self.files)} - {*self.seen}

    def make_idle(self) -> None:
        """Let another batch follow that had no file, as one of a stateful query, or of several sources, may."""
        latest = max(int(file.name) for file in (self.checkpoint / "offsets").glob("[0-9]*"))
        for log in ("offsets", "commits"):
            shutil.copyfile(self.checkpoint / log / str(latest), self.checkpoint / log / str(latest + 1))


@pytest.fixture
def query(spark: Any, tmp_path: Path) -> Query:
    """A query that has read a file in each of three batches; another two wait."""
    query = Query(spark, tmp_path)
    for _ in range(3):
        query.add()
        assert query.start() == ""
    shutil.copytree(query.checkpoint / "sources", tmp_path / "copy")
    query.add(2)
    return query


def codes(query: Query) -> set[str]:
    return {rated.finding.diagnosis.code for rated in inspect(open_checkpoint(str(query.checkpoint))).troubles}


def put_back(query: Query) -> None:
    shutil.rmtree(query.checkpoint / "sources", ignore_errors=True)
    shutil.copytree(query.checkpoint.parent / "copy", query.checkpoint / "sources")


@pytest.mark.parametrize("started", [False, True])
def test_no_plan_starts_over_a_lost_log_and_a_new_checkpoint_reads_every_file(query: Query, started: bool) -> None:
    query.make_idle()
    shutil.rmtree(query.checkpoint / "sources")
    if started:
        error = query.start()
        assert error.partition("\n")[0].endswith("assertion failed SQLSTATE: XXKST")
        assert explain(error, checkpoint=str(query.checkpoint)).matches == (), "other assertions fail so, too"
        frame = "org.apache.spark.sql.execution.streaming.runtime.FileStreamSource.getBatch(FileStreamSource.scala:351)"
        stack = f"java.lang.AssertionError: assertion failed\n\tat {frame}"
        failed = explain(stack, checkpoint=str(query.checkpoint))
        assert [match.error.id for match in failed.matches] == ["file-source-log-lost"]
    obeyed = obey(query.checkpoint)
    assert (obeyed.faults, obeyed.applied, obeyed.end) == ([], [], End.STOP)
    assert "CKPT407" in codes(query)
    plan, _ = repair(str(query.checkpoint))
    assert plan.refused
    assert "a new checkpoint. It reads every file of the folder again" in " ".join(
        ckpt("inspect", query.checkpoint)[1].split()
    )
    before = Counter(query.seen)
    assert query.start(query.checkpoint.with_name("new")) == ""
    assert query.seen - before == Counter(range(query.files))


@pytest.mark.parametrize("started", [False, True])
def test_a_log_that_is_put_back_leads_out(query: Query, started: bool) -> None:
    query.make_idle()
    shutil.rmtree(query.checkpoint / "sources")
    if started:
        assert query.start()
    put_back(query)
    assert bool(obey(query.checkpoint).applied) is started  # the batch that goes back is removed
    assert query.start() == ""
    assert query.seen == Counter(range(query.files))


def test_files_that_a_start_would_skip_are_read_once_more_instead(query: Query) -> None:
    query.make_idle()
    remove(query.checkpoint / "sources" / "0" / "2")
    skipping = query.checkpoint.with_name("skipping")
    shutil.copytree(query.checkpoint, skipping)
    before = Counter(query.seen)
    assert query.start(skipping) == ""
    assert query.seen == before  # Spark took the waiting files for some that were read, and said nothing
    assert codes(query) == {"CKPT407"}
    obeyed = obey(query.checkpoint, without_copy=True)
    assert (obeyed.faults, len(obeyed.applied)) == ([], 1)
    assert query.start() == ""
    assert (query.lost, query.seen[2], query.seen[4]) == (set(), 2, 1)


def test_an_entry_whose_write_was_cut_off_is_removed(query: Query) -> None:
    (query.checkpoint / "sources" / "0" / "3").write_text("")
    assert "Incomplete log file" in query.start()
    assert codes(query) == {"CKPT404"}
    obeyed = obey(query.checkpoint)
    assert (obeyed.faults, len(obeyed.applied)) == ([], 1)
    assert query.start() == ""
    assert query.seen == Counter(range(query.files))


@pytest.mark.parametrize("obeys", [True, False])
def test_a_file_that_goes_under_a_batch_is_put_back_before_the_start(query: Query, obeys: bool) -> None:
    gone, kept = query.folder / "04.json", query.folder.parent / "kept.json"
    error = query.start(before=lambda: gone.rename(kept))
    (match, *_) = explain(error, checkpoint=str(query.checkpoint)).matches
    assert match.error.codes[0] == "CKPT461"
    assert f"`ckpt inspect {query.checkpoint} --sources`" in str(match.cure)
    if not obeys:
        assert query.start() == ""
        assert query.lost == {4}  # as the cure says
        return
    _, page = ckpt("inspect", query.checkpoint, "--sources")
    assert "Do not start the query until the files are back" in " ".join(page.split())
    assert (
        inspect(
            open_checkpoint(str(query.checkpoint)),
            live=ask_sources(open_checkpoint(str(query.checkpoint)), {0: {}}, partial=True),
        )
        .troubles[0]
        .finding.diagnosis.code
        == "CKPT461"
    )
    kept.rename(gone)
    assert ckpt("inspect", query.checkpoint, "--sources")[0] == 0
    assert query.start() == ""
    assert query.seen == Counter(range(query.files))
