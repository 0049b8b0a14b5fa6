"""Advice as data of a document, and back: what ``ckpt preflight`` reads of a saved ``ckpt inspect -o json``."""

from collections.abc import Mapping
from typing import Any, assert_never

from ckpt.advice import (
    FIELDS,
    Advice,
    Blank,
    Call,
    Code,
    Do,
    Fields,
    Hole,
    Instruction,
    Name,
    Needs,
    Option,
    RowCost,
    RowsEffect,
    Setting,
    Step,
    Words,
)
from ckpt.advice.calls import Value
from ckpt.advice.words import AnyPart
from ckpt.model import Json
from ckpt.restart.sinks import Ids, OnSinks

_FIXED: dict[str, type[Code | Name | Setting]] = {"code": Code, "name": Name, "setting": Setting}


def to_data(advice: Advice | None) -> Json:
    """Return the steps of advice as JSON has them: a text is a list, in which a string is plain words."""
    return None if advice is None else [_step_to_data(step) for step in advice.steps]


def from_data(data: Json) -> Advice | None:
    """Return the advice that ``to_data`` wrote. Raises ValueError, KeyError or TypeError for anything else."""
    return None if data is None else Advice(tuple(map(_read_step, _list(data))))


def _step_to_data(step: Step) -> Json:
    doing = step.do
    return {
        "do": "run" if isinstance(doing, Call) else doing.do.value,
        "call": _call_to_data(doing) if isinstance(doing, Call) else None,
        "paths": [] if isinstance(doing, Call) else [_value_to_data(path) for path in doing.paths],
        "line": "" if isinstance(doing, Call) else doing.line,
        "what": _words_to_data(step.what),
        "rows": step.rows.cost.value,
        "batches": None if step.rows.batches is None else [*step.rows.batches],
        "dropped_by": [*step.rows.dropped_by],
        "writes": step.writes,
        "before": [_words_to_data(text) for text in step.before],
        "needs": step.needs.value,
        "instead": [_step_to_data(other) for other in step.alternatives],
    }


def _read_step(data: Json) -> Step:
    keys = _mapping(data)
    paths = tuple(map(_read_value, _list(keys["paths"])))
    line = str(keys["line"])
    doing = _read_call(keys["call"]) if keys["do"] == "run" else Instruction(Do(keys["do"]), paths, line)
    first_last = None if keys["batches"] is None else (int(keys["batches"][0]), int(keys["batches"][1]))
    return Step(
        doing,
        _read_words(keys["what"]),
        RowsEffect(RowCost(keys["rows"]), first_last, tuple(map(str, _list(keys["dropped_by"])))),
        keys["writes"] is True,
        tuple(map(_read_words, _list(keys["before"]))),
        Needs(keys["needs"]),
        tuple(map(_read_step, _list(keys["instead"]))),
    )


def _words_to_data(text: Words) -> Json:
    return [_part_to_data(part) for part in text.parts]


def _read_words(data: Json) -> Words:
    return Words(tuple(map(_read_part, _list(data))))


def _part_to_data(part: AnyPart) -> Json:
    match part:
        case str():
            return part
        case Blank():
            return _value_to_data(part)
        case Call():
            return {"call": _call_to_data(part)}
        case Code() | Name() | Setting():
            return {type(part).__name__.lower(): part.text}
        case Option(name, value):
            return {"option": name, "value": _value_to_data(value)}
        case OnSinks(ids, kind):
            return {"sinks": ids.value, "kind": kind}
        case Fields():
            return {"fields": True}
    raise TypeError(f"{type(part).__name__} is no part of a document")


def _read_part(data: Json) -> AnyPart:
    if isinstance(data, str):
        return data
    match keys := _mapping(data):
        case {"blank": name}:
            return Blank(name)
        case {"call": call}:
            return _read_call(call)
        case {"option": str(name), "value": value}:
            return Option(name, _read_value(value))
        case {"sinks": ids, "kind": kind}:
            return OnSinks(Ids(ids), kind if isinstance(kind, str) else None)
        case {"fields": True}:
            return FIELDS
    ((kind, text),) = keys.items()
    return _FIXED[kind](str(text))


def _call_to_data(call: Call) -> Json:
    return {
        "name": call.name,
        "arguments": [_value_to_data(value) for value in call.arguments],
        "options": {name: _value_to_data(value) for name, value in call.options},
    }


def _read_call(data: Json) -> Call:
    keys = _mapping(data)
    options = _mapping(keys["options"]).items()
    return Call(
        str(keys["name"]),
        tuple(map(_read_value, _list(keys["arguments"]))),
        tuple((name, _read_value(value)) for name, value in options),
    )


def _value_to_data(value: Value | None) -> Json:
    match value:
        case Hole():
            return {"hole": value.value}
        case Blank():
            return {"blank": value.value}
        case tuple():
            return [_value_to_data(each) for each in value]
        case Mapping():
            return {"mapping": {key: _value_to_data(each) for key, each in value.items()}}
        case None | str() | bool() | int() | float():
            return value
    assert_never(value)


def _read_value(data: Json) -> Any:
    match data:
        case {"hole": name}:
            return Hole(str(name))
        case {"blank": name}:
            return Blank(name)
        case {"mapping": dict(pairs)}:
            return {key: _read_value(each) for key, each in pairs.items()}
        case list():
            return tuple(map(_read_value, data))
        case None | str() | bool() | int() | float():
            return data
    raise ValueError("it is no value of an argument")


def _list(data: Json) -> list[Json]:
    if not isinstance(data, list):
        raise ValueError("it is no list")
    return data


def _mapping(data: Json) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    return data
