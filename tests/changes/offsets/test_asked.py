"""``ckpt offsets set --to`` a place: what the broker says is the plan, and the command that applies it has offsets.

A broker that answers from a table stands in here; ``test_places.py`` asks a real one.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

import ckpt
from ckpt.errors import UsageError
from tests.conftest import Ckpt
from tests.support.places import SAMPLES

SAMPLE = str(SAMPLES / "kafka-4.2")  # ends at orders/0=51 orders/1=49
ASKED = {0: {"kafka.bootstrap.servers": "broker:9092"}}


class Broker:
    """One whose partitions begin at 10, and end at 60 and 49; a time is found in the first alone."""

    def __init__(self, settings: dict[str, str]) -> None:
        assert settings == {"bootstrap.servers": "broker:9092"}

    def find_offsets(self, parts: Iterable[tuple[str, int]], at: str | int) -> dict[tuple[str, int], int]:
        answers = {"earliest": (10, 10), "latest": (60, 49)}.get(str(at), (40, -1))
        return {part: answers[part[1]] for part in parts}


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckpt.live.ends.Client", Broker)


@pytest.mark.parametrize(
    ("to", "only", "ends"),
    [
        ("earliest", (), (10, 10)),
        ("latest", ("orders",), (60, 49)),
        ("latest", ("orders/1",), None),
        ("-2h", (), (40, 49)),
        (datetime(2026, 11, 21, tzinfo=UTC), ("orders/0",), (40, 49)),
    ],
)
def test_the_plan_has_what_the_broker_says(to: Any, only: Any, ends: tuple[int, int] | None) -> None:
    plan, _ = ckpt.offsets_set(SAMPLE, to=to, only=only, source_options=ASKED)
    if ends is None:
        assert not plan.needed
        return
    expected = {"orders": {"0": ends[0], "1": ends[1]}}
    assert plan.moved[0].new.value == expected
    assert plan.asked is not None
    assert json.loads(str(dict(plan.asked.options)["to"])) == expected
    assert "orders/1 has no row of" in str(plan.warnings) if to == "-2h" else "has no row of" not in str(plan.warnings)


def test_the_command_applies_what_was_shown(run_ckpt: Ckpt) -> None:
    where = ("--source-options", "0.kafka.bootstrap.servers=broker:9092")
    page = run_ckpt("offsets", "set", SAMPLE, "--to", "2026-11-21T09:50", *where).stdout
    assert "from orders/0=40 to orders/0=51: 11 offsets" in page
    assert "2026-11-21T09:50:00Z (UTC, as no zone was given)" in " ".join(page.split())
    assert """--to '{"orders":{"0":40,"1":49}}' --expect-batch 5 --accept-replay --apply""" in page
    assert "ckpt does not ask the broker" not in page


def test_a_place_that_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(UsageError, match=r"name the brokers of source 0: 0\.kafka\.bootstrap\.servers=HOST:PORT"):
        ckpt.offsets_set(SAMPLE, to="latest")
    with pytest.raises(UsageError, match="the query reads orders/0, orders/1"):
        ckpt.offsets_set(SAMPLE, to="latest", only=["orders/2"], source_options=ASKED)
    with pytest.raises(UsageError, match="only"):
        ckpt.offsets_set(SAMPLE, to='{"orders":{"0":1,"1":1}}', only=["orders"])
    with pytest.raises(UsageError, match="only"):
        ckpt.offsets_set(str(SAMPLES / "file-source-4.2"), to="latest", only=["orders"])
    with pytest.raises(UsageError, match="only Kafka, Delta, Iceberg and files are"):
        ckpt.offsets_set(str(SAMPLES / "aggregation-hdfs-4.2"), to="latest", source_options={0: {"path": "/in"}})
