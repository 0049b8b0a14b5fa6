"""Words are converted without pydantic exactly as with it, and a look does not import it."""

import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args, get_origin

import pytest
import typer

from ckpt.errors import UsageError
from commands.plain_types import convert_plain_words
from tests.commands.test_help import GROUP
from tests.support.places import SAMPLES

_WORDS = ("", "0", "1", "5", "007", "-1", "1.0", " 5", "1_000", "\u0661", "9" * 30, "true", "x", "4.2", "4.2.1")


def _list_params(command: Any, name: str) -> Iterator[tuple[str, Any, typer.Context]]:
    context = typer.Context(command, info_name=name)
    for param in command.get_params(context):
        yield f"{name} {param.name}", param, context
    for inner, inner_command in getattr(command, "commands", {}).items():
        yield from _list_params(inner_command, f"{name} {inner}")


def _answer(param: Any, value: Any, context: typer.Context) -> Any:
    try:
        made = param.get_runtime_param().coerce(value, param=param, ctx=context)
    except (typer.BadParameter, UsageError) as error:
        return str(error)
    return [(type(item), item) for item in made] if isinstance(made, list) else (type(made), made)


@pytest.mark.slow
def test_words_and_defaults_become_what_pydantic_makes_of_them() -> None:
    params = list(_list_params(GROUP, "ckpt"))
    plain = 0

    for name, param, context in params:
        annotation = param.type_descriptor.annotation
        of_list = get_origin(annotation) is list
        leaf = get_args(annotation)[0] if of_list else annotation
        choices = [member.value for member in leaf] if isinstance(leaf, type) and issubclass(leaf, Enum) else []
        values = [(word,) if of_list else word for word in (*_WORDS, *choices)]
        for value in (None, *values, *([tuple(choices)] if of_list and choices else [])):
            param._runtime_param = None
            with_pydantic = _answer(param, value, context)
            convert_plain_words([param])
            assert _answer(param, value, context) == with_pydantic, (name, value)
            plain += type(param.get_runtime_param()).__name__ == "_PlainParam"
    assert len(params) > 200
    assert plain > 2_000


@pytest.mark.parametrize("words", [["inspect", "--spark", "4.2", "-o", "json", "--batches", "5"], ["preflight"]])
def test_a_look_does_not_import_pydantic(words: list[str]) -> None:
    code = (
        "import sys; from ckpt_commands.main import app; app(sys.argv[1:], standalone_mode=False); "
        "sys.exit(any(name.startswith('pydantic') for name in sys.modules))"
    )
    sample = str(SAMPLES / "aggregation-rocksdb-4.2")
    run = subprocess.run([sys.executable, "-c", code, words[0], sample, *words[1:]], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
