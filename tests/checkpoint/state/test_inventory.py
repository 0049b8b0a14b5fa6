"""What the inventory says of real checkpoints, and of ones made up for a point."""

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Log
from ckpt.checkpoint.state.read_steps import run
from ckpt.checkpoint.state.reader import read_state
from ckpt.formats.commits import parse_commit_log
from ckpt.formats.names import sort_batch_names
from ckpt.formats.offsets import parse_offset_log
from ckpt.model import DamageKind, Provider, StateInventory, Store
from ckpt.settings import PROVIDER_CLASS, ROCKSDB_PROVIDER
from ckpt.storage.local import LocalStorage
from tests.checkpoint.state.building import HDFS, ROCKSDB, Place, changelog_store, hdfs_store
from tests.conftest import Ckpt, CopyOf
from tests.support.places import GOLDENS as GOLDEN, SAMPLE_NAMES, SAMPLES

PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def inventory_of(folder: Path) -> StateInventory | None:
    """Read a real checkpoint's state, with all of its logs."""
    storage = LocalStorage(str(folder), str(folder))
    listing = storage.list_tree()

    def log(name: str, parse: Any) -> Log[Any]:
        names = sort_batch_names(listing.in_folder(name))
        return Log(name, names, {i: parse(f"{name}/{i}", storage.read(f"{name}/{i}")) for i in names.ids})

    offsets, commits = log(OFFSETS, parse_offset_log), log(COMMITS, parse_commit_log)
    return run(read_state(listing, offsets, commits, str(folder)), storage.read_many)


def golden(name: str) -> StateInventory:
    if not GOLDEN.is_dir():
        pytest.skip(f"{GOLDEN} is not there")
    found = inventory_of(GOLDEN / name)
    assert found is not None
    return found


STATEFUL = sorted(
    path.parent.name
    for path in SAMPLES.glob("*/state")
    if not path.parent.name.startswith("damaged") and (path.parent / "offsets").is_dir()
)


@pytest.mark.parametrize("name", STATEFUL)
def test_a_healthy_sample_has_nothing_wrong_and_says_what_it_is(name) -> None:
    found = inventory_of(SAMPLES / name)

    assert found is not None
    assert {damage.kind for damage in found.damages} <= {DamageKind.VERSION_1}  # only Spark 4.0 minds
    assert found.format_version == 2 or not found.damages
    assert found.newer is None
    assert found.unreadable == ()
    assert found.provider is (Provider.HDFS if "hdfs" in name else Provider.ROCKSDB)
    assert found.format_version == (2 if "format2" in name or "real-time" in name else 1)
    spark = tuple(map(int, name.rpartition("-")[2].split(".")))
    for operator in found.operators:
        assert operator.has_metadata is (spark >= (4, 0))
        for store in operator.stores:
            assert len(store.partitions) == store.expected_partitions
            assert store.readable_batches
            assert store.readable_batches[-1][1] == (found.needed_version or 0) - 1
            assert store.key_schema is not None or store.column_families


@pytest.mark.parametrize("name", [name for name in STATEFUL if name.startswith("tws")])
def test_transform_with_state_names_its_variables_and_where_its_schemas_were(name) -> None:
    found = inventory_of(SAMPLES / name)

    assert found is not None
    (operator,) = found.operators
    variables = {variable.name for variable in operator.variables}
    families = {family.name for family in operator.stores[0].column_families}
    assert {name for name in variables if not name.startswith("$")} <= families
    assert found.moved_schemas == operator.schema_paths != ()


