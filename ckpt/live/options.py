"""Options of a source's reader: as they are typed, ``0.kafka.bootstrap.servers=host:9092``, and what they mean."""

import os
from collections.abc import Mapping, Sequence, Set

from ckpt.errors import UsageError
from ckpt.storage.argument_files import read_text
from ckpt.storage.base import one_line

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


def lower(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a source that does not mind their case. Raises UsageError for one that is given twice."""
    found = {key.lower(): value for key, value in options.items()}
    if len(found) < len(options):
        raise UsageError("`source_options`: an option is given twice, in upper and in lower case")
    return found


def flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    """An option that is true or false. Raises UsageError."""
    text = options.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise UsageError(f"`source_options`: {name} is true or false")
    return text == "true"


def whole(options: Mapping[str, str], name: str, default: int) -> int:
    """An option that is a number. Raises UsageError."""
    text = options.get(name.lower(), str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise UsageError(f"`source_options`: {name} is a whole number")
    return int(text)


def other_rules(given: Mapping[str, str], source: str, known: Set[str], others: Set[str]) -> str | None:
    """An option, in lower case, under which nothing can be said.

    Args:
        given: The options.
        source: What it is called.
        known: Its options.
        others: Those under which it has other rules.

    Raises:
        UsageError: There is no such option.

    """
    for key in given:
        if key not in known | others:
            raise UsageError(f"`source_options`: the {source} source has no option {one_line(key)}")
    return next((key for key in sorted(given) if key in others), None)
