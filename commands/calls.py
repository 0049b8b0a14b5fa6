"""Calls in Python: the one rule that turns a call of advice into a line of a Python prompt or a notebook."""

from inspect import signature
from typing import get_args

import ckpt
from ckpt.advice import Call
from ckpt.advice.calls import Speech
from ckpt.advice.spelling import name_argument, quote_line, spell_value


def as_call(call: Call) -> str:
    """Write a call in Python; as a line of a shell, with ``!``, where the library has no call with these arguments.

    >>> from ckpt.advice import call
    >>> as_call(call("rewind", "/data/cp", to_batch=5, accept_replay=True, apply=True))
    'ckpt.rewind("/data/cp", to_batch=5, accept_replay=True, apply=True)'
    """
    if call.name not in ckpt.__all__:
        return f"!{quote_line(call)}" if call.arguments else quote_line(call)
    if not call.arguments:
        return f"ckpt.{call.name}"
    if not _fits(call):
        return f"!{quote_line(call)}"
    options = (name_argument(name, value) for name, value in call.options)
    return f"ckpt.{call.name}({', '.join((*map(spell_value, call.arguments), *options))})"


def _fits(call: Call) -> bool:
    """Tell whether the library has a call with these arguments; ``**how`` takes those of ``ApplyOptions``."""
    form = signature(getattr(ckpt, call.name))
    try:
        bound = form.bind(*call.arguments, **dict(call.options))
    except TypeError:
        return False
    others = {name: form.parameters[name] for name in bound.arguments}
    kinds = ((name, get_args(each.annotation)[0]) for name, each in others.items() if each.kind is each.VAR_KEYWORD)
    return all(bound.arguments[name].keys() <= kind.__annotations__.keys() for name, kind in kinds)


PYTHON = Speech(as_call, name_argument, "its fields", "its fields")
