"""Advice as data of a document, and back: what ``ckpt preflight`` reads of a saved ``ckpt inspect -o json``."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from ckpt import advice
from ckpt.advice.steps import sentence
from ckpt.model import Json
from ckpt.restart.sinks import Ids, OnSinks

_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (*vars(advice).values(), Ids, OnSinks) if isinstance(kind, type)
}


def to_data(value: Any) -> Json:
    """Return a value of advice as JSON has it: an object names its class, and has the fields that it was given."""
    if isinstance(value, Enum):
        return {"is": type(value).__name__, "value": value.value}
    if is_dataclass(value):
        names = [field.name for field in fields(value) if field.init and getattr(value, field.name) != field.default]
        return {"is": type(value).__name__, **{name: to_data(getattr(value, name)) for name in names}}
    if isinstance(value, Mapping):
        return {"is": "mapping", "items": [[key, to_data(each)] for key, each in value.items()]}
    return [to_data(each) for each in value] if isinstance(value, tuple) else value


def read_advice(data: Json) -> advice.Advice | None:
    """Return the advice that ``to_data`` wrote. Raises what its use would raise if it is anything else."""
    read = _from_data(data)
    if read is not None and not isinstance(read, advice.Advice):
        raise ValueError("it is not advice")
    for step in read.fill(advice.Known("", ("",))).all_steps() if read else ():
        "".join(text for _, text in sentence(step).segments())  # each is a text
        advice.RowCost(step.rows.cost), step.words, bool(step.writes)
    return read


def _from_data(data: Any) -> Any:
    match data:
        case {"is": "mapping", "items": list(items)}:
            return {key: _from_data(value) for key, value in items}
        case {"is": kind, **entries}:
            return _KINDS[kind](**{str(name): _from_data(value) for name, value in entries.items()})
        case list():
            return tuple(map(_from_data, data))
        case dict():
            raise ValueError("an advice object does not name its class")
    return data
