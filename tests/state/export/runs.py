"""Many runs of ``ckpt export-state``, or of another command that the words name, in one process with at most one JVM.

Run as a module it takes ``{"session": settings or null, "runs": [words, ...]}`` on standard input.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from tests.conftest import Run
from tests.support.places import ROOT


@dataclass(frozen=True)
class Runs:
    """How the runs ended, and whether pyspark was so much as imported."""

    all: list[Run]
    imported: bool


def run_all(runs: Sequence[Sequence[str]], session: Mapping[str, str] | None = None, timeout: float = 300) -> Runs:
    """Run ckpt with each of some words in a process of its own; ``session`` are settings of one for all."""
    asked = json.dumps({"session": session, "runs": runs})
    done = subprocess.run(
        [sys.executable, "-m", __name__], input=asked, capture_output=True, text=True, cwd=ROOT, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    return Runs([Run(*one) for one in told["runs"]], told["imported"])


def _main(asked: dict[str, Any]) -> dict[str, Any]:
    from importlib.metadata import entry_points

    from typer.testing import CliRunner

    (script,) = entry_points(group="console_scripts", name="ckpt")
    app, told = script.load(), []
    with _session(asked["session"]):
        for words in asked["runs"]:
            command = [] if words[0] in ("import-state", "rewrite", "state") else ["export-state"]
            result = CliRunner().invoke(app, [*command, *words, "--engine", "spark"], catch_exceptions=False)
            told.append([result.exit_code, result.stdout, result.stderr])
    imported = {name.partition(".")[0] for name in sys.modules}
    return {"runs": told, "imported": not imported.isdisjoint({"pyspark", "py4j"})}


def _session(settings: dict[str, str] | None) -> Any:
    if settings is None:
        return nullcontext()
    from ckpt.spark.installed import Session
    from ckpt.spark.session import open_session

    return open_session(Session(master="local[2]", conf=settings))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_main(json.load(sys.stdin))) + "\n")
