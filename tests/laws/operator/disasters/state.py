"""Disasters of the state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.laws.operator.disasters.harm import (
    HARMS,
    Menu,
    both,
    cut,
    each,
    empty,
    empty_folder,
    flip,
    flip_unnoticed_by_its_checksum,
    has_state,
    keeps,
    remove,
    remove_all,
    to_state,
)
from tests.laws.operator.queries import BATCHES, World

MENU = Menu()


for _harm, _do in {**HARMS, "flipped": flip, "flipped under its checksum": flip_unnoticed_by_its_checksum}.items():
    MENU.add(f"newest state file {_harm}", to_state(_do), has_state)
MENU.add("newest state files empty in every partition", to_state(empty, everywhere=True), has_state)
MENU.add("newest state files lost in every partition", to_state(remove, everywhere=True), has_state)
MENU.add("state file before the newest lost", to_state(remove, 1), lambda kind: kind.stateful and kind.retained > 2)
MENU.add("state file before the newest cut", to_state(cut, 1), lambda kind: kind.stateful and kind.retained > 2)
MENU.add("first state file lost", to_state(remove, BATCHES - 1), lambda kind: kind.stateful and kind.retained > 2)
MENU.add(
    "two newest state files lost",
    both(to_state(remove, everywhere=True), to_state(remove, 1, everywhere=True)),
    has_state,
)
MENU.add(
    "a partition's folder lost", lambda w, rng: remove(w.checkpoint / "state" / "0" / str(rng.randrange(2))), has_state
)
MENU.add(
    "a partition's folder emptied",
    lambda w, rng: empty_folder(w.checkpoint / "state" / "0" / str(rng.randrange(2))),
    has_state,
)
MENU.add("state/ lost", lambda w, _: remove(w.checkpoint / "state"), has_state)
MENU.add("state/0 lost", lambda w, _: remove(w.checkpoint / "state" / "0"), has_state)
MENU.add("operator metadata lost", remove_all("state/0/_metadata"), has_state)
MENU.add("operator metadata empty", lambda w, _: each(w, "state/0/_metadata/**/*", empty), has_state)
MENU.add(
    "state schemas lost",
    remove_all("state/0/0/_metadata", "state/0/0/*/_metadata", "state/0/_stateSchema"),
    has_state,
)
MENU.add(
    "state schemas empty",
    both(
        lambda w, _: each(w, "state/0/0/**/_metadata/schema", empty),
        lambda w, _: each(w, "state/0/_stateSchema/**/*", empty),
    ),
    has_state,
)
MENU.add("an SST file lost", lambda w, rng: _sst(w, rng, remove), keeps("rocksdb"))
MENU.add("an SST file cut", lambda w, rng: _sst(w, rng, cut), keeps("rocksdb"))
MENU.add("an SST file flipped", lambda w, rng: _sst(w, rng, flip), keeps("rocksdb"))
MENU.add(
    "all SST files of a partition lost",
    lambda w, rng: each(w, f"state/0/{rng.randrange(2)}/**/SSTs", remove),
    keeps("rocksdb"),
)
MENU.add(
    "a store of the join lost",
    lambda w, _: each(w, "state/0/0/right-keyWithIndexToValue", remove),
    lambda kind: kind.operator == "join",
)


def _sst(world: World, rng: Random, harm: Callable[[Path], None]) -> None:
    harm(rng.choice(sorted(world.checkpoint.glob("state/0/*/**/*.sst"))))
