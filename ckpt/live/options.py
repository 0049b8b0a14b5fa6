"""Options of a source's reader, as they are typed: ``0.kafka.bootstrap.servers=host:9092``."""

import os
from collections.abc import Sequence

from ckpt.errors import UsageError
from ckpt.storage.base import one_line
from ckpt.storage.given import read_text

_ENVIRONMENT = "env:"


def source_options(words: Sequence[str]) -> dict[int, dict[str, str]]:
    """``I.KEY=VALUE`` words by source. A value ``@FILE`` is in that file, ``env:NAME`` in that environment variable.

    Raises UsageError, which never repeats a value.

    >>> from ckpt.live.options import source_options
    >>> source_options(["0.kafka.bootstrap.servers=localhost:9092", "0.failOnDataLoss=false"])
    {0: {'kafka.bootstrap.servers': 'localhost:9092', 'failOnDataLoss': 'false'}}
    """
    found: dict[int, dict[str, str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        index, dot, key = name.partition(".")
        if not (equals and dot and key) or not (index.isascii() and index.isdecimal() and len(index) < 5):
            raise UsageError("`source_options`: write it as I.KEY=VALUE, with the number of the source in front")
        options = found.setdefault(int(index), {})
        if key in options:
            raise UsageError(f"`source_options`: {one_line(name)} is given twice")
        options[key] = _value(name, value)
    return found


def _value(name: str, text: str) -> str:
    if text.startswith("@"):
        try:
            return read_text(text[1:]).strip()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise UsageError(f"`source_options`: the file of {one_line(name)} cannot be read: {why}") from None
    if text.startswith(_ENVIRONMENT):
        variable = text.removeprefix(_ENVIRONMENT)
        if variable not in os.environ:
            raise UsageError(f"`source_options`: {one_line(name)}: there is no environment variable of that name")
        return os.environ[variable]
    return text
