"""What sinks that remember batches do: the suites `sink-batches` and `sink-state` of `python -m tests.record`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.record.answers import Document, OneFile
from tests.record.packages import DELTA, PACKAGE
from tests.record.suite import Whole
from tests.record.worker import Installed


class Sinks(Whole):
    """What a role answers of the sink of files and, if it knows it and there is a Delta for that Spark, of Delta."""

    def __init__(self, role: str, file: str, *, knows_delta: bool) -> None:
        self._role, self._knows_delta = role, knows_delta
        self.answers = OneFile(Path(__file__).with_name(file), json.dumps)

    def wanted(self, minor: str) -> list[str]:
        return ["files", "delta"] if self._knows_delta and minor in DELTA else ["files"]

    def recorded(self, minor: str) -> Document:
        answers: Document = self.answers.read_all().get(minor, {})
        return answers

    def ask_all(self, spark: Installed) -> None:
        answers = {}
        for sink in self.wanted(spark.minor):
            settings = {PACKAGE: DELTA[spark.minor]} if sink == "delta" else {}
            answers[sink] = spark.ask(self._role, {"sink": sink.replace("files", "parquet")}, settings)
        self.answers.write(spark.minor, answers)


DROPPED = Sinks("sink-batches", "answers.json", knows_delta=True)
STATEFUL = Sinks("sink-state", "stateful.json", knows_delta=False)