GOLDENS = {
    "checkpoint-version-2.1.0": (Provider.HDFS, 1, 10, [None]),
    "checkpoint-version-2.3.1-streaming-aggregate-state-format-1": (Provider.HDFS, 2, 5, [None]),
    "checkpoint-version-2.4.0-streaming-join": (Provider.HDFS, 1, 5, [None]),
    "checkpoint-version-2.4.5-for-compatibility-test-deduplicate": (Provider.HDFS, 1, 5, [None]),
    "checkpoint-version-3.1.0-flatmapgroupswithstate-repartition": (Provider.HDFS, 1, 5, [None]),
    "checkpoint-version-3.2.0-session-window-with-repartition": (Provider.HDFS, 2, 5, [None]),
    "checkpoint-version-3.3.0-streaming-deduplication": (Provider.HDFS, 2, 5, [None]),
    "checkpoint-version-4.0.0/hdfs/limit": (Provider.HDFS, 4, 1, ["globalLimit"]),
    "checkpoint-version-4.0.0/rocksdb/agg": (Provider.ROCKSDB, 4, 5, ["stateStoreSave"]),
    "checkpoint-version-4.0.0/rocksdb/join1": (Provider.ROCKSDB, 5, 5, ["symmetricHashJoin"]),
    "checkpoint-version-4.0.0-tws-unsaferow": (Provider.ROCKSDB, 2, 5, ["transformWithStateExec"]),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_what_spark_wrote_over_the_years_is_read_and_whole(name) -> None:
    found = golden(name)
    provider, needed, partitions, operators = GOLDENS[name]

    assert (found.provider, found.needed_version) == (provider, needed)
    assert [operator.name for operator in found.operators] == operators
    assert (found.damages, found.unreadable) == ((), ())
    for store in found.operators[0].stores:
        assert [partition.partition for partition in store.partitions] == list(range(partitions))


def test_a_join_has_its_four_stores() -> None:
    stores = golden("checkpoint-version-4.0.0/rocksdb/join1").operators[0].stores
    names = [f"{side}-{what}" for side in ("left", "right") for what in ("keyToNumValues", "keyWithIndexToValue")]
    assert [store.name for store in stores] == names
    assert all(store.changelog and store.num_keys is None for store in stores)


def test_the_keys_of_a_store_are_those_that_its_zips_record() -> None:
    assert golden("checkpoint-version-4.0.0/rocksdb/agg").operators[0].stores[0].num_keys == 6


def test_a_schema_path_as_builds_before_4_0_wrote_it_is_a_moved_one() -> None:
    (path,) = golden("checkpoint-version-4.0.0-tws-unsaferow").moved_schemas
    assert path.endswith("state/0/_stateSchema/default/0_2e8e6b52-e3c3-4184-b8ef-8d391b75d751")


def test_a_lost_schema_file_is_damage_where_it_was_recorded_here_and_none_of_ours_where_it_was_not(tmp_path) -> None:
    sample = SAMPLES / "tws-rocksdb-4.2"
    copy = tmp_path / "copy"
    shutil.copytree(sample, copy)
    for metadata in (copy / "state/0/_metadata/v2").glob("[0-9]*"):
        text = metadata.read_text()
        (old,) = set(re.findall(r'file:([^"]*)/state/0/_stateSchema', text))
        metadata.write_text(text.replace(old, str(copy)))
    here = inventory_of(copy)
    shutil.rmtree(copy / "state/0/_stateSchema")
    lost = inventory_of(copy)

    assert here is not None
    assert (here.moved_schemas, here.damages) == ((), ())
    assert lost is not None
    assert {damage.kind for damage in lost.damages} == {DamageKind.BAD_SCHEMA}


def test_batches_are_readable_where_every_partition_has_the_state_and_the_batch_is_committed() -> None:
    files = hdfs_store(range(1, 7)) | hdfs_store([1, 2, 4, 5, 6, 7], [5], folder="state/0/1")
    found = Place(files).inventory(5, 4, {PROVIDER: HDFS, "spark.sql.shuffle.partitions": "2"})

    assert found.operators[0].stores[0].readable_batches == ((0, 1), (4, 4))


def test_a_batch_that_builds_on_a_damaged_file_is_not_readable() -> None:
    files = hdfs_store(range(1, 7)) | {"state/0/0/4.delta": b""}
    found = Place(files).inventory(conf={PROVIDER: HDFS})
    assert found.operators[0].stores[0].readable_batches == ((0, 2),)

    files = changelog_store([], range(1, 7)) | {"state/0/0/SSTs/000006-a.sst": b""}
    store = Place(files).inventory(conf={PROVIDER: ROCKSDB}).operators[0].stores[0]
    assert (store.readable_batches, store.newest_snapshot_version) == (((0, 4),), 5)


def test_the_newest_snapshot_is_one_that_every_partition_has() -> None:
    files = changelog_store(range(1, 7), [2, 4]) | changelog_store(range(1, 7), [2, 5], folder="state/0/1")
    found = Place(files).inventory(conf={PROVIDER: ROCKSDB, "spark.sql.shuffle.partitions": "2"})

    assert found.operators[0].stores[0].newest_snapshot_version == 2


def test_bytes_are_those_of_state_files_and_not_of_checksums_and_leftovers() -> None:
    files = changelog_store([1], [1])
    expected = sum(map(len, files.values()))
    files |= {"state/0/0/.1.zip.crc": b"hadoop", "state/0/0/1.zip.crc": b"{}", "state/0/0/.2.zip.x.tmp": b"half"}
    found = Place(files).inventory(0, 0, {PROVIDER: ROCKSDB})

    assert found.operators[0].stores[0].bytes == expected


@pytest.mark.parametrize(
    ("name", "schema", "partitions"),
    [
        (None, None, 1),
        (None, {"type": "struct", "fields": []}, 1),
        (None, {"type": "struct", "fields": [{"name": "key", "type": "void"}]}, 1),
        (None, {"type": "struct", "fields": [{"name": "key", "type": "long"}]}, 4),
        ("globalLimit", None, 1),
        ("stateStoreSave", None, 4),
    ],
)
def test_an_operator_without_keys_has_one_partition(name, schema, partitions) -> None:
    files = hdfs_store(range(1, 7))
    if schema is not None:
        text = json.dumps(schema).encode()
        chunk = b"\0\0\0\1" + len(text).to_bytes(2) + text
        files["state/0/0/_metadata/schema"] = b"\0\2v2" + chunk + chunk
    if name is not None:
        stores = [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 4}]
        metadata = {"operatorInfo": {"operatorId": 0, "operatorName": name}, "stateStoreInfo": stores}
        files["state/0/_metadata/metadata"] = b"v1\n" + json.dumps(metadata).encode()
    found = Place(files).inventory(conf={PROVIDER: HDFS, "spark.sql.shuffle.partitions": "4"})

    assert found.operators[0].stores[0].expected_partitions == partitions
    assert len(found.damages) == partitions - 1


