"""A query writes to the checkpoint while it is inspected: never a traceback, and never an alarm that is not true."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ckpt.checkpoint.reader import read_checkpoint
from ckpt.inspection import inspection
from ckpt.restart.findings import Severity
from ckpt.storage import Folder, Listing
from ckpt.storage.local import LocalStorage
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.spark.live import EVERY_CASE

pytestmark = pytest.mark.slow

FIRST = 6  # the batch that the samples used here come to next
PACE = 0.02  # seconds a batch: faster than any query, and slow enough to be overtaken


@contextmanager
def writing(step: Callable[[int], None]) -> Iterator[None]:
    """Take one step after the other, in a thread of its own, as long as the block runs."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        number = FIRST
        try:
            while not stop.is_set():
                step(number)
                number += 1
                stop.wait(PACE)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failed


def put(path: Path, content: bytes) -> None:
    """Write as Spark does: a temporary file, then its real name."""
    temporary = path.with_name(f".{path.name}.temporary.tmp")
    temporary.write_bytes(content)
    temporary.rename(path)


def run_a_batch(checkpoint: Path, batch: int) -> None:
    """What a query does for one batch, in its order: plan, write state (two partitions of deltas), commit, purge."""
    put(checkpoint / "offsets" / str(batch), (checkpoint / "offsets" / str(batch - 1)).read_bytes())
    for deltas in checkpoint.glob("state/0/[01]"):
        put(deltas / f"{batch + 1}.delta", (deltas / f"{batch}.delta").read_bytes())
    put(checkpoint / "commits" / str(batch), (checkpoint / "commits" / str(batch - 1)).read_bytes())
    for folder in ("offsets", "commits"):
        (checkpoint / folder / str(batch - 100)).unlink(missing_ok=True)


def without_sidecars(checkpoint: Path) -> Path:
    for sidecar in checkpoint.rglob(".*.crc"):
        sidecar.unlink()
    return checkpoint


@pytest.mark.parametrize("sample", ["stateless-3.5", "aggregation-hdfs-3.5"])
def test_a_query_that_runs_is_told(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = without_sidecars(copy_of(sample))
    with writing(lambda batch: run_a_batch(checkpoint, batch)):
        for number in range(60 if EVERY_CASE else 24):
            result = ckpt("inspect", checkpoint, *(["-o", "json"] if number % 2 else []))
            assert result.exit_code in (0, 1)
            if number % 2:
                assert contract.disagreements(result.json()) == []


def test_a_folder_that_is_torn_apart_is_told_or_refused(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-3.5")
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file())
    folders = [checkpoint / "offsets", checkpoint / "state" / "0" / "1", checkpoint / "commits"]

    def tear(number: int) -> None:
        file = files[number * 7 % len(files)]
        file.write_bytes(os.urandom(number % 60))
        file.unlink()
        folder = folders[number % 3]
        away = folder.with_name("away")
        folder.rename(away)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"v1\n{}")
        if folder.exists():
            for one in folder.iterdir():
                one.unlink()
            folder.rmdir()
        away.rename(folder)

    with writing(tear):
        for number in range(100 if EVERY_CASE else 40):
            result = ckpt("inspect", checkpoint, *(["-o", "json"] if number % 2 else []))
            assert result.exit_code in (0, 1, 3)
            if result.exit_code == 3:
                assert result.refusal()
            elif number % 2:
                assert contract.disagreements(result.json()) == []


class Interrupted(LocalStorage):
    """A folder to which something happens between its listing and its reading."""

    def __init__(self, root: Path, between: Callable[[], None]) -> None:
        super().__init__(str(root), str(root))
        self._between = between

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        listing = super().list_tree(tolerant=tolerant)
        self._between()
        return listing


def test_files_that_vanish_after_the_listing_are_told_as_such(copy_of: CopyOf) -> None:
    checkpoint = without_sidecars(copy_of("stateless-3.5"))

    def purge() -> None:
        (checkpoint / "offsets" / "0").unlink()
        (checkpoint / "commits" / "0").unlink()

    found = inspection.inspect(read_checkpoint(Interrupted(checkpoint, purge)))

    assert "CKPT507" in {judged.finding.diagnosis.code for judged in found.findings}
    assert found.sound


def test_the_latest_batch_vanishing_after_the_listing_is_no_false_promise(copy_of: CopyOf) -> None:
    checkpoint = without_sidecars(copy_of("stateless-3.5"))
    found = inspection.inspect(read_checkpoint(Interrupted(checkpoint, (checkpoint / "offsets" / "5").unlink)))

    codes = {judged.finding.diagnosis.code for judged in found.findings}
    assert "CKPT507" in codes
    assert not any(forecast.outcome.runs for forecast in found.forecasts)


class Counted(LocalStorage):
    """A folder that knows which of its folders were listed; its whole tree is ``*``."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root), str(root))
        self.listed: list[str] = []

    def list_level(self, path: str = "") -> Folder:
        self.listed.append(path)
        return super().list_level(path)

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        self.listed.append("*")
        return super().list_tree(tolerant=tolerant)


@pytest.mark.parametrize("gone", [["offsets/5"], ["offsets/5", "commits/5"], ["offsets/5", "offsets/4", "commits"]])
def test_of_a_query_that_stands_still_only_the_logs_are_listed_again(gone: list[str], copy_of: CopyOf) -> None:
    """State, or a commit, is newer than the offsets, and stays so."""
    checkpoint = without_sidecars(copy_of("aggregation-hdfs-3.5"))
    for path in gone:
        (checkpoint / path).rename(checkpoint.parent / path.replace("/", "-"))
    storage = Counted(checkpoint)

    assert not read_checkpoint(storage).moving
    assert storage.listed == ["", "*", "offsets", "commits"]


class Torn(LocalStorage):
    """A folder whose first listing took so long that a query went on meanwhile."""

    def __init__(self, root: Path, first: Listing) -> None:
        super().__init__(str(root), str(root))
        self._torn = [first]

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        return self._torn.pop() if self._torn else super().list_tree(tolerant=tolerant)


@pytest.mark.parametrize("late", ["commits", "offsets", "state/0/0"])
@pytest.mark.parametrize("sample", ["stateless-3.5", "aggregation-hdfs-3.5"])
def test_a_batch_that_is_run_while_the_folders_are_listed_is_no_alarm(sample: str, late: str, copy_of: CopyOf) -> None:
    """Whichever folder is listed last shows a batch that the others do not: the query runs, and nothing is wrong."""
    checkpoint = without_sidecars(copy_of(sample))
    before = LocalStorage(str(checkpoint), "").list_tree()
    run_a_batch(checkpoint, FIRST)
    after = LocalStorage(str(checkpoint), "").list_tree()
    first = Listing({path: after.folders[path] if path == late else was for path, was in before.folders.items()})

    found = inspection.inspect(read_checkpoint(Torn(checkpoint, first)))

    assert [judged.finding for judged in found.findings if judged.severity is Severity.ERROR] == []
