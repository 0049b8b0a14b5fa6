"""``docs/runbooks/evolve.md``, carried out as it is written: from Kafka to a table of Delta, every row exactly once."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.new.rewrite.runbook_steps import blocks
from tests.support.spark.live import trace

pytestmark = [pytest.mark.spark, pytest.mark.service]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOPICS = ("orders", "returns")
Event = tuple[str, int, str, str, int]
"""Topic, second after noon, shop, product, amount."""


def make_events(topic: str, seconds: range, sign: int = 1) -> list[Event]:
    """Return events of three shops and four products, other ones in each range."""
    return [
        (topic, second, f"shop {second % 3}", f"product {second * 7 % 4}", sign * (second * 31 % 17 + 1))
        for second in seconds
    ]


BEFORE = [make_events("orders", range(0, 150, 4)), make_events("orders", range(120, 215, 5))]
WHILE_STOPPED = [*make_events("orders", range(200, 260, 3)), *make_events("returns", range(20, 290, 7), -1)]
AFTER = [*make_events("orders", range(262, 420, 6)), *make_events("returns", range(240, 430, 9), -1)]
LAST = [*make_events("orders", range(900, 901)), *make_events("returns", range(900, 901))]
WATERMARK_S = 210 - 60
"""The newest event of the old query is of second 210."""


@pytest.fixture
def absolute(tmp_path: Path) -> Any:
    """Code of the page for a session that was started in another folder, and for topics of this test alone."""

    def change(text: str) -> str:
        for name in ("checkpoints", "tables", "old.json", "query.json"):
            text = text.replace(f'"{name}', f'"{tmp_path}/{name}')
        return text.replace('read("', 'read("runbook-evolve-')

    return change


def read_table(spark: Any, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the table; the minute as its number after noon."""
    rows = spark.read.format("delta").load(str(folder / "tables/totals")).collect()
    zone = NOON.tzinfo
    return [{**row.asDict(), "minute": int((row.minute.astimezone(zone) - NOON).total_seconds() // 60)} for row in rows]


def test_a_second_topic_an_aggregate_more_and_a_key_column_less(
    spark: Any,
    kafka: str,
    ckpt: Ckpt,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    absolute: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "3")
    own.conf.set("spark.sql.session.timeZone", "UTC")
    names: dict[str, Any] = {"spark": own, "brokers": kafka}

    def send(events: list[Event]) -> None:
        for topic in TOPICS:
            rows = [
                (json.dumps({"at": at.isoformat(), "shop": shop, "product": product, "amount": amount}),)
                for name, second, shop, product, amount in events
                if name == topic
                for at in [NOON + timedelta(seconds=second)]
            ]
            writer = own.createDataFrame(rows or [("{}",)], "value STRING").limit(len(rows)).write.format("kafka")
            writer.options(topic=f"runbook-evolve-{topic}", **{"kafka.bootstrap.servers": kafka}).save()

    (_, setting_up), *rest = blocks("evolve.md")
    send(BEFORE[0])
    exec(absolute(setting_up), names)
    send(BEFORE[1])
    names["start"](names["by_product"], f"{tmp_path}/checkpoints/totals").awaitTermination()
    written = read_table(own, tmp_path)
    assert written
    send(WHILE_STOPPED)
    pages = []
    for kind, text in rest:
        if kind == "python":
            before = trace(tmp_path), look_at_broker(kafka)
            exec(absolute(text), names)
            if "ckpt.rehearse" in text:
                assert (trace(tmp_path), look_at_broker(kafka)) == before, "checkpoint, table, topics and groups"
                judge_rehearsal(capsys.readouterr().out)
            continue
        if "--accept-from-now-on --plan" in text:
            refused = ckpt(*text.replace("--accept-from-now-on ", "").split())
            assert (refused.exit_code, "count(1) is new" in refused.stdout) == (3, True)
        ran = ckpt(*text.split())
        assert ran.exit_code == 0, (text, ran)
        pages.append(ran.stdout)
    assert "The watermark is 2026-01-01T12:02:30Z" in " ".join(pages[0].split())
    for events in (AFTER, LAST):
        send(events)
        names["start"](names["by_shop"], f"{tmp_path}/checkpoints/totals-2").awaitTermination()
    judge_table(written, read_table(own, tmp_path))


def look_at_broker(servers: str) -> tuple[list[str], list[tuple[str, int]]]:
    """List consumer groups, and the ends of the topics of this test."""
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient

    groups = AdminClient({"bootstrap.servers": servers}).list_consumer_groups().result(30).valid
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "looks"})
    ends = [
        (topic, consumer.get_watermark_offsets(TopicPartition(f"runbook-evolve-{topic}", 0), timeout=30)[1])
        for topic in TOPICS
    ]
    consumer.close()
    return sorted(group.group_id for group in groups), ends


def judge_rehearsal(page: str) -> None:
    assert page.startswith("THE QUERY STARTS: it ran ")
    assert "On a copy made by ckpt.evolve." in page
    assert "operator 0 (from-now-on): count(1) is new" in page
    row = next(line.split() for line in page.splitlines() if line.split() and line.split()[0].isdigit())
    orders = [event for event in WHILE_STOPPED if event[0] == "orders"]
    assert (int(row[1]), int(row[5])) == (len(WHILE_STOPPED), len(orders)), "rows in of the new query, and of the old"


def judge_table(written: list[dict[str, Any]], table: list[dict[str, Any]]) -> None:
    """Compare the table with a count of all events."""
    old, new = ([row for row in table if (row["product"] is None) is later] for later in (False, True))
    assert sorted(map(str, old)) == sorted(str({**row, "rows": None}) for row in written), "stays as it was"
    closed = WATERMARK_S // 60  # minutes whose windows the old query has written
    assert {row["minute"] for row in old} == {*range(closed)}
    totals, counts = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    products = Counter[tuple[int, str, str]]()
    for events, later in ((BEFORE[0] + BEFORE[1], False), (WHILE_STOPPED + AFTER, True)):
        for _, second, shop, product, amount in events:
            minute = second // 60
            if minute >= closed:  # others are too late for the changed query
                totals[minute, shop] += amount
                counts[minute, shop] += later
            elif not later:
                products[minute, shop, product] += amount
    assert {(row["minute"], row["shop"], row["product"]): row["total"] for row in old} == dict(products)
    assert {(row["minute"], row["shop"]): row["total"] for row in new} == dict(totals)
    assert len(new) == len(totals), "each window once"
    # the new function counts 0 in a group without new rows
    assert {(row["minute"], row["shop"]): row["rows"] for row in new} == {key: counts[key] for key in totals}
    assert any(counts[key] < 10 for key in totals)
