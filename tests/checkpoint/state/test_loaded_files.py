"""State that the next start loads is read up to a bound and judged as by ``--deep``; the rest is named as not read."""

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import ckpt as library
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state import loaded_files
from ckpt.formats import checksums, sst
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import NotRead
from ckpt.restart import diagnoses
from ckpt.restart.findings import Outcome
from ckpt.storage.base import ReadRequest
from ckpt.storage.local import LocalStorage
from tests.conftest import Ckpt, CopyOf
from tests.state.verify.damage import damages
from tests.support.places import GOLDENS, SAMPLE_NAMES, SAMPLES, golden_checkpoints, some_quick
from tests.support.spark.live import EVERY_CASE

ZIPS, DELTAS = "aggregation-rocksdb-4.2", "aggregation-hdfs-4.2"
FAR = "judging by names and sizes"
_OF_OTHERS = {diagnoses.state.OTHER_STATE_DAMAGED, diagnoses.state.ROWS_NOT_COMPARED}  # of files or rows no start reads


def told(found: Inspection) -> object:
    """All that is said of starts, and of what is wrong."""
    return found.verdict, found.forecasts, [(rated.finding, rated.severity) for rated in found.findings]


def look_twice(checkpoint: Path) -> tuple[Inspection, Inspection]:
    """A plain look, and one at every byte."""
    return library.inspect(str(checkpoint)), library.inspect(str(checkpoint), deep=True, jobs=1)


@pytest.mark.parametrize("name", some_quick(SAMPLE_NAMES, 12))
def test_a_plain_look_says_of_a_sample_what_every_byte_says(name: str) -> None:
    plain, deep = look_twice(SAMPLES / name)

    assert [*differences(plain, deep)] == []
    assert plain.not_read == deep.not_read == NotRead(0, 0)
    assert (plain.deep, FAR in plain.verdict) == (False, False)


@pytest.mark.slow
@pytest.mark.parametrize("path", golden_checkpoints())
def test_a_plain_look_says_of_a_checkpoint_of_sparks_own_tests_what_every_byte_says(path: Any) -> None:
    plain, deep = look_twice(GOLDENS / path)

    assert [*differences(plain, deep)] == []


def differences(plain: Inspection, deep: Inspection) -> Iterable[str]:
    """List where a plain look and ``--deep`` differ, except for damage to files that no start loads now."""
    known = {rated.finding.key: rated for rated in deep.findings}
    yield from (f"only plain: {rated.code} {rated.path}" for rated in plain.findings if rated.finding.key not in known)
    own = {rated.finding.key for rated in plain.findings}
    besides = {rated.finding.diagnosis for key, rated in known.items() if key not in own}
    yield from (f"only deep: {diagnosis.code}" for diagnosis in besides - _OF_OTHERS)
    if plain.forecasts != deep.forecasts:
        yield f"forecasts: {plain.forecasts[0]} {deep.forecasts[0]}"
    if not besides and plain.verdict != deep.verdict:
        yield f"verdicts: {plain.verdict}, {deep.verdict}"


@pytest.mark.slow
@pytest.mark.parametrize("count", [250 if EVERY_CASE else 16])
def test_damage_to_any_kind_of_state_file_is_judged_as_by_every_byte(count: int, tmp_path: Path) -> None:
    wrong, stopped = {}, 0
    for number, damage in enumerate(damages(count)):
        sample = damage.path.relative_to(SAMPLES).parts[0]
        checkpoint = tmp_path / str(number)
        shutil.copytree(SAMPLES / sample, checkpoint)
        (checkpoint / damage.path.relative_to(SAMPLES / sample)).write_bytes(damage.apply())
        plain, deep = look_twice(checkpoint)
        if different := [*differences(plain, deep)]:
            wrong[str(damage.path.relative_to(SAMPLES)), damage.at] = different
        stopped += not any(forecast.outcome.runs for forecast in plain.counted)

    assert wrong == {}
    assert stopped > count / 10 - 1


