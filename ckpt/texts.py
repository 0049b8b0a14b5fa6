"""Text for people: numbers, times, untrusted text made printable, secrets masked, words quoted for a shell.

Text from a checkpoint is untrusted: ``escape_unprintable`` escapes it for a terminal, ``mask_secrets`` takes keys and
tokens out wherever text leaves ckpt, ``quote_word`` makes one word of it that no shell obeys.
"""

import json
import os
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")

_MASK = "***"

# ``scheme://user:secret@host``; a secret key of S3 may hold a slash, which people forget to encode.
_S3_KEY = re.compile(r"(?<![\w+.-])(s3[an]?:/+)[^/:@\s]{0,500}:[^@\s\"'<>]{0,500}@", re.I)
_USER = re.compile(r"(?<![\w+.-])(?!file:)([A-Za-z][\w+.-]*+:/+)[^/:@\s]{0,500}:[^/\s\"'<>]{0,500}@", re.I)
# ``secret_key=...`` of a query, an option or a connection string; what follows a slash is the name of a folder,
# unless it is a setting of Hadoop.
# A backquote that ends a word is not part of the value: it ends a command in a sentence.
_NAMED = re.compile(
    r"(?:(?<![\w.%+/-])|(?<=/)(?=fs\.))([\w.%+-]++)"
    r"( ?= ?)(\"[^\"]*\"|'[^']*'|(?:[^\s&,;'\"\\`]++|`(?![.:!?)]*+(?:[\s&,;'\"\\]|$)))++)"
)
_SECRET = re.compile(
    r"secret|passw|token|signature|^sig$|^pwd$|credential|(account|shared|private|api)[._-]?(access[._-]?)?key", re.I
)
# The same in JSON, as services answer.
_IN_JSON = re.compile(
    r'("(?:\w*token|client_?secret|secret_?(?:access_?)?key|(?:private|account)_?key|password)"\s*+:\s*+)'
    r'"(?:[^"\\]++|\\.)*+',
    re.I | re.S,
)
_HEADER = re.compile(r"\b(Bearer|SharedKey)[ ]+[\w.~+/:=-]{8,}")
_HINT = re.compile(r'[=@]|\\"|Bearer |SharedKey ')  # a text without one of these holds nothing to mask
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')


def escape_unprintable(text: str) -> str:
    """Escape everything in a text that is not printable, so that a terminal shows it and does not obey it."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def size(count: int) -> str:
    """Bytes for people: ``1.5 MiB``."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def ranges(spans: Sequence[tuple[int, int]], most: int = 4) -> str:
    """``3, 5 to 9 and 12 more``: inclusive ranges of numbers, the first ``most`` of them."""
    shown = [str(a) if a == b else f"{a} to {b}" for a, b in spans[:most]]
    more = f" and {len(spans) - most} more" if len(spans) > most else ""
    return ", ".join(shown) + more


def span(noun: str, first: int, last: int) -> str:
    """``batch 3``, ``batches 3 to 5``."""
    return f"{noun} {first}" if first == last else f"{plural_of(2, noun)} {first} to {last}"


def batch_ranges(spans: Sequence[tuple[int, int]]) -> str:
    """``batch 3``, ``batches 3, 5 to 9``."""
    return f"{'batch' if len(spans) == 1 and spans[0][0] == spans[0][1] else 'batches'} {ranges(spans)}"


def plural(count: int, noun: str) -> str:
    """``1 file``, ``3 files``, ``2 batches``."""
    return f"{count:,} {plural_of(count, noun)}"


def plural_of(count: int, noun: str) -> str:
    """``file``, ``files``, ``batches``, whichever goes with the number."""
    return noun if count == 1 else noun + ("es" if noun.endswith(("ch", "s")) else "s")


def instant(ms: int | None) -> str:
    """A time in ms since 1970 as ISO 8601 in UTC, to the second; in ms where no calendar has it."""
    if ms is None:
        return "unknown"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def quote_word(word: str) -> str:
    r"""Make a text one word of a shell command, which no shell obeys; without the secrets in it.

    What cannot be shown, and the backquote that marks commands in sentences, become escapes of ``$'...'`` (bash,
    zsh, ksh).

    >>> print(quote_word("my ckpt;touch x"), quote_word("a\nb"))
    'my ckpt;touch x' $'a\012b'
    """
    word = mask_secrets(word)
    if word.isprintable() and "`" not in word:
        return shlex.quote(word)
    return "$'" + "".join(map(_escape_char, word)) + "'"


def quote_path(path: str) -> str:
    """Quote a path for the shell, so that no program takes it for an option: ``./-rf``."""
    return quote_word(f"./{path}" if path.startswith("-") else path)


_PIECE = re.compile(r"""\$'([^']*)'|'([^']*)'|"([^"]*)"|([^\s'"$]+|\$)""")
_OCTALS = re.compile(r"(?:\\[0-7]{3})+")


def split_command(command: str) -> tuple[str, ...]:
    r"""Split a line of a shell into its words, which ``quote_word`` has quoted.

    >>> split_command("ckpt inspect 'my ckpt' $'a\\012b'")
    ('ckpt', 'inspect', 'my ckpt', 'a\nb')
    """
    words: list[str] = []
    end = -1
    for piece in _PIECE.finditer(command):
        text = piece[piece.lastindex or 0] if piece.lastindex != 1 else _OCTALS.sub(_unescape, piece[1])
        if piece.start() == end:
            words[-1] += text
        else:
            words.append(text)
        end = piece.end()
    return tuple(words)


def _unescape(octals: re.Match[str]) -> str:
    return os.fsdecode(bytes(int(code, 8) for code in octals[0].split("\\")[1:]))


def _escape_char(char: str) -> str:
    if char.isprintable() and char not in "\\'`":
        return char
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


@lru_cache(maxsize=16)  # thousands of findings of one kind share a meaning and a remedy
def mask_secrets(text: str) -> str:
    """Put ``***`` for every secret in a text.

    >>> mask_secrets("s3://KEY:SECRET@bucket/x?region=r&secret%5Fkey=S")
    's3://***@bucket/x?region=r&secret%5Fkey=***'
    """
    text = _USER.sub(rf"\1{_MASK}@", _S3_KEY.sub(rf"\1{_MASK}@", text))
    text = _NAMED.sub(lambda found: found[1] + found[2] + _MASK if _is_secret(found[1]) else found[0], text)
    return _HEADER.sub(rf"\1 {_MASK}", _IN_JSON.sub(rf'\1"{_MASK}', text))


def mask_json(document: str) -> str:
    """Mask the secrets in all strings of a JSON document, and strings whose key calls them secrets; it stays JSON."""
    document = _IN_JSON.sub(rf'\1"{_MASK}', document)
    return _STRING.sub(lambda match: _mask_literal(match[0]), document) if _HINT.search(document) else document


@lru_cache(maxsize=256)  # keys, codes and texts of findings of one kind come again and again
def _mask_literal(literal: str) -> str:
    if _HINT.search(literal) is None:
        return literal
    text = json.loads(literal)
    safe = mask_secrets(text)
    return literal if safe == text else json.dumps(safe)


def _is_secret(name: str) -> bool:
    return _SECRET.search(unquote(name)) is not None
