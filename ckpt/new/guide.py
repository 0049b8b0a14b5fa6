"""Guides a change of a query: which options each refusal of ``ckpt evolve`` takes, up to one command that does it all.

Nothing is written, and no state is read: only descriptions and logs.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from ckpt.advice import Option, Words, join, plain
from ckpt.changes.steps import view_changed
from ckpt.errors import NotFound, UsageError
from ckpt.formats.operators import OperatorName
from ckpt.new.evolve.book import BOOK
from ckpt.new.evolve.plan import EvolveAnswer, EvolveOptions, EvolvePlan, judge_evolution, plan_evolution
from ckpt.query.description import QueryDescription
from ckpt.storage import Storage, open_storage

_GROUPED = (OperatorName.AGGREGATION, OperatorName.SESSIONS)  # whose groups of before can stay beside new ones


def guide_change(
    query: QueryDescription, uri: str, wanted: EvolveOptions, storage_options: Mapping[str, str]
) -> EvolvePlan:
    """Answer each refusal as carefully as can be: a source continues, a column or an operator that is unsure begins.

    Raises as ``evolve``.
    """
    storage, into = open_storage(uri, storage_options), _find_free(uri, storage_options)
    plan, options, answers = _answer_all(storage, query, wanted, into, plan_evolution(storage, query, wanted, into))
    in_place = False
    if plan.refused is None and not plan.state.makes_files:
        view = view_changed(storage, plan.inspection.checkpoint.listing, plan.steps, copied=True)
        plan = judge_evolution(view, plan, query)
        in_place = bool(plan.steps) and plan_evolution(storage, query, options).refused is None
    return replace(plan, answers=answers, guided=options, in_place=in_place)


def _answer_all(
    storage: Storage, query: QueryDescription, options: EvolveOptions, into: str, plan: EvolvePlan
) -> tuple[EvolvePlan, EvolveOptions, tuple[EvolveAnswer, ...]]:
    """Answer a refusal, and those after it; if all lead to one without any, both are why. Raises as above."""
    first = None
    for answer in _list_answers(plan, query):
        tried = _add(options, answer)
        try:
            after = plan_evolution(storage, query, tried, into)
            if str(after.refused) == str(plan.refused):
                continue
            solved, chosen, others = _answer_all(storage, query, tried, into, after)
        except UsageError:  # it is no answer for this column or source
            continue
        if solved.refused is None:
            return solved, chosen, (answer, *others)
        both = replace(solved, refused=join((plan.refused or "", solved.refused), "; "))
        first = first or (both, chosen, (answer, *others))
    return first or (plan, options, ())


def _find_free(uri: str, storage_options: Mapping[str, str]) -> str:
    """Name a folder beside the checkpoint that is not there, or holds nothing. Raises StorageError."""
    stem = re.sub(r"-\d$", "", uri.rstrip("/"))
    for number in count(2):
        new = f"{stem}-{number}"
        try:
            level = open_storage(new, storage_options).list_level()
        except NotFound:
            return new
        if new != uri.rstrip("/") and not (level.files or level.folders):
            return new
    raise AssertionError


def _list_answers(plan: EvolvePlan, query: QueryDescription) -> Iterator[EvolveAnswer]:
    """List the options that take a refusal with their costs, those first that lose least and never mix values."""
    if plan.needs_acceptance:
        yield EvolveAnswer({"accept_from_now_on": True}, plain(plan.refused or ""))
        return
    parts = plan.refused.parts if isinstance(plan.refused, Words) else ()
    named = {part.name: part.value for part in parts if isinstance(part, Option) and part.value is not None}
    operator, begins = plan.refused_operator, {"accept_from_now_on": True}
    values = named.get("default")
    kind = None if operator is None or query.operators is None else query.operators[operator].name
    if isinstance(values, Mapping) and kind in _GROUPED:
        columns = [*map(str, values)]
        why = BOOK.text("guide_null", columns=", ".join(columns))
        yield EvolveAnswer({"default": dict.fromkeys(columns, "null")}, why)
    unclear = any(isinstance(part, Option) and str(part.value).startswith("OLD=") for part in parts)
    for name, text in ((name, str(value)) for name, value in named.items()):
        if not text.startswith("-=") or text == "-=ID":  # of two answers to one question the last is named
            continue
        new = text.removeprefix("-=")
        if name != "map_source":
            more = begins if name == "map_operator" else {}
            yield EvolveAnswer({name: text, **more}, BOOK.text("guide_begins", why=plan.refused))
        elif unclear:  # else it was read before, and would be read again
            yield EvolveAnswer({name: f"{new}={new}"}, BOOK.text("guide_same_place", new=new, map_source=text))
            yield EvolveAnswer({name: text}, BOOK.text("guide_new_source", new=new, why=plan.refused))
    if operator is not None:
        why = BOOK.text("guide_empty", why=plan.refused, new=operator)
        yield EvolveAnswer({"map_operator": f"-={operator}", **begins}, why)


def _add(options: EvolveOptions, answer: EvolveAnswer) -> EvolveOptions:
    changed: dict[str, Any] = {}
    for name, value in answer.options.items():
        before = getattr(options, name)
        more = {**before, **value} if isinstance(value, Mapping) else value if value is True else (*before, str(value))
        changed[name] = more
    return replace(options, **changed)
