"""Counts the state of the checkpoints of Spark's own tests, of Spark 2.1 to 4.0, by two engines that are not ckpt's.

    python -m tests.state.native.agreement

Spark's reader counts what has a schema, ``count_by_format`` the rest. ``recorded/counts.json`` then has, for each
checkpoint and unit, the batch, how many rows there are, and who counted them, or why nobody can.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import ckpt
from ckpt.state.reading.units import StateUnit, UnitKind, state_units
from tests.state.export import rows
from tests.support.places import GOLDENS

RECORD = Path(__file__).with_name("recorded") / "counts.json"
BY_FORMAT = "the bytes of the files"


def units() -> Iterator[tuple[str, StateUnit]]:
    """Each unit of each of these checkpoints, by its name."""
    for file in sorted(GOLDENS.rglob("metadata")):
        if (file.parent / "state/0").is_dir():
            for unit in state_units(str(file.parent)):
                if not unit.shown_elsewhere:
                    yield str(file.parent.relative_to(GOLDENS)), unit


def count_by_format(checkpoint: Path, unit: StateUnit, batch: int) -> int:
    """Count the keys in deltas of HDFS-backed state up to a batch, in a few lines that share none with ckpt."""
    name = f"{unit.side}-keyWithIndexToValue" if unit.kind is UnitKind.SIDE else ""
    total = 0
    for partition in sorted((checkpoint / f"state/{unit.operator}").glob("[0-9]*")):
        held: dict[bytes, bytes] = {}
        for version in range(1, batch + 2):
            data, at = unpack((partition / name / f"{version}.delta").read_bytes()), 0
            while (size := struct.unpack_from(">i", data, at)[0]) >= 0:
                key, at = data[at + 4 : at + 4 + size], at + 4 + size
                (size,) = struct.unpack_from(">i", data, at)
                at += 4 + max(size, 0)
                held.pop(key, None) if size < 0 else held.update({key: b""})
        total += len(held)
    return total


def unpack(data: bytes) -> bytes:
    """The stream of lz4-java: a magic word, a token, two lengths and a checksum before each block."""
    plain, at, codec = b"", 0, pa.Codec("lz4_raw")
    while at < len(data):
        magic, token, packed, size, _ = struct.unpack_from("<8sBiii", data, at)
        assert magic == b"LZ4Block"
        block, at = data[at + 21 : at + 21 + packed], at + 21 + packed
        plain += block if token >> 4 == 1 else codec.decompress(block, size, asbytes=True) if size else b""
    return plain


def newest(checkpoint: str) -> int:
    """The newest committed batch; of Spark 2.1, which kept no commits, the one before the newest."""
    read = ckpt.open_checkpoint(checkpoint)
    return read.offsets.ids[-1] - 1 if read.commits.latest is None else read.commits.latest


def ask(spark: Any, name: str, unit: StateUnit) -> dict[str, Any]:
    """What the other engine counts."""
    path = str(GOLDENS / name)
    batch = newest(path)
    if not unit.described:
        return {"batch": batch, "rows": count_by_format(GOLDENS / name, unit, batch), "by": BY_FORMAT}
    try:
        frame = ckpt.read_state(path, session=spark, shape="raw", **rows.choice(unit))
        return {"batch": batch, "rows": frame.count(), "by": f"Spark {spark.version}"}
    except Exception as error:  # whatever Spark says
        return {"batch": batch, "rows": None, "by": name_condition(str(error))}


def name_condition(error: str) -> str:
    """Spark's name of an error, without paths of the machine."""
    return next(iter(re.findall(r"\[[A-Z_.]+\]", error)), "an error without a name")


def main() -> None:
    """Ask about all, and write the record."""
    from tests.support.spark.queries import session

    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    record: dict[str, Any] = {}
    for name, unit in units():
        record.setdefault(name, {})[unit.label] = ask(spark, name, unit)
    spark.stop()
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    sys.stdout.write(f"{sum(map(len, record.values()))} units of {len(record)} checkpoints\n")


if __name__ == "__main__":
    main()
