"""``ckpt preflight --fix safe``: it applies what touches no row, alone, and nothing else; kills and races of it."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import pytest

import ckpt as library
from ckpt.inspection import activity
from tests.changes.fixes.unattended import (
    INCIDENTS,
    fail_flock,
    files_of,
    judge_race,
    kill_once,
    make,
    preflight,
    workers,
)
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import ROOT, SAMPLE_NAMES, SAMPLES
from tests.support.services.fixtures import Upload
from tests.support.spark.live import EVERY_CASE

FEW_KILLS, MANY_KILLS = 3, 50
FEW_RACES, MANY_RACES = 2, 100


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "LOOKS_APART_S", 0.0)


def hold(ckpt: Ckpt, folder: Path, grace: tuple[str, ...] = ("--grace", "0")) -> str:
    """Why nothing is fixed: the start is held, and nothing is written."""
    before = files_of(folder)
    document = ckpt("preflight", folder, "--fix", "safe", *grace, "-o", "json").json()
    assert (document["go"], document["fixed"], files_of(folder)) == (False, [], before)
    assert document["next"]
    return str(document["not_fixed"])


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_what_touches_no_row_is_applied_and_can_be_undone(name: str, tmp_path: Path, ckpt: Ckpt) -> None:
    folder = make(name, tmp_path / "checkpoint")
    before = files_of(folder)
    assert ckpt("preflight", folder).exit_code == 1
    result = ckpt("preflight", folder, "--fix", "safe", "--grace", "0", "-o", "json")
    document = result.json()
    assert result.exit_code == 0, document["not_fixed"]
    assert contract.disagreements(document, "preflight") == []
    (fix,) = document["fixed"]
    assert fix["fix"] == name
    assert document["not_fixed"] is None
    assert {step["path"] for step in fix["steps"]} >= {
        path for path in before.keys() | files_of(folder).keys() if before.get(path) != files_of(folder).get(path)
    }
    assert ckpt("preflight", folder, "--fix", "safe", "--grace", "0", "-o", "json").json()["fixed"] == []
    undone = ckpt("repair", folder, "--undo", fix["backup"], "--grace", "0")
    assert undone.exit_code == 0, undone.stdout
    assert files_of(folder) == before


def test_its_page_names_the_fix_and_the_way_back(tmp_path: Path, ckpt: Ckpt) -> None:
    page = ckpt("preflight", make("fill", tmp_path / "checkpoint"), "--fix", "safe", "--grace", "0").stdout
    assert "START: Restarts with new batch 32" in page
    assert "fill: batch 31 is committed" in page
    assert "--undo" in page


@pytest.mark.parametrize("sample", ["damaged-missing-sst", "damaged-empty-offset"])
def test_what_is_not_proven_is_left_to_a_person(sample: str, copy_of: CopyOf, ckpt: Ckpt) -> None:
    """Each fix that may read rows again or leave some out: nothing is written, and the page has the next command."""
    folder = copy_of(sample)
    assert "a person must decide" in hold(ckpt, folder)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.slow
def test_every_sample_is_left_alone_or_starts(tmp_path: Path) -> None:
    """A fix is applied only if the query starts afterwards, and what is fixed declares that it touches no row."""
    fixed: dict[str, list[str]] = {}
    names = SAMPLE_NAMES if EVERY_CASE else sorted({*SAMPLE_NAMES[::3], "async-kafka-4.2"})
    for sample in names:
        folder = Path(shutil.copytree(SAMPLES / sample, tmp_path / sample))
        before = files_of(folder)
        answer = preflight(str(folder), {})
        if answer["fixed"]:
            fixed[sample] = [fix["fix"] for fix in answer["fixed"]]
            assert answer["go"], sample
        else:
            assert files_of(folder) == before, sample
            assert answer["go"] or answer["not_fixed"], sample
        shutil.rmtree(folder)
    assert fixed["async-kafka-4.2"] == ["fill"]
    assert {fix for fixes in fixed.values() for fix in fixes} <= {*INCIDENTS}


def test_a_young_file_holds(tmp_path: Path, ckpt: Ckpt) -> None:
    folder = make("fill", tmp_path / "checkpoint")
    os.utime(folder / "metadata")
    assert "metadata was written" in hold(ckpt, folder, grace=())


def test_a_second_driver_holds(tmp_path: Path, ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make("fill", tmp_path / "checkpoint")
    os.utime(folder / "metadata")
    look = activity.look_again

    def write_between(*args: Any) -> Any:
        (folder / "offsets" / "33").write_text("v1\n{}\n-")
        return look(*args)

    monkeypatch.setattr(activity, "look_again", write_between)
    document = ckpt("preflight", folder, "--fix", "safe", "--grace", "0", "-o", "json").json()
    assert (document["go"], document["fixed"]) == (False, [])
    assert document["not_fixed"] == "something is writing to the checkpoint"
    assert not (folder / "offsets" / "30").exists()


def test_damage_besides_keeps_all_fixes_away(tmp_path: Path, ckpt: Ckpt) -> None:
    """The gap could be filled, but the newest offsets cannot be read: nothing is done by halves."""
    folder = make("fill", tmp_path / "checkpoint")
    (folder / "metadata").write_text("")
    assert hold(ckpt, folder)


def test_a_fix_is_planned_with_the_reading_of_the_answer(tmp_path: Path, ckpt: Ckpt) -> None:
    folder = make("tidy", tmp_path / "checkpoint")
    newest = max((folder / "state/0/0").glob("*.delta"), key=lambda path: int(path.stem))
    content = newest.read_bytes()
    newest.write_bytes(content[:40] + bytes(16) + content[56:])
    fix = ("preflight", folder, "--fix", "safe", "--grace", "0", "-o", "json")
    documents = [ckpt(*fix, *words).json() for words in ((), ("--names-only",), ())]
    assert [document["go"] for document in documents] == [False, True, False]
    assert [fixed["fix"] for fixed in documents[1]["fixed"]] == ["tidy"]


@pytest.mark.parametrize(
    ("gone", "left", "why"),
    [
        ("commits/5", (), "reads rows again"),
        ("commits/5", ("offsets/5", "offsets/.5.crc"), "may skip rows"),
        ("offsets/5", ("commits/5", "commits/.5.crc"), "may skip rows"),
    ],
)
def test_checksums_of_a_lost_batch_are_left_to_a_person(
    gone: str, left: tuple[str, ...], why: str, tmp_path: Path, ckpt: Ckpt
) -> None:
    """Without its commit the batch runs again; without its offsets its id is planned again, with other rows."""
    folder = Path(shutil.copytree(SAMPLES / "kafka-4.2", tmp_path / "checkpoint"))
    for path in (gone, *left):
        (folder / path).unlink()
    assert why in hold(ckpt, folder)


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_copy_is_left_to_a_person(is_moved: bool, tmp_path: Path, ckpt: Ckpt) -> None:
    """The schemas are where they are recorded too: a start here would be a second query of one id."""
    original = Path(shutil.copytree(SAMPLES / "tws-changelog-4.0", tmp_path / "original"))
    assert library.relocate(original, apply=True, grace=0).receipt.applied
    folder = Path((shutil.move if is_moved else shutil.copytree)(original, tmp_path / "checkpoint"))
    document = ckpt("preflight", folder, "--fix", "safe", "--grace", "0", "-o", "json").json()
    assert [fix["fix"] for fix in document["fixed"]] == ["relocate"] * is_moved
    assert document["go"] is is_moved
    assert is_moved or "this may be a copy" in document["not_fixed"]


def test_options_that_need_it(tmp_path: Path, ckpt: Ckpt) -> None:
    folder = make("fill", tmp_path / "checkpoint")
    assert ckpt("preflight", folder, "--grace", "0").exit_code == 2
    inspected = tmp_path / "inspected.json"
    inspected.write_text(ckpt("inspect", folder, "-o", "json").stdout)
    assert "--fix" in ckpt("preflight", inspected, "--fix", "safe").refusal()
    kept = tmp_path / "kept"
    document = ckpt("preflight", folder, "--fix", "safe", "--grace", "0", "--backup", kept, "-o", "json").json()
    assert [fix["backup"] for fix in document["fixed"]] == [str(kept)]


def test_only_a_fix_that_says_so_touches_no_row() -> None:
    """The effect is declared by the fix: what declares nothing is never applied without a person."""
    for sample in ("aggregation-hdfs-4.2", "kafka-4.2"):
        plan = library.rewind(SAMPLES / sample, to_batch=3).plan
        assert not plan.unattended
    assert library.repair(SAMPLES / "async-kafka-4.2").plan.unattended
    assert not library.repair(SAMPLES / "async-kafka-4.2", choose="read-again").plan.unattended


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_a_kill_at_any_moment_is_finished_by_the_next_run(name: str, tmp_path: Path) -> None:
    """Forked from a process of its own: that of the tests has threads."""
    count = MANY_KILLS if EVERY_CASE else FEW_KILLS
    script = (
        f"from tests.changes.fixes.test_unattended import kill_many; kill_many({name!r}, {count}, {str(tmp_path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout.splitlines()[-1])
    sys.stdout.write(f"{name}: {ends}\n")
    assert ends == {"START": count}


def kill_many(name: str, count: int, folder: str) -> None:
    """Print how the runs after so many kills ended; fail if anything is less than was there."""
    rng, ends, took = random.Random(name), Counter[str](), []
    for number in range(3):
        begun = time.monotonic()
        preflight(str(make(name, Path(folder) / f"warm{number}")), {})
        took.append(time.monotonic() - begun)
    for number in range(10 * count):
        killed, answer, losses = kill_once(name, Path(folder) / str(number), min(took), rng)
        assert not losses, losses
        ends["START" if answer["go"] else "HOLD"] += killed
        shutil.rmtree(Path(folder) / str(number))
        if sum(ends.values()) == count:
            break
    sys.stdout.write(f"\n{json.dumps(ends)}\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "local",
        "local, no flock",
        pytest.param("s3_uri", marks=pytest.mark.service),
        pytest.param("hdfs_uri", marks=pytest.mark.service),
    ],
)
def test_of_two_at_once_one_applies(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    upload: Upload = request.getfixturevalue(kind) if kind.endswith("_uri") else lambda folder: (str(folder), {})
    ends = Counter[str]()
    with workers(flock="no flock" not in kind) as both:
        for number in range(MANY_RACES if EVERY_CASE else FEW_RACES):
            uri, options = upload(make("fill", tmp_path / f"{number}-checkpoint"))
            ends[judge_race(both.race(uri, options))] += 1
        left = preflight(uri, options)
        assert (left["go"], left["fixed"]) == (True, [])
    sys.stdout.write(f"{kind}: {dict(ends)}\n")
    assert ends.keys() <= {"the other held", "the other came later"}


def test_a_mount_without_flock_or_place_for_a_lock_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", fail_flock)
    folder = make("fill", tmp_path / "checkpoint")
    (tmp_path / ".checkpoint.ckpt-lock").touch()
    before = files_of(folder)
    answer = preflight(str(folder), {})
    assert (answer["go"], answer["fixed"]) == (False, [])
    assert "checkpoint has no lock: its mount has no flock" in answer["not_fixed"]
    assert files_of(folder) == before
    (tmp_path / ".checkpoint.ckpt-lock").unlink()
    assert preflight(str(folder), {})["go"]


def test_the_root_of_a_bucket_has_no_lock_and_holds(tmp_path: Path) -> None:
    file_system = fsspec.filesystem("memory")
    for path, data in files_of(make("fill", tmp_path / "checkpoint")).items():
        file_system.pipe_file(f"/bucket-of-fixes/{path}", data)
    try:
        answer = preflight("memory://bucket-of-fixes", {}, "--backup", "memory://elsewhere/backup")
        assert (answer["go"], answer["fixed"]) == (False, [])
        assert "no parent folder for a lock" in answer["not_fixed"]
    finally:
        file_system.rm("/bucket-of-fixes", recursive=True)
