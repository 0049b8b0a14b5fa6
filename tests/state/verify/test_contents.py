"""Files that are as they were written, whose rows do not fit their schema or one another, or another partition."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ckpt as library
from ckpt.model import DamageKind
from ckpt.state.native.contradictions import FamilyRows, find_contradictions, find_missing_rows
from ckpt.state.verify import contents
from ckpt.state.verify.verify import state_verify
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle import observe
from tests.restart.oracle.cases import CASES
from tests.support.places import GOLDENS, SAMPLES, golden_checkpoints
from tests.support.spark import mutations, queries
from tests.support.spark.samples import SAMPLES as MADE

STORES = {sample.name: sample.store for sample in MADE}
QUERIES = {sample.name: sample.query for sample in MADE}
SWAPPED = (
    "aggregation-hdfs-4.2",
    "aggregation-changelog-4.2",
    "aggregation-rocksdb-4.2",
    "dedup-hdfs-4.0",
    "dedup-within-watermark-hdfs-3.5",
    "windowed-aggregation-rocksdb-4.3",
)


def swap(checkpoint: Path) -> None:
    """Exchange what two partitions hold, but for the schema, which is in the first."""
    one, other, between = (checkpoint / "state/0" / name for name in ("0", "1", "between"))
    shutil.move(one / "_metadata", checkpoint / "state/0/kept")
    one.rename(between)
    other.rename(one)
    between.rename(other)
    shutil.move(checkpoint / "state/0/kept", one / "_metadata")


@pytest.mark.slow
@pytest.mark.parametrize("sample", SWAPPED)
def test_swapped_partitions_are_seen(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    swap(checkpoint)
    document = ckpt("state", "verify", checkpoint, "-o", "json").json()
    found = [(damage["path"], damage["kind"]) for damage in document["damages"]]
    assert found == [(f"state/0/{partition}", "wrong-partition") for partition in (0, 1)]
    deep = ckpt("inspect", checkpoint, "--deep", "-o", "json")
    errors = {finding["code"] for finding in deep.json()["findings"] if finding["severity"] == "error"}
    assert (deep.exit_code, errors) == (1, {"CKPT324"})
    plain = ckpt("inspect", checkpoint, "-o", "json").json()["findings"]
    assert [finding["path"] for finding in plain if finding["code"] == "CKPT324"] == [path for path, _ in found]
    for command in ("preflight", "scan", "repair"):
        asked = ckpt(command, checkpoint)
        assert (asked.exit_code, "CKPT324" in asked.stdout) == (1, True)
    assert ckpt("inspect", checkpoint, "--names-only").exit_code == 0


COPIED = (
    "aggregation-hdfs-4.2",
    "aggregation-rocksdb-4.2",
    "session-window-hdfs-3.5",
    "tws-changelog-4.0",
    "join-rocksdb-4.0",
)


@pytest.mark.parametrize("sample", COPIED)
def test_a_partition_that_is_a_copy_of_another_shows_without_a_schema(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    shutil.rmtree(checkpoint / "state/0/0")
    shutil.copytree(checkpoint / "state/0/1", checkpoint / "state/0/0")
    run = ckpt("inspect", checkpoint, "-o", "json")
    paths = {finding["path"].split("/")[2] for finding in run.json()["findings"] if finding["code"] == "CKPT324"}
    assert (run.exit_code, paths) in ((1, {"0", "1"}), (1, {"0"}))


def test_a_page_says_that_rows_were_not_decoded(ckpt: Ckpt) -> None:
    checkpoint = SAMPLES / "aggregation-hdfs-4.2"
    assert "rows not decoded: --deep" in ckpt("inspect", checkpoint).stdout
    assert "rows not decoded" not in ckpt("inspect", checkpoint, "--deep").stdout
    assert any("not decoded" in unseen for unseen in ckpt("preflight", checkpoint, "-o", "json").json()["unknown"])
    assert "rows not decoded" not in ckpt("inspect", SAMPLES / "stateless-4.2").stdout


@pytest.mark.spark
def test_spark_begins_such_keys_anew(spark: Any, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    swap(checkpoint)
    query = queries.QUERIES[QUERIES["aggregation-hdfs-4.2"]]
    answer = observe.observe(spark, query, checkpoint, "sync")
    assert answer["outcome"] == "resumes"
    rows = library.read_state_arrow(str(checkpoint)).to_pylist()
    twice = [key for key, count in Counter(row["key_key"] for row in rows).items() if count == 2]
    assert twice, "a key is in both partitions: with what it had, and with what came since"


DAMAGED = {case.name.removeprefix("contents-"): case for case in CASES if case.name.startswith("contents-")}
KINDS = {
    "very-first-row-too-short": DamageKind.BAD_ROW,
    "first-row-too-short": DamageKind.BAD_ROW,
    "second-row-too-short": DamageKind.BAD_ROW,
    "join-rows-missing": DamageKind.MISSING_ROWS,
    "join-rows-not-counted": DamageKind.CONTRADICTION,
    "join-changelog-rows-missing": DamageKind.MISSING_ROWS,
    "timers-without-index": DamageKind.CONTRADICTION,
    "index-without-timers": DamageKind.CONTRADICTION,
}
CODES = {DamageKind.BAD_ROW: "CKPT302", DamageKind.MISSING_ROWS: "CKPT325", DamageKind.CONTRADICTION: "CKPT325"}


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGED)
def test_what_does_not_fit_is_found(name: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    case, kind = DAMAGED[name], KINDS[name]
    checkpoint = copy_of(case.sample)
    mutations.apply(checkpoint, case.mutations)
    plain = ckpt("inspect", checkpoint, "--progress", "sync", "--spark", "4.2", "-o", "json").json()
    assert {one["outcome"] for one in plain["restart"]} == {"resumes"}
    run = ckpt("state", "verify", checkpoint)
    assert (run.exit_code, "DAMAGED: 1 folder of state" in run.stdout) == (1, True)
    found = ckpt("state", "verify", checkpoint, "-o", "json").json()
    assert [(one["path"], one["kind"]) for one in found["damages"]] == [("state/0/0", kind)]
    deep = ckpt("inspect", checkpoint, "--deep", "--progress", "sync", "--spark", "4.2", "-o", "json").json()
    assert {one["code"] for one in deep["findings"] if one["severity"] == "error"} == {CODES[kind]}
    expected = "resumes" if kind is DamageKind.CONTRADICTION else "unknown"
    assert {one["outcome"] for one in deep["restart"]} == {expected}


@pytest.mark.parametrize("name", golden_checkpoints())
def test_rows_of_sparks_own_checkpoints_fit(name: str) -> None:
    path = GOLDENS / name
    if (path / "state").is_dir():
        assert state_verify(str(path), jobs=1).damages == ()


def test_what_is_too_large_is_not_decoded_and_named(
    ckpt: Ckpt, copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of("join-hdfs-3.5")
    sizes = [
        sum(path.stat().st_size for path in (checkpoint / f"state/0/{partition}").glob("*/*.delta"))
        for partition in (0, 1)
    ]
    monkeypatch.setattr(contents, "MOST_BYTES", max(sizes))
    said = "compared with their schema in 1 of 2 partitions; the others are too large"
    assert said in " ".join(ckpt("state", "verify", checkpoint).stdout.split())
    assert said in " ".join(ckpt("inspect", checkpoint, "--deep").stdout.split())
    monkeypatch.setattr(contents, "MOST_BYTES", 1 << 30)
    monkeypatch.setattr(contents, "_MOST_UNPACKED", 100)
    assert "in 0 of 2 partitions" in " ".join(ckpt("state", "verify", checkpoint).stdout.split())


def test_state_of_which_no_row_can_be_read_is_named(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Batch 0 was planned and not committed: all bytes of its state can be checked, and none of its rows."""
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    for file in [*checkpoint.glob("commits/*"), *checkpoint.glob("offsets/*[1-5]*")]:
        file.unlink()
    said = "not compared with their schema: ckpt cannot read the state as of the newest committed batch"
    assert said in " ".join(ckpt("state", "verify", checkpoint).stdout.split())
    assert said in " ".join(ckpt("inspect", checkpoint, "--deep", "-v").stdout.split())


