"""One vocabulary: an argument of a call and the option of its command have the same name."""

import ast
import re
from collections.abc import Callable, Iterator
from inspect import Parameter, isfunction, signature
from keyword import iskeyword
from typing import Any, get_args

import pytest

import ckpt
from ckpt.advice.spelling import GROUPS, name_command
from ckpt.errors import CkptError
from commands.main import app
from commands.render.book import BOOK
from tests.conftest import commands_of
from tests.laws.advice.calls import declared_calls
from tests.support.places import ROOT

OF_THE_TERMINAL = {"output", "quiet", "verbose", "help", "watch", "textfile", "fail_on", "all"}
"""Options that say how an answer is printed, how much of it, how often, and what exit status it has."""
BARS = {"watcher", "announce"}
"""Arguments that are called with how far the work is; in a terminal a bar shows it."""
WORKERS = {"master", "conf", "session", "jobs"}
"""Which Spark works: a terminal starts it (``--master``, ``--conf``); Python has a session, or ``Executors`` of one."""
ACCEPTED = {"accept_skip", "accept_replay"}
"""Arguments that every change takes, also one that neither leaves rows out nor reads them again; it needs no option."""
ELSEWHERE: dict[str, Callable[..., Any]] = {
    "state export": ckpt.export_state,
    "state import": ckpt.import_state,
}
"""Calls that have another name."""
EXCEPTIONS = {
    ("inspect", "engine"): "of --deep; in Python ``state_verify`` has it",
    ("preflight", "query"): "in Python a data frame can be the query",
    ("preflight", "output_mode"): "of a query that is a data frame",
    ("preflight", "fix"): "for an init container, which runs no Python",
    ("preflight", "backup"): "with --fix",
    ("preflight", "grace"): "with --fix",
    ("rewind", "to_time"): "in Python a time is a value of ``to_batch``",
    ("evolve", "in_place"): "in Python: without ``new``",
    ("evolve", "output_mode"): "of a query that is a data frame",
    ("sql", "to"): "the answer of a terminal as a file; in Python it is a value",
}
"""An option or an argument that the other side has not, and why."""


COMMANDS = commands_of(app)


def find_call(command: str) -> Callable[..., Any] | None:
    if command in ELSEWHERE:
        return ELSEWHERE[command]
    call = getattr(ckpt, command.replace(" ", "_").replace("-", "_"), None)
    return call if callable(call) else None


def list_arguments(call: Callable[..., Any]) -> list[str]:
    """List the arguments of a call; of ``**how: Unpack[ApplyOptions]`` each."""
    names: list[str] = []
    for parameter in signature(call).parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD:
            (kind,) = get_args(parameter.annotation)
            names += kind.__annotations__
        else:
            names.append(parameter.name)
    return names


def list_options(command: Any) -> set[str]:
    """List the options of a command as arguments are spelled: ``--from`` is ``from_``, as Python has that word."""
    spellings = (param.opts for param in command.params if param.param_type_name == "option")
    firsts = (next(word for word in words if word.startswith("--")) for words in spellings)  # others are aliases
    return {f"{word[2:].replace('-', '_')}{'_' * iskeyword(word[2:])}" for word in firsts}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_an_option_has_the_name_of_its_argument(command: str) -> None:
    call = find_call(command)
    assert call is not None
    options, arguments = list_options(COMMANDS[command]), list_arguments(call)
    places = [param for param in COMMANDS[command].params if param.param_type_name == "argument"]
    excepted = {name for of, name in EXCEPTIONS if of == command} | OF_THE_TERMINAL | BARS | WORKERS
    assert options - set(arguments) - excepted == set()
    left = [name for name in arguments if name not in options | excepted | ACCEPTED]
    assert len(left) <= sum(2 if place.nargs == -1 else 1 for place in places), left


def test_each_exception_is_one() -> None:
    for command, name in EXCEPTIONS:
        call = find_call(command)
        assert call is not None
        assert (name in list_options(COMMANDS[command])) is not (name in list_arguments(call)), (command, name)


FIRST = {
    "checkpoint",
    "checkpoints",  # of merge
    "roots",  # of scan, connect and offsets_commit: places that are searched for checkpoints
    "statement",  # of sql, as it is typed
    "text",  # of explain
    "frame",  # of describe_query
    "frames",  # of write_state
    "export",  # of import_state
    "connection",  # of run_sql
}
SECOND = {"new", "other", "document", "roots", "statement"}
"""NEW, the other checkpoint of a comparison, the file of an import; the roots of a statement; that of a connection."""


