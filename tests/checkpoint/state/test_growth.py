"""By how much snapshots grow, against the files themselves: sizes on the disk, and what each zip names."""

import json
import zipfile
from pathlib import Path

import pytest

import ckpt as library
from ckpt.model import Store
from ckpt.settings import PROVIDER_CLASS, ROCKSDB_PROVIDER
from tests.checkpoint.state.building import Place
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLE_NAMES, SAMPLES

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
        total += sum((snapshot.parent / "SSTs" / one["dfsSstFileName"]).stat().st_size for one in entry["sstFiles"])
    return total


def grown(folder: Path, newest: int) -> float | None:
    """Between the oldest snapshot of a store's folder and the newest that a start at a version loads."""
    snapshots = sorted([*folder.glob("*.snapshot"), *folder.glob("*.zip")], key=version)
    usable = [one for one in snapshots if version(one) <= newest or one.suffix == ".snapshot"]
    if len(usable) < 2 or version(usable[0]) == version(usable[-1]):
        return None
    return (size(usable[-1]) - size(usable[0])) / (version(usable[-1]) - version(usable[0]))


def stores(checkpoint: str | Path) -> dict[tuple[int, str], Store]:
    state = library.open_checkpoint(str(checkpoint)).state
    return {} if state is None else {(one.id, store.name): store for one in state.operators for store in one.stores}


@pytest.mark.parametrize("sample", [one for one in SAMPLE_NAMES if not one.startswith("damaged")])
def test_growth_is_that_of_the_files(sample: str) -> None:
    state = library.open_checkpoint(str(SAMPLES / sample)).state
    for (operator, name), store in stores(SAMPLES / sample).items():
        assert state is not None
        assert state.needed_version is not None
        below = "" if name == "default" else name
        folders = [SAMPLES / sample / "state" / str(operator) / str(one.partition) / below for one in store.partitions]
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
    assert [one.operators[0].stores[0].growth is None for one in (few, many)] == [False, True]
    assert sum(path.endswith("/3.zip") for round_ in place.rounds for path, *_ in round_) == 3
