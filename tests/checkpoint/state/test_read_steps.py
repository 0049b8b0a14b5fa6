"""Steps, the ranges they compute with, where paths lead, and that folders are found once for a listing."""

import gc
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import ckpt
from ckpt.checkpoint.state import folders
from ckpt.checkpoint.state.folders import lies_elsewhere
from ckpt.checkpoint.state.ranges import intersect, ranges_of, shift_ranges
from ckpt.checkpoint.state.read_steps import run, run_together
from ckpt.model import Provider
from ckpt.storage import Listing, open_storage
from ckpt.storage.base import ReadRequest
from tests.support.places import SAMPLES


def reading(*paths: str):
    """A step that reads one file after the other and returns what it got."""
    found = []
    for path in paths:
        (answer,) = yield [ReadRequest(path)]
        found.append(answer)
    return found


def test_steps_run_together_share_their_rounds() -> None:
    rounds: list[list[str]] = []

    def read_many(requests):
        rounds.append([request.path for request in requests])
        return [request.path.encode() for request in requests]

    results = run(run_together(reading("a", "b", "c"), reading(), reading("x")), read_many)

    assert results == [[b"a", b"b", b"c"], [], [b"x"]]
    assert rounds == [["a", "x"], ["b"], ["c"]]


sets = st.frozensets(st.integers(0, 40))


def members(ranges):
    return {number for first, last in ranges for number in range(first, last + 1)}


@pytest.mark.slow
@given(sets, sets, st.integers(-5, 5))
def test_ranges_are_sets(one, other, by) -> None:
    a, b = ranges_of(sorted(one)), ranges_of(sorted(other))

    assert members(a) == one
    assert members(intersect(a, b)) == one & other
    assert members(shift_ranges(a, by)) == {number + by for number in one}
    assert intersect(a, b) == ranges_of(sorted(one & other))


SCHEMA = "/state/0/_stateSchema/default/0_ab"


@pytest.mark.parametrize(
    ("recorded", "uri", "elsewhere"),
    [
        ("file:/data/q" + SCHEMA, "/data/q", False),
        ("file:/data/q" + SCHEMA, "/data/q/", False),
        ("file:/data/q" + SCHEMA, "file:///data/q", False),
        ("file:/data/my q" + SCHEMA, "file:/data/my%20q", False),
        ("file:/data/my q" + SCHEMA, "/data/my q", False),
        ("file:/data/50%25" + SCHEMA, "/data/50%25", False),
        ("file:/data/q" + SCHEMA, "/data/q2", True),
        ("file:/data/q" + SCHEMA, "memory://data/q", True),
        ("s3a://bucket/q" + SCHEMA, "s3://bucket/q?endpoint_override=127.0.0.1:9", False),
        ("s3a://bucket/q" + SCHEMA, "s3://other/q", True),
        ("hdfs://name:8020/q" + SCHEMA, "hdfs:///q", False),
        ("hdfs://name:8020/q" + SCHEMA, "hdfs://127.0.0.1:19000/q", False),
        ("hdfs://name:8020/q" + SCHEMA, "hdfs://name:8020/r", True),
        ("abfss://c@a.dfs.core.windows.net/q" + SCHEMA, "wasbs://c@a.blob.core.windows.net/q", False),
        ("dbfs:/q" + SCHEMA, "/dbfs/q", False),
        ("gs://b/state/0/_stateSchema/q" + SCHEMA, "gs://b/state/0/_stateSchema/q", False),
        ("not a schema path", "/data/q", True),
    ],
)
def test_whether_a_recorded_schema_path_lies_elsewhere(recorded, uri, elsewhere) -> None:
    assert lies_elsewhere(recorded, 0, uri) is elsewhere


SAMPLE = str(SAMPLES / "aggregation-hdfs-4.2")


def test_work_on_partitions_does_not_list_all_of_them_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    listed: list[int] = []
    plain = folders._list_operators

    def noted(listing: Listing, provider: Provider) -> tuple[folders.OperatorFolder, ...]:
        listed.append(1)
        return plain(listing, provider)

    monkeypatch.setattr(folders, "_list_operators", noted)
    for partitions in (2, 20):
        new = str(tmp_path / str(partitions))
        ckpt.rewrite(SAMPLE, new, partitions=partitions)
        listed.clear()
        ckpt.state_count(new)
        ckpt.state_keys(new)
        ckpt.state_diff(SAMPLE, new)
        counts.append(len(listed))
    assert 0 < counts[0] == counts[1]


@pytest.mark.slow
def test_what_was_found_goes_with_its_listing() -> None:
    gc.collect()
    before = len(folders._of_listings)
    listing = open_storage(SAMPLE).list_tree()
    first = folders.find_operators(listing, Provider.HDFS)
    assert folders.find_operators(listing, Provider.HDFS) is first
    assert folders.find_operators(listing, Provider.ROCKSDB) is not first
    assert len(folders._of_listings) == before + 2
    del listing
    gc.collect()
    assert len(folders._of_listings) == before
