"""From the library's argument names to the options that were typed: the one place that knows both."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ckpt.texts import quote_word

_ALIKE = (
    "accept_fewer_versions accept_from_now_on accept_loss accept_replay accept_skip api batch changes_from choose "
    "combine default depth drop_keys engine expect expect_batch format format_version from_batch jobs keep_batches key "
    "limit map_operator map_source master mode must_exist operator partition_id partitions provider query_id replay "
    "restore_sink salvage schema shape shift side sink source start store table timers to to_batch to_sink_version "
    "topic variable where"
)
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _ALIKE.split()} | {
    "all_units": "--all-units",
    "backup": "--backup DIR",
    "conf": "--conf",
    "from_query": "--from-query",
    "grace": "--grace",
    "map_column": "--map-column",
    "group": "--group",
    "old": "--old",
    "source_options": "--source-options",
    "storage_options": "--storage-options",
}
_CALLED = {"spark": "versions", "progress": "asked", "leftovers": "leftovers", "topic": "topics"}
"""Options whose argument has another name, and no message names it."""
_speaks_python: ContextVar[bool] = ContextVar("_speaks_python", default=False)
_ARGUMENT = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")


def as_options(text: str) -> str:
    """A message of the library with options in place of its arguments: ``--mode overwrite``."""
    return text if _speaks_python.get() else _ARGUMENT.sub(_name_option, text)


@contextmanager
def library_words() -> Iterator[None]:
    """Leave messages of the library as they are: they are read at a Python prompt."""
    token = _speaks_python.set(True)
    try:
        yield
    finally:
        _speaks_python.reset(token)


def argument_of(option: str) -> str:
    """Name the argument of a call that an option is: ``to_batch`` for ``to-batch``.

    >>> argument_of("to-batch"), argument_of("grace"), argument_of("spark")
    ('to_batch', 'grace', 'versions')
    """
    named = {words.split()[0][2:]: name for name, words in _OPTIONS.items()}
    return _CALLED.get(option) or named.get(option) or option.replace("-", "_")


def all_as_options(texts: Iterable[str]) -> list[str]:
    """Messages of the library with options in place of its arguments."""
    return [as_options(text) for text in texts]


def _name_option(match: re.Match[str]) -> str:
    name, value = match.groups()
    if name == "action" and value:  # each has an option of its own
        return f"--{value[1:-1]}"
    if name not in _OPTIONS:
        return match[0]
    option = _OPTIONS[name]
    if value in (None, "True"):
        return option
    shown = quote_word(value[1:-1]) if value.startswith('"') else value
    return f"{option} {shown}"
