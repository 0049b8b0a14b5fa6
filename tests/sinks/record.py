"""Record what a sink drops, as tests/oracle does: `python -m tests.sinks.record --spark 4.2=/path/to/python`.

The sink is one of files and, where there is a Delta for that Spark, a Delta table.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
ANSWERS = Path(__file__).with_name("answers.json")
DELTA = {
    "3.5": "io.delta:delta-spark_2.12:3.3.3",
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}
"""The package that brings Delta to a Spark version; there is none for 4.3 yet."""


def read() -> dict[str, Any]:
    """The answers by minor version."""
    found: dict[str, Any] = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    return found


def record(minor: str, python: str) -> None:
    """Ask one Spark version, and keep its answers."""
    answers = {"files": ask(minor, python)}
    if minor in DELTA:
        answers["delta"] = ask(minor, python, DELTA[minor])
    ANSWERS.write_text(json.dumps(dict(sorted({**read(), minor: answers}.items()))) + "\n")


def ask(minor: str, python: str, *delta: str) -> dict[str, Any]:
    """The version of Spark, and the rows that each case lost or doubled."""
    with TemporaryDirectory(prefix="ckpt-sinks-") as folder:
        command = [python, "-m", "tests.sinks.dropping", folder, *delta]
        environment = os.environ | {"PYSPARK_PYTHON": python}
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=900)
    if ran.returncode:
        raise SystemExit(ran.stderr[-3000:])
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    if not answer["spark"].startswith(f"{minor}."):
        raise SystemExit(f"{python} has Spark {answer['spark']}, not {minor}")
    return answer


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="MINOR=PYTHON")
    for pair in parser.parse_args().spark:
        minor, _, python = pair.partition("=")
        record(minor, python)


if __name__ == "__main__":
    main()
