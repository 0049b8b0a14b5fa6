"""Calls in Python: the one rule that turns a call of advice into a line of a Python prompt or a notebook."""

from inspect import signature

import ckpt
from ckpt.advice import Call
from ckpt.advice.calls import Speech
from ckpt.advice.spelling import name_argument, quote_line, spell_value

_PLACES = ("checkpoint", "export", "root", "roots", "text")
"""Names of the first argument of a call that a command has too; other calls are about something made in Python."""


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
    form = signature(getattr(ckpt, call.name))
    try:
        form.bind(*call.arguments, **dict(call.options))
    except TypeError:
        return False
    return next(iter(form.parameters), "") in _PLACES


PYTHON = Speech(as_call, name_argument, "its fields")
