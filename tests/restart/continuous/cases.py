"""Starts with a continuous trigger, of checkpoints that continuous processing or micro-batches wrote, as data.

The broker has offsets 0 to 99 in each of two partitions of `orders`; the samples end near 50 in each.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.restart.oracle.cases import younger
from tests.restart.oracle.cases.model import Case, Mutation, delete, delete_logs, latest, write
from tests.restart.realtime.cases import PLANNED, plan

CONTINUOUS, BATCHES = younger.CONTINUOUS, "kafka-4.2"


def _kills(sample: str, next_plan: Mutation) -> Iterator[tuple[str, list[Mutation]]]:
    newest = latest(sample)
    yield "whole", []
    yield "planned", [next_plan]
    yield "uncommitted", delete_logs(commits=[newest])
    yield "all-uncommitted", delete("commits/[0-9]*")
    yield "predecessor-missing", delete_logs([newest - 1], [newest - 1])
    yield "commits-ahead", delete_logs([newest])
    yield "no-offsets", delete("offsets/[0-9]*")
    yield "offsets-empty", [write(f"offsets/{newest}", "")]
    yield "planned-empty", [write(f"offsets/{newest + 1}", "")]
    yield "commit-empty", [write(f"commits/{newest}", "")]
    yield "metadata-missing", delete("metadata")


def _cases() -> Iterator[Case]:
    after = f"offsets/{latest(CONTINUOUS) + 1}"
    plans = {CONTINUOUS: write(after, f"v1\n\n{PLANNED}"), BATCHES: plan(BATCHES, latest(BATCHES) + 1, PLANNED)}
    for sample, next_plan in plans.items():
        for name, damage in _kills(sample, next_plan):
            yield Case(f"{sample}-{name}", sample, tuple(damage), "kafka-orders")
    edited = write(f"offsets/{younger.L}", younger.IN_MICRO_BATCHES)
    yield Case(f"{CONTINUOUS}-in-micro-batches", CONTINUOUS, (edited,), "kafka-orders")
    yield Case("real-time-4.3-whole", "real-time-4.3", (), "kafka-orders")
    yield Case("rate-whole", "continuous-4.2", (), "continuous-rate")
    yield Case("rate-micro-batch-whole", "stateless-3.5", (), "stateless")
    fresh = (*delete("offsets/[0-9]*", "commits/[0-9]*"),)
    yield Case("new-counts", BATCHES, fresh, "kafka-counts")


CASES: tuple[Case, ...] = tuple(_cases())
