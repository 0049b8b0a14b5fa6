"""Known bugs of Spark's releases that a checkpoint can hit: ``bugs.toml``, in which every entry was seen.

Seen means run: on the first and the last release that is said to have it, and on the one that is said to have it fixed
(``tests/inspection/bugs``). A checkpoint can hit a bug if its files have what the bug needs.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.registry import offsets_of
from ckpt.formats.operators import OperatorName
from ckpt.formats.statefiles import JOIN_STORES
from ckpt.formats.types import named_fields
from ckpt.model import Operator, Provider
from ckpt.restart import diagnoses
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Finding

_BY_COLUMN = {
    "expiresAtMicros": OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
    "__dummy__": OperatorName.DEDUPLICATION,
    "groupState": OperatorName.GROUPS,
    "sessionStartTime": OperatorName.SESSIONS,
}
"""Columns of state that show the operator where no metadata names it: Spark before 4.0."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug of some releases."""

    id: str  # of Spark's issue
    title: str
    ranges: tuple[tuple[str, str, str], ...]  # the first and the last release with it, and the first without
    happens: str
    shows: str  # how it shows afterwards
    avoid: str = ""  # what avoids it on such a release; empty: only another release
    operators: tuple[OperatorName, ...] = ()  # one of them is there
    several_operators: bool = False
    several_sources: bool = False
    provider: Provider | None = None
    errors: tuple[str, ...] = ()  # words that its error has, all of them

    def fixed_for(self, release: str) -> str | None:
        """The release of the same minor version without it; None where this release does not have it."""
        number = _number(release)
        if len(number) < 3:
            return None
        return next((f for first, last, f in self.ranges if _number(first) <= number <= _number(last)), None)

    def can_hit(self, checkpoint: Checkpoint) -> bool:
        """Tell whether a checkpoint has what it needs, as far as files tell."""
        named = [_name(operator) for operator in checkpoint.operators]
        newest, state = checkpoint.offsets.newest, checkpoint.state
        return (
            (not self.operators or not set(self.operators).isdisjoint(named))
            and (not self.several_operators or len(named) > 1)
            and (not self.several_sources or (newest is not None and len([*offsets_of(newest)]) > 1))
            and (self.provider is None or (state is not None and state.provider is self.provider))
        )


@cache
def known_bugs() -> tuple[Bug, ...]:
    """Every entry of the table."""
    table = tomllib.loads(files("ckpt.inspection").joinpath("bugs.toml").read_text())
    return tuple(map(_read, table["bug"]))


def find_bugs(checkpoint: Checkpoint, releases: Iterable[str]) -> Iterator[Finding]:
    """Find the bugs of these releases that a start of the query on this checkpoint can hit."""
    for release in releases if not checkpoint.links_out else ():
        for bug in known_bugs():
            fixed = bug.fixed_for(release)
            if fixed is not None and bug.can_hit(checkpoint):
                detail = f"Spark {release} has {bug.id}: {bug.happens}"
                advice = BOOK.advise("known_bug_avoided" if bug.avoid else "known_bug", fixed=fixed, avoid=bug.avoid)
                yield Finding(diagnoses.starting.KNOWN_BUG, "", detail, advice)


def _read(entry: dict[str, Any]) -> Bug:
    ranges = tuple((first, last, fixed) for first, last, fixed in entry.pop("ranges"))
    operators, provider = map(OperatorName, entry.pop("operators", ())), entry.pop("provider", None)
    errors = tuple(entry.pop("errors", ()))
    of = None if provider is None else Provider(provider)
    return Bug(**entry, ranges=ranges, operators=tuple(operators), provider=of, errors=errors)


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)[:3]))


def _name(operator: Operator) -> str | None:
    """The name of an operator: that of its metadata, or what its state shows."""
    if operator.name is not None:
        return operator.name
    if any(store.name in JOIN_STORES for store in operator.stores):
        return OperatorName.JOIN
    schemas = [schema for store in operator.stores for schema in (store.key_schema, store.value_schema)]
    columns = {name for schema in schemas if isinstance(schema, dict) for name, _ in named_fields(schema)}
    return next((kind for column, kind in _BY_COLUMN.items() if column in columns), OperatorName.AGGREGATION)
