"""The recorded answers: one file per Spark minor version, one line per case and mode."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.record.answers import Folder
from tests.restart.oracle import cases

ANSWERS = Folder(Path(__file__).parent / "answers", compact=True)
VERSIONS = ANSWERS.minors
read = cache(ANSWERS.read)


def fingerprint(case: cases.Case) -> str:
    """What an answer is an answer to: the sample's bytes (a borrowed one's name), damage, query, how it is started."""
    told = [
        case.sample if case.borrowed else _sample(case.sample),
        list(case.mutations),
        case.query,
        case.settings,
        case.batches,
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


def script() -> str:
    """Fingerprint of the code that makes answers."""
    here = Path(__file__).parent
    sources = (here / "observe.py", here / "starts.py", here.parents[1] / "support" / "spark" / "mutations.py")
    return digest(source.read_bytes() for source in sources)


@cache
def _sample(name: str) -> str:
    root = cases.SAMPLES / name
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return digest(part for path in files for part in (str(path.relative_to(root)).encode(), path.read_bytes()))


def digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:12]
