"""A checkpoint that looks like one of Auto Loader, made of files of Spark: its RocksDB is that of a state store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support.places import SAMPLES

CLOUD_FILES: dict[str, Any] = {
    "seqNum": 9,
    "sourceVersion": 1,
    "lastBackfillStartTimeMs": 1657033622925,
    "lastBackfillFinishTimeMs": 1657033623542,
}


def build(checkpoint: Path) -> Path:
    """Copy a checkpoint, write other offsets into it, and put a RocksDB database beside its source."""
    shutil.copytree(SAMPLES / "stateless-4.2", checkpoint)
    for number, file in enumerate(sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))):
        version, metadata, _ = file.read_text().splitlines()
        file.write_text("\n".join((version, metadata, json.dumps({**CLOUD_FILES, "seqNum": 9 + 4 * number}))))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    shutil.rmtree(checkpoint / "sources", ignore_errors=True)
    shutil.copytree(SAMPLES / "aggregation-rocksdb-4.2" / "state" / "0" / "0", checkpoint / "sources" / "0" / "rocksdb")
    shutil.rmtree(checkpoint / "sources" / "0" / "rocksdb" / "_metadata", ignore_errors=True)
    return checkpoint
