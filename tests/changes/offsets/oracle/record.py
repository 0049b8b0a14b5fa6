"""What Spark does on set offsets and on copies: the suite `offsets` of `python -m tests.record`."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from tests.changes.offsets.oracle.cases import Question, questions
from tests.record.answers import Document, Folder
from tests.record.suite import Cases, dated
from tests.record.worker import Installed, Session


class Offsets(Cases[Question]):
    """Samples with other offsets. State of format 2 wants a JVM in which no other state was loaded before."""

    answers = Folder(Path(__file__).parent / "answers", compact=True)
    role = "continued"

    def cases(self, minor: str) -> list[Question]:
        """State of format 2 of a later Spark is nothing for 4.0, as `tests/restart/oracle` has it."""
        fits = [question for question in questions() if question.case.modes(minor)]
        return [question for question in fits if not (question.case.alone and minor == "4.0")]

    def ask(self, session: Session, case: Question, folder: Path) -> Document:
        """Make the checkpoint, and have Spark start the query on it: one batch, then two more."""
        case.made(folder)
        job = {"folder": str(folder), "query": case.case.query, "store": case.case.settings}
        return session.ask(job | {"async": False})

    def fingerprint(self, case: Question) -> str:
        return case.of

    def session_of(self, case: Question) -> Hashable:
        return case.case.alone

    def head(self, spark: Installed) -> Document:
        return dated(spark)


SUITE = Offsets()
