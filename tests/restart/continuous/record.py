"""Every case of `cases.py`, with a real Spark and a real broker: the suite `continuous` of `python -m tests.record`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tests.record.answers import Document, Folder
from tests.record.suite import Cases, a_broker
from tests.record.worker import Installed, Session
from tests.restart.continuous.cases import CASES
from tests.restart.oracle import answers
from tests.restart.oracle.cases import Case

ANSWERS = Folder(Path(__file__).parent / "answers", compact=True)


class Continuous(Cases[Case]):
    answers = ANSWERS
    role = "continuous"
    hanging = {"outcome": "timeout"}  # noqa: RUF012

    def cases(self, minor: str) -> Iterator[Case]:
        yield from CASES

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        return session.ask({"case": case.name})

    def fingerprint(self, case: Case) -> str:
        return answers.fingerprint(case)

    def settings(self, spark: Installed, case: Case) -> AbstractContextManager[dict[str, str]]:
        return a_broker(spark.minor)


SUITE = Continuous()
