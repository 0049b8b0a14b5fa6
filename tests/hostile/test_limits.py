"""What a checkpoint costs to inspect is bounded by what is there, whatever it claims; a large one is read in full."""

import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt.formats.limits import LARGEST_RECORD
from tests.conftest import CopyOf
from tests.hostile.measure import measured

CPU_S, PEAK_MIB = 4.0, 300.0  # CPU on a machine that is busy with other tests: half of it on a quiet one


def stray_operator(checkpoint: Path) -> None:
    (checkpoint / "state/99999999").mkdir()


def many_partitions(checkpoint: Path) -> None:
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        text = file.read_text()
        file.write_text(text.replace('shuffle.partitions":"', 'shuffle.partitions":"9999999'))


def sparse(path: str) -> Callable[[Path], None]:
    def grow(checkpoint: Path) -> None:
        os.truncate(next(checkpoint.glob(path)), 512 << 20)

    return grow


def nested_lists(checkpoint: Path) -> None:
    """The JSON that takes most memory for its size, in every log file that is read."""
    for file in sorted((checkpoint / "offsets").glob("[0-9]*")):
        head = "\n".join(file.read_text().splitlines()[:2])
        body = "[" + "[]," * ((LARGEST_RECORD - len(head) - 10) // 3) + "[]]"
        file.write_text(f"{head}\n{body}")


def zip_bomb(checkpoint: Path) -> None:
    """Entries of zeros, and no central directory to see that from."""
    entry = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = b"".join(entry.compress(bytes(1 << 20)) for _ in range(200)) + entry.flush()
    local = struct.pack("<IHHHIIIIHH", 0x04034B50, 20, 0, 8, 0, 0, len(packed), 0, 7, 0) + b"OPTIONS"
    for file in checkpoint.glob("state/0/*/*.zip"):
        file.write_bytes(local + packed)


def metadata_bomb(checkpoint: Path) -> None:
    for file in checkpoint.glob("state/0/*/*.zip"):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("metadata", b'v1\n{"sstFiles":[' + b"[]," * 2_500_000 + b"[]]}")


def links(checkpoint: Path) -> None:
    """Ten folders, each with ten links to the next: ten thousand million ways."""
    (checkpoint / "state/deep").mkdir(parents=True)
    for depth in range(10):
        folder = checkpoint / f"state/deep/{depth}"
        folder.mkdir()
        for name in range(10):
            (folder / f"to{name}").symlink_to(f"../{depth + 1}")
    (checkpoint / "state/deep/10").mkdir()


def many_operators(checkpoint: Path) -> None:
    for operator in range(1, 3000):
        (checkpoint / f"state/{operator}").mkdir()


HOSTILE = {
    "a stray operator": ("aggregation-hdfs-4.2", stray_operator, "state/1"),
    "999999910 shuffle partitions": ("aggregation-hdfs-4.2", many_partitions, "state/0/"),
    "a sparse offsets file": ("stateless-3.5", sparse("offsets/5"), "offsets/5"),
    "a sparse predecessor": ("stateless-3.5", sparse("offsets/4"), "offsets/4"),
    "a sparse commit": ("stateless-3.5", sparse("commits/5"), "commits/5"),
    "sparse metadata": ("stateless-3.5", sparse("metadata"), "metadata"),
    "a sparse schema": ("aggregation-hdfs-4.2", sparse("state/0/0/_metadata/schema"), "schema"),
    "sparse operator metadata": ("aggregation-hdfs-4.2", sparse("state/0/_metadata/metadata"), "_metadata"),
    "JSON of lists": ("stateless-3.5", nested_lists, "offsets/5"),
    "a zip bomb": ("aggregation-rocksdb-4.2", zip_bomb, ".zip"),
    "a metadata bomb": ("aggregation-rocksdb-4.2", metadata_bomb, ".zip"),
    "links to links": ("aggregation-hdfs-4.2", links, None),
    "3,000 operators": ("aggregation-hdfs-4.2", many_operators, "state/1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("what", HOSTILE)
def test_the_cost_is_bounded_and_a_finding_names_the_file(what: str, output: str, copy_of: CopyOf) -> None:
    sample, damage, named = HOSTILE[what]
    checkpoint = copy_of(sample)
    damage(checkpoint)

    run, cost = measured("inspect", checkpoint, "-o", output)

    assert run.exit_code in (0, 1)
    assert run.stderr == ""
    assert cost.cpu_s < CPU_S, cost
    assert cost.peak_mib < PEAK_MIB, cost
    if output == "json":
        findings = run.json()["findings"]
        assert named is None or any(named in found["path"] for found in findings)


@pytest.mark.parametrize("where", ["offsets/5", "commits/5", "metadata"])
def test_what_spark_does_with_a_file_that_is_too_large_is_unknown(where: str, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    os.truncate(checkpoint / where, LARGEST_RECORD + 1)
    document = measured("inspect", checkpoint, "-o", "json")[0].json()
    assert {one["outcome"] for one in document["restart"]} == {"unknown"}
    assert ("CKPT509", where) in {(found["code"], found["path"]) for found in document["findings"]}


def test_a_link_to_a_folder_elsewhere_is_followed(copy_of: CopyOf, tmp_path: Path) -> None:
    """State on a disk of its own: 20 links to it are more than anybody has, and are all listed."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    shutil.move(checkpoint / "state", tmp_path / "disk")
    (checkpoint / "state").symlink_to(tmp_path / "disk")
    before = measured("inspect", "sample_checkpoints/aggregation-hdfs-4.2", "-o", "json")[0].json()
    after = measured("inspect", checkpoint, "-o", "json")[0].json()
    assert after["state"] == before["state"]
    assert after["findings"] == before["findings"]
