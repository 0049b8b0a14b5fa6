"""Known bugs of Spark's releases that a checkpoint can hit: ``bugs.toml``, in which every entry was seen.

Seen means run: on the first and the last release that is said to have it, and on the one that is said to have it fixed
(``tests/inspection/bugs``). A checkpoint can hit a bug if its files have what the bug needs. The releases of a bug of a
connector are the connector's, and no file says which one the query uses: its finding names them.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.sources.registry import offsets_of, source_type
from ckpt.checkpoint.state.rewritable import recognise_operator
from ckpt.errors import parse_choices
from ckpt.formats.operators import TTL, OperatorName
from ckpt.formats.types import named_fields
from ckpt.model import Operator
from ckpt.restart import diagnoses
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Finding
from ckpt.versions import Spark

_PARTS = 3  # of the number of a release, such as ``4.2.1``
_BY_VALUE = {
    "expiresAtMicros": OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
    "__dummy__": OperatorName.DEDUPLICATION,
}
"""Columns of values that show which deduplication it is, where no metadata names the operator."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug of some releases."""

    id: str  # of Spark's issue
    title: str
    ranges: tuple[tuple[str, str, str], ...]  # the first and the last release with it, and the first without
    happens: str
    shows: str  # how it shows afterwards
    avoid: str = ""  # what avoids it on such a release; empty: only another release
    connector: str = ""  # whose releases these are; empty: Spark's own
    spark: str = ""  # the minor version that they go with; empty: that of the same number
    source: str = ""  # the kind of a source
    uncommitted: bool = False  # a batch is planned and not committed
    operators: tuple[OperatorName, ...] = ()  # one of them is there
    several_operators: bool = False
    several_sources: bool = False
    stateless: bool = False
    nested_state: bool = False  # a column of a value is a struct, an array or a map
    keys_only: bool = False  # a value has no column
    key: tuple[str, ...] = ()  # names or types of columns: a key has one of them, or those of two operators if several
    variable: str = ""  # the kind of a variable of transformWithState
    numbered_folder: bool = False  # whose number is above the next batch, in the log of offsets or of commits

    def range_on(self, release: str) -> tuple[str, str, str] | None:
        """The first and the last release with it, and the first without; None where a release of Spark is free of it.

        Those of a connector go with all releases of a minor version, or with the one of the same number.
        """
        number = _number(release)
        if len(number) < _PARTS:
            return None
        if self.spark:
            return self.ranges[-1] if number[:2] == _number(self.spark) else None
        for bounds in self.ranges:
            first, last, fixed = map(_number, bounds)
            if first <= number <= last or (self.connector and last < number < fixed):
                return bounds
        return None

    def can_hit(self, checkpoint: Checkpoint) -> bool:
        """Tell whether a checkpoint has what it needs, as far as files tell."""
        named = [_name(operator) for operator in checkpoint.operators]
        stores = [store for operator in checkpoint.operators for store in operator.stores]
        columns = map(_columns_of_keys, checkpoint.operators)
        kinds = {variable.kind for operator in checkpoint.operators for variable in operator.variables}
        newest = checkpoint.offsets.newest
        return (
            (not self.operators or not set(self.operators).isdisjoint(named))
            and (not self.several_operators or len(named) > 1)
            and (not self.several_sources or (newest is not None and len([*offsets_of(newest)]) > 1))
            and (not self.stateless or not named)
            and (not self.nested_state or any(map(is_nested, checkpoint.operators)))
            and (not self.keys_only or any(not [*named_fields(store.value_schema)] for store in stores))
            and (not self.key or sum(not keys.isdisjoint(self.key) for keys in columns) > self.several_operators)
            and (not self.variable or self.variable in kinds)
            and (not self.numbered_folder or _has_numbered_folder(checkpoint))
            and (not self.source or (newest is not None and self.source in map(source_type, offsets_of(newest))))
            and (not self.uncommitted or checkpoint.offsets.ids[-1:] > checkpoint.commits.ids[-1:])
        )


