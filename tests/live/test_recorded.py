"""The forecast with what a source had told, and what each Spark version then did: `record.py` of each source."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.delta import cases as delta, judging as delta_judging, record as delta_record
from tests.live.iceberg import cases as iceberg, judging as iceberg_judging, record as iceberg_record
from tests.live.kafka import cases as kafka, judging as kafka_judging, record as kafka_record

ANSWERS = {record: record.SUITE.answers.read_all() for record in (delta_record, iceberg_record, kafka_record)}


def check_table(case: Any, folder: Path, record: Any, judging: Any) -> None:
    for version, answers in ANSWERS[record].items():
        answer = answers["answers"][case.name]
        checkpoint = delta_judging.checkpoint_of(folder / version, answer["offsets"], committed=case.committed)
        now = record.from_json(answer["now"], case)
        written = json.loads(json.dumps(record.to_json(now)))
        assert written | answer["now"] == written
        seen = judging.inspected(checkpoint, now, version)
        assert list(judging.disagreements(case, seen, answer["spark"])) == [], version


@pytest.mark.parametrize("case", delta.CASES, ids=lambda case: case.name)
def test_what_is_said_of_a_delta_table_is_what_happens(case: delta.Case, tmp_path: Path) -> None:
    check_table(case, tmp_path, delta_record, delta_judging)


@pytest.mark.parametrize("case", iceberg.CASES, ids=lambda case: case.name)
def test_what_is_said_of_an_iceberg_table_is_what_happens(case: iceberg.Case, tmp_path: Path) -> None:
    check_table(case, tmp_path, iceberg_record, iceberg_judging)


@pytest.mark.parametrize("case", kafka.CASES, ids=lambda case: case.name)
def test_what_is_said_of_a_topic_is_what_happens(case: kafka.Case, tmp_path: Path) -> None:
    checkpoint = kafka.written(tmp_path / "checkpoint", "t", committed=case.committed)
    for version, found in ANSWERS[kafka_record].items():
        answer = found["answers"][case.name]
        now = kafka_record.from_json(answer["now"], fail_on_data_loss=case.fail_on_data_loss)
        seen = kafka_judging.inspected(checkpoint, now, version)
        assert list(kafka_judging.disagreements(case, seen, answer["spark"])) == [], version
