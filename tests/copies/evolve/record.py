"""Changed queries on checkpoints that `ckpt evolve` made for them: the suite `evolve` of `python -m tests.record`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import ckpt
from tests.copies.evolve.cases import CASES, Case
from tests.record.answers import Document, Folder
from tests.record.suite import Cases
from tests.record.worker import Installed, Session
from tests.support.services.kafka import connector_jars, kafka_broker
from tests.support.spark import topics


def ask(session: Session, case: Case, minor: str, folder: Path) -> Document:
    """Make the old checkpoint, evolve it, and continue with the changed query."""
    old, new = folder / "old", folder / "new"
    folder.mkdir(parents=True)
    job = {"base": case.base.job, "root": str(folder.parent), "conf": {}}
    made = session.ask({"do": "make", "checkpoint": str(old), **job})
    query = case.query(minor, made["inputs"], made["topics"])
    options = {"map_source": case.map_source, "start": dict(case.start), "accept_from_now_on": True}
    to = None if case.in_place else str(new)
    plan, receipt = ckpt.evolve(query, str(old), to, **options, apply=case.in_place, grace_s=0)
    if plan.refused is not None:
        return {"refused": plan.refused.replace(str(folder), "FOLDER")}
    assert receipt.problem is None, receipt.problem
    assert plan.written or receipt.applied or not plan.steps
    run = {"do": "continue", "checkpoint": str(old), "evolved": str(old if case.in_place else new), "conf": {}}
    run |= {"words": case.words, "runs": case.runs, "begins": dict(case.begins), "options": case.options}
    return {"verdict": plan.verdict, "changes": [source.change for source in plan.sources], **session.ask(run)}


class Evolved(Cases[Case]):
    """Changed queries. Those that need a broker have a session of their own."""

    answers = Folder(Path(__file__).with_name("recorded"))
    worker = "tests.copies.evolve.worker"
    _minor = ""

    def cases(self, minor: str) -> Iterator[Case]:
        return (case for case in CASES if case.since <= minor and (not case.needs or minor == "4.2"))

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        return ask(session, case, self._minor, folder)

    def session_of(self, case: Case) -> Hashable:
        return case.needs

    @contextmanager
    def settings(self, spark: Installed, case: Case) -> Iterator[dict[str, str]]:
        self._minor = spark.minor
        if not case.needs:
            yield {}
            return
        with TemporaryDirectory(prefix="ckpt-broker-") as folder, kafka_broker(Path(folder)) as broker:
            yield {topics.JARS: ",".join(map(str, connector_jars(spark.minor))), topics.BROKER: broker}


SUITE = Evolved()
