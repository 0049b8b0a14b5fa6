"""`ckpt inspect --sources` at the folder of a file source: what it says, and what a real start then reads."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt import open_checkpoint
from ckpt.inspection.inspection import inspect
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.live.asking import ask_sources
from ckpt.live.files.ask import find_folder
from ckpt.live.outlook import SourceOutlook
from ckpt.live.sink.reader import read_sink
from ckpt.query.description import parse_query
from ckpt.restart import messages
from ckpt.restart.findings import Outcome
from tests.conftest import Ckpt
from tests.live.files.cases import INCIDENTS, LAST, MOVES, ROWS, Query
from tests.live.sink.mismatches import EVERY_ROW, Asked, uncommitted
from tests.support.places import SAMPLES
from tests.support.spark.live import EVERY_CASE

MOVED = ("another folder", "another folder, partitions")
SHOWN = ("planned-gone", "old", "written-again")
CODES = {
    "planned-gone": "CKPT461",
    "read-and-planned-gone": "CKPT461",
    "old": "CKPT462",
    "old, latest first": "CKPT462",
    "written-again": "CKPT463",
}


@pytest.fixture(scope="module")
def query(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Query:
    made = Query(spark, tmp_path_factory.mktemp("files"))
    made.make()
    return made


def asked(checkpoint: Path, options: dict[str, str]) -> SourceOutlook:
    opened = open_checkpoint(str(checkpoint))
    (seen,) = inspect(opened, live=ask_sources(opened, {0: options})).live
    return seen


@pytest.mark.spark
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("name", [one for one in INCIDENTS if EVERY_CASE or one in SHOWN])
def test_what_is_said_is_what_is_read(name: str, committed: bool, query: Query, tmp_path: Path) -> None:
    options = query.happen(name, tmp_path / "checkpoint", "committed" if committed else "planned")
    seen = asked(tmp_path / "checkpoint", options)
    harmless = committed and CODES.get(name) == "CKPT461"
    assert {one.diagnosis.code for one in seen.findings} == (
        set() if harmless else {CODES[name]} if name in CODES else set()
    )
    error, rows = query.start(tmp_path / "checkpoint", options)
    assert error is None
    assert rows == ROWS * (seen.waiting or 0)


@pytest.mark.spark
@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("name", [one for one in MOVES if EVERY_CASE or one in MOVED])
def test_a_start_with_another_folder_is_as_it_was_said(
    name: str, last: str, query: Query, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckpt.inspection.preflight._RECENT_S", 0.0)
    options = query.happen(name, tmp_path / "checkpoint", last)
    rows = query.rows(options)
    opened = open_checkpoint(str(tmp_path / "checkpoint"))
    asked_go = inspect(opened, live=ask_sources(opened, {0: options})).counted[0].outcome.runs
    found = library.preflight(str(tmp_path / "checkpoint"), query=rows)
    described = library.describe_query(rows, checkpoint=str(tmp_path / "checkpoint"))
    expected = judge_start(opened, PlannedStart(query=parse_query(json.loads(described.to_json()))))
    error, _ = query.start(tmp_path / "checkpoint", options)
    assert (asked_go, found.go, expected.go) == (error is None,) * 3, (error, found.verdict)
    if error is not None:
        assert messages.WRONG_BASE_PATH in error
        assert [one.finding.diagnosis.code for one in found.holds] == ["CKPT465"]


@pytest.mark.spark
def test_obeying_the_advice_on_another_folder_reads_every_row_once(query: Query, tmp_path: Path) -> None:
    seen: list[int] = []

    def start(options: dict[str, str], checkpoint: Path) -> None:
        writer = query.rows(options).writeStream.option("checkpointLocation", str(checkpoint))
        writer.foreachBatch(lambda rows, _: seen.extend(row.id for row in rows.collect()))
        writer.trigger(availableNow=True).start().awaitTermination(60)

    options = query.happen("another folder", tmp_path / "checkpoint")
    (found,) = asked(tmp_path / "checkpoint", options).findings
    assert found.remedy is not None
    assert str(query.input) in found.remedy
    start({}, tmp_path / "checkpoint")
    start(options, tmp_path / "of its own")
    assert sorted(seen) == [*range(3 * ROWS, 6 * ROWS)]  # batches 0 to 2 had the rows before


@pytest.mark.spark
def test_obeying_the_advice_reads_every_file(query: Query, tmp_path: Path) -> None:
    query.happen("old", tmp_path / "old")
    (found,) = asked(tmp_path / "old", {"path": str(query.input)}).findings
    assert found.remedy is not None
    age = found.remedy.partition("maxFileAge=")[2].partition(",")[0]
    assert query.start(tmp_path / "old", {"maxFileAge": age}) == (None, 2 * ROWS)

    query.happen("planned-gone", tmp_path / "gone", "planned")
    archived = tmp_path / "archived"
    shutil.copytree(query.input, archived)
    (found,) = asked(tmp_path / "gone", {"path": str(query.input)}).findings
    assert "until the files are back" in (found.remedy or "")
    shutil.copyfile(archived / "3 a.json", query.input / "2 a.json")  # any 10 rows
    assert asked(tmp_path / "gone", {"path": str(query.input)}).findings == ()
    assert query.start(tmp_path / "gone", {}) == (None, 2 * ROWS)


@pytest.mark.spark
def test_a_planned_batch_that_the_sink_has_is_not_read_again(spark: Any, tmp_path: Path) -> None:
    query = Asked(spark, tmp_path, "parquet")
    query.run_old()
    place = query.copied("place")
    uncommitted(query, place)
    (file,) = [one for one in (tmp_path / "in").glob("*.json") if '{"id":50}' in one.read_text()]
    file.unlink()

    def seen(**more: Any) -> tuple[set[str], int | None, Outcome]:
        opened = open_checkpoint(str(place / "checkpoint"))
        found = inspect(opened, live=ask_sources(opened, {0: {"path": str(tmp_path / "in")}}), **more)
        return {one.finding.diagnosis.code for one in found.troubles}, found.live[0].waiting, found.counted[0].outcome

    assert seen() == ({"CKPT461"}, 2, Outcome.RESUMES)
    assert seen(sink=read_sink(str(place / "out"))) == (set(), 2, Outcome.RESUMES)
    assert query.start(place) == ""
    assert query.times(place) == dict.fromkeys(range(EVERY_ROW), 1)


def sample(folder: Path, days_older: int = 0) -> tuple[Path, Path]:
    """A copy of a sample, whose log names the files of a folder here."""
    checkpoint, place = folder / "checkpoint", folder / "in"
    shutil.copytree(SAMPLES / "file-source-4.2", checkpoint)
    place.mkdir()
    for file in sorted((checkpoint / "sources" / "0").iterdir()):
        if file.name.endswith(".crc"):
            file.unlink()
        else:
            file.write_text(file.read_text().replace("/tmp/ckpt-samples/inputs/file-source", str(place)))
    for number in range(14):
        file = place / f"part-{number:02}.json"
        file.write_text("")
        at = 1_700_000_000 + number - (days_older * 86400 if number > 12 else 0)
        os.utime(file, (at, at))
    return checkpoint, place


def test_files_are_compared_with_the_log(tmp_path: Path, ckpt: Ckpt) -> None:
    checkpoint, place = sample(tmp_path, days_older=30)
    run = ckpt("inspect", checkpoint, "--sources", "--source-options", f"0.path={place}", "-o", "json")
    live = run.json()["sources"][0]["live"]
    assert (live["outcome"], live["unit"], live["waiting"], live["lost"]) == ("skips", "files", 1, 1)
    assert [one["code"] for one in run.json()["findings"] if one["code"].startswith("CKPT46")] == ["CKPT462"]


def test_the_log_names_the_folder(tmp_path: Path, ckpt: Ckpt) -> None:
    checkpoint, place = sample(tmp_path)
    assert find_folder(open_checkpoint(str(checkpoint)), 0) == f"file://{place}"
    run = ckpt("inspect", checkpoint, "--sources", "-o", "json")
    assert run.json()["sources"][0]["live"]["waiting"] == 2
    assert asked(checkpoint, {"maxFileAge": "30d"}).waiting == 2
    for log in (checkpoint / "sources" / "0").iterdir():
        log.write_text(log.read_text().replace("part-11", "other/part-11"))
    assert find_folder(open_checkpoint(str(checkpoint)), 0) is None
    assert ckpt("inspect", checkpoint, "--sources").exit_code == 2


def test_a_folder_elsewhere_is_named_and_not_opened(tmp_path: Path, ckpt: Ckpt) -> None:
    checkpoint, place = sample(tmp_path)
    for log in (checkpoint / "sources" / "0").iterdir():
        log.write_text(log.read_text().replace(f"file://{place}", "s3a://bucket/a folder"))
    run = ckpt("inspect", checkpoint, "--sources")
    assert run.exit_code == 2
    assert "'0.path=s3a://bucket/a folder'" in run.stderr


def test_offsets_that_cannot_be_read_are_no_wrong_use(tmp_path: Path, ckpt: Ckpt) -> None:
    checkpoint, place = sample(tmp_path)
    (checkpoint / "offsets" / "11").write_text("")
    plain = ckpt("inspect", checkpoint)
    run = ckpt("inspect", checkpoint, "--sources", "--source-options", f"0.path={place}")
    assert (run.exit_code, plain.exit_code) == (1, 1)
    assert "not asked: the newest offsets, which list the sources" in " ".join(run.stdout.split())
    assert run.stdout.split("\nNext")[1] == plain.stdout.split("\nNext")[1]


def test_another_folder_is_named(tmp_path: Path) -> None:
    checkpoint, _ = sample(tmp_path)
    (tmp_path / "other" / "day=1").mkdir(parents=True)
    (tmp_path / "other" / "day=1" / "a.json").write_text("")
    for name, code in (("other/day=1", "CKPT465"), ("other", "CKPT464")):
        seen = asked(checkpoint, {"path": str(tmp_path / name)})
        assert [one.diagnosis.code for one in seen.findings] == [code]


@pytest.mark.parametrize("option", [{"path": "/in/*.json"}, {"path": "/in", "pathGlobFilter": "*.json"}])
def test_files_that_ckpt_cannot_choose_are_not_asked(option: dict[str, str], tmp_path: Path) -> None:
    checkpoint, _ = sample(tmp_path)
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: option})
    assert source.not_asked


def test_the_output_of_a_file_sink_is_not_asked(tmp_path: Path) -> None:
    checkpoint, place = sample(tmp_path)
    (place / "_spark_metadata").mkdir()
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: {"path": str(place)}})
    assert "_spark_metadata" in (source.not_asked or "")


def test_files_that_spark_hides_do_not_wait(tmp_path: Path) -> None:
    checkpoint, place = sample(tmp_path)
    waiting = asked(checkpoint, {"path": str(place)}).waiting or 0
    for name in ("new.json._COPYING_", "_SUCCESS", ".new.json", "_a=b.json"):
        (place / name).write_text("")
    assert asked(checkpoint, {"path": str(place)}).waiting == waiting + 1


def test_a_place_that_is_not_there_is_one_line(tmp_path: Path, ckpt: Ckpt) -> None:
    checkpoint, _ = sample(tmp_path)
    run = ckpt("inspect", checkpoint, "--sources", "--source-options", f"0.path={tmp_path / 'nowhere'}")
    assert run.exit_code == 3
    assert "it does not exist; check the option path of source 0" in run.unreached()
