"""What is said of each kind of damage to the version that the next start loads."""

import json

import pytest

from ckpt.checkpoint.state.file_ends import NOTHING
from ckpt.checkpoint.state.loaded_files import Allowance
from ckpt.model import DamageKind, StateDamage
from tests.checkpoint.state.building import (
    HDFS,
    ROCKSDB,
    Place,
    changelog_store,
    changelog_v4,
    delta,
    hdfs_store,
    java_utf,
    lz4_stream,
    rocksdb_zip,
)

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
OF_HDFS, OF_ROCKSDB = {PROVIDER: HDFS}, {PROVIDER: ROCKSDB}
ALL = range(1, 7)


def only(damages: tuple[StateDamage, ...]) -> StateDamage:
    assert len(damages) == 1, damages
    return damages[0]


@pytest.mark.parametrize(("snapshots", "replayed"), [((), 6), ((4,), 2), ((2, 6), 0), ((7,), 6)])
def test_whole_state_has_no_damage_and_is_replayed_from_the_newest_snapshot_at_or_below(snapshots, replayed) -> None:
    inventory = Place(hdfs_store(ALL, snapshots)).inventory(conf=OF_HDFS)

    assert inventory.damages == ()
    assert inventory.needed_version == 6
    assert inventory.operators[0].stores[0].partitions[0].replay_versions == replayed


@pytest.mark.parametrize(
    ("latest", "committed", "needed"), [(5, 5, 6), (5, 4, 5), (5, 2, 5), (5, None, 5), (5, 7, 5), (0, 0, 1)]
)
def test_the_needed_version_follows_from_the_logs(latest, committed, needed) -> None:
    assert Place(hdfs_store(ALL)).inventory(latest, committed, OF_HDFS).needed_version == needed


@pytest.mark.parametrize(("latest", "committed"), [(None, None), (0, None)])
def test_a_first_batch_loads_nothing_so_nothing_can_be_wrong(latest, committed) -> None:
    inventory = Place(hdfs_store([2])).inventory(latest, committed, OF_HDFS)

    assert inventory.needed_version is None
    assert inventory.damages == ()


def test_all_that_is_missing_is_named() -> None:
    damage = only(Place(hdfs_store([1, 4, 6])).inventory(conf=OF_HDFS).damages)

    assert (damage.kind, damage.path, damage.version) == (DamageKind.MISSING, "state/0/0/2.delta", 6)
    assert damage.missing == ("state/0/0/3.delta", "state/0/0/5.delta")
    assert damage.detail == "version 6 cannot be loaded without 2.delta, 3.delta and 5.delta"


def test_a_hole_below_the_snapshot_does_not_matter() -> None:
    assert Place(hdfs_store([5, 6], [4])).inventory(conf=OF_HDFS).damages == ()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", DamageKind.EMPTY),
        (delta()[:1], DamageKind.TRUNCATED),
        (b"garbage", DamageKind.TRUNCATED),
        (delta()[:-30], DamageKind.TRUNCATED),
        (delta()[:-22], DamageKind.TRUNCATED),
        (delta()[:-21], DamageKind.ODD_END),
        (delta()[:-1], DamageKind.ODD_END),
        (delta() + b"more", DamageKind.ODD_END),
        (b"garbage" * 20, DamageKind.UNREADABLE),
        (lz4_stream(b"\x00\x00\x00\x08half a row")[:-21], DamageKind.TRUNCATED),
    ],
)
def test_the_end_of_a_delta_tells_what_happened_to_it(content, kind) -> None:
    files = hdfs_store(ALL) | {"state/0/0/5.delta": content}

    damage = only(Place(files).inventory(conf=OF_HDFS).damages)

    assert (damage.kind, damage.path) == (kind, "state/0/0/5.delta")


