"""Matches the stateful operators of a changed query with those of a checkpoint: by kind and schema, never by number.

Spark numbers them from the sink on, so that one more in the middle renumbers others (``IncrementalExecution``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ckpt.advice import join, plain
from ckpt.changes.plan import NoWay
from ckpt.errors import UsageError
from ckpt.formats.operators import IN_PYTHON, TRANSFORM_WITH_STATE, OperatorName
from ckpt.model import Operator
from ckpt.new.evolve.book import BOOK, ask_old
from ckpt.new.evolve.columns import GETS_EXPIRY, ColumnPlanner, OtherOld
from ckpt.new.evolve.origins import ColumnChoices, StoreColumns
from ckpt.new.evolve.sources import PartChange, QueryChange
from ckpt.query.compare_checkpoint import fits_schema, pair_families
from ckpt.query.compare_queries import Knowledge, OperatorComparison, PartComparison, find_worst
from ckpt.query.description import DescribedOperator, QueryDescription


@dataclass(frozen=True, slots=True)
class OperatorChange(QueryChange):
    """One stateful operator, in the checkpoint and in the query."""

    name: str
    parts: tuple[PartComparison, ...] = ()  # columns and conditions, where the old query is known or columns change
    stores: tuple[StoreColumns, ...] = ()  # whose columns change
    restated: bool = False  # its metadata gets another name or another mode


def name_operators(there: Sequence[Operator], old: QueryDescription | None) -> tuple[Operator, ...]:
    """Name operators of Spark before 4.0, which keeps no metadata, as the query that wrote them does."""
    wrote = {} if old is None else dict(enumerate(old.operators or ()))
    if wrote.keys() != {operator.id for operator in there}:
        return tuple(there)
    return tuple(replace(operator, name=operator.name or wrote[operator.id].name) for operator in there)


def match_operators(
    there: Sequence[Operator], wanted: Sequence[DescribedOperator], mapped: Sequence[str] = ()
) -> tuple[OperatorChange, ...]:
    """Match the operators of a query with those of a checkpoint, in the order of the query; those that left come last.

    ``mapped`` are ``OLD=NEW``, ids of operators, or ``-`` for none. Raises NoWay where two would fit; UsageError for a
    wrong word.
    """
    old_of = _read_mapping(there, wanted, mapped)
    as_before = len(there) == len(wanted) and all(map(_fits, there, wanted))
    for new, wants in enumerate(wanted):
        if new not in old_of:
            taken = set(old_of.values())
            free = [operator for operator in there if operator.id not in taken]
            old_of[new] = there[new].id if as_before else _find_old(new, wants, free, wanted)
    changes = [_describe(old_of[new], new, wants.name) for new, wants in enumerate(wanted)]
    left = [operator for operator in there if operator.id not in old_of.values()]
    verdict, why = Knowledge.FULL, "its state is left out"
    if any(old is not None for old in old_of.values()):  # it decided which rows these have seen
        verdict, why = Knowledge.UNKNOWN, f"{why}; the state of other operators comes from the rows that it let through"
    gone = (OperatorChange(PartChange.REMOVED, old.id, None, verdict, why, old.name or "") for old in left)
    return (*changes, *gone)


def _read_mapping(
    there: Sequence[Operator], wanted: Sequence[DescribedOperator], mapped: Sequence[str]
) -> dict[int, int | None]:
    old_of: dict[int, int | None] = {}
    ids = {str(operator.id): operator for operator in there}
    for word in mapped:
        old, _, new = word.partition("=")
        if old not in {"-", *ids} or new not in map(str, range(len(wanted))):
            known = ", ".join(ids) or "none"
            raise UsageError(BOOK.text("evolve_map_operator", ids=known, count=len(wanted)))
        if int(new) in old_of:
            raise UsageError.of("{--map-operator} names operator {new} of the query twice", new=new)
        old_of[int(new)] = None if old == "-" else int(old)
        if old != "-" and not _is_kind(ids[old].name, wanted[int(new)].name):
            raise NoWay(f"operator {old} of the checkpoint is of a different kind from operator {new} of the query")
    return old_of


def _find_old(
    new: int, wants: DescribedOperator, free: Sequence[Operator], wanted: Sequence[DescribedOperator]
) -> int | None:
    """Find the operator whose state one of the query continues; None: it is new. Raises NoWay."""
    fitting = [operator for operator in free if _fits(operator, wants)]
    rivals = [number for number, other in enumerate(wanted) if any(_fits(operator, other) for operator in fitting)]
    if len(fitting) == 1 and rivals == [new]:
        return fitting[0].id
    ask = ask_old("map_operator", new)
    if fitting:
        ids = ", ".join(str(operator.id) for operator in fitting)
        raise NoWay(BOOK.text("evolve_which_operator", new=new, kind=wants.name, ids=ids, asked=ask))
    same_kind = [operator for operator in free if operator.name is not None and _is_kind(operator.name, wants.name)]
    alike = [operator for operator in same_kind if not any(_fits(operator, other) for other in wanted)]
    kind = [other for other in wanted if _is_kind(other.name, wants.name)]
    changed = [other for other in kind if not any(_fits(has, other) for has in free)]
    if len(alike) == len(changed) == 1:
        return alike[0].id
    if alike:
        ids = ", ".join(str(operator.id) for operator in alike)
        raise NoWay(BOOK.text("evolve_other_columns", new=new, kind=wants.name, ids=ids, asked=ask))
    return None


def _is_kind(has: str | None, wants: str) -> bool:
    """Tell whether an operator may take the state of one with this name."""
    return has in (None, wants) or {has, wants} <= IN_PYTHON or (has, wants) == GETS_EXPIRY


def _fits(has: Operator, wants: DescribedOperator) -> bool:
    """Tell whether Spark takes the state of one operator for that of another."""
    if not _is_kind(has.name, wants.name) or not wants.stores:  # before 4.0 Spark describes neither
        return _is_kind(has.name, wants.name)
    if {store.name for store in has.stores} != {store.name for store in wants.stores}:
        return False
    with_values = wants.name != OperatorName.DEDUPLICATION  # Spark does not compare the values of these
    return all(
        wants.name in TRANSFORM_WITH_STATE  # whose variables come and go
        if old is None
        else fits_schema(new.key, old.key) and (not with_values or fits_schema(new.value, old.value))
        for _, old, new in pair_families(has, wants)
    )


def _describe(old: int | None, new: int, name: str) -> OperatorChange:
    if old is None:
        why = f"is new ({name}) and starts empty: it only knows rows from now on"
        return OperatorChange(PartChange.ADDED, None, new, Knowledge.FROM_NOW_ON, why, name)
    change = PartChange.SAME if old == new else PartChange.MOVED
    why = "keeps its state; a checkpoint records the types of its columns, not how they are computed"
    return OperatorChange(change, old, new, Knowledge.UNKNOWN, why, name)


class OperatorsRefused(NoWay):
    """Raised with all reasons if the state of some operators cannot be kept."""

    def __init__(self, reasons: Mapping[int, NoWay]) -> None:
        super().__init__(join((reason.words for reason in reasons.values()), "; "))
        self.operators = tuple(reasons)  # of the query


def list_modes(wants: DescribedOperator) -> dict[str, str]:
    """List the modes of transformWithState as its metadata names them."""
    modes = {"timeMode": wants.time_mode, "outputMode": wants.output_mode}
    return {name: mode for name, mode in modes.items() if mode is not None}


def _is_restated(has: Operator, wants: DescribedOperator) -> bool:
    """Tell whether only the metadata of transformWithState has to change. Raises NoWay for a mode that has timers."""
    if has.name not in IN_PYTHON or not isinstance(has.properties, dict):
        return False
    modes = {name: has.properties.get(name) for name in list_modes(wants)}
    if modes == list_modes(wants):
        return has.name != wants.name
    if wants.time_mode != modes.get("timeMode") and modes.get("timeMode") not in ("None", "NoTime"):
        mode = modes.get("timeMode")
        raise NoWay(
            f"operator {has.id} ({wants.name}): time mode {wants.time_mode}, but {mode} with its timers in the state"
        )
    return True


def judge_operators(
    changes: Sequence[OperatorChange],
    there: Sequence[Operator],
    query: QueryDescription,
    old: QueryDescription | None,
    compared_operators: Sequence[OperatorComparison],
    choices: ColumnChoices,
    avro: Collection[int] = (),
    expires_ms: int | None = None,
) -> Iterator[OperatorChange]:
    """Judge operators that keep their state, column by column. Raises NoWay for columns that cannot be kept.

    ``compared_operators`` are those of both queries where the old one is known; variables of ``avro`` are Avro.
    ``expires_ms``: when keys expire that had no expiry.
    """
    parts = {pair.new: pair.parts for pair in compared_operators}
    by_id = {operator.id: operator for operator in there}
    refused: dict[int, NoWay] = {}
    for change in changes:
        if change.new is None or change.old is None or query.operators is None:
            yield change
            continue
        compared = parts.get(change.new, ())
        wrote = old.operators[change.old] if change.new in parts and old is not None and old.operators else None
        has, wants = by_id[change.old], query.operators[change.new]
        try:
            plan = ColumnPlanner(has, wants, wrote, compared, choices, change.old in avro, expires_ms).plan()
            restated = _is_restated(has, wants)
        except OtherOld:
            raise
        except NoWay as error:
            refused[change.new] = error
            continue
        if wrote is None and not plan.stores and not restated:
            yield change
            continue
        verdict = find_worst(part.verdict for part in plan.parts)
        keeps = "its state is kept, in different columns" if plan.stores else "keeps its state, with the same logic"
        reasons = (part.why for part in plan.parts if part.verdict is verdict)
        why = plain(keeps) if verdict is Knowledge.FULL else join(reasons, "; ")
        kind = PartChange.CHANGED if plan.stores else change.change
        yield replace(
            change, change=kind, verdict=verdict, why=why, parts=plan.parts, stores=plan.stores, restated=restated
        )
    if refused:
        raise OperatorsRefused(refused)
