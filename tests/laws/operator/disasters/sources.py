"""Disasters of the log of a file source, and of what sources still have."""

from __future__ import annotations

import json
from random import Random

from tests.laws.operator.disasters.harm import (
    HARMS,
    Menu,
    both,
    crash_before_the_sink,
    empty_folder,
    garble,
    harm_all,
    newest_delta_entry,
    reads,
    remove,
    remove_all,
    to_log,
)
from tests.laws.operator.queries import BATCHES, World, append_to_delta

MENU = Menu()

for _harm, _do in HARMS.items():
    MENU.add(f"newest sources/0 {_harm}", to_log("sources/0", 0, _do), reads("files"))
MENU.add("sources/0 lost", remove_all("sources/0"), reads("files"))
MENU.add("sources/ lost", remove_all("sources"), reads("files", "rate", "kafka"))
MENU.add("a hole in sources/0", lambda w, _: remove(w.checkpoint / "sources" / "0" / "2"), reads("files"))
MENU.add("first of sources/0 lost", lambda w, _: remove(w.checkpoint / "sources" / "0" / "0"), reads("files", "rate"))
MENU.add(
    "first of sources/0 garbled", lambda w, _: garble(w.checkpoint / "sources" / "0" / "0"), reads("files", "kafka")
)
MENU.add(
    "a source file of the planned batch deleted",
    both(crash_before_the_sink, lambda w, _: remove(w.into / f"{BATCHES - 1:03}.json")),
    reads("files"),
)
MENU.add(
    "old source files archived",
    harm_all(remove, lambda w: [w.into / f"{number:03}.json" for number in range(3)]),
    reads("files"),
)
MENU.add(
    "a source file written again",
    lambda w, _: (w.into / "001.json").write_text('{"row": 4}\n{"row": 5}\n{"row": 6}\n'),
    reads("files"),
)
MENU.add("source folder emptied", lambda w, _: empty_folder(w.into), reads("files"))


def _recreate_source(world: World, _: Random) -> None:
    """The table again, with the same rows in one commit."""
    remove(world.into)
    append_to_delta(world.into, world.added)


def _delta_source_goes_back(world: World, _: Random) -> None:
    """An older copy of the table is restored, and the rows come again, in another commit."""
    for version in range(3, 10):
        remove(world.into / "_delta_log" / f"{version:020}.json")
    append_to_delta(world.into, [number for number in world.added if number >= 12])


def _clean_delta_source(world: World, _: Random) -> None:
    from deltalake import DeltaTable

    table = DeltaTable(str(world.into))
    table.create_checkpoint()
    for file in sorted((world.into / "_delta_log").glob("*.json"))[:-1]:
        remove(file)


def _delete_from_delta_source(world: World, _: Random) -> None:
    from deltalake import DeltaTable

    DeltaTable(str(world.into)).delete("row = 5")


def _compact_delta_source(world: World, _: Random) -> None:
    from deltalake import DeltaTable

    table = DeltaTable(str(world.into))
    table.optimize.compact()
    DeltaTable(str(world.into)).vacuum(0, dry_run=False, enforce_retention_duration=False)


def _lose_planned_delta_file(world: World, rng: Random) -> None:
    crash_before_the_sink(world, rng)
    log = json.loads("[" + ",".join(newest_delta_entry(world.into).read_text().splitlines()) + "]")
    for action in log:
        if "add" in action:
            remove(world.into / action["add"]["path"])


MENU.add("source table created again", _recreate_source, reads("delta"))
MENU.add("source table restored from an older copy", _delta_source_goes_back, reads("delta"))
MENU.add("log of the source table cleaned", _clean_delta_source, reads("delta"))
MENU.add("rows of the source table deleted", _delete_from_delta_source, reads("delta"))
MENU.add("source table compacted and vacuumed", _compact_delta_source, reads("delta"))
MENU.add("a data file of the planned batch lost", _lose_planned_delta_file, reads("delta"))
MENU.add("source table gone", lambda w, _: remove(w.into), reads("delta"))


def _recreate_topic(world: World, _: Random) -> None:
    world.broker.delete(world.topic)
    world.broker.create(world.topic, 1)
    world.broker.fill(world.topic, len(world.added), range(1), iter(world.added))


def _shorten_topic(world: World, _: Random) -> None:
    world.broker.delete(world.topic)
    world.broker.create(world.topic, 1)
    fresh = [*range(len(world.added), len(world.added) + 5)]
    world.added += fresh
    world.broker.fill(world.topic, len(fresh), range(1), iter(fresh))


def _expire(world: World, _: Random) -> None:
    """Retention takes rows that were not read."""
    world.add(1)
    world.broker.expire(world.topic, len(world.added) - 1, range(1))


MENU.add("topic created again and filled", _recreate_topic, reads("kafka"))
MENU.add("topic created again, shorter", _shorten_topic, reads("kafka"))
MENU.add("unread records expired", _expire, reads("kafka"))
MENU.add(
    "planned records expired",
    both(crash_before_the_sink, lambda w, _: w.broker.expire(w.topic, len(w.added), range(1))),
    reads("kafka"),
)
MENU.add("a partition added to the topic", lambda w, _: w.broker.add_partition(w.topic, 2), reads("kafka"))