def test_a_bad_snapshot_can_be_replaced_where_every_delta_is_there_and_whole() -> None:
    files = hdfs_store(ALL, [4]) | {"state/0/0/4.snapshot": b""}
    assert only(Place(files).inventory(conf=OF_HDFS).damages).fallback

    files["state/0/0/2.delta"] = b""
    assert not only(Place(files).inventory(conf=OF_HDFS).damages).fallback

    del files["state/0/0/2.delta"]
    assert not only(Place(files).inventory(conf=OF_HDFS).damages).fallback

    files |= hdfs_store([], [3])
    assert only(Place(files).inventory(conf=OF_HDFS).damages).fallback


def test_a_version_above_the_needed_one_is_not_looked_at_but_reported() -> None:
    inventory = Place(hdfs_store(range(1, 10)) | {"state/0/0/9.delta": b""}).inventory(conf=OF_HDFS)

    assert inventory.damages == ()
    assert inventory.newer is not None
    assert (inventory.newer.first_version, inventory.newer.last_version, inventory.newer.files) == (7, 9, 3)


def test_the_version_that_an_uncommitted_batch_wrote_is_not_newer_than_the_logs() -> None:
    assert Place(hdfs_store(ALL)).inventory(5, 4, OF_HDFS).newer is None


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_nothing_checks_the_bytes_of_other_codecs(codec) -> None:
    conf = OF_HDFS | {"spark.sql.streaming.stateStore.compression.codec": codec}
    files = dict.fromkeys(hdfs_store(ALL), b"\x28\xb5\x2f\xfd compressed")

    inventory = Place(files).inventory(conf=conf, allowance=Allowance.of(local=True, verified=NOTHING))

    assert (inventory.damages, inventory.not_read.files) == ((), 6)


def test_with_another_codec_the_recorded_size_tells() -> None:
    conf = OF_HDFS | {"spark.sql.streaming.stateStore.compression.codec": "zstd"}
    files = dict.fromkeys(hdfs_store(ALL), bytes(50))
    for version, size in ((5, 60), (6, 50)):
        checksum = {"algorithm": "CRC32C", "value": 7, "mainFileSize": size, "timestampMs": 0, "creator": {}}
        files[f"state/0/0/{version}.delta.crc"] = json.dumps(checksum).encode()
    inventory = Place(files).inventory(conf=conf)

    damage = only(inventory.damages)
    assert (damage.kind, damage.path) == (DamageKind.TRUNCATED, "state/0/0/5.delta")
    assert inventory.not_read.files == 5


def test_at_most_so_many_tails_are_read_and_the_newest_delta_is_among_them() -> None:
    files = hdfs_store(ALL) | {"state/0/0/6.delta": delta()[:-30]}
    place = Place(files)

    inventory = place.inventory(conf=OF_HDFS, most_tails=2)

    assert only(inventory.damages).path == "state/0/0/6.delta"
    assert inventory.not_read.files == 5


def test_a_partition_and_a_store_that_are_not_there() -> None:
    files = hdfs_store(ALL, folder="state/0/0/left-a") | hdfs_store(ALL, folder="state/0/0/left-b")
    files |= hdfs_store(ALL, folder="state/0/1/left-a")
    inventory = Place(files).inventory(conf=OF_HDFS | {"spark.sql.shuffle.partitions": "3"})

    found = [(d.kind, d.path) for d in inventory.damages]
    assert found == [
        (DamageKind.MISSING_PARTITION, "state/0/1/left-b"),
        (DamageKind.MISSING_PARTITION, "state/0/2"),
        (DamageKind.MISSING_PARTITION, "state/0/2"),
    ]
    assert inventory.operators[0].stores[0].readable_batches == ()


def test_a_partition_beyond_the_recorded_number_is_not_loaded() -> None:
    assert Place(hdfs_store(ALL) | hdfs_store([1], folder="state/0/1")).inventory(conf=OF_HDFS).damages == ()


def test_an_operator_that_is_not_there_and_a_folder_without_any() -> None:
    lost = only(Place(hdfs_store(ALL, folder="state/1/0")).inventory(conf=OF_HDFS).damages)
    assert (lost.kind, lost.path) == (DamageKind.MISSING_STATE, "state/0")

    nothing = only(Place({}, folders=["state"]).inventory(conf=OF_HDFS).damages)
    assert (nothing.kind, nothing.path, nothing.operator) == (DamageKind.MISSING_STATE, "state", None)


