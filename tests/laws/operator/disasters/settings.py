"""Disasters of full disks, settings and edited files, and rows that always fail."""

from __future__ import annotations

from random import Random

from tests.laws.operator.disasters.harm import (
    Change,
    Menu,
    both,
    edit,
    empty,
    harm_all,
    has_state,
    keeps,
    log_file,
    next_batch,
    reads,
    remove,
    state_files,
    to_log,
    to_state,
)
from tests.laws.operator.queries import BATCHES, World
from tests.support.spark.queries import STATE_STORES

MENU = Menu()


def _full_disk(world: World, _: Random) -> None:
    """What the newest batch wrote last is empty: its commit, its state, its offsets."""
    for file in (log_file(world, "commits"), log_file(world, "offsets"), *state_files(world)):
        empty(file)


def _poison(world: World, _: Random) -> None:
    """A row of the next batch on which the query always fails, and it has."""
    world.poison = len(world.added) + 1 if world.kind.source != "rate" else sum(SIZES_OF_RATE) + 1
    world.add(1)
    assert "poison" in world.start(1)


SIZES_OF_RATE = (4,) * BATCHES
"""Rows that the five starts of a query from `rate-micro-batch` read."""


def _set(key: str, *values: str) -> Change:
    def happen(world: World, _: Random) -> None:
        now = STATE_STORES.get(world.kind.store, {}).get(key)
        world.conf[key] = next(value for value in values if value != now)

    return happen


_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_PROVIDERS = tuple(STATE_STORES[store][_PROVIDER] for store in ("hdfs", "rocksdb"))
MENU.add(
    "disk full at the newest commit and state",
    harm_all(empty, lambda w: [log_file(w, "commits"), *state_files(w)]),
)
MENU.add("disk full at the newest batch", _full_disk)
MENU.add("disk full at the next offsets", lambda w, _: empty(w.checkpoint / "offsets" / next_batch(w)))
MENU.add(
    "disk full at offsets and source log",
    both(to_log("offsets", 0, empty), to_log("sources/0", 0, empty), to_log("commits", 0, remove)),
    reads("files"),
)
MENU.add("poison row", _poison)
MENU.add("poison row, and the newest state file lost", both(_poison, to_state(remove)), has_state)
MENU.add("session has another provider", _set(_PROVIDER, *_PROVIDERS), keeps("hdfs", "rocksdb", "changelog"))
MENU.add("session has changelogs switched", _set(_CHANGELOG, "true", "false"), keeps("rocksdb", "changelog"))
MENU.add(
    "shuffle partitions edited in the newest offsets",
    edit("offsets/{newest}", r'shuffle\.partitions":"2"', 'shuffle.partitions":"3"'),
    has_state,
)
MENU.add(
    "provider edited in the newest offsets",
    edit("offsets/{newest}", r"HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"),
    keeps("hdfs"),
)
MENU.add("settings removed from the newest offsets", edit("offsets/{newest}", r'"conf":\{[^}]*\}', '"conf":{}'))
MENU.add(
    "watermark edited in the newest offsets",
    edit("offsets/{newest}", r'"batchWatermarkMs":\d+', '"batchWatermarkMs":0'),
    lambda kind: kind.operator == "window",
)
MENU.add(
    "watermark edited in the newest commit",
    edit("commits/{newest}", r'"nextBatchWatermarkMs":\d+', '"nextBatchWatermarkMs":0'),
    lambda kind: kind.operator == "window",
)
MENU.add(
    "position edited in the newest offsets",
    edit("offsets/{newest}", r'"(logOffset|reservoirVersion|offset)":(\d+)', r'"\1":2'),
    reads("files", "delta", "rate"),
)
