"""The suite `known-bugs`: the rows or the error of each case of `cases.py`, recorded for releases, not for versions.

`python -m tests.record --spark 3.5=PYTHON known-bugs` asks the release that this Python has.
`python -m tests.inspection.bugs.record MINOR=PYTHON MINOR=LATER_PYTHON` continues the queries with a later release, and
`python -m tests.inspection.bugs.record MINOR=PYTHON` with the same one, in the way that avoids the bug.
"""

from __future__ import annotations

import fnmatch
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from ckpt.inspection.bugs import known_bugs, list_tried_releases
from tests.inspection.bugs.cases import CASES
from tests.record.answers import Document
from tests.record.suite import Suite, say
from tests.record.worker import Installed, Worker

FILE, CONTINUED_FILE, AVOIDED_FILE = (
    Path(__file__).with_name(f"{name}.json") for name in ("answers", "continued", "avoided")
)

Run = tuple[Installed, str]
"""A release, and which cases it runs: "", "continued" or "avoided"."""


def read_answers(file: Path = FILE) -> Document:
    """The recorded rows or error of each case, by bug and release."""
    document: Document = json.loads(file.read_text()) if file.exists() else {}
    return document


class KnownBugs(Suite):
    """Each bug on the releases that the table names."""

    partly = True

    def wanted(self, minor: str) -> Iterable[str]:
        named = ((bug, release) for bug in CASES for release in list_tried_releases())
        return [f"{bug}@{release}" for bug, release in named if release.startswith(f"{minor}.")]

    def recorded(self, minor: str) -> Iterable[str]:
        answers = read_answers()
        named = ((bug, release) for bug in answers for release in answers[bug])
        return [f"{bug}@{release}" for bug, release in named if release.startswith(f"{minor}.")]

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        known = set() if fresh else {*self.recorded(spark.minor)}
        there = (bug for bug in CASES if fnmatch.fnmatch(bug, only))
        asked = [bug for bug in there if f"{bug}@{spark.version}" not in known]
        if not asked:
            return
        with (
            TemporaryDirectory(prefix="ckpt-bugs-") as folder,
            Worker(spark.python, spark.log, "known-bugs") as session,
        ):
            for bug in asked:
                answer = session.ask({"bug": bug, "folder": f"{folder}/{bug}"})
                say(f"{spark.version} {bug} {json.dumps(answer)[:160]}")
                keep(FILE, spark.version, {bug: answer})


def keep(file: Path, name: str, told: Document) -> None:
    """Keep the answers of a release, by bug, in a file with a line for each bug and release."""
    answers = read_answers(file)
    for bug, answer in told.items():
        answers.setdefault(bug, {})[name] = answer
    ordered = {name: dict(sorted(answers[name].items())) for name in sorted(answers)}
    lines = (
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(release)}: {json.dumps(told)}" for release, told in each.items())
        + "}"
        for name, each in ordered.items()
    )
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def record_continued(before: Installed, later: Installed) -> None:
    """Run the cases of the bugs that one release has and the other has fixed: with the first, then with the other."""
    of_spark = [bug for bug in known_bugs() if not bug.connector]
    ranges = {bug.id: [(last, fixed) for _, last, fixed in bug.ranges] for bug in of_spark}
    chosen = [bug for bug, pairs in ranges.items() if (before.version, later.version) in pairs]
    _record_twice(CONTINUED_FILE, chosen, (before, ""), (later, "continued"), f"{before.version}, then {later.version}")


def record_avoided(spark: Installed) -> None:
    """Run the cases of the bugs whose last release this is, and do then what avoids each."""
    avoidable = [bug for bug in known_bugs() if bug.avoid and not bug.connector]
    chosen = [bug.id for bug in avoidable if spark.version in [last for _, last, _ in bug.ranges]]
    _record_twice(AVOIDED_FILE, chosen, (spark, ""), (spark, "avoided"), spark.version)


def _record_twice(file: Path, bugs: Iterable[str], first: Run, second: Run, name: str) -> None:
    """Run cases on one release and then, on their checkpoints, on the other; keep the second answers."""
    with TemporaryDirectory(prefix="ckpt-bugs-") as folder:
        for spark, how in (first, second):
            with Worker(spark.python, spark.log, "known-bugs") as session:
                told = {bug: session.ask({"bug": bug, "folder": f"{folder}/{bug}", "how": how}) for bug in bugs}
    keep(file, name, told)


SUITE = KnownBugs()

if __name__ == "__main__":
    pairs = (pair.partition("=") for pair in sys.argv[1:3])
    installed = [Installed(minor, python) for minor, _, python in pairs]
    record_continued(*installed) if len(installed) > 1 else record_avoided(*installed)
