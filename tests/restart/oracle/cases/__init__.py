"""The cases of the oracle, as data: which sample is damaged how, and which query is started on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from . import (
    as_made,
    contents,
    flipped,
    kafka,
    line_ends,
    links,
    logs,
    old_spark,
    operators,
    random_gaps,
    snapshots,
    state,
    strays,
    untrue,
    younger,
)
from .model import SAMPLES, Case


def _unique(cases: Iterable[Case]) -> Iterator[Case]:
    """Drop a case that does the same as an earlier one under another name."""
    seen = defaultdict[str, list[Case]](list)
    for case in cases:
        what = replace(case, name="", refusal=False, sync_only=False, store=case.settings or "default")
        if what not in seen[case.sample]:
            seen[case.sample].append(what)
            yield case


CASES: tuple[Case, ...] = tuple(
    _unique(
        chain(
            logs.gaps(),
            random_gaps.cases(),
            logs.damage(),
            state.cases(),
            as_made.cases(),
            operators.cases(),
            snapshots.cases(),
            old_spark.cases(),
            kafka.cases(),
            flipped.cases(),
            contents.cases(),
            strays.cases(),
            untrue.cases(),
            younger.cases(),
            links.cases(),
            line_ends.cases(),
        )
    )
)

__all__ = ["CASES", "SAMPLES", "Case"]
