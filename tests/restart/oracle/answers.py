"""The recorded answers: one file per Spark minor version, one line per case and mode."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.restart.oracle import cases

FOLDER = Path(__file__).parent / "answers"
VERSIONS = ("3.5", "4.0", "4.1", "4.2", "4.3")


def read(minor: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Return {"spark", "recorded", "script", "answers": {"<case>/<mode>": answer}}, empty if unrecorded."""
    path = folder / f"{minor}.json"
    if not path.is_file():
        return {"spark": None, "recorded": None, "script": None, "answers": {}}
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def write(minor: str, document: dict[str, Any], folder: Path = FOLDER) -> None:
    """Write a file of answers, sorted, one record a line."""
    head = {key: value for key, value in document.items() if key != "answers"}
    lines = (
        f"{json.dumps(name)}: {json.dumps(answer, sort_keys=True, ensure_ascii=False, separators=(',', ':'))}"
        for name, answer in sorted(document["answers"].items())
    )
    text = json.dumps(head, sort_keys=True)[:-1] + ', "answers": {\n' + ",\n".join(lines) + "\n}}\n"
    folder.mkdir(exist_ok=True)
    scratch = folder / f".{minor}.json.part"
    scratch.write_text(text)
    scratch.replace(folder / f"{minor}.json")


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
    sources = (here / "observe.py", here / "worker.py", here.parents[1] / "support" / "spark" / "mutations.py")
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
