"""The suite `restart-releases`: a sample of the starts, with other releases than the one that was asked everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.record.answers import Folder
from tests.record.suite import Suite
from tests.record.worker import Installed
from tests.restart.oracle.record import Start, Starts

EACH, ALWAYS = 5, "directory-"  # a folder in place of a log file: where 3.5.0 differs
RELEASES = ("3.5.0", "4.0.0", "4.1.0", "4.2.1")
"""The first release of each version, or the last one, whichever of the two `answers/` does not have.

The registry has one of 4.3.
"""

ANSWERS = Folder(Path(__file__).parent / "releases", compact=True)


class Sample(Starts):
    """Each fifth start, and those with a folder in a log, that needs no broker and no JVM of its own."""

    answers = ANSWERS

    def cases(self, release: str) -> Iterator[Start]:
        every = [start for start in super().cases(release[:3]) if not start.case.needs and not start.case.alone]
        yield from (start for number, start in enumerate(every) if number % EACH == 0 or ALWAYS in start.name)


SAMPLE = Sample()


class Releases(Suite):
    """The sample on each release."""

    answers = ANSWERS

    def wanted(self, minor: str) -> list[str]:
        return [f"{case.name}@{release}" for release in _of(minor) for case in SAMPLE.cases(release)]

    def recorded(self, minor: str) -> list[str]:
        return [f"{name}@{release}" for release in _of(minor) for name in SAMPLE.recorded(release)]

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        if spark.version in RELEASES:
            SAMPLE.record(Installed(spark.version, spark.python, spark.log), only, fresh=fresh)


def _of(minor: str) -> list[str]:
    return [release for release in RELEASES if release.startswith(f"{minor}.")]


SUITE = Releases()
