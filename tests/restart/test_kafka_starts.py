"""What a real start makes of Kafka offsets that ``ckpt inspect`` judges: a broker has the topics that they name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.reader import open_checkpoint
from ckpt.restart.findings import Outcome
from ckpt.restart.rules import forecast
from ckpt.versions import Progress, Spark
from tests.changes.fixes.async_gap import kafka_query
from tests.changes.fixes.async_gap.test_kafka_incident import pytestmark as of_the_connector
from tests.restart.oracle.cases.model import Mutation, delete_logs, write
from tests.support.cli import invoke
from tests.support.places import SAMPLES
from tests.support.services.kafka import SPARK
from tests.support.spark import mutations, topics
from tests.support.spark.live import Here

pytestmark = of_the_connector

RECORDS = 200  # 100 in each of two partitions
METADATA = (SAMPLES / "kafka-4.2" / "offsets" / "0").read_text().split("\n")[1]
OLD, NEW = '{"orders":{"0":50,"1":50}}', '{"renamed":{"0":30,"1":20}}'


def planned(batch: int, offsets: str) -> Mutation:
    return write(f"offsets/{batch}", f"v1\n{METADATA}\n{offsets}")


CASES = {
    "batch-0-began-later": (
        "orders",
        [*delete_logs(range(1, 6), range(6)), write("sources/0/0", b'\0v1\n{"orders":{"0":4,"1":0}}'), planned(0, OLD)],
    ),
    "no-topic-yet": ("orders", [*delete_logs(range(2, 6), range(1, 6)), planned(0, "{}"), planned(1, OLD)]),
    "no-topic-yet-committed": ("orders", [*delete_logs(range(2, 6), range(2, 6)), planned(0, "{}"), planned(1, OLD)]),
    "batch-0-of-another-topic": (
        "renamed",
        [*delete_logs(range(1, 6), range(6)), write("sources/0/0", b'\0v1\n{"orders":{"0":4,"1":0}}'), planned(0, NEW)],
    ),
    "another-topic": ("renamed", [*delete_logs(range(2, 6), range(1, 6)), planned(0, OLD), planned(1, NEW)]),
}
"""The topic that is subscribed to, and what is done to the sample."""


@pytest.fixture(scope="module")
def driver(kafka: str, kafka_jars: str, spark: Any) -> Iterator[Here]:
    """The session at a broker with both topics."""
    here = Here(spark, kafka_query.answer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CKPT_KAFKA", kafka)
        for topic in ("orders", "renamed"):
            here.ask({"do": "fill", "topic": topic, "count": RECORDS})
        yield here


def resumed(driver: Here, case: str, folder: Path, **options: str) -> tuple[Path, Any]:
    topic, damage = CASES[case]
    checkpoint = mutations.copy_of(SAMPLES / "kafka-4.2", folder / "checkpoint", damage)
    told = mutations.copy_of(checkpoint, folder / "as-it-was")
    job = {"do": "resume", "from": topic, "to": "copies", "checkpoint": str(checkpoint), "options": options}
    return told, driver.ask(job)


@pytest.mark.parametrize("case", ["batch-0-began-later", "no-topic-yet", "no-topic-yet-committed"])
def test_the_first_batch_reads_what_the_forecast_says(case: str, driver: Here, tmp_path: Path) -> None:
    checkpoint, answer = resumed(driver, case, tmp_path)
    told = forecast(open_checkpoint(str(checkpoint)), Spark(SPARK), Progress.SYNC)
    assert (told.outcome, answer["error"]) == (Outcome.RESUMES, None)
    first = answer["batches"][0]
    (source,) = told.sources
    assert first["batch"] == told.batch_id
    if first["batch"]:  # of batch 0 Spark reports no start
        assert first["from"] == source.start
    if source.end is not None:
        assert first["to"] == source.end


@pytest.mark.parametrize(("case", "batch"), [("another-topic", 1), ("batch-0-of-another-topic", 0)])
def test_a_batch_of_another_topic_fails_or_skips_nothing_of_it(
    case: str, batch: int, driver: Here, tmp_path: Path
) -> None:
    """With failOnDataLoss the start fails; without it the batch reads the new topic from its beginning."""
    checkpoint, answer = resumed(driver, case, tmp_path / "strict")
    assert "orders-0" in answer["error"] or "orders" in answer["error"]
    assert not answer["batches"]
    told = forecast(open_checkpoint(str(checkpoint)), Spark(SPARK), Progress.SYNC)
    assert (told.outcome, told.if_lenient) == (Outcome.UNKNOWN, batch)
    _, answer = resumed(driver, case, tmp_path / "lenient", failOnDataLoss="false")
    assert answer["error"] is None
    assert answer["batches"][0]["batch"] == batch


def test_a_plan_of_another_topic_is_taken_away(driver: Here, tmp_path: Path) -> None:
    """A start with the wrong topic fails and leaves its plan; what ckpt prints then loses and doubles no row."""
    damage = [*delete_logs(range(1, 6), range(1, 6)), planned(0, OLD)]
    checkpoint = mutations.copy_of(SAMPLES / "kafka-4.2", tmp_path / "checkpoint", damage)
    job = {"do": "resume", "from": "renamed", "to": "untangled", "checkpoint": str(checkpoint)}
    assert driver.ask(job)["error"] is not None
    assert '"renamed"' in (checkpoint / "offsets" / "1").read_text()
    assert driver.ask({**job, "from": "orders"})["error"] is not None

    (step, *_) = json.loads(invoke("inspect", str(checkpoint), "-o", "json").stdout)["next"]
    assert step["command"][1:] == ["rewind", str(checkpoint), "--to-batch", "0", "--replay", "new"]
    plan = json.loads(invoke(*step["command"][1:], "-o", "json").stdout)
    assert invoke(*plan["next"][0]["command"][1:], "--grace", "0").exit_code == 0
    answer = driver.ask({**job, "from": "orders"})
    assert answer["error"] is None
    written = sorted(tuple(map(int, text.split()[:2])) for _, _, text in topics.read("untangled"))
    for partition in (0, 1):  # tests before this one may have written more to the topic
        offsets = [offset for of, offset in written if of == partition]
        assert len(offsets) >= 50
        assert offsets == [*range(50, 50 + len(offsets))]
