"""A batch with a poison row is skipped: what its sink needs, in a plan, and what is said of it afterwards.

Real queries; what the pages say is done by the letter, in a shell.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import Ckpt
from tests.live.sink.stateful import ROWS, Numbers
from tests.support.spark.live import EVERY_CASE

pytestmark = pytest.mark.spark

_COMPACTION = "spark.sql.streaming.fileSink.log.compactInterval"


class Case(NamedTuple):
    """A query, and its batch with the poison row."""

    sink: str = "parquet"  # or delta
    poison: int = 4
    every: int = 10  # entries from one compacted file of the sink's log to the next
    state: bool = False


CASES = {
    "files": Case(),
    "files, due as the first compacted file": Case(poison=9),
    "files, due as the next compacted file": Case(poison=8, every=3),
    "files, with state": Case(state=True),
    "delta": Case("delta"),
}


class Poisoned(Numbers):
    """A query that fails at one number."""

    def __init__(self, spark: Any, folder: Path, case: Case) -> None:
        super().__init__(spark, folder, case.sink, {_COMPACTION: str(case.every)}, stateful=case.state)
        self.case, self.place = case, folder / "query"
        self.checkpoint, self.out = self.place / "checkpoint", self.place / "out"
        self.kept: set[int] = set()

    def add_batches(self, first: int, last: int) -> None:
        for batch in range(first, last):
            self.add(batch)
            self.kept |= {*range(batch * ROWS, (batch + 1) * ROWS)} if batch != self.case.poison else set()

    def read(self, most: int) -> Any:
        poison = self.case.poison * ROWS + 5
        return super().read(most).where(f"CASE WHEN id = {poison} THEN raise_error('a poison row') ELSE true END")

    def run(self) -> str:
        return self.start(self.place)

    def is_exact(self) -> bool:
        return self.times(self.place) == dict.fromkeys(sorted(self.kept), 1)


def poisoned(spark: Any, folder: Path, case: Case) -> Poisoned:
    """A query that its poison row has stopped."""
    query = Poisoned(spark, folder, case)
    query.add_batches(0, case.poison + 1)
    assert "a poison row" in query.run()
    assert "a poison row" in query.run(), "it fails every time"
    return query


def inspected(ckpt: Ckpt, query: Poisoned) -> dict[str, Any]:
    document: dict[str, Any] = ckpt("inspect", query.checkpoint, "--sink", query.out, "-o", "json").json()
    return document


def obey(text: str) -> None:
    """Run the commands of a shell in a sentence."""
    commands = re.findall("`((?:printf|cd) [^`]*)`", text)
    assert commands, text
    for command in commands:
        subprocess.run(["bash", "-c", command], check=True)


@pytest.mark.parametrize("name", CASES if EVERY_CASE else ["files, due as the next compacted file"])
def test_a_skip_for_one_sink_says_what_that_needs(name: str, spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    case = CASES[name]
    query = poisoned(spark, tmp_path, case)
    before = sorted((query.out / "_spark_metadata").glob("*"))

    words = ("skip", query.checkpoint, "--sink", query.out)
    assert f"--sink {query.out} --apply" in ckpt(*words).stdout
    skipped = ckpt(*words, "--apply", "--grace", 0, "-o", "json")

    assert skipped.exit_code == 0
    assert sorted((query.out / "_spark_metadata").glob("*")) == before, "ckpt writes nothing to a sink"
    step = skipped.json()["next"][0]["what"]
    said = inspected(ckpt, query)
    codes = {one["code"] for one in said["findings"] if one["severity"] != "note"}
    if case.sink == "delta":
        assert step == "Start the query in a new driver."
        assert (said["sink"]["outcome"], codes) == ("continues", set())
    else:
        assert codes == {"CKPT413"}
        (remedy,) = [one["remedy"] for one in said["findings"] if one["code"] == "CKPT413"]
        assert "rewind" not in remedy, "not back to the poison row"
        assert step in remedy
        obey(remedy)
        filled = inspected(ckpt, query)
        assert (filled["sink"]["outcome"], filled["next"]) == ("continues", [])
    query.add_batches(case.poison + 1, case.poison + 2 + case.every)
    assert query.run() == ""
    assert query.is_exact()


def test_a_skip_whose_next_step_was_not_done_can_still_be_made_good(spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    query = poisoned(spark, tmp_path, CASES["files"])
    skipped = ckpt("skip", query.checkpoint, "--apply", "--grace", 0, "-o", "json")
    assert "If the sink is a file sink without batch 4" in skipped.json()["next"][0]["what"]
    query.add_batches(5, 7)
    assert query.run() == ""

    (finding,) = [one for one in inspected(ckpt, query)["findings"] if one["severity"] == "error"]

    assert finding["code"] == "CKPT405"
    obey(finding["remedy"])
    assert inspected(ckpt, query)["next"] == []
    assert query.is_exact()


def test_a_rewind_below_a_skipped_batch_forgets_that_it_was_skipped(spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    query = poisoned(spark, tmp_path, CASES["delta"])
    at_once = ("--apply", "--grace", 0)
    assert ckpt("skip", query.checkpoint, *at_once).exit_code == 0
    assert (query.checkpoint / "ckpt-skipped.json").exists()
    backup = tmp_path / "backup"
    back = ("--to-batch", 3, "--accept-replay", "--backup", backup)
    assert ckpt("rewind", query.checkpoint, *back, *at_once).exit_code == 0
    assert not (query.checkpoint / "ckpt-skipped.json").exists()
    assert ckpt("rewind", query.checkpoint, "--undo", backup, "--grace", 0).exit_code == 0
    assert (query.checkpoint / "ckpt-skipped.json").exists()
