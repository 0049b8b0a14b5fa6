"""A kind of source that ckpt can ask, what it is asked with, and what is judged with its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.registry import SourceRange, SourceView
from ckpt.errors import UsageError
from ckpt.live.options import lower_options
from ckpt.live.records import Answer, LiveSource
from ckpt.restart.forecast import Forecast
from ckpt.storage.locations import is_same_kind


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
        return f"check the option `path` of source {self.index}"

    def with_path(self) -> "SourceRequest":
        """Return the request to a source that is found by its path, with options in lower case. Raises UsageError."""
        options = lower_options(self.options)
        if not options.get("path"):
            raise UsageError(f"`source_options`: source {self.index} needs path=URI")
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

    def describe_option(self, index: int) -> str:
        """Write the option of a source as it is typed."""
        return f"{index}.{self.option}={self.example}"