def test_a_folder_where_the_next_version_is_to_be_written() -> None:
    damage = only(Place(hdfs_store(ALL), folders=["state/0/0/7.delta"]).inventory(conf=OF_HDFS).damages)
    assert damage.kind is DamageKind.BLOCKED


def test_keys_are_counted_only_at_exactly_the_needed_version() -> None:
    at = Place(changelog_store(ALL, [6])).inventory(conf=OF_ROCKSDB).operators[0].stores[0]
    below = Place(changelog_store(ALL, [5])).inventory(conf=OF_ROCKSDB).operators[0].stores[0]

    assert (at.num_keys, at.partitions[0].replay_versions) == (7, 0)
    assert (below.num_keys, below.partitions[0].replay_versions) == (None, 1)


@pytest.mark.parametrize(
    ("change", "kind", "path"),
    [
        ({"state/0/0/SSTs/000004-a.sst": None}, DamageKind.MISSING_SST, "SSTs/000004-a.sst"),
        ({"state/0/0/SSTs/000004-a.sst": bytes(99)}, DamageKind.TRUNCATED, "SSTs/000004-a.sst"),
        ({"state/0/0/SSTs/000004-a.sst": b""}, DamageKind.EMPTY, "SSTs/000004-a.sst"),
        ({"state/0/0/4.zip": rocksdb_zip({"x/000004-a.sst": 100})}, DamageKind.MISSING_SST, "SSTs/x/000004-a.sst"),
        ({"state/0/0/4.zip": b""}, DamageKind.EMPTY, "4.zip"),
        ({"state/0/0/4.zip": b"garbage" * 9}, DamageKind.UNREADABLE, "4.zip"),
        ({"state/0/0/4.zip": rocksdb_zip({})[:200]}, DamageKind.TRUNCATED, "4.zip"),
        ({"state/0/0/4.zip": rocksdb_zip({})[:-5]}, DamageKind.ODD_END, "4.zip"),
    ],
)
def test_damage_to_a_rocksdb_snapshot(change, kind, path) -> None:
    files = changelog_store(ALL, [4])
    for name, content in change.items():
        if content is None:
            del files[name]
        else:
            files[name] = content

    damage = only(Place(files).inventory(conf=OF_ROCKSDB).damages)

    assert (damage.kind, damage.path, damage.changelog) == (kind, f"state/0/0/{path}", True)
    assert damage.fallback is (kind is not DamageKind.ODD_END)


def test_without_changelogs_it_is_the_zip_that_is_missing() -> None:
    damage = only(Place(changelog_store([], [4, 5])).inventory(conf=OF_ROCKSDB).damages)

    assert (damage.kind, damage.path) == (DamageKind.MISSING, "state/0/0/6.zip")
    assert not damage.changelog


def unique_id(number: int) -> str:
    return f"{number:08d}-0c0e-4b6a-9e0f-3e1f5d2a7b11"


def format_2(without: str = "", lineage_from: int = 4) -> Place:
    ids = {version: unique_id(version) for version in ALL}
    files = {
        f"state/0/0/{v}_{ids[v]}.changelog": changelog_v4([(e, ids[e]) for e in range(lineage_from, v)]) for v in ALL
    }
    files |= {f"state/0/0/{v}_{ids[v]}.zip": rocksdb_zip({}) for v in (2, 4)}
    files["state/0/0/5_5d1ed5a6-0c0e-4b6a-9e0f-3e1f5d2a7b11.changelog"] = changelog_v4([])
    return Place({path: data for path, data in files.items() if path != f"state/0/0/{without}"})


UNIQUE_IDS = {0: ((unique_id(6),),)}


