"""Every command that ckpt shows can be typed: the parser of the command line takes it."""

import ast
import re
from collections.abc import Iterator
from inspect import isfunction, signature
from string import Formatter
from typing import Any

import pytest
import typer

import ckpt
from ckpt.advice import CHECKPOINT, Call, Hole, Known, call
from ckpt.advice.spelling import GROUPS, list_words, name_command, name_option
from ckpt.advice.words import _STANDARD
from commands import main
from commands.help import Manual, make_context
from tests.laws.advice.calls import (
    declared_calls,
    declared_options,
    fill,
    written_calls,
    written_in_errors,
    written_templates,
)

_GROUP: Any = typer.main.get_command(main.app)
_MISUSE: Any = typer.BadParameter.__bases__[0]
DECLARED = sorted({(f"{where}: {call}", where, call) for where, call in declared_calls()}, key=lambda each: each[0])


def find_command(name: str) -> Any:
    """Find the command of a call. Raises KeyError."""
    command = _GROUP
    for word in name_command(name).split():
        command = command.commands[word]
    return command


def parse(words: tuple[str, ...]) -> None:
    """Let the command line's own parser read words; nothing is run. Raises what it raises."""
    command, rest = _GROUP, list(words[1:])
    while getattr(command, "commands", None) is not None and rest:
        command = command.commands[rest.pop(0)]
    command.make_context("ckpt", rest)


def options_of(command: Any) -> set[str]:
    return {option for param in command.params for option in (*param.opts, *param.secondary_opts)}


@pytest.mark.parametrize(("where", "call"), [each[1:] for each in DECLARED], ids=[each[0] for each in DECLARED])
def test_a_declared_call_is_a_command_line(where: str, call: Call) -> None:
    find_command(call.name)
    if call.arguments:
        parse(list_words(fill(call)))


@pytest.mark.slow
def test_each_call_that_is_written_out_names_a_command_and_its_options() -> None:
    wrong = []
    written = [*written_calls()]
    for each in written:
        try:
            command = find_command(each.name)
        except KeyError:
            wrong.append(f"{each.where}: there is no command {name_command(each.name)}")
            continue
        if each.name in GROUPS:
            continue
        unknown = [name for name in each.options if name_option(name) not in options_of(command)]
        wrong += [f"{each.where}: ckpt {name_command(each.name)} has no option {name_option(name)}" for name in unknown]
        places = [param for param in command.params if param.param_type_name == "argument"]
        if each.arguments and each.arguments > len(places) and all(param.nargs != -1 for param in places):
            wrong.append(f"{each.where}: ckpt {name_command(each.name)} takes {len(places)} arguments")
    assert wrong == []
    assert len(written) > 20


_MANUALS = [*Manual("ckpt", _GROUP, make_context(_GROUP, "ckpt")).below()]
_KNOWN = set().union(
    *(options_of(manual.command) for manual in _MANUALS),
    *(
        map(name_option, signature(getattr(ckpt, name)).parameters)
        for name in ckpt.__all__
        if isfunction(getattr(ckpt, name))
    ),
)
"""Options of commands, and arguments that only the library has."""


def test_each_option_that_a_text_names_is_one() -> None:
    named = [(where, option.name) for where, option in declared_options()]
    assert [each for each in named if name_option(each[1]) not in _KNOWN] == []


def _list_parts(text: str) -> Iterator[str]:
    for _, name, spec, _ in Formatter().parse(text):
        if name is not None and not spec and not name.startswith("--"):
            yield name
        elif name is not None and name.endswith("="):  # an option with a part as its value
            yield name[2:-1].replace("-", "_")


def _list_options(text: str) -> Iterator[str]:
    names = (name for _, name, _, _ in Formatter().parse(text) if name is not None)
    return (name.partition("=")[0].rstrip("_") for name in names if name.startswith("--"))


@pytest.mark.slow
def test_a_template_is_written_out_and_has_every_part() -> None:
    """Whoever edits a sentence changes nothing else: it is no f-string, and holds neither commands nor backquotes."""
    wrong = []
    templates = [*written_templates()]
    for where, node in templates:
        (text,) = node.args
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
            wrong.append(f"{where}: it is not a constant")
            continue
        names = set(_list_parts(text.value))
        given = {keyword.arg for keyword in node.keywords}
        if None not in given:
            wrong += [f"{where}: no part is called {name}" for name in sorted(names - given - set(_STANDARD))]
        wrong += [
            f"{where}: there is no option {option}" for option in _list_options(text.value) if option not in _KNOWN
        ]
        if None not in given:
            wrong += [f"{where}: {name} is not in the text" for name in sorted(map(str, given - names))]
        wrong += [f"{where}: {sign!r} in {text.value!r}" for sign in ("`", " --", "ckpt.") if sign in text.value]
    assert wrong == []
    assert len(templates) > 100


_COMMANDS = "|".join(re.escape(manual.name) for manual in _MANUALS if " " in manual.name)
_TYPED = re.compile(rf"(?<![\w{{:-])--?[a-z]|`|\b({_COMMANDS})\b")


@pytest.mark.slow
def test_no_error_types_an_option_or_a_command_into_a_sentence() -> None:
    """An option there is an ``Option``, a command a ``Call``: who shows the error says how each is written."""
    written = [*written_in_errors()]
    assert [(where, text) for where, text in written if _TYPED.search(text)] == []
    assert len(written) > 1000


@pytest.mark.parametrize(
    "text", ["--engine spark writes", "leave out --in-place", "-o parquet needs", "run ckpt repair first", "see `x`"]
)
def test_what_is_typed_into_a_sentence_is_noticed(text: str) -> None:
    assert _TYPED.search(text)


def test_a_wrong_call_is_noticed() -> None:
    with pytest.raises(_MISUSE):
        parse(("ckpt", "rewrite", "/data/cp", "/data/new", "--salvaged"))
    with pytest.raises(KeyError):
        find_command("state_shown")
    assert not Call("rewrite", ("/data/cp", Hole.NEW)).complete


def test_only_an_evolution_compares_with_the_old_query() -> None:
    known = Known("/cp", files={Hole.OLD_QUERY: "old.json"})
    to, undo = (call("evolve", CHECKPOINT).but(**{name: "x"}).fill(known) for name in ("to", "undo"))
    assert dict(to.options) == {"to": "x", "from_query": "old.json"}
    assert dict(undo.options) == {"undo": "x"}, "it is refused together with others"
