"""From a command line to the call of the library that does the same: for a Python prompt and for notebooks."""

import json
import re
import shlex
from typing import Any

import ckpt

from .arguments import argument_of

_WITHOUT_VALUE = (
    "accept-fewer-versions accept-from-now-on accept-loss accept-replay accept-skip all all-versions apply combine "
    "count deep files-only in-place leftovers must-exist new-id partition-id plan quiet restore-sink salvage skew "
    "superseded timers verify"
)
_FLAGS = frozenset(_WITHOUT_VALUE.split())
_UNSAID = {"quiet", "output", "o"}  # of the terminal alone
_LISTS = {"shift"}
_MAPPINGS = {"key", "topic", "storage-option"}
_GROUPS = {"state", "offsets", "migrate"}
_NAMED_OTHERWISE = {"state_verify": "verify_state", "state_export": "export_state", "state_import": "import_state"}
CALLS = frozenset(ckpt.__all__)
_COMMAND = re.compile(r"`(ckpt [^`]*)`")
_NAME = re.compile(r"\bckpt ((?:state |offsets |migrate )?[a-z]+(?:-[a-z]+)*)\b")
_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")


def in_python(text: str) -> str:
    """A text of a page with calls and arguments in place of command lines and options.

    >>> in_python("`ckpt skip /data/cp` leaves them out; ckpt inspect says why, --apply does it, -o json has the rest")
    '`ckpt.skip("/data/cp")` leaves them out; ckpt.inspect says why, `apply=True` does it, its fields have the rest'
    """
    text = _COMMAND.sub(lambda match: f"`{as_call(match[1])}`", text)
    text = _NAME.sub(lambda match: f"ckpt.{_name_call(match[1])}" if _name_call(match[1]) in CALLS else match[0], text)
    text = _OPTION.sub(lambda match: f"`{argument_of(match[1])}{'=True' * (match[1] in _FLAGS)}`", text)
    return text.replace("-o json has", "its fields have").replace("-o json", "its fields")


def as_call(command: str) -> str:
    """Return the call of the library that does what a command line does.

    >>> as_call("ckpt rewind /data/cp --to-batch 5 --accept-replay --apply")
    'ckpt.rewind("/data/cp", to_batch=5, accept_replay=True, apply=True)'
    >>> as_call("ckpt inspect '/data/my cp' --deep"), as_call("ckpt preflight /data/cp")
    ("!ckpt inspect '/data/my cp' --deep", '!ckpt preflight /data/cp')
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return f"!{command}"
    length = 3 if words[1:2] and words[1] in _GROUPS else 2
    name, method = _name_call(" ".join(words[1:length])), ""
    if name not in CALLS or name in ("preflight", "evolve"):  # their calls are about a query that was built in Python
        return f"!{command}"
    if not words[length:]:
        return f"ckpt.{name}"
    places, options = _parse_arguments(words[length:])
    if name == "scan" and "live" in options:
        return f"!{command}"
    if name == "inspect" and "deep" in options:  # which has no call: `verify_state` says what, and not what to do
        return f"!{command}"
    if name == "import_state" and "like" in options:
        places.insert(1, options.pop("like"))
    elif name == "handoff" and "snippet" in options:
        method = f".snippet({_spell(options.pop('snippet'))})"
    elif name == "export_state":
        for action in ("plan", "count", "show"):
            if action in options:
                options |= {"action": action} | ({"rows": options["show"]} if action == "show" else {})
                del options[action]
    arguments = [*map(_spell, places), *(f"{argument}={_spell(value)}" for argument, value in options.items())]
    return f"ckpt.{name}({', '.join(arguments)}){method}"


def _name_call(words: str) -> str:
    """Name the call of a command: ``offsets_set`` for ``offsets set``."""
    name = words.replace(" ", "_").replace("-", "_")
    return _NAMED_OTHERWISE.get(name, name)


def _parse_arguments(words: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The positional arguments of a command line, and its options as arguments of a call."""
    places: list[Any] = []
    arguments: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.lstrip("-").partition("=")
        argument = argument_of(option)
        if not word.startswith("-"):
            places.append(word)
            continue
        if option == "sources":
            arguments.setdefault("live", {})
            continue
        if option in _FLAGS:
            arguments[argument] = True
            continue
        value = value if equals else next(rest, "")
        if option == "source-option":
            index, _, pair = value.partition(".")
            key, _, content = pair.partition("=")
            arguments.setdefault("live", {}).setdefault(int(index) if index.isdecimal() else index, {})[key] = content
        elif option in _LISTS:
            arguments.setdefault(argument, []).append(value)
        elif option in _MAPPINGS:
            key, _, content = value.partition("=")
            arguments.setdefault(argument, {})[key] = content
        elif option not in _UNSAID:
            arguments[argument] = int(value) if re.fullmatch(r"-?\d+", value) else value
    arguments.pop("quiet", None)
    return places, arguments


def _spell(value: object) -> str:
    """Write a value as Python does, with double quotes."""
    match value:
        case dict():
            return f"{{{', '.join(f'{_spell(key)}: {_spell(entry)}' for key, entry in value.items())}}}"
        case str() | list():
            return json.dumps(value, ensure_ascii=False)
    return str(value)
