"""What a suite of recorded answers is, and how it is recorded."""

from __future__ import annotations

import datetime
import fnmatch
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, Protocol, TypeVar

from tests.record.answers import Document, Folder, OneFile
from tests.record.worker import Installed, Session, Worker
from tests.support.services.kafka import connector_jars, kafka_broker
from tests.support.spark import topics

CASES_PER_JVM = 400
SAVE_EVERY = 20


class Named(Protocol):
    """A case has a name, under which its answer is kept."""

    @property
    def name(self) -> str:
        """Unique in its suite."""


CaseT = TypeVar("CaseT", bound=Named)


class Suite(ABC):
    """Questions to every Spark version, and where the answers are."""

    partly = False  # some cases, or versions, are enough

    @abstractmethod
    def wanted(self, minor: str) -> Iterable[str]:
        """Return the names of the cases that a version can be asked."""

    @abstractmethod
    def recorded(self, minor: str) -> Iterable[str]:
        """Return the names of the cases that a version has answered."""

    @abstractmethod
    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        """Ask a version the cases that match a pattern and, unless ``fresh``, have no answer yet."""

    def missing(self, minor: str, only: str, *, fresh: bool) -> list[str]:
        """Return the names of the cases to ask."""
        recorded = {*self.recorded(minor)} if not fresh else {}
        return [name for name in self.wanted(minor) if fnmatch.fnmatch(name, only) and name not in recorded]


class Whole(Suite):
    """A suite whose cases are asked together."""

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        """Ask everything, unless it is recorded."""
        if missing := self.missing(spark.minor, only, fresh=fresh):
            say(f"{spark.version} {len(missing)} cases together")
            self.ask_all(spark)

    @abstractmethod
    def ask_all(self, spark: Installed) -> None:
        """Ask everything, and keep it."""


class Cases(Suite, Generic[CaseT]):
    """A suite whose cases are asked one after the other; an interrupted run continues where it stopped."""

    answers: Folder | OneFile
    role: str  # of `process.py`: what the other Python is asked
    hanging: Document | None = None  # the answer where none came

    @abstractmethod
    def cases(self, minor: str) -> Iterable[CaseT]:
        """Return the cases that a version can be asked."""

    @abstractmethod
    def ask(self, session: Session, case: CaseT, folder: Path) -> Document:
        """Ask one case. ``folder`` does not exist; the one above is shared by the cases of a session."""

    def fingerprint(self, case: CaseT) -> str | None:
        """Return what an answer is an answer to; None: its name says it."""

    def session_of(self, case: CaseT) -> Hashable:
        """Return what cases share that share a session; None: it gets its own."""
        return ""

    def head(self, spark: Installed) -> Document:
        """Return what stands above the answers."""
        return {"spark": spark.version}

    def settings(self, spark: Installed, case: CaseT) -> AbstractContextManager[dict[str, str]]:
        """Provide the services that a session for this case needs, as its environment."""
        return nullcontext({})

    def wanted(self, minor: str) -> Iterable[str]:
        """Return the names of the cases that a version can be asked."""
        return [case.name for case in self.cases(minor)]

    def recorded(self, minor: str) -> Document:
        """Return what a version answered, by the name of the case."""
        answers: Document = self.answers.read(minor)[self.answers.key]
        return answers

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        """Ask the cases that match a pattern and, unless ``fresh``, have no answer to what they are now."""
        document = self.answers.read(spark.minor)
        known: Document = document[self.answers.key]
        cases = {case.name: case for case in self.cases(spark.minor)}
        removed = known.keys() - cases.keys()
        for name in removed:
            del known[name]
        todo = [
            case
            for name, case in cases.items()
            if fnmatch.fnmatch(name, only) and (fresh or not self._answers(known.get(name), case))
        ]
        if not todo and not removed:
            return
        try:
            while todo:
                self._ask_session(spark, todo, document)
        finally:
            self.answers.write(spark.minor, document)

    def _answers(self, answer: Document | None, case: CaseT) -> bool:
        if answer is None or (self.hanging and answer.items() >= self.hanging.items()):
            return False
        return answer.get("of") == self.fingerprint(case)

    def _ask_session(self, spark: Installed, todo: list[CaseT], document: Document) -> None:
        """Ask what one session is asked, taking it off the list, until the session hangs."""
        group = self.session_of(todo[0])
        share = (
            [case for case in todo if self.session_of(case) == group][:CASES_PER_JVM] if group is not None else todo[:1]
        )
        document |= self.head(spark)
        with (
            self.settings(spark, share[0]) as settings,
            Worker(spark.python, spark.log, self.role, settings) as session,
            TemporaryDirectory(prefix="ckpt-record-") as scratch,
        ):
            for number, case in enumerate(share):
                todo.remove(case)
                answer, hangs = self.hanging, False
                try:
                    answer = self.ask(session, case, Path(scratch, str(number)))
                except TimeoutError:
                    hangs = True
                except AssertionError as error:
                    answer = None
                    say(f"{spark.version} {case.name} FAILS: {str(error)[:300]}")
                if answer is not None:
                    of = self.fingerprint(case)
                    document[self.answers.key][case.name] = {"of": of, **answer} if of else answer
                say(f"{spark.version} {len(todo):4} left  {case.name}{' HANGS' * hangs}")
                if hangs:
                    return
                if len(todo) % SAVE_EVERY == 0:
                    self.answers.write(spark.minor, document)


@contextmanager
def a_broker(minor: str, *, needed: bool = True) -> Iterator[dict[str, str]]:
    """Provide a broker of Kafka, if one is needed, as the environment of a session."""
    if not needed:
        yield {}
        return
    with TemporaryDirectory(prefix="ckpt-broker-") as folder, kafka_broker(Path(folder)) as broker:
        yield {topics.JARS: ",".join(map(str, connector_jars(minor))), topics.BROKER: broker}


def dated(spark: Installed, script: str | None = None) -> Document:
    """Return a head with the date, and the fingerprint of the code that makes the answers."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return {"spark": spark.version, "recorded": today, "script": script}


def say(line: str) -> None:
    """Print a line of progress at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
