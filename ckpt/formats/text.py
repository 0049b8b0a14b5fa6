"""Text as Spark's logs hold it: UTF-8, Java's lines, a version line, and JSON as Jackson reads it.

Binary files have strings as Java's ``DataOutputStream.writeUTF`` writes them.

Everything here raises ``Damaged``, which never leaves ``ckpt.formats``: ``tolerant`` makes an ``Unreadable``
of it. What Spark itself says to each kind of damage was measured (``tests/formats/spark_answers.json``) and
is in ``says``.
"""

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import accumulate
from typing import Any, NoReturn, TypeVar

from ckpt.formats.names import parse_java_int
from ckpt.model import Fault, Json, Unreadable
from ckpt.texts import mask_secrets

MAX_DEPTH = 1000
"""How deep JSON may nest: Jackson 2.15 and later (``StreamReadConstraints``), so Spark 3.5 and later."""
MOST_CONTAINERS = 200_000
"""How many objects and lists are read of one JSON value, of 64 bytes at least; Kafka offsets have one a topic."""
MAX_DIGITS = 1000
"""How many characters a number may have: likewise."""

_FURTHER = 1000  # how far behind a cut masking looks for the end of a secret
_Record = TypeVar("_Record")
_SPACE = " \t\n\r"  # between the tokens of JSON
_BLANK = "".join(map(chr, range(0x21)))  # what Java's String.trim takes off
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.S)
_SURROGATE = re.compile(r"\\u[dD]")
_DEEPER = bytes.maketrans(b"[{]}", b"\1\1\xff\xff")  # as signed bytes: one deeper, one less deep
_NO_BRACKETS = bytes({*range(256)} - {*b"[{]}"})


class Damaged(Exception):
    """A file that is damaged; raised and caught inside ``ckpt.formats`` only."""

    def __init__(self, fault: Fault, reason: str, says: str | None = None, version: int | None = None) -> None:
        super().__init__(reason)
        self.fault = fault
        self.reason = reason
        self.says = says
        self.version = version