FUNCTIONS = {name: call for name in ckpt.__all__ if isfunction(call := getattr(ckpt, name))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_takes_the_checkpoint_first_and_all_else_by_name(name: str) -> None:
    call = signature(FUNCTIONS[name])
    parameters = call.parameters.values()
    named = (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
    first, *second = [parameter.name for parameter in parameters if parameter.kind not in named]
    assert first in FIRST
    assert len(second) <= 1
    assert {*second} <= SECOND
    kinds = [each.annotation for each in parameters] + [call.return_annotation]
    assert not any("Any" in str(kind) for kind in kinds)


ON_SPARK = {"read_state", "read_changes", "read_initial_state", "rehearse"}
OF_A_PATH = {name for name, call in FUNCTIONS.items() if next(iter(signature(call).parameters)) == "checkpoint"}


@pytest.mark.parametrize("path", ["/no/such/checkpoint", __file__, "nothing://there"], ids=["none", "file", "scheme"])
@pytest.mark.parametrize("name", sorted(OF_A_PATH - ON_SPARK))
def test_a_traceback_of_a_wrong_path_has_this_error_alone(name: str, path: str) -> None:
    call = getattr(ckpt, name)
    parameters = (each for each in signature(call).parameters.values() if each.kind is not Parameter.VAR_KEYWORD)
    wanted: dict[str, Any] = {each.name: "x" for each in parameters if each.default is Parameter.empty}
    if name == "preflight" and path == "/no/such/checkpoint":
        assert call(path).go  # a new query makes it
        return
    with pytest.raises(CkptError) as raised:
        call(**wanted | {"checkpoint": path})
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__


@pytest.mark.parametrize("name", sorted(ckpt.__all__))
def test_the_name_of_a_call_is_that_of_its_command(name: str) -> None:
    call = getattr(ckpt, name)
    if name_command(name) in COMMANDS:
        assert find_call(name_command(name)) is call


@pytest.mark.parametrize("moved", BOOK.content["moved"])
def test_an_old_spelling_is_refused_and_the_new_one_named(moved: str, ckpt: Any) -> None:
    command, _, option = moved.rpartition(" ")
    words = (command or "inspect").split()
    run = ckpt(*words, "x", f"{option}=1" if option != "--all" else option)
    assert run.exit_code == 2
    assert BOOK.content["moved"][moved] in run.stderr
    assert option[2:].replace("-", "_") not in list_options(COMMANDS[" ".join(words)])


NAMED = re.compile(r"\{--([a-z-]+)(?:=[^}]*)?\}|\bOption\(['\"](\w+)")


def test_an_argument_that_a_text_names_is_one() -> None:
    known = {name for command in COMMANDS.values() for name in list_options(command)}
    calls = [call for name in ckpt.__all__ if callable(call := getattr(ckpt, name)) and not isinstance(call, type)]
    known |= {name for call in (*calls, *ELSEWHERE.values()) for name in list_arguments(call)}
    files = (
        path for folder in ("ckpt", "commands") for kind in ("*.py", "*.toml") for path in (ROOT / folder).rglob(kind)
    )
    texts = [path.read_text() for path in files]
    named = {next(filter(None, match.groups())).replace("-", "_") for text in texts for match in NAMED.finditer(text)}
    assert len(named) > 60
    assert named - known == set()


def list_written_calls() -> Iterator[tuple[str, str, set[str]]]:
    """Yield each ``call("name", ..., option=...)`` of the code or of a book: where it is, its name, its options."""
    yield from ((where, each.name, {name for name, _ in each.options}) for where, each in declared_calls())
    for folder in ("ckpt", "commands"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "call" and node.args:
                    (first, *_) = node.args
                    if isinstance(first, ast.Constant):
                        options = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
                        yield f"{path.relative_to(ROOT)}:{node.lineno}", str(first.value), options


@pytest.mark.slow
def test_a_call_that_is_written_in_the_source_is_a_command_with_its_options() -> None:
    written = list(list_written_calls())
    assert len(written) > 50
    wrong = [
        (place, name, sorted(options))
        for place, name, options in written
        if ((command := COMMANDS.get(name_command(name))) is None and (options or name_command(name) not in GROUPS))
        or (command is not None and not options <= list_options(command))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_call_returns_public_types(name: str) -> None:
    returned = re.findall(r"\bckpt\.[\w.]+\.(\w+)", str(signature(FUNCTIONS[name]).return_annotation))
    assert {*returned} <= {*ckpt.__all__, *ckpt.types.__all__}
