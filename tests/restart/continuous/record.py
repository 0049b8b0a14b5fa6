"""Every case of `cases.py`, with a real Spark and a real broker: the suite `continuous` of `python -m tests.record`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.record.answers import Document, Folder
from tests.record.suite import Cases
from tests.record.worker import Installed, Session
from tests.restart.continuous.cases import CASES
from tests.restart.oracle import answers
from tests.restart.oracle.cases import Case
from tests.support.services.kafka import connector_jars, kafka_broker
from tests.support.spark import topics

ANSWERS = Folder(Path(__file__).parent / "answers", compact=True)


class Continuous(Cases[Case]):
    """Starts with a continuous trigger."""

    answers = ANSWERS
    worker = "tests.restart.continuous.worker"
    hanging = {"outcome": "timeout"}  # noqa: RUF012

    def cases(self, minor: str) -> Iterator[Case]:
        yield from CASES

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        return session.ask({"case": case.name})

    def fingerprint(self, case: Case) -> str:
        return answers.fingerprint(case)

    @contextmanager
    def settings(self, spark: Installed, case: Case) -> Iterator[dict[str, str]]:
        with TemporaryDirectory(prefix="ckpt-broker-") as folder, kafka_broker(Path(folder)) as broker:
            yield {topics.JARS: ",".join(map(str, connector_jars(spark.minor))), topics.BROKER: broker}


SUITE = Continuous()
