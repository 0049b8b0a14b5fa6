"""Record what Spark does after a repair.

`python -m tests.changes.async_gap.oracle.record --spark 4.2=/path/to/python ...`.

To be run with the Python in which ckpt is installed. Answers to the same damage and the same repaired bytes are
kept, so an interrupted run goes on where it stopped; `--fresh` records again.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckpt.changes.fixes.repair_async import Strategy
from tests.changes.async_gap.oracle import cases, repairing
from tests.changes.async_gap.oracle import worker as repaired_worker
from tests.restart.oracle import answers as oracle
from tests.restart.oracle import observe, worker
from tests.restart.oracle.cases import Case
from tests.restart.oracle.record import Worker

if TYPE_CHECKING:
    from tests.support.spark.live import Here

ANSWERS = Path(__file__).parent / "answers"
MODULE = "tests.changes.async_gap.oracle.worker"
SAVE_EVERY = 20


@dataclass(frozen=True)
class Question:
    """A case repaired in one way."""

    case: Case
    strategy: Strategy
    of: str  # fingerprint of what is asked

    @property
    def name(self) -> str:
        """Under which the answer is kept."""
        return f"{self.case.name}/{self.strategy}"


@cache
def questions() -> tuple[Question, ...]:
    """Every case with every strategy that has a plan for it."""
    return tuple(_questions())


def _questions() -> Iterator[Question]:
    for case in cases.CASES:
        with tempfile.TemporaryDirectory() as scratch:
            checkpoint = repairing.damaged(case, Path(scratch))
            for strategy in repairing.STRATEGIES:
                plan = repairing.planned(checkpoint, strategy)
                if plan.steps:
                    yield Question(case, strategy, repairing.fingerprint(case, plan))


def for_version(minor: str) -> tuple[Question, ...]:
    """Those whose query a Spark minor version can run."""
    return tuple(one for one in questions() if one.case.modes(minor))


def ask(session: Worker | Here, question: Question, folder: Path) -> dict[str, Any]:
    """Repair a fresh copy at `folder / "ck"`, and have Spark start the query on it."""
    case = question.case
    checkpoint = repairing.damaged(case, folder)
    repairing.repaired(checkpoint, question.strategy)
    job = {"folder": str(folder), "query": case.query, "store": case.settings}
    return session.ask(job | {"async": case.name in cases.ASYNC_TOO and question.strategy is Strategy.FILL})


def script() -> str:
    """Fingerprint of the code that makes answers."""
    modules = (observe, worker, repaired_worker)
    return oracle.digest(Path(str(module.__file__)).read_bytes() for module in modules)


def record(minor: str, python: str, pattern: str, fresh: bool, log: Path) -> None:
    """Record what is not recorded yet for one Spark version, saving every few answers."""
    document = oracle.read(minor, ANSWERS)
    known = document["answers"]
    wanted = {one.name: one for one in for_version(minor)}
    for name in known.keys() - wanted.keys():
        del known[name]
    todo = [one for one in wanted.values() if fnmatch.fnmatch(one.name, pattern)]
    todo = [one for one in todo if fresh or known.get(one.name, {}).get("of") != one.of]
    try:
        for share in _shares(todo):
            _ask_all(minor, python, share, document, log)
    finally:
        oracle.write(minor, document, ANSWERS)


def _shares(todo: list[Question]) -> Iterator[list[Question]]:
    """What each worker is asked: those that want a JVM of their own, and all others together."""
    together = [one for one in todo if not one.case.alone]
    yield from [together] * bool(together)
    yield from ([one] for one in todo if one.case.alone)


def _ask_all(minor: str, python: str, todo: list[Question], document: dict[str, Any], log: Path) -> None:
    with Worker(python, log, MODULE) as session, tempfile.TemporaryDirectory(prefix="ckpt-oracle-") as scratch:
        if not session.spark.startswith(minor + "."):
            raise SystemExit(f"{python} has Spark {session.spark}, not {minor}")
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        document |= {"spark": session.spark, "recorded": today, "script": script()}
        for number, question in enumerate(todo):
            document["answers"][question.name] = {
                "of": question.of,
                **ask(session, question, Path(scratch, str(number))),
            }
            outcome = document["answers"][question.name]["first"]["outcome"]
            print(f"{session.spark} {len(todo) - number - 1:4} left  {outcome:15} {question.name}", flush=True)
            if number % SAVE_EVERY == 0:
                oracle.write(minor, document, ANSWERS)


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="MINOR=PYTHON")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="<case>/<strategy>, with * and ?")
    parser.add_argument("--fresh", action="store_true", help="record again what is recorded already")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where the workers' messages go")
    options = parser.parse_args()
    for pair in options.spark:
        minor, _, python = pair.partition("=")
        if minor not in oracle.VERSIONS or not python:
            parser.error(f"--spark wants MINOR=PYTHON with MINOR one of {', '.join(oracle.VERSIONS)}")
        record(minor, python, options.only, options.fresh, options.log)


if __name__ == "__main__":
    main()
