"""Whatever lies in ``state/``, taking stock of it ends with an inventory."""

import pytest
from hypothesis import given, settings, strategies as st

from ckpt.model import StateInventory
from tests.checkpoint.state.building import HDFS, ROCKSDB, Place, changelog_v4, delta, rocksdb_zip

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
IDS = ("a", "b")
NUMBERS = st.sampled_from(["0", "1", "2", "5", "6", "007", "-1", "x", "6.delta"])
NAMES = st.one_of(
    st.builds(
        "{}{}.{}".format,
        st.sampled_from(["1", "2", "3", "4", "5", "6", "7", "99999999999", "0", ""]),
        st.sampled_from(["", "_a", "_b", "_"]),
        st.sampled_from(["delta", "snapshot", "zip", "changelog", "delta.crc", "zip.crc", "tmp"]),
    ),
    st.sampled_from(["schema", "metadata", "0", "0_ab", "000001-a.sst", ".hidden"]),
    st.text(st.characters(exclude_characters="/"), min_size=1, max_size=4),
)
FOLDERS = st.sampled_from(
    [
        "state",
        "state/0",
        "state/0/_metadata",
        "state/0/_metadata/v2",
        "state/0/_stateSchema/default",
        "state/0/0",
        "state/0/0/_metadata",
        "state/0/0/SSTs",
        "state/0/0/left-keyToNumValues",
        "state/0/0/left-keyToNumValues/_metadata",
        "state/0/1",
        "state/1/0",
    ]
)
PATHS = st.one_of(
    st.builds("{}/{}".format, FOLDERS, NAMES), st.builds("state/{}/{}/{}".format, NUMBERS, NUMBERS, NAMES)
)
CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            delta(),
            delta()[:-3],
            delta()[:-40],
            rocksdb_zip({"000001-a.sst": 9}),
            rocksdb_zip({})[:-9],
            changelog_v4([(5, "a")]),
            changelog_v4([(5, "a"), (4, "b"), (4, "a"), (99999999999, "b")]),
            b"v1\n{}",
            b"v2\n{",
            b"\0\2v3\0\0\0\1",
        ]
    ),
)
UNIQUE_IDS = st.none() | st.fixed_dictionaries(
    {0: st.lists(st.lists(st.sampled_from(IDS), max_size=3).map(tuple), max_size=3).map(tuple)}
)
CONF = st.fixed_dictionaries(
    {},
    optional={
        PROVIDER: st.sampled_from([HDFS, ROCKSDB, "my.own.Provider", ""]),
        "spark.sql.shuffle.partitions": st.sampled_from(["1", "2", "", "-3", "many", "9" * 40]),
        "spark.sql.streaming.stateStore.compression.codec": st.sampled_from(["lz4", "zstd", ""]),
    },
)


@pytest.mark.slow
@settings(max_examples=400)
@given(
    st.dictionaries(PATHS, CONTENTS, max_size=14),
    CONF,
    UNIQUE_IDS,
    st.sampled_from([(5, 5), (5, 4), (5, None), (0, None), (None, None), (4, 7)]),
    st.integers(0, 20),
)
def test_no_tree_raises(files, conf, unique_ids, logs, most_tails) -> None:
    place = Place(_without_clashes(files), folders=["state"])

    latest, committed = logs
    found = place.inventory(latest, committed, conf, unique_ids, most_tails=most_tails)

    assert isinstance(found, StateInventory)
    assert all(damage.version == found.needed_version for damage in found.damages)
    for requests in place.rounds:
        assert all(request.path in place.files for request in requests)


def _without_clashes(files: dict[str, bytes]) -> dict[str, bytes]:
    """Drop files at whose path there is a folder as well."""
    folders = {path[:at] for path in files for at, letter in enumerate(path) if letter == "/"}
    return {path: data for path, data in files.items() if path not in folders}