@cache
def known_bugs() -> tuple[Bug, ...]:
    """Every entry of the table."""
    table = tomllib.loads(files("ckpt.inspection").joinpath("bugs.toml").read_text())
    return tuple(map(_read, table["bug"]))


def parse_releases(spark: Spark | str | Sequence[Spark | str]) -> tuple[str, ...]:
    """Check versions, or releases such as ``4.2.1``, and give them as they were typed. Raises UsageError."""
    parse_choices(Spark, spark, "spark")
    return (spark,) if isinstance(spark, str) else tuple(spark)


def find_bugs(checkpoint: Checkpoint, releases: Iterable[str]) -> Iterator[Finding]:
    """Find the bugs of these releases that a start of the query on this checkpoint can hit."""
    for release in releases if not checkpoint.links_out else ():
        if len(_number(release)) == _PARTS and release not in list_tried_releases():
            tried = ", ".join(list_tried_releases())
            detail = f"Spark {release} was not run: the table of known bugs covers {tried}"
            yield Finding(diagnoses.starting.BUGS_UNKNOWN, "", detail)
        for bug in known_bugs():
            bounds = bug.range_on(release)
            if bounds is not None and bug.can_hit(checkpoint):
                first, last, fixed = bounds
                if not bug.spark and _number(release) > _number(last):
                    last = release  # of a connector, which goes with the Spark of the same number
                span = first if first == last else f"{first} to {last}"
                together = f" with {bug.connector} {span}" if bug.connector else ""
                detail = f"Spark {release}{together} has {bug.id}: {bug.happens}"
                without = f"{bug.connector if bug.spark else 'Spark'} {fixed}"
                advice = BOOK.advise("known_bug_avoided" if bug.avoid else "known_bug", fixed=without, avoid=bug.avoid)
                yield Finding(diagnoses.starting.KNOWN_BUG, "", detail, advice)


@cache
def list_tried_releases() -> tuple[str, ...]:
    """The releases that the table names, oldest first: each bug of Spark was tried on each of them."""
    spark = (parts for bug in known_bugs() if not bug.connector for parts in bug.ranges)
    return tuple(sorted({release for parts in spark for release in parts}, key=_number))


def is_nested(operator: Operator) -> bool:
    """Tell whether a value of its state has a column of columns; that of a time to live is Spark's, not the query's."""
    families = (family for store in operator.stores for family in store.column_families)
    values = (dict(named_fields(family.value_schema)) for family in families)
    bare = (dict(named_fields(value["value"])) if TTL in value else value for value in values)
    return not all(isinstance(kind, str) for value in bare for kind in value.values())


def _read(entry: dict[str, Any]) -> Bug:
    ranges = tuple((first, last, fixed) for first, last, fixed in entry["ranges"])
    operators = tuple(map(OperatorName, entry.get("operators", ())))
    return Bug(**{**entry, "ranges": ranges, "operators": operators, "key": tuple(entry.get("key", ()))})


def _columns_of_keys(operator: Operator) -> set[str]:
    """List the names and the types of the columns of an operator's keys."""
    fields = (field for store in operator.stores for field in named_fields(store.key_schema))
    return {text for name, kind in fields for text in (name, str(kind))}


def _has_numbered_folder(checkpoint: Checkpoint) -> bool:
    """Tell whether a log has a folder that Spark 3.5.0 takes for its newest batch; the next one's stops any release."""
    planned = checkpoint.offsets.ids[-1] if checkpoint.offsets.ids else -1
    next_batch = planned + 1 if planned in checkpoint.commits.ids else planned
    names = (name for log in (OFFSETS, COMMITS) for name in checkpoint.listing.subfolders(log))
    return any(name.isdecimal() and name == str(int(name)) and int(name) > next_batch for name in names)


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)[:_PARTS]))


def _name(operator: Operator) -> str:
    """The name of an operator; before Spark 4.0, which recorded none, what its state shows."""
    values = {name for store in operator.stores for name, _ in named_fields(store.value_schema)}
    deduplicates = next((kind for column, kind in _BY_VALUE.items() if column in values), OperatorName.AGGREGATION)
    return recognise_operator(operator) or deduplicates
