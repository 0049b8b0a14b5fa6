"""What Spark does after a repair of asynchronous progress: the suite `repair-async` of `python -m tests.record`."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ckpt.changes.fixes.repair_async import Strategy
from tests.changes.fixes.async_gap.oracle import cases, repairing
from tests.record.answers import Document, Folder
from tests.record.suite import Cases, dated
from tests.record.worker import Installed, Session
from tests.restart.oracle import answers as oracle, observe, starts
from tests.restart.oracle.cases import Case


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
    return tuple(question for case in cases.CASES for question in _ask_of(case))


def find_question(name: str) -> Question:
    """Find one of them, without a plan for every case."""
    asked = (question for case in cases.CASES if name.startswith(f"{case.name}/") for question in _ask_of(case))
    return next(question for question in asked if question.name == name)


def _ask_of(case: Case) -> Iterator[Question]:
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = repairing.damaged(case, Path(scratch))
        for strategy in repairing.STRATEGIES:
            plan = repairing.planned(checkpoint, strategy)
            if plan.steps:
                yield Question(case, strategy, repairing.fingerprint(case, plan))


class Repaired(Cases[Question]):
    """An answer belongs to a damage and to the bytes that the repair wrote."""

    answers = Folder(Path(__file__).parent / "answers", compact=True)
    role = "continued"

    def cases(self, minor: str) -> list[Question]:
        return [question for question in questions() if question.case.modes(minor)]

    def ask(self, session: Session, case: Question, folder: Path) -> Document:
        """Repair a fresh copy at `folder / "ck"`, and have Spark start the query on it."""
        damaged, strategy = case.case, case.strategy
        repairing.repaired(repairing.damaged(damaged, folder), strategy)
        job = {"folder": str(folder), "query": damaged.query, "store": damaged.settings}
        return session.ask(job | {"async": damaged.name in cases.ASYNC_TOO and strategy is Strategy.FILL})

    def fingerprint(self, case: Question) -> str:
        return case.of

    def session_of(self, case: Question) -> Hashable:
        return None if case.case.alone else ""

    def head(self, spark: Installed) -> Document:
        modules = (observe, starts)
        return dated(spark, oracle.digest(Path(str(module.__file__)).read_bytes() for module in modules))


SUITE = Repaired()
