"""Records what Spark reads of every batch of some samples, not only of the newest.

    /path/to/python -m tests.state.native.batches

asks the pyspark of an interpreter, which need not have ckpt installed, about the samples that this version reads, and
adds to ``recorded/batches.json`` for each unit and batch how many rows there are, and a digest of them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckpt.state.reading.units import StateUnit

RECORD = Path(__file__).with_name("recorded") / "batches.json"
ROOT = Path(__file__).parents[3]
READ_BY = {
    "aggregation-changelog-4.0": "4.2",
    "aggregation-format2-4.2": "4.2",
    "aggregation-hdfs-3.5": "4.2",
    "aggregation-rocksdb-4.2": "4.2",
    "dedup-aggregation-hdfs-4.2": "4.2",
    "dedup-changelog-4.3": "4.3",
    "dedup-within-watermark-hdfs-3.5": "4.2",
    "join-changelog-4.2": "4.2",
    "join-format2-4.3": "4.3",
    "join-hdfs-3.5": "4.2",
    "join-v3-changelog-4.2": "4.2",
    "session-window-changelog-4.2": "4.2",
    "tws-avro-changelog-4.2": "4.2",
    "tws-format2-4.3": "4.3",
    "tws-rocksdb-4.2": "4.2",
    "windowed-aggregation-rocksdb-4.3": "4.3",
}
"""The samples, and the Spark that reads each."""


def units_and_batches(sample: str) -> Iterator[tuple[StateUnit, int]]:
    """Each unit of a sample with each batch after which it can be read."""
    from tests.state.export import rows

    for unit in rows.units_of(ROOT / "sample_checkpoints" / sample):
        for first, last in unit.readable_batches:
            yield from ((unit, batch) for batch in range(first, last + 1))


def summary(rows: Iterable[str]) -> list[Any]:
    """How many rows there are, and a digest of them in any order."""
    found = sorted(rows)
    return [len(found), hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]]


def ask(spark: Any, sample: str, unit: StateUnit, batch: int) -> list[Any]:
    """What Spark reads."""
    import ckpt
    from tests.state.export import rows

    path = str(ROOT / "sample_checkpoints" / sample)
    return summary(rows.content(ckpt.read_state(path, session=spark, shape="raw", batch=batch, **rows.choice(unit))))


def main() -> None:
    """Ask the Spark of this interpreter, and add to the record."""
    from tests.support.spark.queries import session

    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for sample, version in READ_BY.items():
        if spark.version.startswith(version):
            record[sample] = {"spark": spark.version, "units": {}}
            for unit, batch in units_and_batches(sample):
                record[sample]["units"].setdefault(unit.label, {})[str(batch)] = ask(spark, sample, unit, batch)
    spark.stop()
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    sys.stdout.write(f"{len(record)} samples\n")


if __name__ == "__main__":
    main()
