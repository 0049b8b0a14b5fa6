"""What each release does with the cases of `cases.py`: the suite `known-bugs`, recorded for releases, not for versions.

`python -m tests.record --spark 3.5=PYTHON known-bugs` asks the release that this Python has.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from ckpt.inspection.bugs import known_bugs
from tests.inspection.bugs.cases import CASES
from tests.record.answers import Document
from tests.record.suite import Suite, say
from tests.record.worker import Installed, Worker

FILE = Path(__file__).with_name("answers.json")


def read_answers() -> Document:
    """What each release answered, by bug."""
    document: Document = json.loads(FILE.read_text()) if FILE.exists() else {}
    return document


def list_releases() -> tuple[str, ...]:
    """The releases that are asked: all that the table names, of each case, those that did not show included."""
    return tuple(dict.fromkeys(release for bug in known_bugs() for parts in bug.ranges for release in parts))


class KnownBugs(Suite):
    """Each bug on the releases that the table names."""

    partly = True

    def wanted(self, minor: str) -> Iterable[str]:
        named = ((bug, release) for bug in CASES for release in list_releases())
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
                answers = read_answers()
                answers.setdefault(bug, {})[spark.version] = answer
                ordered = {name: dict(sorted(answers[name].items())) for name in sorted(answers)}
                lines = (
                    f"{json.dumps(name)}: {{\n"
                    + ",\n".join(f" {json.dumps(release)}: {json.dumps(told)}" for release, told in each.items())
                    + "}"
                    for name, each in ordered.items()
                )
                FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


SUITE = KnownBugs()
