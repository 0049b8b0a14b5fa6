"""Record what a file sink drops, as tests/oracle does: `python -m tests.sinks.record --spark 4.2=/path/to/python`."""

import argparse
import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
ANSWERS = Path(__file__).with_name("answers.json")


def read() -> dict[str, Any]:
    """The answers by minor version."""
    found: dict[str, Any] = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    return found


def record(minor: str, python: str) -> None:
    """Ask one Spark version, and keep its answer."""
    with TemporaryDirectory(prefix="ckpt-sinks-") as folder:
        command = [python, "-m", "tests.sinks.dropping", folder]
        environment = os.environ | {"PYSPARK_PYTHON": python}
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=900)
    if ran.returncode:
        raise SystemExit(ran.stderr[-3000:])
    answer = json.loads(ran.stdout.splitlines()[-1])
    if not answer["spark"].startswith(f"{minor}."):
        raise SystemExit(f"{python} has Spark {answer['spark']}, not {minor}")
    ANSWERS.write_text(json.dumps(dict(sorted({**read(), minor: answer}.items())), indent=1) + "\n")


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="MINOR=PYTHON")
    for pair in parser.parse_args().spark:
        minor, _, python = pair.partition("=")
        record(minor, python)


if __name__ == "__main__":
    main()