@pytest.mark.parametrize(
    ("snapshots", "said"),
    [
        ({8: 8}, None),
        ({8: 4}, "ckpt rewind CHECKPOINT --deep --to-batch 6 "),
        ({8: 4, 4: 4}, "ckpt rewind CHECKPOINT --deep --to-batch 2 "),
        ({4: 8}, None),
        ({8: 4, 1: 4}, "ckpt handoff CHECKPOINT "),
    ],
)
def test_a_snapshot_of_abandoned_batches_is_found(
    snapshots: dict[int, int], said: str | None, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    """Each is older than its delta; the newest is what a start loads, the lowest says how far back is safe."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    folder = checkpoint / "state/0/0"
    for version, content in snapshots.items():
        shutil.copyfile(SAMPLES / f"aggregation-hdfs-4.2/state/0/0/{content}.snapshot", folder / f"{version}.snapshot")
        (folder / f".{version}.snapshot.crc").unlink(missing_ok=True)
        os.utime(folder / f"{version}.snapshot", (1, 1))
    run = ckpt("inspect", checkpoint, "--deep")
    page = " ".join(run.stdout.split()).replace(str(checkpoint), "CHECKPOINT")
    assert (run.exit_code, "CKPT337" in page) == ((0, False) if said is None else (1, True))
    assert said is None or said in f"{page} "
    damages = ckpt("state", "verify", checkpoint, "-o", "json").json()["damages"]
    assert [damage["path"] for damage in damages] == ([] if said is None else ["state/0/0/8.snapshot"])


def held(keys: list[dict[str, Any]], last: list[int] | None = None) -> FamilyRows:
    return FamilyRows(pa.array(keys), None if last is None else pa.array(last, pa.int64()))


KEYS: list[dict[str, Any]] = [{"k": {"a": 1, "b": "x"}}, {"k": {"a": 1, "b": "y"}}]
JOIN = {
    "left-keyToNumValues": held(KEYS, [2, 1]),
    "left-keyWithIndexToValue": held([KEYS[0] | {"index": 0}, KEYS[0] | {"index": 1}, KEYS[1] | {"index": 0}]),
}
TIMED = {
    "right-keyWithTsToValues": held([KEYS[0] | {"t": 5}, KEYS[0] | {"t": 5}, KEYS[1] | {"t": 6}]),
    "right-tsWithKey": held([KEYS[1] | {"t": 6}, KEYS[0] | {"t": 5}]),
}
TIMERS = {
    "$procTimers_keyToTimestamp": held([{"key": key, "at": 7} for key in KEYS]),
    "$procTimers_timestampToKey": held([{"at": 7, "key": key} for key in reversed(KEYS)]),
}
TTL = {
    "v": held(KEYS, [8, 9]),
    "$ttl_v": held([{"at": 9, "key": KEYS[1]}, {"at": 8, "key": KEYS[0]}]),
}
LIST = {
    "l": held([KEYS[0], KEYS[0], KEYS[1]], [8, 9, 9]),
    "$min_l": held(KEYS, [8, 9]),
    "$ttl_l": TTL["$ttl_v"],
    "$count_l": held(KEYS, [2, 1]),
    "$rowCounter_l": held(KEYS[:0], []),
}
NULLS: list[dict[str, Any]] = [{"k": {"a": None, "b": None}}, {"k": {"a": None, "b": "x"}}, {"k": {"a": 2, "b": None}}]
WITH_NULLS = {
    "left-keyToNumValues": held(NULLS, [1, 1, 1]),
    "left-keyWithIndexToValue": held([key | {"index": 0} for key in reversed(NULLS)]),
}
PLAIN_LIST = {"p": held([KEYS[0], KEYS[0], KEYS[1]]), "$rowCounter_p": held(KEYS, [2, 1])}


@pytest.mark.parametrize(
    "found", [JOIN, WITH_NULLS, TIMED, TIMERS, TTL, LIST, PLAIN_LIST, JOIN | TIMED | TIMERS | TTL | LIST]
)
def test_what_fits_together_is_no_damage(found: dict[str, FamilyRows]) -> None:
    assert [*find_missing_rows(found), *find_contradictions(found)] == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            JOIN | {"left-keyToNumValues": held(KEYS, [3, 1])},
            "rows on the left side that are counted but missing: 1 ",
        ),
        (JOIN | {"left-keyToNumValues": held(KEYS, [1, 1])}, "rows on the left side that are not counted: 1 "),
        (JOIN | {"left-keyToNumValues": held(KEYS[:1], [2])}, "rows on the left side that are not counted: 1 "),
        (
            JOIN | {"left-keyWithIndexToValue": held([{**KEYS[0], "index": 1}])},
            "rows on the left side that are counted but missing: 2 ",
        ),
        (
            TIMED | {"right-tsWithKey": held([KEYS[1] | {"t": 6}])},
            "keys on the right side without an entry by time: 1 ",
        ),
        (
            TIMED | {"right-keyWithTsToValues": held([KEYS[1] | {"t": 6}])},
            "entries by time on the right side without rows: 1",
        ),
        (
            TIMERS | {"$procTimers_timestampToKey": held([{"at": 7, "key": KEYS[0]}])},
            "timers without an entry by time: 1 ",
        ),
        (
            TIMERS | {"$procTimers_keyToTimestamp": held([{"key": KEYS[0], "at": 7}])},
            "entries by time without a timer: 1 ",
        ),
        (TTL | {"v": held(KEYS, [8, 10])}, "values of v without an entry by expiry time: 1 "),
        (TTL | {"v": held(KEYS[:1], [8])}, "entries by expiry time without a value of v: 1 "),
        (LIST | {"$min_l": held(KEYS[:1], [8])}, "entries by expiry time without a value of l: 1 "),
        (LIST | {"$count_l": held(KEYS, [1, 1])}, "lists of l with a wrong count of their length: 1 "),
        (PLAIN_LIST | {"p": held(KEYS)}, "lists of p with a wrong count of their length: 1 "),
    ],
)
def test_what_does_not_fit_together_is_said(found: dict[str, FamilyRows], said: str) -> None:
    assert any(text.startswith(said) for text in [*find_missing_rows(found), *find_contradictions(found)])


def test_an_index_that_a_join_does_not_keep_is_not_missed() -> None:
    assert list(find_contradictions(TIMED | {"right-tsWithKey": held(KEYS[:0])})) == []


def test_keys_of_other_types_are_not_compared() -> None:
    other = held([{"k": 1, "index": 0}])
    assert list(find_missing_rows(JOIN | {"left-keyWithIndexToValue": other})) == []
