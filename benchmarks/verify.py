"""How much CPU ``ckpt state verify`` takes for each GB, beside one pass of CRC-32 over the same files.

    python benchmarks/verify.py [--megabytes N] [--pairs N]

Both run by turns, each in its own process, on state files made here: deltas and SST files with values that hardly
compress, with and without the checksums that Hadoop keeps beside local files.
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import json
import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable

import pyarrow as pa
from rocksdict import BlockBasedOptions, DBCompressionType, Options, SstFileWriter

from benchmarks.measure import by_turns, heading
from ckpt.formats.checksums import of_lz4_block
from ckpt.formats.compression import MAGIC
from ckpt.formats.sidecars import build_hadoop_sidecar

SAMPLES = Path(__file__).resolve().parent.parent / "sample_checkpoints"
CKPT = Path(sys.executable).with_name("ckpt")
_VALUE, _BLOCK = 200, 1 << 15
_CRC32 = """
import sys, zlib
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        found = 0
        while piece := file.read(8 << 20):
            found = zlib.crc32(piece, found)
"""


def main() -> None:
    """Print one row for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    print(heading())
    made: dict[str, Callable[[Path, int], list[Path]]] = {"deltas": _deltas, "SST files": _ssts}
    for name, make in made.items():
        for hidden in (False, True):
            with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as folder:
                checkpoint = Path(folder, "checkpoint")
                files = make(checkpoint, asked.megabytes)
                for file in files if hidden else ():
                    file.with_name(f".{file.name}.crc").write_bytes(build_hadoop_sidecar(file.read_bytes()))
                _row(f"{name}{' with hidden checksums' if hidden else ''}", checkpoint, files, asked.pairs)


def _row(name: str, checkpoint: Path, files: list[Path], pairs: int) -> None:
    size = sum(file.stat().st_size for file in files)
    ours = [str(CKPT), "state", "verify", str(checkpoint), "--jobs", "1", "--quiet"]
    found = by_turns(ours, [sys.executable, "-c", _CRC32, *map(str, files)], pairs)
    both = by_turns([*ours[:-2], "2", "--quiet"], ours, pairs)
    print(f"{name}, {size / 1e6:,.0f} MB, against one pass of CRC-32")
    alone = by_turns([*ours[:3], str(SAMPLES / "aggregation-hdfs-3.5")], [*ours[:1], "--version"], pairs).seconds[1]
    each, without = found.seconds[1] / size * 1e9, (found.seconds[1] - alone) / size * 1e9
    print(f"    wall {found.wall:.2f}, CPU {found.cpu:.2f}; s of CPU per GB {each:.2f}, without start-up {without:.2f}")
    print(f"    peak {found.rss / 2**20:,.0f} MB; in two processes wall {both.wall:.2f} of that in one", flush=True)


def _deltas(checkpoint: Path, megabytes: int) -> list[Path]:
    """A sample, with records of random bytes in the newest delta of each partition."""
    shutil.copytree(SAMPLES / "aggregation-hdfs-3.5", checkpoint)
    files = sorted((checkpoint / "state/0").glob("*/6.delta"))
    for file in files:
        file.with_name(f".{file.name}.crc").unlink()
        with file.open("wb") as stream:
            for at in range(0, megabytes * 1_000_000 // len(files), _BLOCK):
                count = _BLOCK // (_VALUE + 24)
                records = (struct.pack(">i16si", 16, b"%016d" % at, _VALUE) + os.urandom(_VALUE) for _ in range(count))
                stream.write(_block(b"".join(records)))
            stream.write(_block(b"\xff\xff\xff\xff") + MAGIC + b"\x15" + bytes(12))
    return files


def _block(data: bytes) -> bytes:
    packed = pa.Codec("lz4_raw").compress(data, asbytes=True)
    token, body = (0x25, packed) if len(packed) < len(data) else (0x15, data)
    return MAGIC + struct.pack("<BiiI", token, len(body), len(data), of_lz4_block(data)) + body


def _ssts(checkpoint: Path, megabytes: int) -> list[Path]:
    """A sample, with random values in one SST file of the newest snapshot of each partition."""
    shutil.copytree(SAMPLES / "aggregation-rocksdb-4.2", checkpoint)
    partitions = sorted((checkpoint / "state/0").glob("[0-9]*"))
    files = []
    for partition in partitions:
        newest = max(partition.glob("*.zip"), key=lambda file: int(file.stem))
        with zipfile.ZipFile(newest) as before:
            entries = {name: before.read(name) for name in before.namelist()}
        version, _, text = entries["metadata"].partition(b"\n")
        recorded = json.loads(text)
        first = partition / "SSTs" / recorded["sstFiles"][0]["dfsSstFileName"]
        _write_sst(first, megabytes * 1_000_000 // len(partitions))
        recorded["sstFiles"][0]["sizeBytes"] = first.stat().st_size
        entries["metadata"] = version + b"\n" + json.dumps(recorded).encode()
        with zipfile.ZipFile(newest, "w", zipfile.ZIP_DEFLATED) as after:
            for name, content in entries.items():
                after.writestr(name, content)
        for file in (newest, first):
            file.with_name(f".{file.name}.crc").unlink()
        files.append(first)
    return files


def _write_sst(file: Path, size: int) -> None:
    """An SST file as Spark has RocksDB write it."""
    options, table = Options(raw_mode=True), BlockBasedOptions()
    table.set_format_version(5)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    writer = SstFileWriter(options)
    writer.open(str(file))
    for key in range(max(size // (_VALUE + 24), 1)):
        writer[b"%016d" % key] = os.urandom(_VALUE)
    writer.finish()


if __name__ == "__main__":
    main()
