"""Compares two descriptions of a query: what the state of the old one is worth to the new one, part by part.

A part is a column of state, or what decides which rows it counts. Parts are matched by what they compute, over sources
that are the same ones; neither names nor places count. Pure: it knows no checkpoint.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ckpt.advice import Words
from ckpt.formats.operators import RUN_FUNCTIONS, OperatorName
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json
from ckpt.query.aggregates import MADE_OF
from ckpt.query.description import (
    DescribedAggregate,
    DescribedExpression,
    DescribedJoin,
    DescribedOperator,
    DescribedSide,
    DescribedSource,
    DescribedWindow,
    QueryDescription,
    spell_schema,
)
from ckpt.query.reader_options import ANSI, CASES, decides_rows, list_affecting, list_changed, name_option, reads_around
from ckpt.texts import instant

_INTEGERS = ("byte", "short", "integer", "long")
_CAST = re.compile(r"CAST\(([\w%]+)@(\d+) AS (\w+)\)")
_WINDOW = re.compile(r"^(session_)?window\(")
_COLUMN = re.compile(r"([\w%]+)@(\d+)")
_TIMES = re.compile(r"(?<=window\()([^()|]*), \d+, \d+, \d+(?=\))")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_MAY_FAIL = re.compile(r"[-+*/%] |CAST\(|(?<!\w)(?!(?:count|min|max|first|last|window|session_window)\()\w+\(")
"""Expressions that may fail in ANSI mode, and give NULL without it."""
RECURSIVE = "recursivefilelookup"
_EVENT_TIME = "spark.watermarkDelayMs"  # in the metadata of a column that the watermark evicts by
_UNITS = {"hours": 3_600_000_000, "minutes": 60_000_000, "seconds": 1_000_000}
_OF_ONE_COLUMN = re.compile(r"(\w+\()?(CAST\()?[\w%]+@\d+( AS [\w(),]+\))?(, \w+=\w+)*\)?")
"""A column, or a function of one column: a wider type of the column gives the same values."""


class Knowledge(StrEnum):
    """The knowledge of a changed query, compared with the same query run from the beginning."""

    FULL = "full"  # no difference
    FROM_NOW_ON = "from-now-on"  # what is new knows only rows from now on
    IMPOSSIBLE = "impossible"  # the checkpoint does not have what it needs
    UNKNOWN = "unknown"  # nothing at hand says


def find_worst(verdicts: Iterable[Knowledge]) -> Knowledge:
    """Return the worst of some verdicts, which are declared in that order; full where there is none."""
    return max(verdicts, key=list(Knowledge).index, default=Knowledge.FULL)


class PartKind(StrEnum):
    """The kind of a part of a query."""

    KEY = "key"  # a column by which state is found
    VALUE = "value"  # an aggregate function, or a column that a join keeps
    WINDOW = "window"  # of time, or of a session
    ROWS = "rows"  # a condition that decides which rows count, a limit, a watermark


@dataclass(frozen=True, slots=True)
class PartComparison:
    """A part of an operator, in the old query and in the new one."""

    kind: PartKind
    old: int | None  # its place among the old parts of its kind and side; None: it is new
    new: int | None  # its place among the new ones; None: it is gone
    verdict: Knowledge
    why: str | Words
    silent: bool = False  # a plain start continues the old value as if it were the new one
    side: str | None = None  # of a join: left or right
    by_another_spark: bool = False  # another Spark version described the old query, and may write the same otherwise
    made_of: tuple[int, ...] = ()  # a new function: the places of old ones that have its columns (``MADE_OF``)


@dataclass(frozen=True, slots=True)
class OperatorComparison:
    """A stateful operator of both queries."""

    old: int  # its id
    new: int
    parts: tuple[PartComparison, ...]


def pair_sources(old: Sequence[DescribedSource], new: Sequence[DescribedSource]) -> dict[int, int]:
    """Pair sources of the new query with old ones as Spark does at a start: by name, or else by place."""
    names = [source.name for source in old]
    if any(source.name is not None for source in new):
        return {number: names.index(source.name) for number, source in enumerate(new) if source.name in names}
    return {number: number for number in range(min(len(old), len(new)))}


def compare_signatures(
    old: QueryDescription,
    new: QueryDescription,
    sources: Mapping[int, int],
    operators: Mapping[int, int],
    watermark_ms: int = 0,
) -> tuple[OperatorComparison, ...]:
    """Compare the operators of two queries; the mappings give the old source and operator of each new one.

    ``watermark_ms`` is that of the newest batch: what ended before it is no longer in the state.
    """
    if old.operators is None or new.operators is None:
        return ()
    has_readings = None not in (old.session, new.session)
    own = _View(old.sources, {number: number for number in sources.values()}, has_readings)
    view = _View(new.sources, sources, has_readings)
    complete = (old.output_mode.lower(), new.output_mode.lower()) == ("complete", "complete")
    compared = {}
    for number, before in operators.items():
        pair = _OperatorPair(old.operators[before], new.operators[number], own, view)
        parts = (
            *pair.compare(0 if complete else watermark_ms),
            *_compare_sessions(old, new, pair),
            *_compare_output_modes(old, new, pair, watermark_ms),
            *_compare_delays(old, new, pair, sources, watermark_ms),
        )
        if old.spark is not new.spark:
            parts = tuple(_doubt(part) for part in parts)
        compared[number] = OperatorComparison(before, number, parts)
    for number in sorted(compared, reverse=True):  # from the sources on
        parts = tuple(_compare_inputs(old.operators, new.operators, number, operators, compared))
        compared[number] = replace(compared[number], parts=(*compared[number].parts, *parts))
    return tuple(compared.values())


def is_evicted(operator: DescribedOperator) -> bool:
    """Tell whether the watermark evicts state of an operator, and drops rows in front of it."""
    if operator.name not in (OperatorName.AGGREGATION, OperatorName.SESSIONS):
        return operator.limit is None
    keys = [field for store in operator.stores for family in store.families for field in fields_of(family.key) or ()]
    return operator.window is not None or operator.gap is not None or not keys or any(map(is_event_time, keys))


def drops_late_rows(query: QueryDescription, watermark_ms: int) -> bool:
    """Tell whether a query drops rows that are older than this watermark, as far as its description says."""
    complete = query.output_mode.lower() == "complete"
    operators = (each for each in query.operators or () if not (complete and each.aggregates is not None))
    return watermark_ms > 0 and query.watermarks != () and any(map(is_evicted, operators))


def is_event_time(field: Json) -> bool:
    """Tell whether the watermark evicts by a column of a key."""
    metadata = field.get("metadata") if isinstance(field, dict) else None
    return isinstance(metadata, dict) and _EVENT_TIME in metadata


def _compare_output_modes(
    old: QueryDescription, new: QueryDescription, pair: "_OperatorPair", watermark_ms: int
) -> Iterator[PartComparison]:
    """Compare the output modes: append and update evict what the watermark has passed, complete keeps all of it."""
    was, now = old.output_mode.lower(), new.output_mode.lower()
    aggregates = pair.new.name in (OperatorName.AGGREGATION, OperatorName.SESSIONS)
    if was == now or "complete" not in (was, now) or not aggregates or not is_evicted(pair.old):
        return
    why = f"the output mode is {now}, before {was}"
    if new.watermarks == () or (watermark_ms <= 0 and now == "complete"):
        yield PartComparison(PartKind.ROWS, None, None, Knowledge.FULL, why)
        return
    until = instant(watermark_ms)
    if now == "complete":
        why = f"{why}: groups that ended before {until}, the watermark, are no longer in the state, nor in any result"
    elif watermark_ms > 0 and (now == "append" or pair.old.gap is not None):
        why = f"{why}: groups that ended before {until}, the watermark, are still in the state, and are emitted again"
    else:
        why = f"{why}: the first batch counts late rows that an {now} query drops"
    yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why, silent=True)


def _compare_delays(
    old: QueryDescription, new: QueryDescription, pair: "_OperatorPair", sources: Mapping[int, int], watermark_ms: int
) -> Iterator[PartComparison]:
    """Judge another watermark: which rows the old one dropped, and what it evicted, stays so."""
    changes = [part.why for part in compare_watermarks(old, new, sources)]
    complete = (old.output_mode.lower(), new.output_mode.lower()) == ("complete", "complete")
    aggregates = pair.old.name in (OperatorName.AGGREGATION, OperatorName.SESSIONS)
    if not changes or (aggregates and complete) or not (is_evicted(pair.old) or is_evicted(pair.new)):
        return
    was, now = old.watermarks or (), new.watermarks or ()
    longer = len(was) == len(now) == 1 and now[0].column == was[0].column and now[0].delay_ms > was[0].delay_ms
    if watermark_ms <= 0 and (longer or (was and not now)):
        yield PartComparison(PartKind.ROWS, None, None, Knowledge.FULL, changes[0])
        return
    why = f"{changes[0]}: rows that were too late for one query but not for the other are counted as before"
    if watermark_ms > 0:
        why += f", and windows that ended before {instant(watermark_ms)} are no longer in the state"
    yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why, silent=True)


def _compare_inputs(
    old: Sequence[DescribedOperator],
    new: Sequence[DescribedOperator],
    number: int,
    operators: Mapping[int, int],
    compared: Mapping[int, OperatorComparison],
) -> Iterator[PartComparison]:
    """Compare the stateful operators whose rows an operator gets; without ``inputs`` these may be all that follow."""
    own, before = new[number].inputs, old[operators[number]].inputs
    for other in range(number + 1, len(new)) if own is None else own:
        if other not in operators:
            why = f"operator {other} in front of it ({new[other].name}) is new: the state has rows that never passed it"
            yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why)
        elif _emits_otherwise(compared[other]):
            verdict = find_worst((Knowledge.FROM_NOW_ON, *(part.verdict for part in compared[other].parts)))
            why = f"operator {other} in front of it ({new[other].name}) emits different rows than before"
            yield PartComparison(PartKind.ROWS, None, None, verdict, why)
    if None not in (own, before):
        kept = [{operators[each] for each in own or () if each in operators}, {*operators.values()} & {*(before or ())}]
        if kept[0] != kept[1]:
            why = "it gets rows from different operators than before"
            yield PartComparison(PartKind.ROWS, None, None, Knowledge.UNKNOWN, why)
    left = {*range(len(old))} - {*operators.values()}
    for other in sorted(left & ({*range(operators[number] + 1, len(old))} if before is None else {*before})):
        why = f"the former operator {other} ({old[other].name}) is gone: the state has only rows that it let through"
        yield PartComparison(PartKind.ROWS, None, None, Knowledge.UNKNOWN, why)


def _emits_otherwise(pair: OperatorComparison) -> bool:
    """Tell whether an operator may emit other rows than before; columns that come and go alone change none."""
    return any(
        part.verdict is not Knowledge.FULL
        or part.kind in (PartKind.ROWS, PartKind.WINDOW)
        or (part.kind is PartKind.KEY and None in (part.old, part.new))
        for part in pair.parts
    )


def _compare_sessions(old: QueryDescription, new: QueryDescription, pair: "_OperatorPair") -> Iterator[PartComparison]:
    """Compare the settings of sessions that decide values, and are no part of an expression."""
    if old.session is None or new.session is None:
        why = "a description comes from an older ckpt: it lacks reader options, joined tables and the time zone"
        yield PartComparison(PartKind.ROWS, None, None, Knowledge.UNKNOWN, why)
        return
    if None not in (pair.old.filters, pair.new.filters) and None in (pair.old.conditions, pair.new.conditions):
        why = "a description comes from an older ckpt: it lacks IS NOT NULL and functions such as explode"
        yield PartComparison(PartKind.ROWS, None, None, Knowledge.UNKNOWN, why)
    has, wants = ({name: each.get(name, "").lower() for name in (ANSI, CASES)} for each in (old.session, new.session))
    if (has[ANSI], wants[ANSI]) == ("false", "true") and pair.may_fail:
        why = f"{ANSI} is now true: rows with values that now raise an error were counted, as NULL or with overflow"
        yield PartComparison(PartKind.ROWS, None, None, Knowledge.UNKNOWN, why, silent=True)
    if has[CASES] != wants[CASES]:
        why = f"{CASES} is {wants[CASES]}, was {has[CASES]}: a column may be read from another field"
        yield PartComparison(PartKind.ROWS, None, None, Knowledge.UNKNOWN, why, silent=True)


def compare_watermarks(
    old: QueryDescription, new: QueryDescription, sources: Mapping[int, int]
) -> Iterator[PartComparison]:
    """Compare the watermarks of two queries: a start takes the new delay, and state stays true."""
    if old.watermarks is None or new.watermarks is None:
        return
    has_readings = None not in (old.session, new.session)
    view = _View(new.sources, sources, has_readings)
    own = _View(old.sources, {number: number for number in range(len(old.sources))}, has_readings)
    before = {f"{own.translate(watermark.column)} {watermark.delay_ms} ms" for watermark in old.watermarks}
    after = {f"{view.translate(watermark.column)} {watermark.delay_ms} ms" for watermark in new.watermarks}
    if before != after:
        was, now = (", ".join(map(spell, sorted(texts))) for texts in (before, after))
        why = f"the watermark is {now or 'gone'}, was {was or 'none'}"
        yield PartComparison(PartKind.ROWS, None, None, Knowledge.FULL, why, silent=True)


def spell(text: str) -> str:
    """Write an expression for people: without the numbers of sources, and with every character."""
    return re.sub(
        r"%([0-9A-F]{1,5}|10[0-9A-F]{4})%", lambda match: chr(int(match[1], 16)), re.sub(r"@(\d+|static)", "", text)
    )


def _doubt(part: PartComparison) -> PartComparison:
    """Doubt a difference between plans of two Spark versions: it may be one of these versions."""
    if part.verdict is Knowledge.FULL and not part.silent:
        return part
    why = f"{part.why}; it was described with another Spark version, which may describe the same part differently"
    return PartComparison(part.kind, part.old, part.new, Knowledge.UNKNOWN, why, side=part.side, by_another_spark=True)


@dataclass(frozen=True, slots=True)
class _View:
    """Sources of a query, and the old number of each that both have."""

    sources: Sequence[DescribedSource]
    numbers: Mapping[int, int]
    has_readings: bool = True  # both descriptions say what else decides values, in brackets

    def translate(self, text: str) -> str:
        """Rewrite an expression with old numbers of sources, and without branches of a union that only one has."""
        parts, at = [], 0
        text = _CAST.sub(self._drop_widening, text if self.has_readings else _BRACKETS.sub("", text))
        while at < len(text):
            end = _find_end(text, at) if text[at] == "{" else None
            if end is not None:
                parts.append(self._translate_union(text[at + 1 : end]))
                at = end + 1
            elif source := re.compile(r"@(\d+)").match(text, at):
                parts.append(f"@{self.numbers.get(int(source[1]), 'new')}")
                at = source.end()
            else:
                parts.append(text[at])
                at += 1
        return "".join(parts)

    def translate_key(self, text: str, *, united: bool = False) -> str:
        """Rewrite a key; of a window only its column stays, because its times are compared apart.

        ``united``: those of a window in each branch of a union are, too.
        """
        window = _WINDOW.match(text)
        if text.startswith("{") and united:
            return self.translate(_TIMES.sub(r"\1", text))
        return self.translate(text if window is None else text.rsplit(", ", 1 if window[1] else 3)[0] + ")")

    def _translate_union(self, text: str) -> str:
        branches = []
        for branch in _split(text):
            head, _, body = branch.partition(": ")
            numbers = [self.numbers.get(int(number)) for number in head.split(",") if number.isdecimal()]
            if None not in numbers:
                branches.append((sorted(number for number in numbers if number is not None), self.translate(body)))
        if len(branches) == 1:
            return branches[0][1]
        return f"{{{' | '.join(f'{numbers}: {body}' for numbers, body in sorted(branches))}}}"

    def _drop_widening(self, match: re.Match[str]) -> str:
        return f"{match[1]}@{match[2]}" if is_wider(match[3], self.find_type(match[1], int(match[2]))) else match[0]

    def find_type(self, column: str, source: int) -> Json:
        """Find the type of a column of a source; None where it is not known."""
        schema = self.sources[source].schema if source < len(self.sources) else None
        return dict(named_fields(schema)).get(spell(column))


@dataclass(frozen=True, slots=True)
class _OperatorPair:
    """An operator of the old query and the one of the new query that takes its state."""

    old: DescribedOperator
    new: DescribedOperator
    before: _View
    after: _View

    def compare(self, watermark_ms: int) -> Iterator[PartComparison]:
        old, new = self.old, self.new
        yield from self._compare_windows(watermark_ms)
        if old.keys is not None and new.keys is not None:
            yield from self._compare_keys(old.keys, new.keys)
        if old.aggregates is not None and new.aggregates is not None:
            yield from self._compare_aggregates(old.aggregates, new.aggregates)
        if old.join is not None and new.join is not None:
            yield from self._compare_joins(old.join, new.join)
        if old.limit != new.limit and None not in (old.limit, new.limit):
            why = f"the limit is {new.limit}, was {old.limit}: rows that were dropped do not come back"
            yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why, silent=True)
        whole = None not in (old.conditions, new.conditions)
        yield from self._compare_filters(*(_list_conditions(each, whole=whole) for each in (old, new)))
        yield from self._compare_readings()
        described = ((has.keys, has.aggregates, has.join, has.limit) for has in (old, new))
        if new.name in RUN_FUNCTIONS or any(all(part is None for part in parts) for parts in described):
            why = "ckpt cannot see what it computes"
            yield PartComparison(PartKind.ROWS, None, None, Knowledge.UNKNOWN, why)

    def _compare_windows(self, watermark_ms: int) -> Iterator[PartComparison]:
        """Compare windows and gaps. Spark before 4.0 describes no stores, and ckpt then makes no rows of old ones."""
        old, new, verdict = self.old, self.new, Knowledge.IMPOSSIBLE
        if old.window is not None and new.window is not None and _times(old.window) != _times(new.window):
            why = f"the window is {_spell_window(new.window)}, was {_spell_window(old.window)}"
            if new.stores and is_made_of(old.window, new.window):
                verdict, why = _judge_window(old.window, new.window, why, watermark_ms)
            yield PartComparison(PartKind.WINDOW, 0, 0, verdict, why, silent=True)
        elif None not in (old.gap, new.gap) and old.gap != new.gap:
            why = f"the session gap is {spell(str(new.gap))}, was {spell(str(old.gap))}"
            longer_us = find_longer_gap(old, new) if new.stores else None
            if longer_us is not None and watermark_ms <= 0:
                verdict = Knowledge.FULL
            elif longer_us is not None:
                begun = f"sessions that begin at or before {instant(watermark_ms + longer_us // 1000)}"
                why = f"{why}: {begun} may lack rows that were emitted, or were too late, before"
                verdict = Knowledge.FROM_NOW_ON
            yield PartComparison(PartKind.WINDOW, 0, 0, verdict, why, silent=True)

    def _compare_keys(
        self, old: Sequence[DescribedExpression], new: Sequence[DescribedExpression], side: str | None = None
    ) -> Iterator[PartComparison]:
        matching = self._match(old, new)
        fits = _have_same_types(old, new)
        for number, wants in enumerate(new):
            before, name = matching.get(number), _name_column(wants)
            if before is None:
                instead = f", was {_name_column(old[number])}" if number < len(old) else ""
                why = f"the key has {name}{instead}, but no key in the state has it"
                yield PartComparison(PartKind.KEY, None, number, Knowledge.IMPOSSIBLE, why, silent=fits, side=side)
                continue
            changed, verdict, why = before != number, _judge_column(old[before], wants), name
            if changed:
                why = f"key column {name} is at position {number + 1}, was at {before + 1}"
            elif reread := self._find_reread(wants.sql, plain=True):
                changed, verdict, why = True, Knowledge.UNKNOWN, f"{name} {reread}"
            yield PartComparison(PartKind.KEY, before, number, verdict, why, silent=changed and fits, side=side)
        for before in sorted({*range(len(old))} - {*matching.values()}):
            if not fits:
                why = f"key column {_name_column(old[before])} is gone: keys that differed only in it must be merged"
                yield PartComparison(PartKind.KEY, before, None, Knowledge.UNKNOWN, why, side=side)

    def _compare_aggregates(
        self, old: Sequence[DescribedAggregate], new: Sequence[DescribedAggregate]
    ) -> Iterator[PartComparison]:
        before_texts = [self.before.translate(_spell_aggregate(part, part.kept)) for part in old]
        matching = _match(before_texts, [self.after.translate(_spell_aggregate(part, part.kept)) for part in new])
        types = [[bare(buffer.type) for part in parts for buffer in part.buffers] for parts in (old, new)]
        fits = types[0] == types[1]
        for number, wants in enumerate(new):
            before, name = matching.get(number), spell(_spell_aggregate(wants))
            sources = () if before is not None else self._find_made_of(wants, old)
            if sources:
                made = " and ".join(spell(old[ordinal].sql) for ordinal in sorted({*sources}))
                why = f"{name} is computed from {made}"
                yield PartComparison(PartKind.VALUE, None, number, Knowledge.FULL, why, silent=fits, made_of=sources)
                continue
            if before is None:
                instead = f", was {spell(_spell_aggregate(old[number]))}" if number < len(old) and fits else ""
                known = all(buffer.empty_known for buffer in wants.buffers)
                why = f"{name} is new{instead}" + ("" if known else ", and its initial value is unknown")
                verdict = Knowledge.FROM_NOW_ON if known else Knowledge.IMPOSSIBLE
                yield PartComparison(PartKind.VALUE, None, number, verdict, why, silent=fits)
                continue
            pairs = zip(old[before].buffers, wants.buffers, strict=False)
            kept = "?" not in wants.sql and all(takes_values(b.type, a.type) for a, b in pairs)
            verdict = Knowledge.FULL if kept else Knowledge.UNKNOWN
            moved = before != number
            why = f"{name} is at position {number + 1}, was at {before + 1}" if moved else name
            reread = self._find_reread(wants.sql, plain=wants.declarative is True)
            if reread is not None:
                verdict, why = Knowledge.UNKNOWN, f"{name} {reread}"
            silent = (moved or reread is not None) and fits
            yield PartComparison(PartKind.VALUE, before, number, verdict, why, silent=silent)
        for before in sorted({*range(len(old))} - {*matching.values()}):
            why = f"{spell(_spell_aggregate(old[before]))} is gone"
            yield PartComparison(PartKind.VALUE, before, None, Knowledge.FULL, why)

    def _find_made_of(self, wants: DescribedAggregate, old: Sequence[DescribedAggregate]) -> tuple[int, ...]:
        """Find the old functions, of the same argument and filter, that a new one is made of; () if there are none."""
        argument = self.after.translate(_spell_argument(wants))
        places = []
        for function, number in MADE_OF.get(wants.function, ()):
            fitting = (
                ordinal
                for ordinal, part in enumerate(old)
                if part.function == function
                and len(part.buffers) == number + 1
                and self.before.translate(_spell_argument(part)) == argument
                and not (part.distinct or wants.distinct or "?" in argument)
            )
            ordinal = next(fitting, None)
            if ordinal is None or self._find_reread(wants.sql, plain=False) is not None:
                return ()
            places.append(ordinal)
        return tuple(places)

    def _find_reread(self, text: str, *, plain: bool) -> str | None:
        """Say how an expression reads a column otherwise, and may give other values for it; None: it does not.

        ``plain``: what it computes of one column is the same for a wider type.
        """
        for name, number in _COLUMN.findall(text):
            old = self.after.numbers.get(int(number))
            if old is None:
                continue
            was, now = self.before.find_type(name, old), self.after.find_type(name, int(number))
            wider = plain and is_wider(now, was) and _OF_ONE_COLUMN.fullmatch(text) is not None
            if None not in (was, now) and was != now and not wider:
                return f"reads a column of another type than before ({spell(name)} {bare(now)}, {bare(was)})"
        return self._find_other_reading(text)

    def _find_other_reading(self, text: str) -> str | None:
        """Say which option of a reader decides a column of an expression, and is another one now."""
        for name, number in _COLUMN.findall(text):
            changed = self._find_changed_options(int(number))
            affecting = list_affecting(changed, self.after.find_type(name, int(number)), spell(name))
            if affecting:
                return f"reads a column with another {self._spell_options(int(number), affecting)} than before"
        return None

    def _find_changed_options(self, number: int) -> dict[str, str]:
        """Find the options of a source of the new query that differ from those in the old one, with a value."""
        old = self.after.numbers.get(number)
        if old is None or not self.after.has_readings or old >= len(self.before.sources):
            return {}
        before, after = self._pair_options(number)
        both = {**before, **after}
        return {name: both[name] for name in list_changed(before, after)}

    def _pair_options(self, number: int) -> list[dict[str, str]]:
        pair = self.before.sources[self.after.numbers[number]], self.after.sources[number]
        return [{**own.options, **({RECURSIVE: "true"} if own.recursive else {})} for own in pair]

    def _spell_options(self, number: int, names: Iterable[str]) -> str:
        return ", ".join(name_option(name, *self._pair_options(number)) for name in names)

    @property
    def may_fail(self) -> bool:
        """True if the operator computes something that fails in ANSI mode for some values."""
        new, side = self.new, () if self.new.join is None else (self.new.join.left, self.new.join.right)
        texts = [part.sql for own in (new.keys, new.aggregates, *(each.columns for each in side)) for part in own or ()]
        return any(_MAY_FAIL.search(text) for text in (*texts, *(new.filters or ())))

    def _compare_readings(self) -> Iterator[PartComparison]:
        """Compare the options of readers that decide which rows come, and how those are read that filters look at."""
        for number, source in enumerate(self.after.sources):
            changed = [name for name in self._find_changed_options(number) if decides_rows(name) or name == RECURSIVE]
            old = self.after.numbers.get(number, len(self.before.sources))
            if old < len(self.before.sources) and reads_around(source.path, self.before.sources[old].path):
                changed.append("path")
            if changed:
                how = self._spell_options(number, changed)
                why = f"source {number} is read with another {how}: the state has rows read the old way"
                if "path" in changed:
                    why += ", and files older than the newest one by maxFileAge (7 days) are skipped"
                yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why, silent=True)
        join = self.new.join
        conditions = self.new.conditions or self.new.filters or ()
        for text in (*conditions, *((join.condition,) if join and join.condition else ())):
            reread = self._find_other_reading(text)
            if reread is not None:
                why = f"{spell(text)} {reread}"
                yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why, silent=True)

    def _compare_joins(self, old: DescribedJoin, new: DescribedJoin) -> Iterator[PartComparison]:
        numbers = [
            sorted(self.after.numbers.get(number, -1) for number in side.sources) for side in (new.left, new.right)
        ]
        if numbers == [sorted(old.right.sources), sorted(old.left.sources)] and numbers[0] != numbers[1]:
            why = "the sides of the join were swapped"
            yield PartComparison(PartKind.KEY, None, None, Knowledge.UNKNOWN, why, silent=True)
            return
        for side, has, wants in (("left", old.left, new.left), ("right", old.right, new.right)):
            yield from self._compare_keys(has.keys, wants.keys, side)
            yield from self._compare_columns(has, wants, side)
        if old.how == "LeftSemi" != new.how:
            why = f"the join is {new.how}, was {old.how}, which keeps no joined row"
            yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why, silent=True)
        elif old.how != new.how:
            why = f"the join is {new.how}, was {old.how}"
            yield PartComparison(PartKind.ROWS, None, None, Knowledge.FULL, why)
        if self.before.translate(old.condition or "") != self.after.translate(new.condition or ""):
            now, was = (spell(each.condition or "") for each in (new, old))
            why = f"the join condition is {now or 'gone'}, was {was or 'none'}: pairs that it rejected do not come back"
            yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why, silent=True)

    def _compare_columns(self, old: DescribedSide, new: DescribedSide, side: str) -> Iterator[PartComparison]:
        matching = self._match(old.columns, new.columns)
        fits = _have_same_types(old.columns, new.columns)
        for number, wants in enumerate(new.columns):
            before, name = matching.get(number), f"{_name_column(wants)} on the {side} side"
            if before is None:
                instead = f", was {_name_column(old.columns[number])}" if fits else ""
                why = f"column {name} is new{instead}: rows in the state do not have it"
                yield PartComparison(PartKind.VALUE, None, number, Knowledge.FROM_NOW_ON, why, silent=fits, side=side)
                continue
            moved, verdict = before != number, _judge_column(old.columns[before], wants)
            why = f"column {name} is at position {number + 1}, was at {before + 1}" if moved else name
            reread = self._find_other_reading(wants.sql)
            if reread is not None:
                moved, verdict, why = True, Knowledge.UNKNOWN, f"{name} {reread}"
            yield PartComparison(PartKind.VALUE, before, number, verdict, why, silent=moved and fits, side=side)
        for before in sorted({*range(len(old.columns))} - {*matching.values()}):
            why = f"column {_name_column(old.columns[before])} on the {side} side is gone"
            yield PartComparison(PartKind.VALUE, before, None, Knowledge.FULL, why, side=side)

    def _compare_filters(self, old: Sequence[str] | None, new: Sequence[str] | None) -> Iterator[PartComparison]:
        if old is None or new is None:
            return
        before, after = (
            {view.translate(text) for text in texts} for view, texts in ((self.before, old), (self.after, new))
        )
        if before != after:
            changed = sorted(spell(text) for text in before ^ after if "@new" not in text)
            if changed:
                why = f"the filter changed ({'; '.join(changed)}): the state has rows from the old filter"
                yield PartComparison(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, why, silent=True)
        hidden = sorted(spell(text) for text in before & after if "?" in text)
        if hidden:
            why = f"ckpt cannot see everything that decides which rows count ({'; '.join(hidden)})"
            yield PartComparison(PartKind.ROWS, None, None, Knowledge.UNKNOWN, why)

    def _match(self, old: Sequence[DescribedExpression], new: Sequence[DescribedExpression]) -> dict[int, int]:
        united = None not in (self.old.window, self.new.window)
        views = (self.before, old), (self.after, new)
        before, after = ([view.translate_key(part.sql, united=united) for part in parts] for view, parts in views)
        return _match(before, after)


def _list_conditions(operator: DescribedOperator, *, whole: bool) -> Sequence[str] | None:
    """List what rows have passed before an operator: all of it, or only what both old and new files say.

    Where a slide does not divide the length of windows, Spark asks in which of them a time is, which is never NULL.
    """
    texts, own = operator.conditions if whole else operator.filters, operator.window
    if texts is None or own is None:
        return texts
    window, time = f"window({own.column}, {own.length_us}, {own.slide_us}, {own.offset_us})", own.column
    begun, before_end = f"({window}.start <= {time})", f"({time} < {window}.end)"
    never_null = (f"{time} IS NOT NULL",) if whole and begun in texts else ()
    return (*(text for text in texts if text not in (begun, before_end)), *never_null)


def _match(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Give the old place of each new part that computes the same: its own place if that fits."""
    matching = {number: number for number, text in enumerate(new) if number < len(old) and old[number] == text}
    for number, text in enumerate(new):
        if number not in matching:
            taken = {*matching.values()}
            same = next((other for other, before in enumerate(old) if before == text and other not in taken), None)
            if same is not None:
                matching[number] = same
    return matching


