"""Inspections of every shape: of samples, and of samples with many more batches, partitions and operators."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import ckpt
from ckpt import Inspection
from ckpt.advice import Advice, Name, Words, advise, call, run, words
from ckpt.checkpoint.history import Batch
from ckpt.checkpoint.sources.kind import Advance, Unit
from ckpt.model import Json, Operator, QueryMetadata
from ckpt.restart.findings import Finding
from tests.support.places import SAMPLES

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{7*7}}{% x %}\x1b[2J\u202e"
START_MS = 1_700_000_000_000


def of_sample(name: str) -> Inspection:
    return ckpt.inspect(ckpt.open_checkpoint(str(SAMPLES / name), batches=0), batches=0)


def with_batches(count: int) -> Inspection:
    """Batches a minute apart, a slow one and a gap in between, the last without a commit."""
    found = of_sample("kafka-4.2")
    gone = range(count // 2, count // 2 + count // 100)
    batches = tuple(
        Batch(
            number,
            START_MS + 60_000 * number + (3_600_000 if number > count // 3 else 0),
            START_MS + 60_000 * number - 600_000,
            number != count - 1,
            None,
            (Advance(1000 + number % 97 * 10, Unit.OFFSETS),),
        )
        for number in range(count)
        if number not in gone
    )
    ids = tuple(batch.batch_id for batch in batches)
    offsets = found.checkpoint.offsets
    offsets = replace(offsets, names=offsets.names._replace(ids=ids))
    checkpoint = replace(found.checkpoint, offsets=offsets)
    return replace(found, checkpoint=checkpoint, batches=batches, uncommitted=(count - 1,))


def with_partitions(count: int) -> Inspection:
    """One store in so many partitions, one of them 40 times as large as the others."""
    found = of_sample("aggregation-rocksdb-4.2")
    (operator,) = found.checkpoint.operators
    (store, *_) = operator.stores
    one = store.partitions[0]
    partitions = tuple(
        one._replace(partition=n, bytes=40_000_000 if n == 777 % count else 1_000_000 + n, replay_versions=n % 11)
        for n in range(count)
    )
    return of_operators(found, [replace(operator, stores=(replace(store, partitions=partitions),))])


def with_operators(count: int) -> Inspection:
    found = of_sample("join-hdfs-3.5")
    return of_operators(found, [replace(found.checkpoint.operators[0], id=number) for number in range(count)])


def of_operators(found: Inspection, operators: Sequence[Operator]) -> Inspection:
    assert found.checkpoint.state is not None
    state = replace(found.checkpoint.state, operators=tuple(operators))
    return replace(found, checkpoint=replace(found.checkpoint, state=state))


def of_texts(finding: Finding, meaning: Words, advice: Advice) -> Finding:
    return replace(finding, diagnosis=replace(finding.diagnosis, texts=(meaning, advice)), advice=advice)


def hostile(folder: Path) -> Inspection:
    """Names that a browser, a template or a terminal could obey wherever a checkpoint can have them."""
    found = of_sample("join-v4-changelog-4.3")
    (operator,) = found.checkpoint.operators
    stores = tuple(replace(store, name=HOSTILE, key_schema=_schema()) for store in operator.stores)
    found = of_operators(found, [replace(operator, name=HOSTILE, stores=stores)])
    sources = tuple(replace(one, name=HOSTILE, offset={HOSTILE: HOSTILE}) for one in found.sources)
    meaning = words("{text} {name}", text=HOSTILE, name=Name(HOSTILE))
    advice = advise(run(call("inspect", HOSTILE, sink=HOSTILE), words("do {text}", text=HOSTILE)))
    findings = tuple(
        replace(one, finding=replace(of_texts(one.finding, meaning, advice), path=HOSTILE, detail=HOSTILE))
        for one in found.findings
    )
    forecasts = tuple(replace(one, error=HOSTILE) for one in found.forecasts)
    checkpoint = replace(found.checkpoint, uri=f"/ck/{HOSTILE}", metadata=QueryMetadata(HOSTILE))
    return replace(
        found, checkpoint=checkpoint, sources=sources, findings=findings, forecasts=forecasts, verdict=HOSTILE
    )


def _schema() -> Json:
    return {"type": "struct", "fields": [{"name": HOSTILE, "type": HOSTILE, "nullable": True, "metadata": {}}]}


def empty(folder: Path) -> Inspection:
    return ckpt.inspect(ckpt.open_checkpoint(str(folder)))


SHAPES: dict[str, Callable[[Path], Inspection]] = {
    "one-batch": lambda folder: with_batches(1),
    "100000-batches": lambda folder: with_batches(100_000),
    "1000-partitions": lambda folder: with_partitions(1_000),
    "7-operators": lambda folder: with_operators(7),
    "empty": empty,
    "continuous": lambda folder: of_sample("continuous-4.2"),
    "gapped": lambda folder: of_sample("async-kafka-4.2"),
    "damaged": lambda folder: of_sample("damaged-missing-sst"),
    "hostile": hostile,
}
