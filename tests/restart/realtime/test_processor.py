"""transformWithState in real-time mode: in Scala and Java it runs on 4.3, in Python it is refused, as ckpt says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ckpt.checkpoint.reader import open_checkpoint
from ckpt.formats.operators import OPERATORS as ALL_OPERATORS, OperatorName, restate_operator
from ckpt.inspection.preflight import compare_real_time
from ckpt.migrate.switches import migrate_real_time
from ckpt.query.description import DescribedOperator, DescribedSource, QueryDescription
from ckpt.restart import messages
from ckpt.restart.findings import Outcome
from ckpt.restart.own_triggers import OPERATORS
from ckpt.restart.rules import forecast
from ckpt.versions import Progress, Spark
from tests.conftest import CopyOf
from tests.restart.realtime.processor import ANSWERS, HISTORIES, IN_PYTHON

RECORDED = ANSWERS.read_all()
CLASSES = {
    "StateStoreSaveExec": OperatorName.AGGREGATION,
    "StatefulStreamlineAggregateExec": OperatorName.REAL_TIME_AGGREGATION,
    "SessionWindowStateStoreSaveExec": OperatorName.SESSIONS,
    "StreamingDeduplicateExec": OperatorName.DEDUPLICATION,
    "StreamingDeduplicateWithinWatermarkExec": OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
    "StreamingSymmetricHashJoinExec": OperatorName.JOIN,
    "StreamingGlobalLimitExec": OperatorName.LIMIT,
    "FlatMapGroupsWithStateExec": OperatorName.GROUPS,
    "FlatMapGroupsInPandasWithStateExec": OperatorName.GROUPS_IN_PANDAS,
    "TransformWithStateExec": OperatorName.TRANSFORM,
    "TransformWithStateInPandasExec": OperatorName.TRANSFORM_IN_PANDAS,
    "TransformWithStateInPySparkExec": OperatorName.TRANSFORM_IN_PYTHON,
}
"""The class of each stateful operator: the allow-list names classes, a checkpoint the operators."""


def test_the_operators_are_those_of_the_allow_list() -> None:
    listed = {
        minor: {name.rpartition(".")[2] for name in RECORDED[minor]["answers"]["allowed"]["allowedOperators"]}
        for minor in RECORDED
    }
    assert {CLASSES[name] for name in listed["4.3"] & CLASSES.keys()} == OPERATORS
    assert {*CLASSES.values()} | {OperatorName.OTHER} == ALL_OPERATORS


@pytest.mark.parametrize("name", [name for name in HISTORIES if not name.startswith(IN_PYTHON)])
def test_counts_continue(name: str) -> None:
    """Each number up to the end of the batch is counted once; a last start in micro-batches has counted all."""
    steps = RECORDED["4.3"]["answers"][name]["steps"]
    refused = name == "micro-batches-of-format-1"
    for step in steps[: len(steps) - refused]:
        assert step["outcome"] in ("resumes", "starts-fresh"), step
        assert step["operator"] == OperatorName.TRANSFORM
        read = (number for number in range(step["rows"]) if number // 2 < step["ends"][str(number % 2)])
        assert step["counts"] == dict(sorted(Counter(str(number % 10) for number in read).items()))
    if refused:
        assert steps[-1]["outcome"] == "fails-at-start"
        assert "CHECKPOINT_FORMAT_V1_NOT_SUPPORTED" in steps[-1]["error"][0]
    else:
        assert steps[-1]["counts"] == {str(digit): steps[-1]["rows"] // 10 for digit in range(10)}


@pytest.mark.parametrize("name", [name for name in HISTORIES if name.startswith(IN_PYTHON)])
def test_python_is_refused(name: str) -> None:
    *before, last = RECORDED["4.3"]["answers"][name]["steps"]
    assert last["outcome"] == "fails-at-start"
    assert {step["outcome"] for step in before} <= {"starts-fresh"}
    assert messages.REAL_TIME_IN_PYTHON in last["error"][0]


@pytest.mark.parametrize(
    ("operator", "runs"),
    [
        (OperatorName.TRANSFORM, True),
        (OperatorName.TRANSFORM_IN_PANDAS, False),
        (OperatorName.TRANSFORM_IN_PYTHON, False),
        (OperatorName.JOIN, False),
    ],
)
def test_ckpt_says_so(operator: OperatorName, runs: bool, copy_of: CopyOf) -> None:
    checkpoint = copy_of("tws-format2-4.3")
    for path in (checkpoint / "state/0/_metadata/v2").glob("[0-9]*"):
        there = "file:/tmp/ckpt-samples/tws-format2-4.3"
        named = restate_operator(path.read_bytes(), operator, {})
        path.write_bytes(named.replace(there.encode(), f"file:{checkpoint}".encode()))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    _read_kafka(checkpoint)
    opened = open_checkpoint(str(checkpoint))
    told = {spark: forecast(opened, Spark(spark), Progress.REALTIME).outcome for spark in ("4.2", "4.3")}
    assert told == {"4.2": Outcome.REFUSED, "4.3": Outcome.RESUMES if runs else Outcome.REFUSED}
    assert migrate_real_time(str(checkpoint)).outcome == ("already" if runs else "no-way")
    query = QueryDescription(
        Spark.V4_3, "Update", (DescribedSource("kafka"),), (DescribedOperator(operator),), None, None, {}
    )
    assert any(compare_real_time(query, {}, [Spark.V4_3])) != runs


def _read_kafka(checkpoint: Path) -> None:
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        version, metadata, _ = path.read_text().split("\n")
        path.write_text(f"{version}\n{metadata}\n{json.dumps({'orders': {'0': int(path.name) + 1}})}")
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
