"""An older checkpoint was restored and started once before anybody asked: the sink has other batches under its ids.

Real queries: what Spark does, what `ckpt inspect --sink` says of it, and what is in the sink once its remedy was
followed by the letter.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import Ckpt
from tests.live.sink.stateful import ROWS, Numbers
from tests.support.remedies import remove
from tests.support.spark.live import EVERY_CASE
from tests.support.spark.queries import STATE_STORES

pytestmark = pytest.mark.spark

OLDER = 3  # batches that the copy of the checkpoint has


class Case(NamedTuple):
    """A query, and how far each of its two lives went."""

    sink: str  # parquet or delta
    state: int = 0  # the format of its state store checkpoints; 0: it keeps none
    until: int = OLDER  # the newest batch of the first life
    files: int = OLDER + 2  # how many files there are at the start of the second one, which reads two in each batch


class Restored(Numbers):
    """A query whose older checkpoint was put back."""

    def __init__(self, spark: Any, folder: Path, case: Case) -> None:
        conf = STATE_STORES["format2"] if case.state == 2 else {}
        super().__init__(spark, folder, case.sink, conf, stateful=case.state > 0)
        self.case, self.place = case, folder / "query"
        self.checkpoint, self.out = self.place / "checkpoint", self.place / "out"

    def run(self, most: int = 1) -> str:
        """Start it as a new driver would, with so many files in each batch; what it failed with."""
        return self.start(self.place, most)

    def live_twice(self) -> str:
        """Run it, go on, put the checkpoint back, and start it once with other ranges; what that failed with."""
        self.add(0, OLDER)
        assert self.run() == ""
        shutil.copytree(self.checkpoint, self.folder / "older")
        self.add(OLDER, self.case.until + 1)
        assert self.run() == ""
        shutil.rmtree(self.checkpoint)
        shutil.copytree(self.folder / "older", self.checkpoint)
        self.add(self.case.until + 1, self.case.files)
        return self.run(2)

    def lost(self) -> set[int]:
        """The numbers that are not in the sink; none is there twice."""
        times = self.times(self.place)
        assert set(times.values()) == {1}
        return {*range(self.case.files * ROWS)} - times.keys()

    def follow(self, remedy: str, ckpt: Ckpt) -> None:
        """Do by the letter what the remedy says where the newer checkpoint is lost."""
        restore = re.search(r"RESTORE the table to its version after batch (\d+)", remedy)
        if restore is not None:
            self.take_back(self.place, int(restore[1]))
        for command in re.findall("`ckpt ([^`]*)`", remedy):
            words = command.replace("NEW", str(self.place / "new")).split()
            more = () if words[0] == "copy" else ("--accept-skip", "--accept-replay", "--apply", "--grace", 0)
            assert ckpt(*words, *more).exit_code == 0
        if restore is not None:
            shutil.rmtree(self.checkpoint)
            (self.place / "new").rename(self.checkpoint)
        if (moved := re.search(r"move _spark_metadata/(\d+) and every entry with a higher number", remedy)) is not None:
            for file in (self.out / "_spark_metadata").glob("[0-9]*"):
                if int(file.name) >= int(moved[1]):
                    remove(file)


CASES = {
    "stateless, files": Case("parquet"),
    "stateless, files, gone on": Case("parquet", until=4, files=9),
    "stateless, delta": Case("delta"),
    "stateless, delta, gone on": Case("delta", until=4, files=9),
    "format 1, files": Case("parquet", 1),
    "format 1, delta": Case("delta", 1),
    "format 2, files": Case("parquet", 2),
    "format 2, delta": Case("delta", 2),
}
CLOCKS = {"one clock": 1, "two clocks": 60_000}
"""How far the clocks of two machines may be apart, in ms; a restore takes seconds here, and longer in life."""
_LIVE = [("stateless, files", "two clocks"), ("format 1, delta", "one clock"), ("format 2, files", "two clocks")]
OUTCOMES = {"one clock": ("lacks", "unknown", "drops"), "two clocks": ("continues", "unknown", "may-drop")}
"""Of the sink, by the format of the state: with format 1 no start runs, because state is missing."""


def page(ckpt: Ckpt, query: Restored, *words: Any) -> dict[str, Any]:
    """What a command says of the query and its sink."""
    document: dict[str, Any] = ckpt(*words, "--sink", query.out, "-o", "json").json()
    return document


def drop(document: dict[str, Any]) -> dict[str, Any]:
    """The finding about rows that the sink drops."""
    (finding,) = [one for one in document["findings"] if one["code"] == "CKPT411"]
    return dict(finding)


@pytest.mark.parametrize(
    ("name", "clocks"), [(name, clocks) for name in CASES for clocks in CLOCKS] if EVERY_CASE else _LIVE
)
def test_a_restored_checkpoint_that_was_started_once_gets_every_row_back(
    name: str, clocks: str, spark: Any, ckpt: Ckpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckpt.inspection.checks.sink_times.CLOCKS_APART_MS", CLOCKS[clocks])
    query = Restored(spark, tmp_path, CASES[name])
    error = query.live_twice()
    failed = "CheckpointInfo length: 0" in error
    assert failed == (query.case.state == 2), error
    dropped = OLDER + 2 * (query.case.until + 1 - OLDER)  # files in the batches whose ids the sink had
    assert query.lost() == {*range((query.case.until + 1) * ROWS, min(query.case.files, dropped) * ROWS)}

    said = page(ckpt, query, "inspect", query.checkpoint)

    codes = {one["code"] for one in said["findings"]}
    finding = drop(said)
    assert codes & {"CKPT416", "CKPT417", "CKPT419"} == set(), "no start into noop: it loses the rows"
    assert finding["severity"] == "error"
    assert ("restore it" in finding["remedy"]) == ("gone on" not in name)
    assert said["sink"]["outcome"] == OUTCOMES[clocks][query.case.state]
    if query.case.state == 0:
        repaired = page(ckpt, query, "repair", query.checkpoint)
        assert repaired["refused"] is None
        assert not repaired["steps"]

    query.follow(finding["remedy"], ckpt)
    after = page(ckpt, query, "inspect", query.checkpoint)
    assert "CKPT411" not in {one["code"] for one in after["findings"]}
    assert query.run() == ""
    assert query.lost() == set()
    assert "CKPT411" not in {one["code"] for one in page(ckpt, query, "inspect", query.checkpoint)["findings"]}


@pytest.mark.parametrize("sink", ["parquet", "delta"] if EVERY_CASE else ["parquet"])
def test_a_repair_for_the_sink_says_what_that_has_to_forget(sink: str, spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    """The state of the dropped batch is missing, so that no start runs and `ckpt repair` goes back to it."""
    query = Restored(spark, tmp_path, Case(sink, 1))
    assert query.live_twice() == ""
    page = " ".join(ckpt("repair", query.checkpoint).stdout.split())
    assert "A sink that skipped the batch because of its id will skip it again" in page

    words = ("repair", query.checkpoint, "--sink", query.out)
    plan = ckpt(*words, "-o", "json").json()

    assert [way["drops"] for way in plan["ways"] if way["recommended"]] == [True]
    refused = ckpt(*words, "--accept-replay", "--apply", "--grace", 0)
    assert (refused.exit_code, "the sink may drop rows of batch 3" in refused.stdout) == (3, True)
    (warning,) = [text for text in plan["warnings"] if str(query.out) in text]
    if sink == "parquet":
        applied = ckpt(*words, "--accept-replay", "--accept-skip", "--apply", "--grace", 0)
        assert "Do not start the query yet" in applied.stdout
    query.follow(warning, ckpt)
    assert query.run() == ""
    assert query.lost() == set()


@pytest.mark.parametrize("sink", ["parquet", "delta"] if EVERY_CASE else ["parquet"])
def test_where_clocks_may_be_apart_the_remedy_is_right_for_the_same_batch_too(
    sink: str, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    """Killed between sink and commit; the clock of the driver was ahead of that of the sink."""
    query = Restored(spark, tmp_path, Case(sink, files=OLDER + 1))
    query.add(0, OLDER)
    assert query.run() == ""
    remove(query.checkpoint / "commits" / str(OLDER - 1))
    planned = query.checkpoint / "offsets" / str(OLDER - 1)
    early = re.sub(r'(?<="batchTimestampMs":)\d+', lambda time: str(int(time[0]) + 30_000), planned.read_text())
    remove(planned)
    planned.write_text(early)
    query.add(OLDER)

    said = page(ckpt, query, "inspect", query.checkpoint)

    assert said["sink"]["outcome"] == "may-drop"
    query.follow(drop(said)["remedy"], ckpt)
    assert query.run() == ""
    assert query.lost() == set()
