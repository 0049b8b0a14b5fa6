"""What sinks that remember batches do: the suites `sink-batches` and `sink-state` of `python -m tests.record`."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.record.answers import Document, OneFile
from tests.record.packages import DELTA
from tests.record.suite import Whole
from tests.record.worker import Installed


class Sinks(Whole):
    """What a module prints of the sink of files and, if it knows it and there is a Delta for that Spark, of Delta."""

    def __init__(self, module: str, file: str, *, knows_delta: bool) -> None:
        self._module, self._knows_delta = module, knows_delta
        self.answers = OneFile(Path(__file__).with_name(file), json.dumps)

    def wanted(self, minor: str) -> list[str]:
        return ["files", "delta"] if self._knows_delta and minor in DELTA else ["files"]

    def recorded(self, minor: str) -> Document:
        answers: Document = self.answers.read_all().get(minor, {})
        return answers

    def ask_all(self, spark: Installed) -> None:
        answers = {}
        for sink in self.wanted(spark.minor):
            with TemporaryDirectory(prefix="ckpt-sinks-") as folder:
                package = [DELTA[spark.minor]] if sink == "delta" else []
                answers[sink] = spark.run(self._module, folder, *package)[-1]
        self.answers.write(spark.minor, answers)


DROPPED = Sinks("tests.live.sink.dropped_batches", "answers.json", knows_delta=True)
STATEFUL = Sinks("tests.live.sink.stateful", "stateful.json", knows_delta=False)
