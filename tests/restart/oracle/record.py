"""Every case, started by a real Spark: the suite `restart` of `python -m tests.record`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.record.answers import Document
from tests.record.suite import Cases, dated
from tests.record.worker import Installed, Session
from tests.restart.oracle import answers, cases
from tests.support.services.kafka import connector_jars, kafka_broker
from tests.support.spark import topics


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
    worker = "tests.restart.oracle.worker"
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

    @contextmanager
    def settings(self, spark: Installed, case: Start) -> Iterator[dict[str, str]]:
        if not case.case.needs:
            yield {}
            return
        with TemporaryDirectory(prefix="ckpt-broker-") as folder, kafka_broker(Path(folder)) as broker:
            yield {topics.JARS: ",".join(map(str, connector_jars(spark.minor))), topics.BROKER: broker}


SUITE = Starts()
