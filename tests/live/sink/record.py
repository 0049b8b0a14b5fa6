"""Record what sinks that remember batches do.

`python -m tests.live.sink.record --spark 4.2=/path`.

`dropping` asks which rows are lost, by the sink of files and, where there is a Delta for that Spark, a Delta table.
`stateful` asks how the state of a batch that was taken back is computed again, with the sink of files.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[3]
ANSWERS = {"dropping": Path(__file__).with_name("answers.json"), "stateful": Path(__file__).with_name("stateful.json")}
DELTA = {
    "3.5": "io.delta:delta-spark_2.12:3.3.3",
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}
"""The package that brings Delta to a Spark version; there is none for 4.3 yet."""


def read(name: str = "dropping") -> dict[str, Any]:
    """The answers to one question, by minor version and sink."""
    found: dict[str, Any] = json.loads(ANSWERS[name].read_text()) if ANSWERS[name].exists() else {}
    return found


def record(name: str, minor: str, python: str) -> None:
    """Ask one Spark version, and keep its answers."""
    answers = {"files": ask(name, minor, python)}
    if minor in DELTA and name == "dropping":
        answers["delta"] = ask(name, minor, python, DELTA[minor])
    ANSWERS[name].write_text(json.dumps(dict(sorted({**read(name), minor: answers}.items()))) + "\n")


def ask(name: str, minor: str, python: str, *delta: str) -> dict[str, Any]:
    """The version of Spark, and what the module of that name prints."""
    with TemporaryDirectory(prefix="ckpt-sinks-") as folder:
        command = [python, "-m", f"tests.live.sink.{name}", folder, *delta]
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
    parser.add_argument("--only", choices=ANSWERS, help="one question only")
    options = parser.parse_args()
    for pair in options.spark:
        minor, _, python = pair.partition("=")
        for name in ANSWERS if options.only is None else (options.only,):
            record(name, minor, python)


if __name__ == "__main__":
    main()
