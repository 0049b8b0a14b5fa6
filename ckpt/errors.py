"""Why ckpt could not look. Damage in a checkpoint is data and never raised.

::

    CkptError               the base: one line that names the path and the cure
    ├── StorageError        something is there that cannot be reached, listed or read
    │   ├── DiskFull        a disk has no room for a file
    │   └── NotFound        nothing is there
    │       └── NotThereYet     nothing is there, and it could be made there
    ├── SourceError         a source of the query cannot be asked
    ├── Undecodable         bytes of state are damaged, or of a kind that ckpt does not know
    └── UsageError          the request itself is wrong: a URI, an argument

An argument that a message names is an ``Option``: `` `mode="overwrite"` `` for callers of the library, and
``--mode overwrite`` on the command line.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Self, TypeVar

from ckpt.advice import Option, Words, call, plain, words

Choice = TypeVar("Choice", bound=StrEnum)
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127)} | {9: "\\t"}  # which may stand before a secret


class CkptError(Exception):
    """Ckpt could not carry out the request. The text is one printable line that says what would help."""

    def __init__(self, text: str | Words = "") -> None:
        super().__init__(text)
        self.words = plain(text)

    @classmethod
    def of(cls, template: str, /, **parts: Any) -> Self:
        """Make the error of a template and its parts, as ``words`` does.

        >>> str(UsageError.of("{--operator=}: there is {known}", operator=7, known=0))
        '`operator=7`: there is 0'
        """
        return cls(words(template, **parts))

    def __str__(self) -> str:
        """Return the text; it names arguments of the library, unless somebody is speaking."""
        return str(self.words)


class StorageError(CkptError):
    """A path cannot be reached, listed or read."""


class NotFound(StorageError):
    """A path does not exist, or no longer exists."""


class DiskFull(StorageError):
    """A file cannot be written: the disk is full."""


class NotAFolder(NotFound):
    """There is a file at the path of a folder."""


class NotThereYet(NotFound):
    """There is nothing at a path, in a bucket or file system that could be asked."""


class SourceError(CkptError):
    """A source of the query cannot be asked: it cannot be reached, does not answer, or a package is missing."""


class UsageError(CkptError):
    """The request cannot be understood: a malformed URI, an unknown scheme or storage option."""


def parse_choice(kind: type[Choice], value: str, name: str) -> Choice:
    """Find the member of an enumeration that an argument names. Raises UsageError."""
    try:
        return kind(value)
    except ValueError:
        raise UsageError(
            words("{given}: choose {choices}", given=Option(name, value), choices=", ".join(kind))
        ) from None


def parse_choices(kind: type[Choice], values: str | Iterable[str], name: str) -> tuple[Choice, ...]:
    """Find the members of an enumeration that an argument names: one of them, or several. Raises UsageError."""
    return tuple(parse_choice(kind, value, name) for value in ([values] if isinstance(values, str) else values))


def must_choose_reading(*, deep: bool, names_only: bool) -> None:
    """Raise UsageError where every byte of the state is to be read and none at all."""
    if deep and names_only:
        raise UsageError.of("{--deep} reads every byte of the state, {--names-only} none: choose one")


def one_line(text: str) -> str:
    """Text fit for a one-line message: control characters are written as escapes."""
    return text.translate(_CONTROL)


WITH_SPARK = words("{export} reads it", export=call("export_state", engine="spark"))


class Undecodable(CkptError):
    """Bytes of state that are damaged, or of a kind that ckpt does not know; the text says which."""


class Unfit(Undecodable):
    """Rows that are not built as their schema says, though they are of a kind that ckpt knows."""


class TooLarge(Undecodable):
    """Files that unpack to more than is held in memory."""


class LeftToSpark(Undecodable):
    """State of a kind that ckpt does not know, and Spark may; the text says which, and how to have Spark read it."""

    def __init__(self, kind: str | Words) -> None:
        """Say how to have it read."""
        self.kind = kind
        super().__init__(words("{kind}: {with_spark}", kind=kind, with_spark=WITH_SPARK))

    def __reduce__(self) -> tuple[type[Self], tuple[str | Words]]:
        return type(self), (self.kind,)
