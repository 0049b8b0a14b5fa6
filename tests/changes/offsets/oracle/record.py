"""Record what Spark does on set offsets and on copies.

`python -m tests.changes.offsets.oracle.record --spark 4.2=PYTHON`.

To be run with the Python in which ckpt is installed. What is recorded already is kept.
"""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.changes.offsets.oracle.cases import Question, questions
from tests.restart.oracle import answers as oracle
from tests.restart.oracle.record import Worker

if TYPE_CHECKING:
    from tests.support.spark.live import Here

ANSWERS = Path(__file__).parent / "answers"


def for_version(minor: str) -> tuple[Question, ...]:
    """Those whose query a Spark minor version can run.

    State of format 2 of a later Spark is nothing for 4.0, as `tests/restart/oracle` has it.
    """
    return tuple(one for one in questions() if one.case.modes(minor) and not (one.case.alone and minor == "4.0"))


def ask(session: Worker | Here, question: Question, folder: Path) -> dict[str, Any]:
    """Make the checkpoint, and have Spark start the query on it: one batch, then two more."""
    question.made(folder)
    case = question.case
    return session.ask({"folder": str(folder), "query": case.query, "store": case.settings, "async": False})


def record(minor: str, python: str) -> None:
    """Record what is not recorded yet for one Spark version."""
    document = oracle.read(minor, ANSWERS)
    known: dict[str, Any] = document["answers"]
    todo = [one for one in for_version(minor) if known.get(one.name, {}).get("of") != one.of]
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    try:
        for group in ([one for one in todo if one.case.alone is alone] for alone in (False, True)):
            if group:
                document |= {"recorded": today, "script": None, "spark": _ask_all(minor, python, group, known)}
    finally:
        oracle.write(minor, document, ANSWERS)


def _ask_all(minor: str, python: str, todo: list[Question], known: dict[str, Any]) -> str:
    """Ask one JVM; the release that it is of. State of format 2 wants one in which no other state was loaded before."""
    with (
        Worker(python, Path(os.devnull), "tests.changes.async_gap.oracle.worker") as session,
        tempfile.TemporaryDirectory(prefix="ckpt-oracle-") as scratch,
    ):
        if not session.spark.startswith(minor + "."):
            raise SystemExit(f"{python} has Spark {session.spark}, not {minor}")
        for number, question in enumerate(todo):
            known[question.name] = {"of": question.of, **ask(session, question, Path(scratch, str(number)))}
            print(f"{session.spark} {known[question.name]['first']['outcome']:15} {question.name}", flush=True)
        return session.spark


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="MINOR=PYTHON")
    for pair in parser.parse_args().spark:
        minor, _, python = pair.partition("=")
        record(minor, python)


if __name__ == "__main__":
    main()