def _have_same_types(old: Sequence[DescribedExpression], new: Sequence[DescribedExpression]) -> bool:
    """Tell whether Spark takes the old columns for the new ones: their types are the same."""
    return [bare(part.type) for part in old] == [bare(part.type) for part in new]


def _judge_column(old: DescribedExpression, new: DescribedExpression) -> Knowledge:
    """Judge a column that computes the same: its type, and whether its computation can be seen."""
    return Knowledge.FULL if takes_values(new.type, old.type) and "?" not in new.sql else Knowledge.UNKNOWN


def _spell_argument(part: DescribedAggregate) -> str:
    return _spell_aggregate(part, part.sql.partition("(")[2])


def _spell_aggregate(part: DescribedAggregate, sql: str | None = None) -> str:
    """Write a function with its filter; ``sql`` is the part of it that counts, if that is not all."""
    distinct = "DISTINCT " if part.distinct else ""
    return f"{distinct}{sql or part.sql}" + (f" FILTER ({part.filter})" if part.filter is not None else "")


def _name_column(part: DescribedExpression) -> str:
    text = spell(part.sql)
    return text if part.name is None or text == part.name else f"{text} ({part.name})"


def bare(data_type: Json) -> str:
    """Spell a type without nullability."""
    return spell_schema(data_type).replace(" not null", "")


