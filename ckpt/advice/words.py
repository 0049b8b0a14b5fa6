"""A text with parts: a call, a path or a setting in a sentence is a value until somebody shows it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import groupby
from string import Formatter
from typing import Any, TypeAlias

from ckpt.advice.blanks import Blank, Known
from ckpt.advice.calls import Call, Speech, TextPart, Value
from ckpt.advice.spelling import ARGUMENTS, SHELL
from ckpt.texts import quote_path

_speech: ContextVar[Speech | None] = ContextVar("_speech", default=None)
_of_process: list[Speech] = []  # the newest speech of all threads, and of the processes that they start


@dataclass(frozen=True, slots=True)
class Fixed(TextPart):
    """A part that is written the same everywhere."""

    text: str

    def spell(self, speech: Speech) -> str:
        """Write it."""
        return self.text


class Code(Fixed):
    """Code, or a command of another tool, that is to be copied: ``.writeStream.format("noop")``."""

    __slots__ = ()


class Name(Fixed):
    """A name that a sentence quotes: an option of a reader, a column."""

    __slots__ = ()


class Setting(Fixed):
    """A setting, mostly with its value: ``spark.sql.shuffle.partitions=200``; it is never folded."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Option(TextPart):
    """An argument that a text is about: ``--to-batch`` in a shell, ``to_batch`` in Python."""

    name: str
    value: "Value | None" = None

    def spell(self, speech: Speech) -> str:
        """Write it as an option or as an argument."""
        return speech.option(self.name, self.value)


@dataclass(frozen=True, slots=True)
class Fields(TextPart):
    """Where everything is that a page leaves out: ``-o json``, or the fields of the value; ``-v`` has a page of it."""

    page: bool = False

    def spell(self, speech: Speech) -> str:
        """Name it."""
        return speech.page if self.page else speech.fields


FIELDS, VERBOSE = Fields(), Fields(page=True)


@dataclass(frozen=True, slots=True)
class Words:
    """A text: plain words and other parts."""

    parts: tuple["AnyPart", ...] = ()

    def fill(self, known: Known) -> "Words":
        """Return the text for one checkpoint."""
        return Words(tuple(_fill(each, known) for each in self.parts))

    def segments(self) -> Iterator[tuple["AnyPart", str]]:
        """Yield each part with its text, in the words of whoever asks (``speaking``)."""
        speech = find_speech() or ARGUMENTS
        for part in self.parts:
            match part:
                case str():
                    yield part, part
                case Blank():
                    yield part, part.value
                case _:
                    yield part, part.spell(speech)

    def __str__(self) -> str:
        """Return the text as a document has it: calls, code and names stand in backquotes."""
        return "".join(f"`{text}`" if is_quoted(part) else text for part, text in self.segments())

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __add__(self, other: "Words | AnyPart") -> "Words":
        """Put a text after this one."""
        return Words(tuple(_merge((*self.parts, *(other.parts if isinstance(other, Words) else (other,))))))


AnyPart: TypeAlias = str | Blank | TextPart


def is_quoted(part: "AnyPart") -> bool:
    """Tell whether a part stands in backquotes in a sentence: an argument does in Python."""
    if isinstance(part, Option):
        return (find_speech() or ARGUMENTS) != SHELL
    return isinstance(part, Call | Code | Name)


_STANDARD: dict[str, AnyPart] = {
    "checkpoint": Blank.CHECKPOINT,
    "path": Blank.PATH,
    "batch": Blank.BATCH,
    "fields": FIELDS,
    "verbose": VERBOSE,
}


_WRITTEN_OUT: dict[str, Callable[[str], TextPart]] = {"call": Call, "code": Code, "name": Name, "setting": Setting}


def words(text: str, /, **parts: "AnyPart | Words | Value") -> Words:
    """Make a text of a template, in which ``{name}`` is the part of this name and ``{{`` a brace.

    ``{checkpoint}``, ``{path}``, ``{batch}``, ``{fields}`` and ``{verbose}`` need no part. Nor do ``{call:...}``,
    ``{code:...}``, ``{name:...}`` and ``{setting:...}``, which are written out, and ``{--to-batch}``, an ``Option``;
    ``{--to-batch=}`` has the part ``to_batch`` as its value. ``text`` is written out where this is called, so that who
    edits it changes nothing else; what is found in a checkpoint is a part.

    >>> str(words("{repair} says how; put {path} back", repair=Call("repair", ("/data/cp",))))
    '`ckpt repair /data/cp` says how; put the file named back'
    >>> str(words("{--to-batch=} and {--shape=flat} without {--limit}, then {code:.trigger(once=True)}", to_batch=5))
    '`to_batch=5` and `shape="flat"` without `limit`, then `.trigger(once=True)`'
    """
    return make_words(text, parts.__getitem__)


def make_words(text: str, find_part: Callable[[str], Any]) -> Words:
    """Make a text of a template whose parts are looked for by their names. Raises what the search raises."""
    made: list[AnyPart] = []
    for literal, name, spec, _ in Formatter().parse(text):
        if literal:
            made.append(literal)
        if name is None:
            continue
        if spec:
            part: Any = _WRITTEN_OUT[name](spec)
        elif name.startswith("--"):
            part = _make_option(name[2:], find_part)
        else:
            try:
                part = find_part(name)
            except KeyError:
                part = _STANDARD[name]
        if isinstance(part, Words):
            made += part.parts
        else:
            made.append(part if isinstance(part, Blank | TextPart) else str(part))
    return Words(tuple(_merge(made)))


def _merge(parts: Iterable[AnyPart]) -> Iterator[AnyPart]:
    """Yield the parts, plain words beside one another as one."""
    for are_plain, group in groupby(parts, lambda part: isinstance(part, str)):
        same = list(group)
        yield from ("".join(map(str, same)),) if are_plain else same


def _make_option(field: str, find_part: Callable[[str], Any]) -> Option:
    """``to-batch``, ``shape=flat`` or ``to-batch=``, whose value is a part."""
    option, equals, text = field.partition("=")
    name = option.replace("-", "_")
    value = text if text else find_part(name) if equals else None
    return Option(name, True if value == "True" else value)


def plain(text: "AnyPart | Words") -> Words:
    """Make a text of plain words, such as what was found in a checkpoint, or of one part; ``Words`` are one already."""
    if isinstance(text, Words):
        return text
    return Words((text,) if text else ())


def join(texts: "Iterable[Words | AnyPart]", between: str = " ") -> Words:
    """Join the texts that say something, with the same words between them; a part alone is a text too."""
    joined = Words()
    for text in texts:
        if text:
            joined = joined + between + text if joined else plain(text)
    return joined


def _fill(part: AnyPart, known: Known) -> AnyPart:
    if isinstance(part, Blank):
        whole = known.checkpoint if part is Blank.CHECKPOINT else None
        return known.name(part) or part if whole is None else quote_path(whole)
    return part if isinstance(part, str) else part.fill(known)


@contextmanager
def speaking(speech: Speech) -> Iterator[None]:
    """Write calls and arguments in these words: of a shell, or of Python."""
    token = _speech.set(speech)
    try:
        yield
    finally:
        _speech.reset(token)


@contextmanager
def speaking_everywhere(speech: Speech | None) -> Iterator[None]:
    """Write them so in all threads of this process, as a command does, and in the processes that it starts."""
    before = [*_of_process]
    _of_process[:] = [speech] if speech else []
    try:
        yield
    finally:
        _of_process[:] = before


def find_speech() -> Speech | None:
    """Find in whose words texts are written; None where nobody has said."""
    return _speech.get() or (_of_process[0] if _of_process else None)
