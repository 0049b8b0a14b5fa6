"""From the library's argument names to the options that were typed: the one place that knows both."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ckpt.texts import quote_word

_OPTIONS = {
    "accept_replay": "--accept-replay",
    "accept_skip": "--accept-skip",
    "all_units": "--all",
    "api": "--api",
    "backup": "--backup DIR",
    "batch": "--batch",
    "changes_from": "--changes-from",
    "choose": "--choose",
    "confs": "--conf",
    "depth": "--depth",
    "drop_keys": "--drop-keys",
    "engine": "--engine",
    "expect_batch": "--expect-batch",
    "format": "--format",
    "format_version": "--format-version",
    "from_batch": "--from-batch",
    "grace_s": "--grace",
    "group_prefix": "--group",
    "jobs": "--jobs",
    "key": "--key",
    "keep_batches": "--keep-batches",
    "limit": "--limit",
    "master": "--master",
    "mode": "--mode",
    "must_exist": "--must-exist",
    "operator": "--operator",
    "partitions": "--partitions",
    "partition_id": "--partition-id",
    "provider": "--provider",
    "query_id": "--query-id",
    "shape": "--shape",
    "shift": "--shift",
    "side": "--side",
    "source": "--source",
    "source_options": "--source-option",
    "storage_options": "--storage-option",
    "store": "--store",
    "table": "--table",
    "timers": "--timers",
    "to": "--to",
    "to_batch": "--to-batch",
    "topic": "--topic",
    "variable": "--variable",
    "where": "--where",
}
_CALLED = {
    "spark": "versions",
    "progress": "asked",
    "leftovers": "remove_leftovers",
    "topic": "topics",
}
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
    ('to_batch', 'grace_s', 'versions')
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
