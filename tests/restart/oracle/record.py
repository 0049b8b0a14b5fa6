"""Every case, started by a real Spark: the suite `restart` of `python -m tests.record`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.record.answers import Document
from tests.record.suite import Cases, a_broker, dated
from tests.record.worker import Installed, Session
from tests.restart.oracle import answers, cases


@dataclass(frozen=True)
class Start:
    """A case, started in one progress mode."""

    case: cases.Case
    mode: str

    @property
    def name(self) -> str:
        """Such as `metadata-garbage/sync`."""
        return f"{self.case.name}/{self.mode}"


class Starts(Cases[Start]):
    """Starts of damaged checkpoints. Those of one session need the same service, if any."""

    answers = answers.ANSWERS
    role = "restart"
    hanging = {"outcome": "timeout"}  # noqa: RUF012

    def cases(self, minor: str) -> Iterator[Start]:
        return (Start(case, mode) for case in cases.CASES for mode in case.modes(minor))

    def ask(self, session: Session, case: Start, folder: Path) -> Document:
        return session.ask({"case": case.case.name, "mode": case.mode})

    def fingerprint(self, case: Start) -> str:
        return answers.fingerprint(case.case)

    def session_of(self, case: Start) -> Hashable:
        return None if case.case.alone else case.case.needs

    def head(self, spark: Installed) -> Document:
        return dated(spark, answers.script())

    def settings(self, spark: Installed, case: Start) -> AbstractContextManager[dict[str, str]]:
        return a_broker(spark.minor, needed=bool(case.case.needs))


SUITE = Starts()