def is_wider(new: Json, old: Json) -> bool:
    """Tell whether a type has every value of another one."""
    if new in _INTEGERS and old in _INTEGERS:
        return _INTEGERS.index(str(new)) >= _INTEGERS.index(str(old))
    if (old, new) == ("float", "double"):
        return True
    decimals = [re.fullmatch(r"decimal\((\d+),(\d+)\)", str(each)) for each in (old, new)]
    if decimals[0] is not None and decimals[1] is not None:
        before, after = ((int(match[1]), int(match[2])) for match in decimals if match is not None)
        return after[1] == before[1] and after[0] >= before[0]
    return False


def takes_values(new: Json, old: Json) -> bool:
    """Tell whether a column of one type takes all values of another."""
    return bare(new) == bare(old) or is_wider(new, old)


def _times(window: DescribedWindow) -> tuple[int, int, int]:
    return window.length_us, window.slide_us, window.offset_us


def _judge_window(old: DescribedWindow, new: DescribedWindow, why: str, watermark_ms: int) -> tuple[Knowledge, str]:
    """Judge a window that is made of old ones: those that the watermark has passed are not in the state."""
    if watermark_ms <= 0 or old.length_us == new.length_us:
        return Knowledge.FULL, why
    late = f"{why}: rows that were too late for an old window are not in the state, if there were any"
    ends = (watermark_ms * 1000 - length_us for length_us in (new.length_us, old.length_us))
    before, last = (find_window_start(time_us, new.slide_us, new.offset_us) for time_us in ends)
    if before == last:  # no window is open whose first part was evicted
        return Knowledge.UNKNOWN, late
    first, until = instant((before + new.slide_us) // 1000), instant(last // 1000)
    which = f"the window that began at {first} has" if first == until else f"windows that began {first} to {until} have"
    lack = f"{which} only the old windows that end after the watermark, {instant(watermark_ms)}"
    return Knowledge.FROM_NOW_ON, f"{late}; {lack}"


def find_window_start(time_us: int, slide_us: int, offset_us: int) -> int:
    """Return the start of the latest window that has begun at a time."""
    return (time_us - offset_us) // slide_us * slide_us + offset_us


def is_made_of(old: DescribedWindow | None, new: DescribedWindow | None) -> bool:
    """Tell whether each new window is an old one, or several in a row, whose groups can be merged until evicted."""
    if old is None or new is None or _times(old) == _times(new):
        return False
    longer = new.length_us > old.length_us
    in_row = new.length_us % old.length_us == 0 and not (longer and old.length_us % old.slide_us)
    return in_row and new.slide_us % old.slide_us == 0 and (new.offset_us - old.offset_us) % old.slide_us == 0


def find_longer_gap(old: DescribedOperator, new: DescribedOperator) -> int | None:
    """Return by how many microseconds the gap of sessions is longer; None: it is not, or is no constant."""
    before, after = (None if each.gap is None else _read_interval(each.gap) for each in (old, new))
    return after - before if before is not None and after is not None and after > before else None


def _read_interval(text: str) -> int | None:
    """Read an interval such as ``1 minutes 5.5 seconds``; None: it has days or months, or is no constant."""
    parts = re.findall(r"(\d+(?:\.\d+)?) (hours|minutes|seconds)(?: |$)", text)
    if not parts or " ".join(f"{number} {unit}" for number, unit in parts) != text:
        return None
    return sum(round(float(number) * _UNITS[unit]) for number, unit in parts)


def _spell_window(window: DescribedWindow) -> str:
    parts = [f"{window.length_us / 1_000_000:g} s"]
    if window.slide_us != window.length_us:
        parts.append(f"every {window.slide_us / 1_000_000:g} s")
    if window.offset_us:
        parts.append(f"from {window.offset_us / 1_000_000:g} s")
    return " ".join(parts)


def _find_end(text: str, start: int) -> int | None:
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index
    return None


def _split(text: str) -> Iterator[str]:
    depth = start = 0
    for index, sign in enumerate(text):
        depth += (sign in "{(") - (sign in "})")
        if depth == 0 and text.startswith(" | ", index):
            yield text[start:index]
            start = index + 3
    yield text[start:]
