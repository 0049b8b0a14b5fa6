"""The forecast with what a source had told, and what each Spark version then did: `record.py` of each source."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.delta import cases as delta, judging as delta_judging, record as delta_record
from tests.live.iceberg import cases as iceberg, judging as iceberg_judging, record as iceberg_record
from tests.live.judging import checkpoint_of, inspected
from tests.live.kafka import cases as kafka, judging as kafka_judging, record as kafka_record

ANSWERS = {record: record.SUITE.answers.read_all() for record in (delta_record, iceberg_record, kafka_record)}


TABLES = [
    pytest.param(case, record, judging, id=f"{name}: {case.name}")
    for name, cases, record, judging in (
        ("delta", delta.CASES, delta_record, delta_judging),
        ("iceberg", iceberg.CASES, iceberg_record, iceberg_judging),
    )
    for case in cases
]


@pytest.mark.parametrize(("case", "record", "judging"), TABLES)
def test_what_is_said_of_a_table_is_what_happens(case: Any, record: Any, judging: Any, tmp_path: Path) -> None:
    for version, answers in ANSWERS[record].items():
        answer = answers["answers"][case.name]
        checkpoint = checkpoint_of(tmp_path / version, answer["offsets"], committed=case.committed)
        now = record.from_json(answer["now"], case)
        written = json.loads(json.dumps(record.to_json(now)))
        assert written | answer["now"] == written
        seen = inspected(checkpoint, now, version)
        assert list(judging.disagreements(case, seen, answer["spark"])) == [], version


@pytest.mark.parametrize("case", kafka.CASES, ids=lambda case: case.name)
def test_what_is_said_of_a_topic_is_what_happens(case: kafka.Case, tmp_path: Path) -> None:
    checkpoint = kafka.written(tmp_path / "checkpoint", "t", committed=case.committed)
    for version, found in ANSWERS[kafka_record].items():
        answer = found["answers"][case.name]
        now = kafka_record.from_json(answer["now"], fail_on_data_loss=case.fail_on_data_loss)
        seen = inspected(checkpoint, now, version)
        assert list(kafka_judging.disagreements(case, seen, answer["spark"])) == [], version
