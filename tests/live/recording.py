"""Asks a worker for the cases that are not recorded yet, and keeps each answer at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.restart.oracle.record import Worker


def record(
    recorded: Path,
    minor: str,
    python: str,
    module: str,
    settings: Mapping[str, str],
    cases: Iterable[Any],
    answer: Callable[[Worker, Any, Path], dict[str, Any]],
    **about: str,
) -> None:
    """Record for one Spark version, whose `python` runs the worker `module`; `about` stands beside the answers."""
    found = json.loads(recorded.read_text()) if recorded.exists() else {}
    version: dict[str, Any] = found.setdefault(minor, {"spark": "", **about, "answers": {}})
    todo = [case for case in cases if case.name not in version["answers"]]
    with TemporaryDirectory() as scratch, Worker(python, Path(os.devnull), module, settings) as session:
        if not session.spark.startswith(f"{minor}."):
            raise SystemExit(f"{python} has Spark {session.spark}, not {minor}")
        version["spark"] = session.spark
        for number, case in enumerate(todo):
            folder = Path(scratch, str(number))
            version["answers"][case.name] = answer(session, case, folder)
            recorded.write_text(json.dumps(found, sort_keys=True).replace('{"now"', '\n{"now"') + "\n")
