"""What a seed stands for: a query, one or two disasters, and whether it was started once before anybody asked ckpt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from tests.laws.operator.disasters import MENU
from tests.laws.operator.queries import KINDS, Kind

SEEDS = 320
_TWO, _STARTED = 0.25, 0.25


@dataclass(frozen=True)
class Seed:
    number: int
    kind: Kind
    disasters: tuple[str, ...]
    started: bool  # once, after the disaster, before ckpt is asked

    def random(self) -> Random:
        """The choices of its disasters, such as which partition."""
        return Random(self.number)

    @property
    def recipe(self) -> dict[str, Any]:
        """What is recorded, and what the generator has to make again."""
        return {"query": self.kind.name, "disasters": [*self.disasters], "started": self.started}


@cache
def make_seed(number: int) -> Seed:
    """Each disaster comes in its turn, to a kind of query that it fits, alone or with another one."""
    rng, names = Random(f"operator {number}"), [*MENU]
    first = MENU[names[number % len(names)]]
    kinds = [kind for kind in KINDS if first.fits(kind)]
    (kind,) = rng.choices(kinds, [1 / kind.cost for kind in kinds])
    disasters = [first.name]
    if rng.random() < _TWO:
        others = [disaster.name for disaster in MENU.values() if disaster.fits(kind) and disaster is not first]
        disasters.append(rng.choice(others))
    return Seed(number, kind, tuple(disasters), rng.random() < _STARTED)


def fingerprint(recipes: Iterable[dict[str, Any]]) -> str:
    """A digest of recipes."""
    return hashlib.sha256(json.dumps([*recipes], sort_keys=True).encode()).hexdigest()[:16]
