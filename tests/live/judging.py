"""A look at a checkpoint with what its source told, and a checkpoint that is written for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ckpt import Inspection, Spark, open_checkpoint
from ckpt.inspection.inspection import inspect
from ckpt.live.records import LiveSource
from tests.support.files import write_files
from tests.support.places import SAMPLES


def inspected(checkpoint: Path, now: Any, version: str) -> Inspection:
    """What is said of synchronous and other starts with a version, when the source has told what it has now."""
    return inspect(open_checkpoint(str(checkpoint)), [Spark(version)], live=[LiveSource(0, now)])


def checkpoint_of(folder: Path, ends: list[Any], *, committed: bool) -> Path:
    """A checkpoint with these offsets, as Spark writes it."""
    sample = SAMPLES / "delta-4.2"
    head = (sample / "offsets" / "0").read_text().splitlines()[1]
    files = {"metadata": (sample / "metadata").read_text()}
    for batch, end in enumerate(ends):
        files[f"offsets/{batch}"] = f"v1\n{head}\n{json.dumps(end)}"
        if committed or batch < len(ends) - 1:
            files[f"commits/{batch}"] = (sample / "commits" / "0").read_text()
    return write_files(folder, files)
