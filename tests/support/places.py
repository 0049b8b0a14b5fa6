"""Where things lie, spelled once."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark import made, samples

ROOT = Path(__file__).parents[2]
SAMPLES = made.complete()
"""All samples: those in the repository, and the damaged ones that are made from them."""
SAMPLE_NAMES = sorted(folder.name for folder in SAMPLES.iterdir())
EACH_SAMPLE = [
    pytest.param(name, marks=pytest.mark.slow if place % 2 or name.startswith("damaged-") else ())
    for place, name in enumerate(SAMPLE_NAMES)
]
"""All samples as parameters; `make quick` takes half of the undamaged ones."""


def some_quick(names: Iterable[Any], each: int) -> list[Any]:
    """Parameters, of which each third one, or so, is for each edit; the others are slow."""
    return [pytest.param(name, marks=() if place % each == 0 else pytest.mark.slow) for place, name in enumerate(names)]


HERE = SAMPLES.parent
"""The folder in which tests run ckpt, so that `sample_checkpoints/...` is any sample."""
ANSWERS = ROOT / "tests" / "inspection" / "golden" / "inspect"

GOLDENS = samples.GOLDENS


def golden_checkpoints() -> list[Any]:
    """Each checkpoint among them, relative to ``GOLDENS``, as parameters of a test."""
    return _or_skipped(
        str(file.parent.relative_to(GOLDENS))
        for file in sorted(GOLDENS.rglob("metadata"))
        if (file.parent / "offsets").is_dir()
    )


def golden_folders() -> list[Any]:
    """Each folder of theirs, checkpoint or not, as parameters of a test."""
    return _or_skipped(folder.name for folder in sorted(GOLDENS.glob("*/")))


def _or_skipped(names: Any) -> list[Any]:
    absent = pytest.mark.skip(reason="there is no ../shared/golden with the checkpoints of Spark's own tests")
    return list(names) or [pytest.param("", marks=absent, id="absent")]
