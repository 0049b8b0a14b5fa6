"""``ckpt state history``: every key of the samples, versions that are gone or damaged, and what is read for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt.errors import UsageError
from ckpt.state.native.history import KeyEvent, state_history
from ckpt.state.reading.choose import StateDamaged
from ckpt.state.reading.units import StateUnit
from ckpt.storage.local import LocalStorage
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.state.export import rows
from tests.state.native.lives import follow
from tests.state.native.test_show import key_of
from tests.support.places import SAMPLES

HDFS = "aggregation-hdfs-4.2"
KEY = {"key": "3"}


def changes(events: tuple[KeyEvent, ...]) -> list[tuple[int, str]]:
    return [(event.batch, str(event.change)) for event in events]


@pytest.mark.parametrize(
    ("sample", "unit"),
    [
        pytest.param(*pair.values, id=pair.id, marks=() if i % 20 == 0 else pytest.mark.slow)
        for i, pair in enumerate(rows.every_unit())
    ],
)
def test_the_events_of_a_key_lead_to_every_state_of_it(sample: str, unit: StateUnit) -> None:
    path, choice = str(SAMPLES / sample), rows.choice(unit)
    now = library.state_show(path, **choice, limit=3)
    for row in now.rows:
        history = state_history(path, key=key_of(row), limit=1000, **choice)
        for first, last in unit.readable_batches:
            for batch in range(first, last + 1):
                state = library.state_show(path, **choice, key=key_of(row), batch=batch, limit=1000).rows
                assert follow(history, batch) == sorted(json.dumps(row, sort_keys=True) for row in state), batch


def test_what_is_gone_is_named(copy_of: CopyOf) -> None:
    """The versions after batches 0 to 2 deleted, as Spark does with old ones, and the offsets and commits of two."""
    folder = copy_of(HDFS)
    for delta in folder.glob("state/0/*/[1-4].delta"):
        delta.unlink()  # version 4, after batch 3, is in a snapshot
    for log in [*folder.glob("offsets/[01]"), *folder.glob("commits/[01]")]:
        log.unlink()
    history = state_history(str(folder), key=KEY)
    assert history.known_after == 3
    assert [row["value_count"] for row in history.first_rows] == [6]
    assert changes(history.events) == [(batch, "changed") for batch in range(4, 10)]
    assert "events are known after batch 3" in " ".join(str(history).split())


def test_a_hole_joins_batches(copy_of: CopyOf) -> None:
    """Snapshots of RocksDB: without those after batches 2 and 3 the next event may have happened in either."""
    folder = copy_of("aggregation-rocksdb-4.2")
    for version in (3, 4):
        for zip_file in folder.glob(f"state/0/*/{version}.zip"):
            zip_file.unlink()
    history = state_history(str(folder), key=KEY)
    assert history.unknown == ((2, 3),)
    event = next(event for event in history.events if event.batch == 4)
    assert (event.after_batch, event.certain_batch) == (1, False)
    assert [event.batch for event in history.events] == [0, 1, 4, 5]
    reads = event.sources[0].range
    whole = state_history(str(SAMPLES / "aggregation-rocksdb-4.2"), key=KEY).events
    assert (reads.start, reads.end) == (whole[2].sources[0].range.start, whole[4].sources[0].range.end)


def test_a_damaged_delta_is_no_event(copy_of: CopyOf) -> None:
    """Nothing leads over it: later versions need it too, until there is a snapshot."""
    folder = copy_of(HDFS)
    for delta in folder.glob("state/0/*/5.delta"):
        delta.write_bytes(delta.read_bytes()[:-30])
    history = state_history(str(folder), key=KEY)
    assert history.unknown == ((4, 6),)
    assert [event.batch for event in history.events] == [0, 1, 2, 3, 7, 8, 9]
    assert history.events[4].after_batch == 3
    for delta in folder.glob("state/0/*/*.delta"):
        delta.write_bytes(b"")
    for snapshot in folder.glob("state/0/*/*.snapshot"):
        snapshot.unlink()
    with pytest.raises(library.CkptError, match=r"state/0/1/1\.delta"):
        state_history(str(folder), key=KEY)


def test_a_partition_that_is_gone_is_not_taken_for_empty(copy_of: CopyOf) -> None:
    folder = copy_of("aggregation-hdfs-3.5")
    shutil.rmtree(folder / "state/0/1")
    with pytest.raises(StateDamaged, match=r"state/0/1"):
        state_history(str(folder), key=KEY)


def test_only_the_partition_of_the_key_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    read = LocalStorage.read_range

    def note(storage: Any, path: str, *where: int) -> bytes:
        opened.append(path)
        return read(storage, path, *where)

    state_history(str(SAMPLES / HDFS), key=KEY)  # what is imported is imported
    monkeypatch.setattr(LocalStorage, "read_range", note)
    history = state_history(str(SAMPLES / HDFS), key=KEY)
    deltas = {path for path in opened if path.endswith((".delta", ".snapshot"))}
    assert history.partition == 1
    assert deltas
    assert all(path.startswith("state/0/1/") for path in deltas)


def test_the_document_is_as_published(ckpt: Ckpt) -> None:
    result = ckpt("state", "history", SAMPLES / HDFS, "--key", "key=3", "--limit", "2", "-o", "json")
    assert result.exit_code == 0, result.stderr
    document = result.json()
    assert contract.disagreements(document, "state history") == []
    assert [event["batch"] for event in document["events"]] == [8, 9]
    assert document["more"] is True
    assert document["partition"] == 1
    assert document["events"][-1]["sources"][0]["amount"] == 10
    (step,) = document["next"]
    assert step["command"][:3] == ["ckpt", "offsets", "show"]
    assert step["command"][-2:] == ["--batch", "8"]
    shown = ckpt(*step["command"][1:], "-o", "json").json()
    assert shown["sources"][0]["to"] == document["events"][-1]["sources"][0]["from"]


def test_a_removal_by_the_watermark_is_on_the_page(ckpt: Ckpt) -> None:
    words = ["state", "history", SAMPLES / "windowed-aggregation-hdfs-4.2", "--key", "window_start=2023-11-14T22:13:20"]
    page = ckpt(*words, "--key", "key=4").stdout
    assert "removed by the watermark" in page
    assert "not there" in page.splitlines()[0] or "not there" in page.splitlines()[1]


def test_a_key_is_needed_and_has_to_be_one() -> None:
    path = str(SAMPLES / HDFS)
    with pytest.raises(UsageError, match="name the key to follow"):
        state_history(path)
    with pytest.raises(UsageError, match="the key has no column user"):
        state_history(path, key={"user": "3"})
    with pytest.raises(UsageError, match="at least 1"):
        state_history(path, key=KEY, limit=0)
    assert state_history(path, key={"key": "77"}).events == ()


@pytest.mark.parametrize("log", ["offsets/6", "commits/6"])
def test_a_key_of_an_older_batch_log_that_is_lost(log: str, copy_of: CopyOf) -> None:
    """A batch without offsets or commit is one that is not known; its event is found with the next."""
    folder = copy_of(HDFS)
    if log == "offsets/6":
        Path(folder / log).write_text("")
    else:
        Path(folder / log).unlink()
    history = state_history(str(folder), key=KEY)
    batches = [event.batch for event in history.events]
    assert 6 not in batches
    assert history.unknown == ((6, 6),)
    event = next(event for event in history.events if event.batch == 7)
    assert (event.after_batch, event.certain_batch) == (5, False)
