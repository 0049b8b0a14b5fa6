"""Records what Spark makes of each damage: of the checkpoint as it is, and after its page was obeyed.

``python -m tests.laws.field.recorder [--fresh] [WORD ...]`` asks the installed Spark, resumes where it stopped, and
writes ``recorded.jsonl``: a line a case. Words choose cases whose name has one of them. A broker of Kafka is started.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ckpt.checkpoint.reader import open_checkpoint
from ckpt.restart.diagnoses.state import NO_STATE_FOLDER
from tests.laws.field.damages import CASES
from tests.laws.next_obeyed import End, act, announced_rows, look, obey
from tests.laws.starting import INPUT_FILES, TOPIC, home, starts_at
from tests.restart.oracle import answers, starts
from tests.restart.oracle.cases import Case
from tests.support.services.kafka import SPARK
from tests.support.spark import plans, queries, topics

FILE = Path(__file__).with_name("recorded.jsonl")
_MOST_STARTS, _FURTHER, _PATIENCE_S, _MOST_ACTS = 4, 3, 90, 4


@dataclass
class Counted:
    """How starts ended, and what a sink has that had every row of the batches that were committed."""

    outcome: str  # runs, or fails
    begin: int | None = None  # the first row, or file, that was read
    end: int = 0
    values: list[Any] = field(default_factory=list)  # of a stateless query
    totals: dict[Any, Any] = field(default_factory=dict)  # of an aggregation: the newest row of each key

    def against(self, written: int, each: int, control: Control) -> dict[str, Any]:
        """Count rows that came again, and rows that are missing; of an aggregation, whether its totals are right."""
        document: dict[str, Any] = {"outcome": self.outcome}
        if self.begin is None:
            return document
        again = max(written - self.begin, 0) * each
        if control.case.stateful:
            right = {key: row for key, row in control.until(self.end).items() if key in self.totals}
            return {**document, "doubled": again, "right": self.totals == right}
        had = {value for value in self.values if value < written * each}
        new = {value for value in self.values if value >= written * each}
        lost = max((self.end - written) * each - len(new), 0)
        return {**document, "doubled": len(had), "lost": lost}


class Control:
    """The query of a sample to which nothing happened."""

    def __init__(self, spark: Any, case: Case, folder: Path) -> None:
        self.case, self._spark, self._folder = case, spark, folder

    @cached_property
    def _totals(self) -> dict[int, dict[Any, Any]]:
        checkpoint, found, totals = home(self.case, self._folder / "control", ()), dict[int, Any](), dict[Any, Any]()
        for _ in range(_FURTHER):
            counted = start(self._spark, self.case, checkpoint, self._folder, 0)
            totals |= counted.totals
            found[counted.end] = {**totals}
        return found

    def until(self, end: int) -> dict[Any, Any]:
        """The newest row of each key after the batch that ends there; nothing where it was not run."""
        return self._totals.get(end, {})


def ends_of(case: Case) -> Any:
    """The offsets at which the newest batch of a sample ends; it is committed."""
    log = open_checkpoint(str(case.folder), batches=0).offsets
    newest = log.readable(log.latest)
    assert newest is not None
    return newest.sources[0].value


def start(spark: Any, case: Case, checkpoint: Path, folder: Path, least: int) -> Counted:
    """Start the query until it has read so much, or fails."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    counted, query = Counted("runs"), queries.QUERIES[case.query]
    ends = ends_of(case).get(TOPIC)
    if query.inputs:
        queries.write_input_files(checkpoint.parent / "inputs" / query.name, INPUT_FILES)

    def keep(rows: Any, _: int) -> None:
        found = [tuple(row) for row in rows.collect()]
        counted.values += [row[0] if ends is None else rank(int(row[1]), ends) for row in found]
        counted.totals |= {str(row[0]): [*row] for row in found}

    for _ in range(_MOST_STARTS):
        try:
            inputs = checkpoint.parent / "inputs"
            handle = queries.start(spark, query, checkpoint, store=case.settings, sink=keep, inputs=inputs)
            handle.awaitTermination(_PATIENCE_S)
        except (PySparkException, Py4JError):
            counted.outcome = "fails"
        for report in handle.recentProgress if counted.outcome == "runs" else ():
            (source,) = report["sources"]
            if report["numInputRows"]:
                begin, end = (starts_at(source[side]) for side in ("startOffset", "endOffset"))
                counted.begin = begin if counted.begin is None else min(counted.begin, begin)
                counted.end = max(counted.end, end)
        if case.stateful:
            starts.forget_state(spark)
        if counted.outcome != "runs" or counted.end >= least:
            break
    return counted


