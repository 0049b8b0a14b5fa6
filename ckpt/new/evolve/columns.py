"""Plans the columns of a changed operator's state: each comes from a column of the old state, or is a constant.

Columns are matched by what both queries compute where the old query is known, else by their names in the state schema.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

from ckpt.advice import Hole, Words, join, plain, words
from ckpt.changes.plan import NoWay
from ckpt.errors import one_line
from ckpt.formats.operators import TRANSFORM_WITH_STATE, OperatorName, list_variables
from ckpt.formats.statefiles import JOIN_ROWS, TIMED_KEYS, TIMED_ROWS
from ckpt.formats.types import fields_of, named_fields, struct_of
from ckpt.model import ColumnFamily, Json, Operator, Store
from ckpt.new.evolve.book import BOOK, ask_old
from ckpt.new.evolve.fields import FieldPlanner, Refuse, plan_variables
from ckpt.new.evolve.origins import (
    ColumnChoices,
    ColumnMerge,
    ColumnOrigin,
    FamilyColumns,
    LongerSessions,
    MadeWindow,
    StoreColumns,
    is_nullable,
)
from ckpt.query.aggregates import MADE_OF, Merge, find_element, find_merge
from ckpt.query.compare_checkpoint import fits_schema
from ckpt.query.compare_queries import (
    Knowledge,
    PartComparison,
    PartKind,
    bare,
    find_longer_gap,
    is_event_time,
    is_made_of,
    spell,
    takes_values,
)
from ckpt.query.description import DescribedAggregate, DescribedOperator, spell_schema
from ckpt.state.reading.columns import flat_columns
from ckpt.texts import instant

_UNNAMED = "_groupingexpression"  # Spark's name for a key that is no plain column
_SESSION = "spark.sessionWindow"  # in the metadata of the column of a session
_NULL = "null"  # as a person writes the value of a new column
_MATCHED = "matched"  # of a join side: whether a row was joined already


_SINGLE = (
    OperatorName.AGGREGATION,
    OperatorName.DEDUPLICATION,
    OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
    OperatorName.GROUPS_IN_PANDAS,
)
"""Operators of one store whose values have a row for each key."""


GETS_EXPIRY = (OperatorName.DEDUPLICATION, OperatorName.DEDUPLICATION_WITHIN_WATERMARK)
"""An operator before and after, which keeps its keys."""


class ColumnPlan(NamedTuple):
    """The stores of an operator whose columns change, and the verdict of each part."""

    stores: tuple[StoreColumns, ...]
    parts: tuple[PartComparison, ...]


def _list_types(operator: DescribedOperator) -> list[list[str]]:
    sides = () if operator.join is None else (operator.join.left, operator.join.right)
    expressions = (operator.keys or (), *(part for side in sides for part in (side.keys, side.columns)))
    buffers = [f"{name} {kind}" for name, kind in _list_buffers(operator.aggregates or ())]
    return [*([bare(each.type) for each in part] for part in expressions), buffers]


class OtherOld(NoWay):
    """Raised where the description of the old query is of another one."""

    def __init__(self, problem: str) -> None:
        super().__init__(BOOK.text("evolve_other_old", problem=one_line(problem)))


@dataclass(frozen=True, slots=True)
class _StorePair:
    """A store before and after, or a column family of the only store of a join (state format 3)."""

    old: Store | ColumnFamily
    new_key: Json
    new_value: Json

    def list_columns(self, word: str) -> tuple[list[tuple[str, Json]], list[tuple[str, Json]]]:
        pairs = (self.old.key_schema, self.new_key) if word == "key" else (self.old.value_schema, self.new_value)
        old, new = (list(named_fields(schema)) for schema in pairs)
        return old, new

    def fits(self, word: str) -> bool:
        """Tell whether Spark reads the old columns as the new ones: a column that may be NULL now had no NULL."""
        if word == "key":
            return fits_schema(self.new_key, self.old.key_schema)
        return fits_schema(self.new_value, self.old.value_schema)

    def name_columns(self, word: str) -> tuple[dict[str, int], dict[str, int]]:
        """Map the names that ``ckpt state show`` gives the old and new columns of keys or values to their places."""
        both = []
        for key, value in ((self.old.key_schema, self.old.value_schema), (self.new_key, self.new_value)):
            columns = flat_columns(struct_of([("key", key), ("value", value)])).kept
            own = [column for column in columns if column.path[0] == word and len(column.places) == 2]
            both.append({column.name: column.places[1] for column in own})
        return both[0], both[1]


@dataclass(frozen=True, slots=True)
class ColumnPlanner:
    """Plans the new columns of an operator that keeps its state."""

    has: Operator
    wants: DescribedOperator
    old: DescribedOperator | None  # None: nobody knows what the state is computed from
    parts: tuple[PartComparison, ...]  # of both operators
    choices: ColumnChoices
    avro: bool  # variables are encoded so
    expires_ms: int | None  # when keys expire that had no expiry

    def _refuse(self, why: str | Words) -> NoWay:
        return NoWay(BOOK.text("evolve_refused", id=self.has.id, kind=self.wants.name, why=why))

    def _refuse_part(self, part: PartComparison, because: str) -> NoWay:
        return self._refuse(plain(part.why) + f" ({part.verdict}){because}")

    def plan(self) -> ColumnPlan:
        """Plan stores and verdicts; no store where all columns stay as they are. Raises NoWay."""
        plan = self._plan_stores()
        known = (self.wants.metadata_version or 1) == (2 if self.has.schema_paths else 1)
        mixed = [part.why for part in plan.parts if part.silent and part.kind in (PartKind.KEY, PartKind.VALUE)]
        if (plan.stores and (self.has.name is None or not known)) or (mixed and not plan.stores):
            changed = mixed or [part.why for part in plan.parts if part.old != part.new]
            raise self._refuse(join([*changed, "its state has a format in which ckpt does not change columns"], "; "))
        if not self.wants.stores and self.old is not None and _list_types(self.old) != _list_types(self.wants):
            raise self._refuse("its columns differ, and Spark before 4.0 does not show which state a query keeps")
        return plan

    def _plan_stores(self) -> ColumnPlan:
        for part in self.parts:
            made = self.wants.stores and (self._has_made_windows or self._longer_gap_us is not None)
            if part.kind is PartKind.WINDOW and not made:
                fits = all(sides.fits(word) for sides in self._pair_stores() for word in ("key", "value"))
                spark = "start and mix old and new values" if fits else "refuse to start"
                raise self._refuse_part(part, f". Spark would {spark}")
        name, pairs = self.wants.name, self._pair_stores()
        if name in _SINGLE:
            return self._plan_single(*pairs) if pairs else ColumnPlan((), self.parts)
        if name == OperatorName.SESSIONS:
            return self._plan_sessions(*pairs) if pairs else ColumnPlan((), self.parts)
        if name == OperatorName.JOIN:
            return self._plan_join(pairs)
        if name in TRANSFORM_WITH_STATE and self.has.variables and list_variables(self.wants.properties):
            stores, parts = plan_variables(self.has, self.wants, self.choices, self._refuse, avro=self.avro)
            of_rows = (part for part in self.parts if part.kind is PartKind.ROWS)
            return ColumnPlan(stores, (*parts, *of_rows))
        for part in self.parts:
            if part.kind is not PartKind.ROWS and (part.silent or part.old != part.new):
                raise self._refuse_part(part, ", and ckpt does not change columns of this operator")
        fits = all(_have_types(*sides.list_columns(word)) for sides in pairs for word in ("key", "value"))
        if self.old is None and not fits:
            raise self._refuse("its columns differ, and ckpt does not change columns of this operator")
        return ColumnPlan((), self.parts)

    @property
    def _has_made_windows(self) -> bool:
        aggregates = self.wants.name == OperatorName.AGGREGATION
        return aggregates and self.old is not None and is_made_of(self.old.window, self.wants.window)

    @property
    def _longer_gap_us(self) -> int | None:
        """Return by how many microseconds the gap of sessions is longer; None: it is not."""
        if self.old is None or self.wants.name != OperatorName.SESSIONS:
            return None
        return find_longer_gap(self.old, self.wants)

    def _check_certain(self, part: PartComparison) -> None:
        """Raise NoWay for a column whose old values are none of the new one, as far as can be told."""
        if part.silent and part.verdict in (Knowledge.IMPOSSIBLE, Knowledge.UNKNOWN):
            raise self._refuse_part(part, ". Spark would start and mix old and new values")

    @property
    def _has_families(self) -> bool:
        return any(store.column_families for store in self.has.stores)

    def _pair_stores(self) -> list[_StorePair]:
        old: Sequence[Store | ColumnFamily] = self.has.stores
        new = {store.name: store.families[0] for store in self.wants.stores if len(store.families) == 1}
        if self._has_families:
            if self.wants.name != OperatorName.JOIN or len(old) > 1:
                return []
            old = self.has.stores[0].column_families
            new = {family.name: family for store in self.wants.stores for family in store.families}
        if new.keys() != {each.name for each in old}:
            return []
        return [_StorePair(each, new[each.name].key, new[each.name].value) for each in old]

    def _plan_single(self, sides: _StorePair) -> ColumnPlan:
        key, merges, key_parts = self._plan_key(sides)
        value_parts: tuple[PartComparison, ...]
        if self.wants.name == OperatorName.AGGREGATION:
            value, value_parts = self._plan_aggregates(sides)
        elif self.wants.name == OperatorName.GROUPS_IN_PANDAS:
            planner = FieldPlanner(self.choices, self._refuse, shown="value_groupState_")
            value = planner.plan(sides.old.value_schema, sides.new_value)
            value_parts = tuple(planner.parts)
        elif (self.has.name, self.wants.name) == GETS_EXPIRY:
            value, value_parts = self._plan_expiry(sides)
        else:
            value, value_parts = None, ()
        gone = next((part.why for part in key_parts if part.new is None), "groups become one")
        merging = plan_merges(self.wants, gone, self._refuse, value) if merges else None
        others = tuple(part for part in self.parts if part.kind not in (PartKind.KEY, PartKind.VALUE))
        parts = (*key_parts, *value_parts, *others)
        if key is None and value is None:
            return ColumnPlan((), parts)
        return ColumnPlan((StoreColumns(sides.old.name, sides.new_key, sides.new_value, key, value, merging),), parts)

    def _plan_sessions(self, sides: _StorePair) -> ColumnPlan:
        """Plan the aggregates of session windows; their keys, which values repeat, stay as they are."""
        others = tuple(part for part in self.parts if part.kind is not PartKind.VALUE)
        lead = len(sides.list_columns("key")[0])
        added_us = self._longer_gap_us
        moved = any(part.old != part.new or part.silent for part in others if part.kind is PartKind.KEY)
        repeated = [[(name, bare(kind)) for name, kind in each[:lead]] for each in sides.list_columns("value")]
        if moved or not _have_types(*sides.list_columns("key")) or repeated[0] != repeated[1]:
            raise self._refuse("its keys differ, and ckpt does not change session keys")
        own = ColumnFamily(sides.old.name, sides.old.key_schema, _cut(sides.old.value_schema, lead))
        value, value_parts = self._plan_aggregates(_StorePair(own, sides.new_key, _cut(sides.new_value, lead)))
        if value is None and added_us is None:
            return ColumnPlan((), (*others, *value_parts))
        merges = None if added_us is None else plan_merges(self.wants, "sessions become one", self._refuse, value)
        count = len(sides.list_columns("value")[1]) - lead
        value = tuple(map(ColumnOrigin, range(count))) if value is None else value
        shifted = (origin if origin.old is None else replace(origin, old=origin.old + lead) for origin in value)
        origins = (*map(ColumnOrigin, range(lead)), *shifted)
        sessions = None if added_us is None else _find_sessions(sides.new_value, lead, added_us, self._refuse)
        columns = StoreColumns(sides.old.name, sides.new_key, sides.new_value, None, origins, merges, sessions=sessions)
        return ColumnPlan((columns,), (*others, *value_parts))

    def _plan_key(self, sides: _StorePair) -> tuple[tuple[ColumnOrigin, ...] | None, bool, tuple[PartComparison, ...]]:
        old, new = sides.list_columns("key")
        if self.old is not None and self.wants.keys is None and old == new and sides.fits("key"):
            return None, False, ()
        if self.old is not None and self.old.keys is not None and self.wants.keys is not None:
            if len(self.old.keys) != len(old) or len(self.wants.keys) != len(new):
                raise self._refuse("ckpt cannot tell which key column is which")
            why = {part.new: part for part in self.parts if part.kind is PartKind.KEY}
            matching = {number: part.old for number, part in why.items()}
        else:
            matching, why = self._match_key_names(old, new), {}
        origins, judged = [], []
        defaults = {ordinal: name for name, ordinal in sides.name_columns("key")[1].items()}
        for number, (name, kind) in enumerate(new):
            before, part = matching.get(number), why.get(number)
            text = self.choices.find_default(defaults.get(number, name), name)
            if text is not None:
                if text == _NULL and not is_nullable((fields_of(sides.new_key) or [])[number]):
                    raise self._refuse(f"{name} is never NULL in the query")
                origins.append(ColumnOrigin(None, None if text == _NULL else text, given=True))
                explanation = f"{name} is {text} in the state: complete if every row of the old query had this value"
                judged.append(PartComparison(PartKind.KEY, None, number, Knowledge.UNKNOWN, explanation))
                continue
            if before is None:
                word = defaults.get(number, name)
                missing = f"the key has {name}, but no key in the state has it"
                remedy = words("; {--default=} gives all of them one value", default={word: Hole.VALUE})
                one_value = isinstance(kind, str) and not self._replaces_key(number, matching)
                raise self._refuse(plain(missing if part is None else part.why) + (remedy if one_value else ""))
            if part is not None:
                self._check_certain(part)
            self._check_type(old[before], new[number], "key")
            origins.append(ColumnOrigin(before, window=self._find_window(number)))
            judged.append(
                part or PartComparison(PartKind.KEY, before, number, Knowledge.UNKNOWN, f"{name}, by its name")
            )
        taken = {origin.old for origin in origins}
        judged += self._judge_gone_keys(sides, taken)
        window = next((origin.window for origin in origins if origin.window), None)
        changed = tuple(origins) if window else _drop_same(origins, sides, "key")
        if changed is not None and not old:
            raise self._refuse("its groups are not in the state, where all rows are in one group")
        merged = window is not None and window.length_us > window.part_us
        return changed, merged or len(taken - {None}) < len(old), tuple(judged)

    def _replaces_key(self, number: int, matching: Mapping[int | None, int | None]) -> bool:
        """Tell whether a key column is another expression of one that is gone, or nothing merges the groups."""
        if self.old is None or self.old.keys is None or self.wants.keys is None:
            return False
        gone = [key.sql for before, key in enumerate(self.old.keys) if before not in matching.values()]
        wanted, *was = (set(re.findall(r"[\w%]+(?=@)", sql)) for sql in (self.wants.keys[number].sql, *gone))
        return any(wanted & columns or self.wants.name == OperatorName.GROUPS_IN_PANDAS for columns in was)

    def _plan_expiry(self, sides: _StorePair) -> tuple[tuple[ColumnOrigin, ...], tuple[PartComparison, ...]]:
        """Let all keys expire when the newest of them does: Spark adds the delay to the time of each first row."""
        ((name, _),) = sides.list_columns("value")[1]
        if (text := self.choices.find_default(f"value_{name}", name)) is not None:
            set_for_all = words("{name} is {text} for all keys, as {--default} says", name=name, text=text)
            part = PartComparison(PartKind.VALUE, None, 0, Knowledge.UNKNOWN, set_for_all)
            return (ColumnOrigin(None, text, given=True),), (part,)
        if self.expires_ms is None:
            raise self._refuse(BOOK.text("evolve_no_expiry", default={name: Hole.VALUE}))
        timed = self.old is not None and any(map(is_event_time, fields_of(sides.old.key_schema) or ()))
        why = f"all keys in the state expire at {instant(self.expires_ms)}, together with those of the newest rows"
        if not timed:  # else a row that repeats a key has its time
            why = f"{why}: until then, a row that repeats an older one is also dropped"
        verdict = Knowledge.FULL if timed else Knowledge.UNKNOWN
        part = PartComparison(PartKind.VALUE, None, 0, verdict, why)
        return (ColumnOrigin(None, self.expires_ms * 1000),), (part,)

    def _judge_gone_keys(self, sides: _StorePair, taken: Collection[int | None]) -> Iterator[PartComparison]:
        """Judge the columns of the old key that the new one lacks. Raises NoWay."""
        expires = self.wants.name == OperatorName.DEDUPLICATION_WITHIN_WATERMARK
        verdict = Knowledge.FULL if self.old is not None and not expires else Knowledge.UNKNOWN
        fields = fields_of(sides.old.key_schema) or []
        for before, (name, _) in enumerate(named_fields(sides.old.key_schema)):
            if before in taken:
                continue
            if is_event_time(fields[before]):
                raise self._refuse(BOOK.text("evolve_key_gone", gone=name))
            why = f"key column {name} is gone: keys that differed only in it become one"
            if expires:
                why += ", with the latest of their expiries, because the state does not show which row came first"
            yield PartComparison(PartKind.KEY, before, None, verdict, why)

    def _find_window(self, number: int) -> MadeWindow | None:
        """Find how a key column is a window made of old ones; None for any other."""
        old, window, keys = None if self.old is None else self.old.window, self.wants.window, self.wants.keys
        if not self._has_made_windows or old is None or window is None or keys is None:
            return None
        if not keys[number].sql.startswith("window("):
            return None
        return MadeWindow(old.length_us, window.length_us, window.slide_us, window.offset_us)

    def _match_key_names(
        self, old: list[tuple[str, Json]], new: list[tuple[str, Json]]
    ) -> dict[int | None, int | None]:
        """Match by names, which can mislead; by places where names say nothing and all types are the same."""
        names = [name for name, _ in old]
        named = _are_names(old) and _are_names(new)
        by_name: dict[int | None, int | None] = {
            number: names.index(name) for number, (name, _) in enumerate(new) if name in names
        }
        if named and (len(by_name) == len(new) or not _have_types(old, new)):
            return by_name
        if _have_types(old, new):
            return {number: number for number in range(len(new))}
        raise self._refuse(words("columns of its key differ, and have no names: name the old query, {--from-query}"))

    def _plan_aggregates(self, sides: _StorePair) -> tuple[tuple[ColumnOrigin, ...] | None, tuple[PartComparison, ...]]:
        old, new = sides.list_columns("value")
        aggregates = self.wants.aggregates
        if aggregates is None or _list_buffers(aggregates) != [(name, bare(kind)) for name, kind in new]:
            if _have_types(old, new) and (self.old is None or aggregates is None):
                return _drop_same([*map(ColumnOrigin, range(len(new)))], sides, "value"), ()
            schemas = f"{spell_schema(sides.new_value)}, in the state {spell_schema(sides.old.value_schema)}"
            raise self._refuse(f"ckpt cannot tell which state column belongs to which aggregate: {schemas}")
        starts = self._match_aggregates(sides, aggregates, old)
        origins: list[ColumnOrigin] = []
        judged: list[PartComparison] = []
        for number, aggregate in enumerate(aggregates):
            start, part = starts[number]
            if part.made_of:
                origins += self._derive(aggregate, part.made_of)
                judged.append(part)
                continue
            if start is None and not all(buffer.empty_known for buffer in aggregate.buffers):
                raise self._refuse(plain(part.why) + ": its initial value is unknown")
            for offset, buffer in enumerate(aggregate.buffers):
                if start is None:
                    origins.append(ColumnOrigin(None, buffer.empty))
                    continue
                self._check_type(old[start + offset], (buffer.name, buffer.type), "value")
                origins.append(ColumnOrigin(start + offset))
            judged.append(part)
        taken = {origin.old for origin in origins if not origin.derived}
        if sum(origin.old is not None and not origin.derived for origin in origins) > len(taken - {None}):
            raise self._refuse(BOOK.text("evolve_same_column"))
        gone = [part for part in self.parts if part.kind is PartKind.VALUE and part.new is None]
        kept = {part.old for part in judged} if self.old is not None else taken
        if self.old is None:
            names = enumerate(name for name, _ in old)
            gone = [PartComparison(PartKind.VALUE, at, None, Knowledge.FULL, f"{name} is gone") for at, name in names]
        judged += [part for part in gone if part.old not in kept]
        return _drop_same(origins, sides, "value"), tuple(judged)

    def _derive(self, aggregate: DescribedAggregate, places: Sequence[int]) -> Iterator[ColumnOrigin]:
        """List the columns of a function that is made of others, which are at these places of the old query."""
        assert self.old is not None
        assert self.old.aggregates is not None
        starts = _list_starts(self.old.aggregates)
        columns = zip(aggregate.buffers, places, MADE_OF[aggregate.function], strict=True)
        for buffer, ordinal, (_, number) in columns:
            yield ColumnOrigin(starts[ordinal] + number, buffer.empty, derived=True)

    def _match_aggregates(
        self, sides: _StorePair, aggregates: Sequence[DescribedAggregate], old: list[tuple[str, Json]]
    ) -> list[tuple[int | None, PartComparison]]:
        """Find the first old column of each aggregate, or None where it is new; and its verdict."""
        before = None if self.old is None else self.old.aggregates
        mapped = self._read_map(sides, aggregates)
        if before is not None:
            if _list_buffers(before) != [(name, bare(kind)) for name, kind in old]:
                both = [", ".join(name for name, _ in each) for each in (_list_buffers(before), old)]
                raise OtherOld(
                    f"operator {self.has.id} keeps {both[0]} in the description, but {both[1]} in the checkpoint"
                )
            places = _list_starts(before)
            parts = {part.new: part for part in self.parts if part.kind is PartKind.VALUE}
            own = (parts[number] for number in range(len(aggregates)))
            matched = [(None if part.old is None else places[part.old], part) for part in own]
        else:
            starts = self._match_buffer_names(sides, aggregates, mapped)
            matched = [(start, self._judge_by_name(aggregates[at], at, start)) for at, start in starts.items()]
        for number, start in mapped.items():
            part = self._judge_by_name(aggregates[number], number, start)
            matched[number] = start, replace(part, why=words("{why}, as {--map-column} says", why=part.why))
        for _, part in matched:
            self._check_certain(part)
        return matched

    def _judge_by_name(self, aggregate: DescribedAggregate, number: int, start: int | None) -> PartComparison:
        text = spell(aggregate.sql)
        if start is None:
            return PartComparison(PartKind.VALUE, None, number, Knowledge.FROM_NOW_ON, f"{text} is new")
        why = f"{text} from state column {start + 1}"
        return PartComparison(PartKind.VALUE, start, number, Knowledge.UNKNOWN, why)

    def _match_buffer_names(
        self, sides: _StorePair, aggregates: Sequence[DescribedAggregate], mapped: Mapping[int, int | None]
    ) -> dict[int, int | None]:
        """Find the first old column of each aggregate by the names of its columns. Raises NoWay where two would fit."""
        old, new = sides.list_columns("value")
        names, firsts = [name for name, _ in old], _list_starts(aggregates)
        wanted = [[buffer.name for buffer in aggregate.buffers] for aggregate in aggregates]
        if [name for own in wanted for name in own] == names and _have_types(old, new):
            return dict(enumerate(firsts))
        chosen = {number: start for number, start in mapped.items() if start is not None}
        taken = {start + offset for number, start in chosen.items() for offset in range(len(wanted[number]))}
        starts: dict[int, int | None] = {}
        for number, own in enumerate(wanted):
            if number in mapped:
                starts[number] = mapped[number]
                continue
            runs = (range(first, first + len(own)) for first in range(len(names) - len(own) + 1))
            fitting = (run for run in runs if names[run.start : run.stop] == own and taken.isdisjoint(run))
            candidates = [run.start for run in fitting]
            rivals = [other for other, theirs in enumerate(wanted) if theirs == own and other not in mapped]
            if len(candidates) > 1 or (candidates and len(rivals) > 1):
                flat_old, flat_new = sides.name_columns("value")
                there = ", ".join(name for name, ordinal in flat_old.items() if ordinal in candidates)
                mine = next(name for name, ordinal in flat_new.items() if ordinal == firsts[number])
                aggregate, ask = spell(aggregates[number].sql), ask_old("map_column", mine)
                raise self._refuse(BOOK.text("evolve_which_aggregate", aggregate=aggregate, there=there, asked=ask))
            starts[number] = candidates[0] if candidates else None
        return starts

    def _read_map(self, sides: _StorePair, aggregates: Sequence[DescribedAggregate]) -> dict[int, int | None]:
        """Read the first old column of each aggregate that a person named. Raises NoWay."""
        old, new = sides.name_columns("value")
        starts = _list_starts(aggregates)
        mapped: dict[int, int | None] = {}
        for column, source in self.choices.mapped.items():
            if column not in new or (source != "-" and source not in old):
                continue
            self.choices.find_source(column)
            ordinal = new[column]
            number = max(number for number, start in enumerate(starts) if start <= ordinal)
            start = None if source == "-" else old[source] - (ordinal - starts[number])
            last = len(sides.list_columns("value")[0]) - len(aggregates[number].buffers)
            if start is not None and not 0 <= start <= last:
                raise self._refuse(f"state column {source} does not fit {column} of the query")
            mapped[number] = start
        return mapped

    def _plan_join(self, pairs: Sequence[_StorePair]) -> ColumnPlan:
        stores: list[StoreColumns] = []
        planned = set()
        judged = [part for part in self.parts if part.kind is not PartKind.VALUE]
        for part in judged:
            if part.kind is PartKind.KEY and (part.silent or part.old != part.new or part.old is None):
                raise self._refuse_part(part, ", and ckpt only widens the keys of a join")
        for sides in pairs:
            key, origins = self._widen_key(sides), None
            indexed = sides.old.name.endswith((JOIN_ROWS, TIMED_ROWS, TIMED_KEYS))
            if indexed and not sides.old.name.endswith(TIMED_KEYS):
                side = sides.old.name.partition("-")[0]
                origins, parts = self._plan_side(sides, side)
                judged += parts
                planned.add(side)
                if key is not None and self.old is None:
                    why = f"key columns of the {side} side, by position"
                    judged.append(PartComparison(PartKind.KEY, 0, 0, Knowledge.UNKNOWN, why, side=side))
            if key is not None or origins is not None:
                columns = StoreColumns(sides.old.name, sides.new_key, sides.new_value, key, origins, indexed=indexed)
                stores.append(columns)
        judged += [part for part in self.parts if part.kind is PartKind.VALUE and part.side not in planned]
        if not stores or not self._has_families:
            return ColumnPlan(tuple(stores), tuple(judged))
        return ColumnPlan((self._join_families(stores),), tuple(judged))

    def _join_families(self, stores: Sequence[StoreColumns]) -> StoreColumns:
        """Plan the only store of a join from its column families, whose keys change together. Raises NoWay."""
        (store,) = self.has.stores
        old = {family.name: family for family in store.column_families}
        keyed = [own for own in stores if own.key is not None]
        if keyed and len(keyed) != len(old):
            raise self._refuse("the key types differ in some of its column families only")
        families = tuple(
            FamilyColumns(
                old[own.name],
                own.name,
                own.value_schema,
                own.value,
                is_list=own.name.endswith(TIMED_ROWS),
                key_schema=own.key_schema if own.key is not None else None,
                indexed=own.indexed,
            )
            for own in stores
        )
        if not keyed:
            return StoreColumns(store.name, store.key_schema, store.value_schema, families=families)
        fields = fields_of(keyed[0].key_schema) or []
        count = len(fields) - keyed[0].indexed
        key_schema: Json = {"type": "struct", "fields": fields[:count]}
        key = tuple(map(ColumnOrigin, range(count)))
        return StoreColumns(store.name, key_schema, store.value_schema, key, families=families)

    def _widen_key(self, sides: _StorePair) -> tuple[ColumnOrigin, ...] | None:
        """Plan the key columns of a store of a join, each in its place; None where they stay as they are."""
        old, new = sides.list_columns("key")
        if _have_types(old, new) and sides.fits("key"):
            return None
        if len(old) != len(new):
            raise self._refuse("the number of its keys differs, and ckpt only widens the keys of a join")
        for before, after in zip(old, new, strict=True):
            self._check_type(before, after, "key")
        return tuple(map(ColumnOrigin, range(len(new))))

    def _plan_side(self, sides: _StorePair, side: str) -> tuple[tuple[ColumnOrigin, ...] | None, list[PartComparison]]:
        old, new = sides.list_columns("value")
        own = [part for part in self.parts if part.kind is PartKind.VALUE and part.side == side]
        flags = [int(bool(fields) and fields[-1] == (_MATCHED, "boolean")) for fields in (old, new)]
        for part in own:
            self._check_certain(part)
        joins = [operator.join for operator in (self.old, self.wants) if operator is not None and operator.join]
        if len(joins) > 1:
            known = [getattr(join, side).columns for join in joins]
            if [len(old) - flags[0], len(new) - flags[1]] != [len(columns) for columns in known]:
                raise self._refuse(f"ckpt cannot tell which column on the {side} side is which")
            matching: Mapping[Any, int | None] = {part.new: part.old for part in own if part.new is not None}
            if flags[1]:
                matching = {**matching, len(new) - 1: len(old) - 1 if flags[0] else None}
        elif _have_types(old, new):
            return _drop_same([*map(ColumnOrigin, range(len(new)))], sides, "value"), []
        else:
            own, matching = [], self._match_side_names(old, new, side)
            for number, ordinal in matching.items():
                verdict, why = Knowledge.UNKNOWN, f"{new[number][0]} on the {side} side, by its name"
                if ordinal is None:
                    verdict, why = Knowledge.FROM_NOW_ON, f"column {new[number][0]} on the {side} side is new"
                own.append(PartComparison(PartKind.VALUE, ordinal, number, verdict, why, side=side))
        nullable = [is_nullable(field) for field in fields_of(sides.new_value) or ()]
        origins = []
        for number, (name, _) in enumerate(new):
            ordinal = matching.get(number)
            if ordinal is not None:
                self._check_type(old[ordinal], new[number], "value")
            elif name == _MATCHED and number == len(new) - 1:
                raise self._refuse("the state does not show whether rows were already joined")
            elif not nullable[number]:
                raise self._refuse(BOOK.text("evolve_never_null", column=name, side=side))
            origins.append(ColumnOrigin(ordinal))
        return _drop_same(origins, sides, "value"), own

    def _match_side_names(
        self, old: list[tuple[str, Json]], new: list[tuple[str, Json]], side: str
    ) -> dict[int, int | None]:
        names = [name for name, _ in old]
        if not (_are_names(old) and _are_names(new)):
            raise self._refuse(BOOK.text("evolve_same_name", side=side))
        return {number: names.index(name) if name in names else None for number, (name, _) in enumerate(new)}

    def _check_type(self, old: tuple[str, Json], new: tuple[str, Json], word: str) -> None:
        """Raise NoWay unless each value of the old column is one of the new type."""
        if not takes_values(new[1], old[1]):
            types = f"{spell_schema(new[1])}, but {old[0]} in the state is {spell_schema(old[1])}"
            raise self._refuse(f"{word} column {new[0]} is {types}: ckpt does not convert between these")


def _get_metadata(field: Json) -> dict[str, Json]:
    metadata = field.get("metadata") if isinstance(field, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _cut(schema: Json, count: int) -> Json:
    return {"type": "struct", "fields": (fields_of(schema) or [])[count:]}


def _have_types(old: Sequence[tuple[str, Json]], new: Sequence[tuple[str, Json]]) -> bool:
    return [bare(kind) for _, kind in old] == [bare(kind) for _, kind in new]


def _drop_same(origins: Sequence[ColumnOrigin], sides: _StorePair, word: str) -> tuple[ColumnOrigin, ...] | None:
    """Return the origins of columns; None where all stay as they are."""
    old, new = sides.list_columns(word)
    same = [origin.old for origin in origins] == list(range(len(old))) and _have_types(old, new) and sides.fits(word)
    return None if same else tuple(origins)


def _are_names(fields: Sequence[tuple[str, Json]]) -> bool:
    """Tell whether each name says what a column is."""
    names = {name for name, _ in fields}
    return len(names) == len(fields) and _UNNAMED not in names


def plan_merges(
    wants: DescribedOperator,
    gone: str | Words,
    refuse: Refuse,
    value: Sequence[ColumnOrigin] | None = None,
) -> tuple[ColumnMerge, ...]:
    """Plan how values of rows are merged that get the same key. Raises NoWay, made by ``refuse``.

    ``gone`` says why they get it, ``value`` where the columns come from.
    """
    if wants.name == OperatorName.DEDUPLICATION:
        return ()
    if wants.name == OperatorName.DEDUPLICATION_WITHIN_WATERMARK:
        return (ColumnMerge(Merge.GREATEST, 0, 1),)  # ``expiresAtMicros``
    if wants.name not in (OperatorName.AGGREGATION, OperatorName.SESSIONS) or wants.aggregates is None:
        raise refuse(plain(gone) + ", and ckpt does not merge their values")
    merges = []
    for aggregate, start in zip(wants.aggregates, _list_starts(wants.aggregates), strict=True):
        empty = value is not None and value[start].old is None
        how = Merge.ALIKE if empty else find_merge(aggregate)
        if how is None:
            raise refuse(plain(gone) + f", and ckpt does not merge values of {spell(aggregate.sql)}")
        merges.append(ColumnMerge(how, start, len(aggregate.buffers), find_element(aggregate)))
    return tuple(merges)


def plan_combining(has: Operator, wants: DescribedOperator) -> StoreColumns:
    """Plan how the only store of an operator merges rows with the same key, whose columns stay. Raises NoWay."""

    def refuse(why: str | Words) -> NoWay:
        return NoWay(words("operator {id} ({name}): {why}", id=has.id, name=wants.name, why=why))

    merges = plan_merges(wants, "keys are in several checkpoints", refuse)
    (store,) = has.stores
    sessions, lead = None, 0
    if wants.name == OperatorName.SESSIONS:
        lead = len(list(named_fields(store.key_schema)))
        sessions = _find_sessions(store.value_schema, lead, 0, refuse)
    kept = [bare(kind) for _, kind in named_fields(store.value_schema)][lead:]
    if wants.aggregates is not None and kept != [kind for _, kind in _list_buffers(wants.aggregates)]:
        raise refuse("its state does not have the columns of the described query")
    return StoreColumns(store.name, store.key_schema, store.value_schema, merges=merges, sessions=sessions)


def _find_sessions(values: Json, lead: int, added_us: int, refuse: Refuse) -> LongerSessions:
    fields = enumerate((fields_of(values) or [])[:lead])
    window = next((number for number, field in fields if _get_metadata(field).get(_SESSION) is True), None)
    if window is None:
        raise refuse("ckpt cannot tell which state column is the session")
    return LongerSessions(lead, window, added_us)


def _list_buffers(aggregates: Sequence[DescribedAggregate]) -> list[tuple[str, str]]:
    return [(buffer.name, bare(buffer.type)) for aggregate in aggregates for buffer in aggregate.buffers]


def _list_starts(aggregates: Sequence[DescribedAggregate]) -> list[int]:
    """List the place of the first column of each aggregate."""
    return list(accumulate((len(aggregate.buffers) for aggregate in aggregates), initial=0))[:-1]