def test_the_files_tell_the_provider_where_the_logs_do_not() -> None:
    assert Place(hdfs_store([1])).inventory(0, 0).provider is Provider.HDFS
    assert Place(changelog_store([1])).inventory(0, 0).provider is Provider.ROCKSDB
    assert Place({}, ["state"]).inventory(0, 0).provider is Provider.UNKNOWN


SAMPLE = "aggregation-changelog-4.2"


def version(path: Path) -> int:
    return int(path.stem.partition("_")[0])


def size(snapshot: Path) -> int:
    """Of a snapshot, with the files that a zip names as they are on the disk."""
    total = snapshot.stat().st_size
    if snapshot.suffix == ".zip":
        with zipfile.ZipFile(snapshot) as opened:
            entry = json.loads(opened.read("metadata").split(b"\n", 1)[1])
        assert not entry.get("logFiles")
        total += sum((snapshot.parent / "SSTs" / sst["dfsSstFileName"]).stat().st_size for sst in entry["sstFiles"])
    return total


def grown(folder: Path, newest: int) -> float | None:
    """Between the oldest snapshot of a store's folder and the newest that a start at a version loads."""
    snapshots = sorted([*folder.glob("*.snapshot"), *folder.glob("*.zip")], key=version)
    usable = [snapshot for snapshot in snapshots if version(snapshot) <= newest or snapshot.suffix == ".snapshot"]
    if len(usable) < 2 or version(usable[0]) == version(usable[-1]):
        return None
    return (size(usable[-1]) - size(usable[0])) / (version(usable[-1]) - version(usable[0]))


def stores(checkpoint: str | Path) -> dict[tuple[int, str], Store]:
    state = library.open_checkpoint(str(checkpoint)).state
    return (
        {}
        if state is None
        else {(operator.id, store.name): store for operator in state.operators for store in operator.stores}
    )


@pytest.mark.parametrize("sample", [name for name in SAMPLE_NAMES if not name.startswith("damaged")])
def test_growth_is_that_of_the_files(sample: str) -> None:
    state = library.open_checkpoint(str(SAMPLES / sample)).state
    for (operator, name), store in stores(SAMPLES / sample).items():
        assert state is not None
        assert state.needed_version is not None
        below = "" if name == "default" else name
        folders = [
            SAMPLES / sample / "state" / str(operator) / str(partition.partition) / below
            for partition in store.partitions
        ]
        wanted = [one for folder in folders if (one := grown(folder, state.needed_version)) is not None]
        assert store.growth == (pytest.approx(sum(wanted)) if wanted else None)


def test_samples_of_both_providers_grow() -> None:
    for sample in ("aggregation-hdfs-4.2", SAMPLE):
        assert [store.growth for store in stores(SAMPLES / sample).values()] != [None]


def test_a_scan_adds_up_all_stores(ckpt: Ckpt) -> None:
    sample = SAMPLES / "join-rocksdb-4.0"
    (row,) = ckpt("scan", sample, "-o", "json").json()["checkpoints"]
    assert row["state_growth"] == pytest.approx(sum(store.growth or 0 for store in stores(sample).values()))


def test_a_partition_whose_oldest_zip_is_cut_off_is_left_out(copy_of: CopyOf) -> None:
    checkpoint = copy_of(SAMPLE)
    (before,) = stores(checkpoint).values()
    first = min((checkpoint / "state/0/0").glob("*.zip"), key=version)
    first.write_bytes(first.read_bytes()[:100])
    (after,) = stores(checkpoint).values()
    other = grown(checkpoint / "state/0/1", after.partitions[1].newest_version or 0)
    assert before.growth != after.growth == pytest.approx(other)


def test_of_many_partitions_the_oldest_zips_are_not_read() -> None:
    folder = SAMPLES / SAMPLE / "state/0/0"
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    place = Place({f"state/0/{n}/{path}": data for n in range(3) for path, data in files.items()})
    conf = {PROVIDER_CLASS: ROCKSDB_PROVIDER, "spark.sql.shuffle.partitions": "3"}
    few, many = (place.inventory(9, 9, conf, most_tails=20 * most) for most in (3, 2))
    assert [inventory.operators[0].stores[0].growth is None for inventory in (few, many)] == [False, True]
    assert sum(path.endswith("/3.zip") for round_ in place.rounds for path, *_ in round_) == 3
