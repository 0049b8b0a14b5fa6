"""A kind of source that ckpt can ask, options of its reader, what it is asked with, and what is judged by."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ckpt.advice import Option, Words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.registry import SourceRange, SourceView
from ckpt.errors import UsageError, one_line
from ckpt.live.records import Answer, LiveSource, NotAsked
from ckpt.restart.findings import Forecast
from ckpt.storage.local import read_text
from ckpt.storage.locations import is_same_kind, is_same_store
from ckpt.texts import mask_secrets, quote_word

_ENVIRONMENT = "env:"


def unusable_option(reason: str | Words) -> UsageError:
    """Build the error of an option of a source that cannot be used; ``reason`` is without a full stop."""
    return UsageError.of("{--source-options}: {reason}", reason=reason)


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Let errors of reader options name the option that gave them."""
    try:
        yield
    except UsageError as error:
        parts = (Option(option) if part == Option("source_options") else part for part in error.words.parts)
        raise UsageError(Words(tuple(parts))) from None


def source_options(words: Sequence[str]) -> dict[int, dict[str, str]]:
    """``I.KEY=VALUE`` words by source. A value ``@FILE`` is in that file, ``env:NAME`` in that environment variable.

    Raises UsageError, which never repeats a value.

    >>> from ckpt.live.kind import source_options
    >>> source_options(["0.kafka.bootstrap.servers=localhost:9092", "0.failOnDataLoss=false"])
    {0: {'kafka.bootstrap.servers': 'localhost:9092', 'failOnDataLoss': 'false'}}
    """
    options_of: dict[int, dict[str, str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        index, dot, key = name.partition(".")
        if not (equals and dot and key) or not (index.isascii() and index.isdecimal() and len(index) < 5):
            raise unusable_option("write it as I.KEY=VALUE, with the number of the source in front")
        options = options_of.setdefault(int(index), {})
        if key in options:
            raise unusable_option(f"{one_line(name)} is given twice")
        options[key] = _read_value(name, value)
    return options_of


def _read_value(name: str, text: str) -> str:
    if text.startswith("@"):
        try:
            return read_text(text[1:]).strip()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise unusable_option(f"the file of {one_line(name)} cannot be read: {why}") from None
    if text.startswith(_ENVIRONMENT):
        variable = text.removeprefix(_ENVIRONMENT)
        if variable not in os.environ:
            raise unusable_option(f"{one_line(name)}: there is no environment variable of that name")
        return os.environ[variable]
    return text


def lower_options(options: Mapping[str, str]) -> dict[str, str]:
    """Lower the keys of options whose case does not matter. Raises UsageError for one that is given twice."""
    lowered = {key.lower(): value for key, value in options.items()}
    if len(lowered) < len(options):
        raise unusable_option("an option is given twice, in upper and lower case")
    return lowered


def read_flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    """Read an option that is true or false. Raises UsageError."""
    text = options.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise unusable_option(f"{name} must be true or false")
    return text == "true"


def read_number(options: Mapping[str, str], name: str, default: int) -> int:
    """Read an option that is a number. Raises UsageError."""
    text = options.get(name.lower(), str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise unusable_option(f"{name} must be an integer")
    return int(text)


def refuse_options(options: Mapping[str, str], source: str, known: Set[str], others: Set[str]) -> NotAsked | None:
    """Refuse to ask where an option, in lower case, gives a source other rules than those that ckpt knows.

    Raises UsageError for an option that is neither in ``known`` nor in ``others``, which lead to other rules.
    """
    for key in options:
        if key not in known | others:
            raise unusable_option(f"the {source} source has no option {one_line(key)}")
    option = next((key for key in sorted(options) if key in others), None)
    return None if option is None else NotAsked(f"with the option {option}, {source} has rules that ckpt does not know")


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """One source of a checkpoint that is to be asked, and the options of its reader."""

    checkpoint: Checkpoint
    view: SourceView
    options: Mapping[str, str]  # as Spark calls them
    storage_options: Mapping[str, str]  # for the file system of the checkpoint

    @property
    def index(self) -> int:
        """Number of the source."""
        return self.view.index

    @property
    def path(self) -> str:
        """Value of the option ``path``, once ``with_path`` has looked for it."""
        return self.options["path"]

    @property
    def path_storage_options(self) -> Mapping[str, str]:
        """Storage options for the path: those of the checkpoint, if both are of the same kind."""
        return self.storage_options if is_same_kind(self.path, self.checkpoint.uri) else {}

    @property
    def advice(self) -> str:
        """Advice for a path where no source of this kind is, without a capital and a full stop."""
        return f"check the option path of source {self.index}"

    def with_path(self) -> "SourceRequest":
        """Return the request to a source that is found by its path, with options in lower case. Raises UsageError."""
        options = lower_options(self.options)
        if not options.get("path"):
            raise unusable_option(f"source {self.index} needs path=URI")
        return replace(self, options=options)


@dataclass(frozen=True, slots=True)
class NextRead:
    """The next start, and one source that it reads."""

    forecast: Forecast  # as it is without an answer of the source
    source: LiveSource
    range: SourceRange
    passed: bool = False  # the sink has the planned batch, and no task reads it


@dataclass(frozen=True, slots=True)
class LiveKind:
    """One kind of source that ckpt can ask what it has now."""

    place: str  # of which the checkpoint says nothing, in words
    option: str  # of the reader, that names the place
    example: str  # of its value
    ask: Callable[[SourceRequest], Answer]  # raises UsageError, SourceError and StorageError
    asked_for_query: bool = False  # with the reader's options of a query that is not started, too
    find_place: Callable[[Checkpoint, int], str | None] = lambda checkpoint, index: None  # in its log

    def describe_option(self, checkpoint: Checkpoint, index: int) -> str:
        """Write the option of a source as it is typed in a shell."""
        return quote_word(f"{index}.{self.option}={self.name_place(checkpoint, index)}")

    def name_place(self, checkpoint: Checkpoint, index: int) -> str:
        """Return the place of a source, or what stands for it where only the user knows it."""
        uri = self.find_place(checkpoint, index)
        return self.example if uri is None else one_line(mask_secrets(uri))

    def find_options(self, checkpoint: Checkpoint, index: int) -> dict[str, str]:
        """Find the option of a source that names a place where the checkpoint is; nothing else is opened unasked."""
        uri = self.find_place(checkpoint, index)
        return {self.option: uri} if uri is not None and is_same_store(uri, checkpoint.uri) else {}