class Repeated(dict[str, Any]):
    """A JSON object that names some keys more than once; it holds the last value of each."""

    __slots__ = ("names",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.names = frozenset(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)


def tolerant(parse: Callable[[bytes], _Record]) -> Callable[[str, bytes], _Record | Unreadable]:
    """Turn a parser that raises ``Damaged`` into one that takes the path first and never raises."""

    @wraps(parse)
    def parse_tolerantly(path: str, raw: bytes) -> _Record | Unreadable:
        try:
            return parse(raw)
        except Damaged as damage:
            return Unreadable(path, damage.fault, damage.reason, damage.version, damage.says)

    return parse_tolerantly


def quoted(text: str, limit: int = 40) -> str:
    """A piece of a file's text for a message: printable ASCII, masked, and then cut to ``limit`` characters."""
    safe = mask_secrets(text[: limit + _FURTHER])[: limit + 1].encode("unicode_escape").decode("ascii")
    return f'"{safe}"' if len(safe) <= limit else f'"{safe[:limit]}..."'


def trimmed(text: str) -> str:
    """Java's ``String.trim``: without the characters up to U+0020 at both ends."""
    return text.strip(_BLANK)


def lines_of(raw: bytes) -> list[str]:
    r"""The lines of a log file, as ``scala.io.Source.getLines`` yields them.

    They end at \n, \r\n or \r and at nothing else; a line end at the end of the file begins no further line.
    Raises Damaged where the file is not UTF-8.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} of it is not UTF-8 text"
        half = re.match(rb"\xed[\xa0-\xbf][\x80-\xbf]?", raw[error.start : error.start + 3])  # of a pair of surrogates
        length = half.end() if half else error.end - error.start  # as Java counts
        raise Damaged(Fault.BAD_BINARY, reason, f"Input length = {length}") from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def drop_white_space(raw: bytes) -> bytes:
    r"""A log file as Spark writes it: without the \r of git and Windows, and what an editor adds at the ends."""
    return raw.removeprefix(_BYTE_ORDER_MARK).replace(b"\r\n", b"\n").rstrip(b" \t\r\n")


def describe_white_space(raw: bytes) -> str:
    """Say in words which white space ``drop_white_space`` removes."""
    added = {
        "Windows line ends, as git writes them with core.autocrlf": b"\r\n" in raw,
        "a byte order mark": raw.startswith(_BYTE_ORDER_MARK),
        "white space at its end": raw != raw.rstrip(b" \t\r\n"),
    }
    return " and ".join(what for what, is_there in added.items() if is_there)


NO_VERSION = "failed to read correct log version"
"""Words of each Spark version for a log whose first line is no version (``MetadataVersionUtil.validateVersion``)."""


def version_of(line: str, newest: int) -> int:
    """The number of a version line (``MetadataVersionUtil.validateVersion``). Raises Damaged.

    ``v`` and what Java takes for a positive int: ``v01`` and ``v+1`` are 1; ``v0``, ``v-1``, ``V1``, `` v1``
    and ``v1 `` are refused (the commit log trims the line first). ``newest`` is the highest that any Spark
    writes.
    """
    version = parse_java_int(line[1:]) if line[:1] == "v" else None
    if version is None or version <= 0:
        reason = f"its first line is {quoted(line)}, not a version such as v1"
        raise Damaged(Fault.BAD_VERSION, reason, NO_VERSION)
    if version > newest:
        reason = f"its version line is v{version}, and the highest known is v{newest}"
        raise Damaged(Fault.NEWER_VERSION, reason, "UnsupportedLogVersion", version)
    return version


@contextmanager
def read_versioned(
    raw: bytes, newest: int, says: str = "Incomplete log file", *, trims: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The number in the version line of a log file, and the lines behind it; damage in these names the version.

    ``says`` are Spark's words for a file without a line; ``trims``: Spark trims the version line. Raises Damaged.
    """
    lines = lines_of(raw)
    if not lines:
        raise Damaged(Fault.EMPTY, "the file is empty", says)
    version = version_of(trimmed(lines[0]) if trims else lines[0], newest)
    try:
        yield version, lines[1:]
    except Damaged as damage:
        damage.version = version
        raise


def json_of(text: str) -> Json:
    """The JSON value at the start of a text, as Jackson reads it: the rest is ignored. Raises Damaged."""
    return _value_and_rest(text)[0]


def exact_json(text: str) -> Json:
    """The JSON value that a text consists of. Raises Damaged."""
    value, rest = _value_and_rest(text)
    if rest.strip(_SPACE):
        raise Damaged(Fault.BAD_JSON, f"{quoted(rest, 20)} follows its JSON")
    return value


def _value_and_rest(text: str) -> tuple[Json, str]:
    body = text.lstrip(_SPACE)
    if not body:
        raise Damaged(Fault.INCOMPLETE, "it contains no JSON", "No content to map due to end-of-input")
    _check_depth(body)
    value: Json
    try:
        value, end = _DECODER.raw_decode(body)
        if _SURROGATE.search(body):  # as Java writes text: half a surrogate pair becomes a question mark
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        _not_json(error.msg, body, error.pos)
    except RecursionError:
        raise Damaged(Fault.BAD_JSON, "its JSON is nested too deeply") from None
    rest = body[end:]
    if rest and not isinstance(value, dict | list | str) and rest[0] not in _SPACE + "/#":
        raise Damaged(Fault.BAD_JSON, f"{quoted(body)} is not JSON")
    return value, rest


def _check_depth(text: str) -> None:
    opened = text.count("[") + text.count("{")
    if opened <= MAX_DEPTH:
        return
    steps = _STRING.sub("", text).encode("ascii", "ignore").translate(_DEEPER, _NO_BRACKETS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > MAX_DEPTH:
        raise Damaged(Fault.BAD_JSON, f"its JSON nests deeper than {MAX_DEPTH}", "nesting depth")
    if opened > MOST_CONTAINERS:
        raise Damaged(Fault.TOO_LARGE, f"its JSON has {opened:,} objects and lists; the limit is {MOST_CONTAINERS:,}")


def _not_json(message: str, text: str, position: int) -> NoReturn:
    """Say what is wrong at ``position``, with the words that Jackson has for it where they are certain."""
    rest = text[position:]
    if rest in ("", "-") or message.startswith("Unterminated string"):
        raise Damaged(Fault.TRUNCATED_JSON, "its JSON ends too early", "Unexpected end-of-input")
    cut_word = rest.isalpha() and any(word.startswith(rest) for word in ("true", "false", "null"))
    if cut_word:
        raise Damaged(Fault.TRUNCATED_JSON, "its JSON ends too early", "Unrecognized token")
    raise Damaged(Fault.BAD_JSON, f"it is not JSON from {quoted(rest, 20)} on", _jackson(message, rest[0]))


def _jackson(message: str, char: str) -> str | None:
    """Jackson's words, where they follow from what Python's parser found."""
    if not message.startswith("Expecting") or char < "!" or char.isdigit() or char in "]}":
        return None
    return "Unrecognized token" if message == "Expecting value" and char.isalpha() else "Unexpected character"


def _number(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse_number(digits: str) -> Any:
        if len(digits) > MAX_DIGITS:
            raise Damaged(Fault.BAD_JSON, f"a number in its JSON is longer than {MAX_DIGITS}", "exceeds the maximum")
        return parse(digits)

    return parse_number


def _no_constant(name: str) -> NoReturn:
    raise Damaged(Fault.BAD_JSON, f"{name} is not JSON", "Non-standard token")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    return value if len(value) == len(pairs) else Repeated(pairs)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_number(int), parse_float=_number(float), parse_constant=_no_constant
)


class EndsEarly(ValueError):
    """The bytes stop before what they announce."""


def read_utf(data: bytes, at: int) -> tuple[str, int]:
    """Read the string of ``writeUTF`` that begins at ``at``: a length of two bytes, then modified UTF-8; and its end.

    Modified UTF-8 writes a zero as C0 80 and characters beyond the first 65,536 as two surrogates of three bytes each;
    surrogates are kept, because a string can be cut between them (``join_parts`` fixes them).
    Raises EndsEarly, another ValueError or struct.error where there is no such string.
    """
    (length,) = struct.unpack_from(">H", data, at)
    text = data[at + 2 : at + 2 + length]
    if len(text) < length:
        raise EndsEarly
    return text.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass"), at + 2 + length


def write_utf(text: str) -> bytes:
    """A string as ``writeUTF`` writes it, for text in ASCII without zeros, of up to 65,535 bytes."""
    data = text.encode("ascii")
    return struct.pack(">H", len(data)) + data


def join_parts(parts: list[str]) -> str:
    """Join a string from its parts. Raises ValueError if a surrogate is alone."""
    text = "".join(parts)
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16")