def rank(number: int, ends: dict[str, int]) -> int:
    """A record of Kafka as a number below that of all records before these ends, if and only if it is one of them."""
    partition, offset = number % topics.PARTITIONS, number // topics.PARTITIONS
    return sum(ends.values()) + topics.PARTITIONS * (offset - ends[str(partition)]) + partition


def tell(spark: Any, case: Case, control: Control, scratch: Path) -> dict[str, Any]:
    """What becomes of a damage, as it is and after its page was obeyed."""
    each = 5 if case.query == "file-source" else 1
    written = starts_at(ends_of(case))
    as_it_is = home(case, scratch / "as-it-is", case.mutations)
    first = start(spark, case, as_it_is, scratch, written + 1).against(written, each, control)
    checkpoint = home(case, scratch / "obeyed", case.mutations)
    obeyed, acts = obey(checkpoint, without_copy=True), 0
    whole_one = home(case, scratch / "whole", ())
    while not obeyed.applied and obeyed.last and acts < _MOST_ACTS and act(obeyed.last, checkpoint, whole_one):
        obeyed, acts = obey(checkpoint, without_copy=True), acts + 1
    page = look(checkpoint)
    again = any(forecast.reexecutes for forecast in page.counted if forecast.outcome.runs)
    after: dict[str, Any] = {"end": obeyed.end.name.lower(), "applied": len(obeyed.applied), "acts": acts}
    after["announced"] = announced_rows(obeyed) if obeyed.applied else "again" if again else "none"
    stateless_only = any(rated.finding.diagnosis == NO_STATE_FOLDER for rated in page.findings)  # as the page says
    if obeyed.end is End.NOTHING and stateless_only and case.stateful:
        after["end"] = "stateless only"
    elif obeyed.applied or obeyed.end is End.NOTHING:
        after |= start(spark, case, checkpoint, scratch, written + 1).against(written, each, control)
    return {"as it is": first, "obeyed": after, **({"faults": obeyed.faults} if obeyed.faults else {})}


def read() -> dict[str, dict[str, Any]]:
    """The recorded answers by the name of the case."""
    lines = map(json.loads, FILE.read_text().splitlines()) if FILE.exists() else ()
    return {line["case"]: line for line in lines}


def main(words: list[str], *, fresh: bool) -> None:
    """Record cases that are not recorded as they are now, or all."""
    from tests.record.suite import a_broker
    from tests.support.spark import classes, live

    os.environ["PYSPARK_PYTHON"] = sys.executable
    classes.use()
    recorded = read()
    scratch_of = TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    with scratch_of as folder, a_broker(SPARK) as broker:
        os.environ |= broker
        of_kafka = {plans.KAFKA.replace(".", "__"): broker[topics.BROKER]}
        spark = queries.session("ckpt-field", "local[1]", **live.settings(broker[topics.JARS]), **of_kafka)
        spark.sparkContext.setLogLevel("OFF")
        topics.fill(spark, TOPIC, starts.RECORDS)
        controls: dict[str, Control] = {}
        for number, case in enumerate(CASES):
            known, of = recorded.get(case.name, {}), answers.fingerprint(case)
            if (known.get("of") == of and not fresh) or (words and not any(word in case.name for word in words)):
                continue
            control = controls.setdefault(case.sample, Control(spark, case, Path(folder, case.sample)))
            begun, scratch = time.monotonic(), Path(folder, str(number))
            recorded[case.name] = {"case": case.name, "of": of, **tell(spark, case, control, scratch)}
            shutil.rmtree(scratch)
            names = {one.name for one in CASES}
            kept = (recorded[name] for name in sorted(recorded) if name in names)
            FILE.write_text("".join(f"{json.dumps(line)}\n" for line in kept))
            sys.stderr.write(f"{time.monotonic() - begun:.1f}s {json.dumps(recorded[case.name])}\n")
        spark.stop()


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if word[:2] != "--"], fresh="--fresh" in sys.argv)
