"""What ``ckpt inspect`` answers on each sample: ``inspect/<sample>.json``, as it is, and ``codes.py``, as it must be.

    python -m tests.inspection.golden [SAMPLE ...]

writes the answers again; look at what changed before you keep it. ``codes.py`` is
written by hand, from what was done to the sample, and never from an answer.
"""

import json
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from ckpt.versions import Spark
from tests.restart.oracle.answers import VERSIONS
from tests.support.cli import invoke
from tests.support.places import ANSWERS, SAMPLE_NAMES


def answer(sample: str) -> dict[str, Any]:
    """What ckpt says of a sample now, without ckpt's own version; to be called in `tests.support.places.HERE`."""
    words = ["inspect", f"sample_checkpoints/{sample}", "--output", "json"]
    known = {spark: spark.rules for spark in map(Spark, VERSIONS)}  # so that a new version changes no answer
    with (
        patch("ckpt.inspection.inspection.FORECAST", tuple(known)),
        patch("ckpt.restart.newer.NEWEST", max(known, key=lambda spark: spark.rank)),
    ):
        result = invoke(*words)
    document: dict[str, Any] = json.loads(result.stdout)
    return {"exit_code": result.exit_code, **{key: value for key, value in document.items() if key != "ckpt"}}


def recorded(sample: str) -> Any:
    """What it said when the answers were last written."""
    return json.loads((ANSWERS / f"{sample}.json").read_text(encoding="utf-8"))


def record(samples: Sequence[str] = ()) -> None:
    """Write the answers again: for some samples or for all, and then none for samples that are gone."""
    ANSWERS.mkdir(exist_ok=True)
    if not samples:
        for old in ANSWERS.glob("*.json"):
            old.unlink()
    for sample in samples or SAMPLE_NAMES:
        text = json.dumps(answer(sample), indent=1, ensure_ascii=False)
        (ANSWERS / f"{sample}.json").write_text(text + "\n", encoding="utf-8")