def corrupt(path: Path, count: int = 16) -> None:
    """Write so many wrong bytes into the middle of a file, and have Hadoop find its checksum file right."""
    data, rng = bytearray(path.read_bytes()), Random(45)
    for at in range(len(data) // 3, len(data) // 3 + count):
        data[at] ^= rng.randrange(1, 256)
    path.write_bytes(data)
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def newest_zip(checkpoint: Path) -> Path:
    return max((checkpoint / "state/0/0").glob("*.zip"), key=lambda path: int(path.stem.split("_")[0]))


def test_a_corrupt_zip_is_no_all_clear_of_any_command(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(ZIPS)
    corrupt(newest_zip(checkpoint))

    shown, started, scanned = (ckpt(*words, "-o", "json") for words in _ask(checkpoint))
    assert (shown.exit_code, started.exit_code, scanned.exit_code) == (1, 1, 1)
    assert shown.json()["restart"][0]["outcome"] == Outcome.FAILS_IN_BATCH
    assert not started.json()["go"]
    assert scanned.json()["checkpoints"][0]["outcome"] == Outcome.FAILS_IN_BATCH
    assert ckpt("repair", checkpoint, "-o", "json").json()["before"][0]["outcome"] == Outcome.FAILS_IN_BATCH


def _ask(checkpoint: Path, *how: str) -> list[tuple[Any, ...]]:
    return [
        ("inspect", checkpoint, "--spark", "4.2", *how),
        ("preflight", checkpoint, "--spark", "4.2", *how),
        ("scan", checkpoint, *how),
    ]


def test_names_only_reads_no_state_and_says_so(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(ZIPS)
    corrupt(newest_zip(checkpoint))

    run = ckpt("inspect", checkpoint, "--names-only")
    page = " ".join(run.stdout.split())
    assert f"RESTARTS with new batch 6, {FAR}" in page
    assert f"nothing to repair, {FAR}; start the query as usual" in page
    document = ckpt("inspect", checkpoint, "--names-only", "-o", "json").json()
    assert document["not_read"]["files"] > 0
    assert document["not_read"]["bytes"] > newest_zip(checkpoint).stat().st_size
    assert FAR in ckpt("preflight", checkpoint, "--names-only").stdout
    repaired = ckpt("repair", checkpoint, "--names-only", "-o", "json").json()
    assert FAR in repaired["why"]
    assert repaired["not_read"] == document["not_read"]
    assert "choose one" in ckpt("inspect", checkpoint, "--names-only", "--deep").refusal()
    assert ckpt("rewind", checkpoint, "--to-batch", "5", "--names-only", "-o", "json").json()["not_read"]["files"] > 0


def test_above_the_bound_nothing_is_read_and_that_is_said(
    ckpt: Ckpt, copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zips come first: with as many bytes as they have, the SST files are left."""
    checkpoint = copy_of(ZIPS)
    newest = [max(folder.glob("*.zip"), key=lambda path: int(path.stem)) for folder in checkpoint.glob("state/0/?")]
    size = sum(path.stat().st_size for path in newest)
    monkeypatch.setattr(loaded_files, "MOST_BYTES", size)
    found = library.inspect(str(checkpoint))

    assert FAR in found.verdict
    assert 0 < found.not_read.files <= len([*checkpoint.glob("state/0/?/SSTs/*.sst")])
    corrupt(newest_zip(checkpoint))
    assert not any(forecast.outcome.runs for forecast in library.inspect(str(checkpoint), spark=["4.2"]).counted)


def test_what_lacks_a_package_is_not_read_and_never_damaged(copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """ckpt computes the checksums of deltas by itself; those in SST files it does not, but Hadoop's beside them."""
    for module in (checksums, sst):
        monkeypatch.setattr(module, "FAST", False)

    for name in (DELTAS, ZIPS):
        found = library.inspect(str(SAMPLES / name))
        assert (found.sound, found.not_read) == (True, NotRead(0, 0))

    copied = copy_of(ZIPS)
    for checksum in copied.glob("state/0/*/SSTs/.*.crc"):
        checksum.unlink()
    found = library.inspect(str(copied))
    assert found.sound
    assert found.not_read.files
    assert FAR in found.verdict


_WITHOUT = """
import importlib.machinery, sys
find = importlib.machinery.PathFinder.find_spec
missing = ("xxhash", "google_crc32c", "numpy", "rocksdict")
importlib.machinery.PathFinder.find_spec = lambda name, *a, **k: None if name in missing else find(name, *a, **k)
import ckpt
for checkpoint in sys.argv[1:]:
    found = ckpt.inspect(checkpoint)
    print(found.not_read, *sorted({rated.code for rated in found.findings if str(rated.severity) == "error"}))
try:
    ckpt.inspect(sys.argv[1], deep=True)
except ckpt.CkptError as error:
    print(error)
"""


def test_a_look_needs_no_package_of_an_extra(copy_of: CopyOf) -> None:
    exchanged = copy_of(DELTAS)
    state = exchanged / "state" / "0"
    for old, new in (("0", "other"), ("1", "0"), ("other", "1")):
        (state / old).rename(state / new)
    looks = [str(SAMPLES / DELTAS), str(SAMPLES / ZIPS), str(exchanged)]
    run = subprocess.run([sys.executable, "-c", _WITHOUT, *looks], capture_output=True, text=True, check=True)

    *read, refused = run.stdout.splitlines()
    assert read == ["NotRead(files=0, bytes=0)"] * 2 + ["NotRead(files=0, bytes=0) CKPT324 CKPT330"]
    assert "native]" in refused


class Counting(LocalStorage):
    """Counts how often each file of the state is asked for."""

    def __init__(self, root: Path, *, local: bool = True) -> None:
        super().__init__(str(root), str(root))
        self.local = local
        self.asked: Counter[str] = Counter()

    def read_many(self, requests: Iterable[ReadRequest]) -> list[Any]:
        wanted = list(requests)
        self.asked.update(request.path for request in wanted if request.path.startswith("state/"))
        return super().read_many(wanted)


@pytest.mark.parametrize("name", [DELTAS, ZIPS, "aggregation-changelog-4.2", "join-hdfs-3.5"])
def test_no_file_is_read_twice(name: str) -> None:
    storage = Counting(SAMPLES / name)
    first = read_checkpoint(storage)
    twice = {path: count for path, count in storage.asked.items() if count > 1 and not path.endswith(".zip")}
    storage.asked.clear()

    assert twice == {}
    assert told(inspect(read_checkpoint(storage))) == told(inspect(first))
    again = [path for path in storage.asked if path.endswith((".delta", ".changelog", ".snapshot", ".sst"))]
    assert again == []  # what was read stays known


def test_of_a_remote_checkpoint_as_many_files_are_read_as_requests_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files whose ends would be read anyway cost none."""
    monkeypatch.setattr(loaded_files, "MOST_REMOTE", 0)
    storage = Counting(SAMPLES / ZIPS, local=False)
    found = read_checkpoint(storage)

    assert found.state is not None
    assert found.state.not_read.files == len(_loaded_ssts(found))
    assert not any(path.endswith(".sst") for path in storage.asked)


def _loaded_ssts(found: Any) -> set[str]:
    storage = LocalStorage(found.uri, found.uri)
    read_checkpoint(storage)
    return {path for path in storage.seen.files if path.endswith(".sst")}
