"""The storage of a declarative pipeline, made of samples."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.places import SAMPLES

STATELESS, STATEFUL = "stateless-4.2", "dedup-hdfs-4.0"


def build_storage(storage: Path, *versions: str, sample: str = STATELESS) -> Path:
    """Add checkpoints to a storage, such as `events/from_a/0` of the schema `default`; an ending `=` has no file."""
    for version in versions:
        folder = storage / "_checkpoints" / "spark_catalog" / "default" / version.removesuffix("=")
        if version.endswith("="):
            folder.mkdir(parents=True)
        else:
            shutil.copytree(SAMPLES / sample, folder)
    return storage


def flow_of(storage: Path, flow: str) -> Path:
    """Return the folder of a flow of the schema `default`."""
    return storage / "_checkpoints" / "spark_catalog" / "default" / flow
