"""What Spark does after a rewind or a skip: the suite `changes` of `python -m tests.record`; half an hour a version."""

from __future__ import annotations

from pathlib import Path

from tests.changes.oracle.cases import Case, History, cases
from tests.changes.oracle.plans_followed import ask, tell
from tests.record.answers import Document, Folder
from tests.record.suite import Cases, dated
from tests.record.worker import Installed, Session
from tests.support.spark import queries


class Followed(Cases[Case]):
    """Plans made from histories; a history is told before the first of its plans."""

    answers = Folder(Path(__file__).parent / "answers", compact=True)
    role = "changes"
    partly = True  # most plans differ in the batch alone

    def cases(self, minor: str) -> list[Case]:
        return [case for case in cases() if _has(minor, case.history)]

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        history = folder.with_name(case.history.name)
        if not history.exists():
            history.mkdir()
            tell(session, case.history, history)
        return ask(session, case, history)

    def head(self, spark: Installed) -> Document:
        return dated(spark)


def _has(minor: str, history: History) -> bool:
    if history.store == "format2" and minor < "4.2":
        return False
    if history.query == "dedup-aggregation" and minor == "3.5":
        return False  # no row comes out of it, and 3.5 has no reader of state: an answer would show nothing
    return minor >= queries.QUERIES[history.query].since


SUITE = Followed()
