"""Pseudo-random subsets of the offset and commit files, deleted; a fixed seed keeps the cases the same."""

from __future__ import annotations

import random
from collections.abc import Iterator

from . import logs, state
from .model import Case, delete_logs

SEED = 20261121
STATELESS = 80
STATEFUL = 30


def _subset(rng: random.Random, batches: range, share: float) -> set[int]:
    """Batches to delete: each with probability `share`, and half the time only among the newest four."""
    among = batches if rng.random() < 0.5 else batches[-4:]
    return {batch for batch in among if rng.random() < share}


def subsets(seed: int, count: int, batches: range) -> Iterator[tuple[list[int], list[int]]]:
    """Yield `count` different pairs (offsets to delete, commits to delete), never everything or nothing."""
    rng = random.Random(seed)
    seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    while len(seen) < count:
        shares = rng.choice([0.15, 0.4, 0.8]), rng.choice([0.15, 0.4, 0.8])
        offsets, commits = (tuple(sorted(_subset(rng, batches, share))) for share in shares)
        if rng.random() < 0.25:
            commits = tuple(sorted({*commits, *offsets}))
        if (offsets or commits) and (offsets, commits) not in seen and len(offsets) < len(batches):
            seen.add((offsets, commits))
            yield list(offsets), list(commits)


def cases() -> list[Case]:
    gaps = [
        Case(f"random-stateless-{number:02}", logs.SAMPLE, tuple(delete_logs(*subset)))
        for number, subset in enumerate(subsets(SEED, STATELESS, logs.ALL))
    ]
    gaps += [
        Case(f"random-stateful-{number:02}", state.DELTAS, tuple(delete_logs(*subset)), "aggregation")
        for number, subset in enumerate(subsets(SEED + 1, STATEFUL, range(state.L + 1)))
    ]
    return gaps
