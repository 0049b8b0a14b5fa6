"""Records where each column of new state comes from, and what a person says about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from ckpt.advice import Option
from ckpt.errors import UsageError
from ckpt.formats.types import fields_of
from ckpt.model import ColumnFamily, Json
from ckpt.new.evolve.book import BOOK
from ckpt.query.aggregates import Merge


class MadeWindow(NamedTuple):
    """A window of one old window or several in a row, in microseconds."""

    part_us: int  # the length of an old one
    length_us: int
    slide_us: int
    offset_us: int


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """The origin of a column of new state."""

    old: int | None  # the place of a column of the old state; None: all rows have the constant
    constant: Json = None  # as in ``DescribedBuffer.empty``, or the text that a person gave
    derived: bool = False  # the column of another function: as a number of this type, the constant where it is NULL
    window: MadeWindow | None = None  # the column is the window of a row that may be a part of several new ones
    given: bool = False  # the constant is a text that a person gave
    fields: "tuple[ColumnOrigin, ...] | None" = None  # a struct of these fields of the column


@dataclass(frozen=True, slots=True)
class ColumnMerge:
    """How columns of rows are merged that get the same key."""

    how: Merge
    first: int  # place of the first column
    count: int
    element: Json = None  # the type of the elements of a list or a set


@dataclass(frozen=True, slots=True)
class LongerSessions:
    """Session windows whose gap is longer: those of a group that now meet become one."""

    lead: int  # columns of values in front of those of aggregates
    window: int  # which of them is the session
    added_us: int  # microseconds


@dataclass(frozen=True, slots=True)
class FamilyColumns:
    """A column family of a store of new state."""

    old: ColumnFamily
    new_name: str | None  # None: it is left out
    value_schema: Json = None  # a StructType in Spark's JSON
    value: tuple[ColumnOrigin, ...] | None = None  # None: values stay as they are
    is_list: bool = False  # a value is a list of such rows
    key_schema: Json = None  # where the store has other keys: a StructType in Spark's JSON
    indexed: bool = False  # as of ``StoreColumns``

    @property
    def changes(self) -> bool:
        """True if it has another name or other values."""
        return self.old.name != self.new_name or self.value is not None


@dataclass(frozen=True, slots=True)
class StoreColumns:
    """The columns of a store of new state."""

    name: str
    key_schema: Json  # StructTypes in Spark's JSON
    value_schema: Json
    key: tuple[ColumnOrigin, ...] | None = None  # None: keys stay as they are
    value: tuple[ColumnOrigin, ...] | None = None  # None: likewise
    merges: tuple[ColumnMerge, ...] | None = None  # rows may get the same key; () if they are alike: one of them stays
    indexed: bool = False  # a key ends with the index of a row of a join, which is no part of the grouping key
    sessions: LongerSessions | None = None  # with ``merges``, which number the columns after the leading ones
    families: tuple[FamilyColumns, ...] = ()  # of a store that has any

    @property
    def has_no_key(self) -> bool:
        """True if the new key has no columns: its only row is in partition 0."""
        return not self.families and not fields_of(self.key_schema)


@dataclass(frozen=True, slots=True)
class ColumnChoices:
    """The choices of a person about columns, as ``ckpt state show`` names them; it is noted which of them applied."""

    mapped: Mapping[str, str] = field(default_factory=dict)  # old column, or ``-``, by new column
    defaults: Mapping[str, str] = field(default_factory=dict)  # value by new key column
    used: set[str] = field(default_factory=set)  # options with their column

    def find_source(self, column: str) -> str | None:
        """Find the old column, or ``-``, that somebody named for a new one."""
        if column in self.mapped:
            self.used.add(f"map_column {column}")
        return self.mapped.get(column)

    def find_default(self, *names: str) -> str | None:
        """Find the value that somebody gave a new column, by the first of its names that has one."""
        for name in names:
            if name in self.defaults:
                self.used.add(f"default {name}")
                return self.defaults[name]
        return None

    def check_used(self) -> None:
        """Raise UsageError for a word that named no column that changes."""
        for option, columns in (("map_column", self.mapped), ("default", self.defaults)):
            for column in columns:
                if f"{option} {column}" not in self.used:
                    named = {"option": Option(option), "column": column}
                    raise UsageError.of("{option}: no operator that keeps its state can use column {column}", **named)


def parse_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Parse ``OLD=NEW`` words: the old column, or ``-``, by the new one. Raises UsageError."""
    mapped: dict[str, str] = {}
    for word in pairs:
        old, equals, new = word.partition("=")
        if not (old and equals and new) or new in mapped:
            raise UsageError(BOOK.text("evolve_map_column", word=word))
        mapped[new] = old
    return mapped


def read_constant(name: str, kind: Json, origin: ColumnOrigin) -> Any:
    """Read the constant of a column of this type. Raises UsageError where a person gave it, and it is none."""
    if origin.constant is None:
        return None
    if origin.given:
        from ckpt.state.native.lookup import parse_typed  # not at the top: in place needs none

        return parse_typed(name, kind, str(origin.constant), "default")
    if kind == "binary":
        return bytes.fromhex(str(origin.constant))
    return Decimal(str(origin.constant)) if str(kind).startswith("decimal") else origin.constant


def is_nullable(field: Json) -> bool:
    """Tell whether a field of a StructType may be NULL."""
    return not (isinstance(field, dict) and field.get("nullable") is False)