def test_format_2_follows_the_lineage_in_the_changelog() -> None:
    place = format_2()

    inventory = place.inventory(conf=OF_ROCKSDB, unique_ids=UNIQUE_IDS)

    damage = only(inventory.damages)
    assert (damage.kind, damage.path) == (
        DamageKind.VERSION_1,
        f"state/0/0/4_{unique_id(4)}.zip",
    )  # Spark 4.0 does not read it
    assert inventory.format_version == 2
    assert inventory.operators[0].stores[0].partitions[0].replay_versions == 2
    read = {request.path for requests in place.rounds for request in requests}
    assert "state/0/0/5_5d1ed5a6-0c0e-4b6a-9e0f-3e1f5d2a7b11.changelog" not in read
    assert f"state/0/0/3_{unique_id(3)}.changelog" not in read


@pytest.mark.parametrize(
    ("without", "kind", "fallback"),
    [
        (f"6_{unique_id(6)}.changelog", DamageKind.MISSING, False),
        (f"5_{unique_id(5)}.changelog", DamageKind.MISSING, False),
        (f"4_{unique_id(4)}.zip", DamageKind.MISSING, True),
    ],
)
def test_format_2_misses_the_files_of_the_lineage(without, kind, fallback) -> None:
    damages = format_2(without).inventory(conf=OF_ROCKSDB, unique_ids=UNIQUE_IDS).damages
    damage = only(tuple(one for one in damages if one.kind is not DamageKind.VERSION_1))

    assert (damage.kind, damage.path, damage.fallback) == (kind, f"state/0/0/{without}", fallback)
    assert damage.format_version == 2


def test_a_stray_name_does_not_change_the_format() -> None:
    strays = {f"state/0/0/1_{unique_id(1)}.delta": delta(), "state/0/0/1_abc.delta": b"x"}
    inventory = Place(hdfs_store(ALL) | strays).inventory(conf=OF_HDFS)
    assert (inventory.format_version, inventory.damages) == (1, ())
    assert inventory.strays == tuple(sorted(strays))

    files = changelog_store(ALL, [4]) | {f"state/0/0/4_{unique_id(4)}.zip": b"x", "state/0/0/9 (1).zip": b"x"}
    inventory = Place(files).inventory(conf=OF_ROCKSDB)
    damage = only(inventory.damages)
    assert inventory.format_version == 1
    assert (damage.kind, damage.path) == (DamageKind.STRAY, "state/0/0/4_" + unique_id(4) + ".zip")
    assert "1 more like it" in damage.detail


def test_in_format_2_a_stray_name_is_nothing() -> None:
    place = format_2()
    place.files["state/0/0/abc.zip"] = b"x"
    damages = place.inventory(conf=OF_ROCKSDB, unique_ids=UNIQUE_IDS).damages
    assert DamageKind.STRAY not in {damage.kind for damage in damages}


def test_a_checksum_file_beside_a_damaged_file_is_remembered_and_an_empty_one_is_damage() -> None:
    files = hdfs_store(ALL) | {"state/0/0/6.delta": delta()[:-1], "state/0/0/6.delta.crc": b"{}"}
    damage = only(Place(files).inventory(conf=OF_HDFS).damages)
    assert (damage.kind, damage.checksummed) == (DamageKind.ODD_END, True)

    files = hdfs_store(ALL) | {"state/0/0/6.delta.crc": b""}
    damage = only(Place(files).inventory(conf=OF_HDFS).damages)
    assert (damage.kind, damage.path) == (DamageKind.ODD_END, "state/0/0/6.delta")


def test_a_schema_that_cannot_be_read() -> None:
    files = hdfs_store(ALL) | {"state/0/0/_metadata/schema": java_utf("v2") + b"\0\0"}
    inventory = Place(files).inventory(conf=OF_HDFS)

    damage = only(inventory.damages)
    assert (damage.kind, damage.says) == (DamageKind.BAD_SCHEMA, "EOFException")
    assert [one.path for one in inventory.unreadable] == ["state/0/0/_metadata/schema"]


def test_a_file_that_vanishes_meanwhile_is_missing() -> None:
    place = Place(hdfs_store(ALL))
    listing = place.listing
    del place.files["state/0/0/3.delta"]
    place.__class__ = type("Frozen", (Place,), {"listing": listing})

    damage = only(place.inventory(conf=OF_HDFS).damages)

    assert (damage.kind, damage.path) == (DamageKind.MISSING, "state/0/0/3.delta")
