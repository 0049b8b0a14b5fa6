"""What happened to a source, what `ckpt inspect --sources` advised, and what obeying it by the letter left in a sink.

A query has read numbers from a Delta table or a Kafka topic into a sink that remembers batches. Its checkpoint, table
and sink are copied, something happens, the first remedy of the page is obeyed (commands are run as printed, and then
as their own page says; options and settings are given to one start), and the query continues as usual. What is kept
says how often every number is in the sink. `python -m tests.support.spark.recording source-remedies` runs all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.live.delta.advice import FromDelta
from tests.live.first_remedy import Answer
from tests.live.kafka.advice import KAFKA, FromKafka
from tests.live.kafka.cases import Broker

STATES = ("committed", "written", "unwritten")
"""Of the newest batch: it is committed, or only the sink has it, or not even that."""


def _states(incident: str) -> tuple[str, ...]:
    """A start leaves offsets behind where a new batch came next."""
    return STATES[:1] if incident.endswith("and started") else STATES


_IN_DELTA = (
    *("log-from-2", "log-from-3", "log-from-5", "created-again", "older-copy", "older-copy-goes-on"),
    *("overwritten", "updated", "deleted-files", "restored", "vacuumed", "file-lost"),
    *("column-renamed", "column-dropped"),
)
_IN_FILES = ("log-from-5", "created-again", "older-copy", "updated", "column-renamed")
_LENIENT = [("expired", state) for state in STATES] + [(f"created again with {n}", "committed") for n in (4, 30)]
CASES = [
    *(f"delta to delta: {incident}, {state}" for incident in _IN_DELTA for state in STATES),
    *(f"delta to parquet: {incident}, {state}" for incident in _IN_FILES for state in STATES),
    *(f"kafka to delta: {incident}, {state}" for incident in KAFKA for state in _states(incident)),
    *(f"kafka to delta: {incident}, {state}, failOnDataLoss=false" for incident, state in _LENIENT),
]
LIVE = (
    "delta to delta: log-from-5, committed",
    "kafka to delta: expired, unwritten",
)
"""What is run unless all is asked for."""


def recorded(spark: Any, folder: Path) -> dict[str, Answer]:
    """All of them, on the broker that `CKPT_KAFKA` names."""
    return found(spark, os.environ["CKPT_KAFKA"], folder, CASES)


def found(spark: Any, servers: str, folder: Path, names: Sequence[str]) -> dict[str, Answer]:
    """What came of some, as JSON has it."""
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "1")
    answers: dict[str, Answer] = {}
    tables: dict[str, FromDelta] = {}
    for number, name in enumerate(names):
        kind, case = name.split(": ")
        incident, state, *options = parts(case)
        if kind.startswith("delta"):
            if kind not in tables:
                tables[kind] = FromDelta(own, folder / kind.replace(" ", "-"), kind.rpartition(" ")[2])
                tables[kind].run_old()
            answers[name] = tables[kind].obeyed(str(number), incident, state)
        else:
            query = FromKafka(own, folder / f"kafka-{number}", Broker(servers), KAFKA[incident].topics)
            query.run_old()
            answers[name] = query.obeyed("case", incident, state, lenient=bool(options))
    told: dict[str, Answer] = json.loads(json.dumps(answers))
    return told


def parts(case: str) -> list[str]:
    """Incident, state, and the option if it was given; the names of incidents have commas."""
    found = re.fullmatch(rf"(.*), ({'|'.join(STATES)})(?:, (.*))?", case)
    assert found is not None
    return [one for one in found.groups() if one]
