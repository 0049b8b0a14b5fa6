"""Record what Spark does after a rewind or a skip.

`python -m tests.changes.oracle.record --spark 4.2=/path/python ...`.

To be run with the Python in which ckpt is installed. Histories that are recorded already are left out; `--fresh` tells
them again. One version takes about half an hour on two cores.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import os
import tempfile
from pathlib import Path

from tests.changes.oracle.cases import HISTORIES, Case, History, cases
from tests.changes.oracle.plans_followed import ask, tell
from tests.restart.oracle import answers as oracle
from tests.restart.oracle.record import Worker
from tests.support.spark import queries

ANSWERS = Path(__file__).parent / "answers"
MODULE = "tests.changes.oracle.worker"


def wanted(minor: str) -> list[Case]:
    """The cases whose query and store a Spark minor version has."""
    return [case for case in cases() if _has(minor, case.history)]


def _has(minor: str, history: History) -> bool:
    if history.store == "format2" and minor < "4.2":
        return False
    if history.query == "dedup-aggregation" and minor == "3.5":
        return False  # no row comes out of it, and 3.5 has no reader of state: an answer would show nothing
    return minor >= queries.QUERIES[history.query].since


def record(minor: str, python: str, pattern: str, log: Path, *, fresh: bool) -> None:
    """Record what is not recorded yet for one Spark version, history by history."""
    document = oracle.read(minor, ANSWERS)
    known = document["answers"]
    for name in known.keys() - {case.name for case in wanted(minor)}:
        del known[name]
    todo = [one for one in wanted(minor) if fnmatch.fnmatch(one.name, pattern) and (fresh or one.name not in known)]
    with Worker(python, log, MODULE) as session, tempfile.TemporaryDirectory(prefix="ckpt-oracle-") as scratch:
        if not session.spark.startswith(minor + "."):
            raise SystemExit(f"{python} has Spark {session.spark}, not {minor}")
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        document |= {"spark": session.spark, "recorded": today, "script": None}
        for history in HISTORIES:
            of_this = [case for case in todo if case.history == history]
            if not of_this:
                continue
            folder = Path(scratch, history.name)
            folder.mkdir()
            tell(session, history, folder)
            for case in of_this:
                try:
                    answer = ask(session, case, folder)
                except AssertionError as error:
                    print(f"{session.spark} FAILS    {case.name}: {str(error)[:300]}", flush=True)
                    continue
                known[case.name] = answer
                equal = answer["expected"] == answer["found"]
                print(f"{session.spark} {'equal' if equal else 'DIFFERS':8} {case.name}", flush=True)
                oracle.write(minor, document, ANSWERS)


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="MINOR=PYTHON")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="<history>/<way>-<batch>, with * and ?")
    parser.add_argument("--fresh", action="store_true", help="record again what is recorded already")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where the worker's messages go")
    options = parser.parse_args()
    for pair in options.spark:
        minor, _, python = pair.partition("=")
        record(minor, python, options.only, options.log, fresh=options.fresh)


if __name__ == "__main__":
    main()
