"""Samples as they would be if short runs had followed one another: logs are purged, and state is not cleaned up."""

import os
import shutil
from pathlib import Path

from ckpt.formats.names import sort_batch_names
from tests.support.places import SAMPLE_NAMES, SAMPLES

STATEFUL = [name for name in SAMPLE_NAMES if (SAMPLES / name / "state").is_dir() and not name.startswith("damaged-")]


def aged(sample: str, to: Path, keep: int) -> Path:
    """A copy of a sample with the logs of its newest ``keep`` batches only."""
    shutil.copytree(SAMPLES / sample, to)
    return purge(to, keep)


def purge(to: Path, keep: int) -> Path:
    """Leave the logs of the newest ``keep`` batches, as Spark does after each batch."""
    for log in ("offsets", "commits"):
        ids = sort_batch_names(os.listdir(to / log)).ids
        for batch in ids[:-keep]:
            for name in (f"{log}/{batch}", f"{log}/.{batch}.crc"):
                (to / name).unlink(missing_ok=True)
    return to


def state_files(top: Path) -> set[str]:
    """The files of stores that are there, without hidden ones."""
    return {str(file.relative_to(top)) for file in (top / "state").rglob("[!.]*") if file.is_file()}
