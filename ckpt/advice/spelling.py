"""Calls as lines of a shell: an argument has the name of its option, and its value says how it is written."""

import json
from collections.abc import Iterator, Mapping
from enum import Enum

from ckpt.advice.blanks import NUMBERS, Hole
from ckpt.advice.calls import Call, Speech, Value
from ckpt.texts import mask_secrets, quote_path, quote_word

GROUPS = ("migrate", "offsets", "state")
"""Commands that are groups: ``state_show`` is ``ckpt state show``."""


def name_command(name: str) -> str:
    """Name the command of a call.

    >>> name_command("state_show"), name_command("repair_async"), name_command("migrate_transform_with_state")
    ('state show', 'repair-async', 'migrate transform-with-state')
    """
    group, _, rest = name.partition("_")
    return f"{group} {rest.replace('_', '-')}" if group in GROUPS and rest else name.replace("_", "-")


def list_words(call: Call) -> tuple[str, ...]:
    """Return the words of the command line, unquoted, without the secrets in them."""
    places = (show_value(value) for value in call.arguments)
    shown = (f"./{argument}" if argument.startswith("-") else argument for argument in places)
    return tuple(map(mask_secrets, ("ckpt", *name_command(call.name).split(), *shown, *_list_options(call))))


def quote_line(call: Call) -> str:
    """Return the command line, which can be typed into a shell.

    >>> from ckpt.advice.calls import call
    >>> quote_line(call("offsets_set", "/data/my cp", source=0, shift=("orders/0=-10", "orders/1=-5"), deep=True))
    "ckpt offsets set '/data/my cp' --source 0 --shift orders/0=-10 --shift orders/1=-5 --deep"
    """
    places = (quote_path(show_value(value)) for value in call.arguments)
    return " ".join(("ckpt", name_command(call.name), *places, *map(quote_word, _list_options(call))))


def name_option(name: str, value: "Value | None" = None) -> str:
    """Name the option that an argument is, with its value.

    >>> name_option("to_batch"), name_option("mode", "overwrite"), name_option("deep", True), name_option("from_")
    ('--to-batch', '--mode overwrite', '--deep', '--from')
    """
    return next(_spell_option(name, True)) if value is None else " ".join(map(quote_word, _spell_option(name, value)))


def name_argument(name: str, value: "Value | None" = None) -> str:
    """Name an argument in Python, with its value.

    >>> name_argument("to_batch"), name_argument("mode", "overwrite"), name_argument("shift", ("a/0=-1",))
    ('to_batch', 'mode="overwrite"', 'shift=["a/0=-1"]')
    """
    return name if value is None else f"{name}={spell_value(value)}"


def spell_value(value: Value) -> str:
    """Write a value as Python does, with double quotes."""
    match value:
        case bool() | int() | float():
            return show_value(value)
        case Hole() if value in NUMBERS:
            return value.value
        case Mapping():
            return f"{{{', '.join(f'{spell_value(key)}: {spell_value(each)}' for key, each in value.items())}}}"
        case tuple() | list():
            return f"[{', '.join(map(spell_value, value))}]"
    return json.dumps(show_value(value), ensure_ascii=False)


def show_value(value: Value) -> str:
    """Write a value as a word, unquoted."""
    return f"{value:g}" if isinstance(value, float) else str(value.value if isinstance(value, Enum) else value)


def _list_options(call: Call) -> Iterator[str]:
    for name, value in call.options:
        yield from _spell_option(name, value)


def _spell_option(name: str, value: Value) -> Iterator[str]:
    option = f"--{name.rstrip('_').replace('_', '-')}"
    match value:
        case True:
            yield option
        case False:
            return
        case tuple() | list():
            for each in value:
                yield from _spell_option(name, each)
        case Mapping():
            for pair in _list_pairs(value):
                yield from _spell_option(name, pair)
        case _:
            text = show_value(value)
            yield from (f"{option}={text}",) if text.startswith("-") else (option, text)


def _list_pairs(mapping: Mapping[str, Value] | Mapping[int, Value]) -> Iterator[str]:
    """``key=value``; of a mapping of mappings ``0.key=value``."""
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield from (f"{key}.{pair}" for pair in _list_pairs(value))
        else:
            yield f"{key}={show_value(value)}"


SHELL = Speech(quote_line, name_option, "-o json", "-v")
ARGUMENTS = Speech(quote_line, name_argument, "its fields", "its fields")
"""Messages of the library: calls are lines of a shell, but arguments are those of Python."""
