"""The forecast against what Spark did: every recorded answer of every version, on outcome, batch, ranges and words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import open_to_look
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.registry import decode
from ckpt.model import DamageKind
from ckpt.restart.findings import Forecast, Outcome
from ckpt.restart.rules import forecast
from ckpt.state.verify.verify import read_every_byte
from ckpt.versions import Progress, Spark
from tests.restart.oracle import answers, cases
from tests.support.spark import mutations

OUTCOMES = {"resumes", "starts-fresh", "fails-at-start", "fails-in-batch", "fails-at-commit", "refused"}


def test_names_are_unique_and_enough_of_the_cases_are_random():
    names = [case.name for case in cases.CASES]

    assert len(names) == len(set(names))
    assert len(names) >= 150
    assert sum(name.startswith("random-") for name in names) >= 100


@pytest.mark.parametrize("minor", answers.VERSIONS)
def test_answers_are_of_known_kinds_and_say_why_a_start_fails(minor):
    document = answers.read(minor)
    strange = {
        name: answer
        for name, answer in document["answers"].items()
        if answer["outcome"] not in OUTCOMES
        or (answer["error"] is None) != (answer["outcome"] in {"resumes", "starts-fresh"})
    }

    assert document["spark"].startswith(f"{minor}.")
    assert strange == {}


NOT_IN_THE_FILES = {
    "other-query-": "started with another query than the one that wrote the checkpoint",
    "default-session": "started with other settings than the checkpoint was written with",
    "in-format-2": "started in a session with state checkpoint format 2, which real-time mode does not need",
    "made-named-sink": "started with a sink that has no name, unlike the one it was written with",
    "hdfs-state-gone": "without its whole state/ a checkpoint without a watermark looks like that of a stateless query",
    "changelog-state-gone": "the same",
    "operator-1-gone": "the last of several operators is gone without a trace",
    "one-source-short": "both offset files agree in the number of sources, and the query has another",
    "kafka-topic-shorter": "the topic ends before the offsets do, as one that was deleted and created again",
    "contents-": "only who decodes every row sees what does not fit",
    "sides-exchanged": "only who decodes every row sees that those of a side are not those that are counted",
    "schema-void": "only who decodes every row sees values that are void by the schema",
    "rowChecksum.enabled=true": "only who decodes every row sees that it has no checksum",
    "one-line-too-few": "the offset files that are read agree in the number of sources, and the query has another",
}
"""Parts of the names of cases whose outcome depends on what the checkpoint does not hold, and on what."""

SEEN_IN_EVERY_BYTE = ("contents-", "sides-exchanged", "schema-void", "rowChecksum.enabled=true")
"""Those of them that are not hidden from who reads every byte."""

DOUBTFUL = {
    "offset-latest-source-line-dash": "a source that lost its offset may refuse to go on, or begin anew",
    "offset-latest-source-line-of-another-source": "only the source can say what it makes of such an offset",
    "offset-predecessor-source-line-of-another-source": "the same, in the batch before",
    "offset-latest-v2-header-v1-lines": "sources under names that the query may or may not have",
    "offset-predecessor-v2-header-v1-lines": "the same, in the batch before",
    "second-source-new": "a source that lost its offset",
    "spark-2-": "state without a schema: whether its rows fit the query, or its join is an inner one, no file says",
    "v2-after-v1-without-names": "sources under names that the query may or may not have",
    "v2-after-v1-other-name": "the same",
    "last-line-renamed": "a source under a name that the query may or may not have",
    "rows-fraction": "only the source can say what it makes of such an offset",
    "rows-in-quotes": "the same",
    "rows-nearly-largest": "how many rows a batch has, no file says",
    "rows-beyond-long": "only the source can say what it makes of such an offset",
    "watermark-largest": "an operator overflows if it counts in microseconds, which no file says",
    "operators-exchanged": "how far the state of one operator fits the other, no file says",
    "operator-1-extra": "whether the query has a second operator like the first, no file says",
    "recorded-shuffle.partitions=1": "it runs without the state of a partition, so that no batch is right",
    "recorded-join.stateFormatVersion=1": "whether the join is an inner one, no file says",
    "recorded-stateStore.providerClass": "whether the session has that class, no file says",
    "kafka-another-topic": "the option failOnDataLoss decides",
    "kafka-backwards": "the option failOnDataLoss decides",
    "linked-out-": "ckpt follows no link out of the checkpoint",
    "first-source-file-": "a file source reads the file and another source may not; no batch says which source it is",
}
"""Parts of the names of the only cases to which the forecast may answer "unknown", and why it does."""

SEEN_AND_DOUBTFUL = {
    DamageKind.BAD_BLOCK: "a block of data does no harm until a batch reads one of its keys",
    DamageKind.BAD_ROW: "Spark compares the first row that it loads with the schema, and trusts all others",
    DamageKind.MISSING_ROWS: "a join may not come to the rows that are gone",
    DamageKind.CHANGED: "a schema or operator metadata that was changed may still fit the query",
    DamageKind.LEADS_OUTSIDE: "memory may hold what the block should have repeated",
}
"""The only damage to state files about which who reads every byte may say "unknown", and why."""

RECORDED = {minor: answers.read(minor)["answers"] for minor in answers.VERSIONS}


_EACH = 8
"""Of the cases that only who reads every byte sees, each eighth is quick; of those made by chance each second."""


def _asked(*, deep: bool = False) -> Iterator[Any]:
    for number, case in enumerate(cases.CASES):
        unseen = [part for part in NOT_IN_THE_FILES if part in case.name]
        if unseen and not (deep and unseen[0] in SEEN_IN_EVERY_BYTE):
            continue
        if deep and not case.stateful:
            continue
        by_chance = case.name.startswith(("random-", "flipped-"))
        quick = unseen and not number % _EACH if deep else number % 2 or not by_chance
        marks = [] if quick else [pytest.mark.slow]
        yield pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", list(_asked()))
def test_the_forecast_is_what_spark_did(case: cases.Case, tmp_path: Path) -> None:
    """In every mode of every version that was asked."""
    assert _wrong(case, open_to_look, tmp_path) == {}


@pytest.mark.parametrize("case", list(_asked(deep=True)))
def test_the_forecast_of_who_reads_every_byte_is_what_spark_did(case: cases.Case, tmp_path: Path) -> None:
    assert _wrong(case, read_every_byte, tmp_path) == {}


def _wrong(case: cases.Case, reading: Callable[[str], Checkpoint], tmp_path: Path) -> dict[str, list[str]]:
    """What the forecast for a damaged checkpoint has wrong, by version and mode."""
    if not case.folder.is_dir():
        pytest.skip("there is no ../shared/golden with the checkpoints of Spark's own tests")
    folder = tmp_path / "checkpoint"
    mutations.copy_of(case.folder, folder, case.mutations)
    checkpoint = reading(str(folder))
    asked = [(minor, mode) for minor in answers.VERSIONS for mode in case.modes(minor)]
    found = {f"{minor}-{mode}": list(_against(case, minor, mode, checkpoint)) for minor, mode in asked}
    return {question: wrong for question, wrong in found.items() if wrong}


def _against(case: cases.Case, minor: str, mode: str, checkpoint: Checkpoint) -> Iterator[str]:
    answer = RECORDED[minor].get(f"{case.name}/{mode}")
    if answer is None:
        yield "not recorded: run python -m tests.record"
        return
    if answer["of"] != answers.fingerprint(case):
        yield "recorded of another case: record it again"
    told = forecast(checkpoint, Spark(minor), Progress(mode))
    if told.outcome is not Outcome.UNKNOWN:
        yield from disagreements(told, answer)
        return
    if told.if_lenient is not None:
        ran = (answer["outcome"], answer["batch"]) == (Outcome.RESUMES, told.if_lenient)
        if ran is not case.query.endswith("-lenient"):
            yield f"it runs only with failOnDataLoss=false, and it was {answer['outcome']}"
        return
    seen = checkpoint.state.damaged_files if checkpoint.state else ()
    known = any(damage.kind in SEEN_AND_DOUBTFUL for damage in seen)
    if not known and not any(part in case.name for part in DOUBTFUL):
        yield f"unknown, and it was {answer['outcome']}"


def disagreements(told: Forecast, answer: dict[str, Any]) -> list[str]:
    """In what a forecast differs from what happened; what it leaves open (a new batch's end) is not compared."""
    outcome, batch, reexecutes = answer["outcome"], answer["batch"], answer["reexecutes"]
    errors = answer["error"] or []
    found = []
    if told.outcome != outcome:
        found.append(f"outcome: told {told.outcome}, was {outcome}")
    if told.batch_id != batch or (batch is not None and told.reexecutes != reexecutes):
        found.append(f"batch: told {told.batch_id} ({told.reexecutes}), was {batch} ({reexecutes})")
    if told.error is not None and not any(told.error in error for error in errors):
        found.append(f"words: told {told.error!r}, was {errors}")
    if answer["error"] and told.outcome.runs:
        found.append(f"told that it runs, and Spark said {answer['error']}")
    if answer["sources"] is not None and told.outcome in (Outcome.RESUMES, Outcome.FAILS_AT_COMMIT):
        found += _ranges(told, answer["sources"])
        if batch == 0 and answer["rows"] is not None:
            found += _rows_of_batch_0(told, answer["rows"])
    return found


def _ranges(told: Forecast, seen: list[dict[str, Any]]) -> Iterator[str]:
    if told.sources and len(told.sources) != len(seen):
        yield f"sources: told {len(told.sources)}, were {len(seen)}"
        return
    for source, was in zip(told.sources, _in_the_order_told(told, seen), strict=True) if told.sources else ():
        if told.batch_id and source.start is not None and source.start != was["from"]:
            yield f"from: told {source.start}, was {was['from']}"
        if source.end is not None and source.end != was["to"]:
            yield f"to: told {source.end}, was {was['to']}"


def _rows_of_batch_0(told: Forecast, rows: int) -> Iterator[str]:
    """Spark does not report where batch 0 starts; the number of its rows says it, where Kafka counts them."""
    offsets = [(decode(source.start), decode(source.end)) for source in told.sources]
    for begin, end in offsets if len(offsets) == 1 else ():
        if isinstance(begin, KafkaOffset) and isinstance(end, KafkaOffset):
            planned = sum(position - begin.partitions[place] for place, position in end.partitions.items())
            if planned != rows:
                yield f"rows: told {planned}, were {rows}"


def _in_the_order_told(told: Forecast, seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Offset log v2 names its sources in an order of its own, which may not be that of the query."""
    starts = [source.start for source in told.sources]
    same = [[one for one in seen if one["from"] == start] for start in starts]
    return [one[0] for one in same] if all(len(one) == 1 for one in same) else seen


def test_every_exception_is_about_a_case() -> None:
    for part in (*NOT_IN_THE_FILES, *DOUBTFUL):
        assert any(part in case.name for case in cases.CASES), part


def test_enough_is_recorded() -> None:
    random = [case for case in cases.CASES if case.name.startswith("random-")]
    assert len(cases.CASES) >= 150
    assert len(random) >= 100
