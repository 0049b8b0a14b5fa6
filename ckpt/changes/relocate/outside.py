"""Absolute paths in a checkpoint other than those of schemas: reported, never changed.

A file source's log names the input files that were read, a file sink's log (``_spark_metadata`` in its output folder)
the files that were written. Neither file belongs to the checkpoint, and neither moves with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources import file_logs
from ckpt.formats.names import compactible_log
from ckpt.formats.sourcelogs import SinkFile, SourceFile, parse_sink_log
from ckpt.model import Unreadable
from ckpt.storage import Storage

SINK_LOG = "_spark_metadata"


class Holder(StrEnum):
    """Whose log it is."""

    FILE_SOURCE = "file-source"
    FILE_SINK = "file-sink"


@dataclass(frozen=True, slots=True)
class OutsidePaths:
    """A log that holds absolute paths."""

    holder: Holder
    folder: str  # relative to the checkpoint
    example: str | None  # a path that it names, as a percent-encoded URI; None where it cannot be read, or names none

    @property
    def meaning(self) -> str:
        """A consequence for somebody who moves a checkpoint."""
        named = f", such as {self.example}" if self.example else ""
        if self.holder is Holder.FILE_SOURCE:
            return (
                f"{self.folder} names the input files that were read by absolute path{named}. The next start "
                "continues from there as long as the query reads the same folder as before. On another folder it "
                'fails ("Wrong basePath"); on a glob it reads everything there again, or with fileNameOnly=true '
                "only files with a new name."
            )
        return (
            f"{self.folder} names the output files of a file sink by absolute path{named}. Readers of that folder "
            "look for them there, so moved output can only be read if its old path is reachable, or by listing its "
            "files."
        )


def find_outside_paths(checkpoint: Checkpoint, storage: Storage) -> Iterator[OutsidePaths]:
    """The logs that hold absolute paths."""
    sources: dict[str, str | None] = {}
    for path, entries in sorted(checkpoint.source_entries.items()):
        folder = path.rpartition("/")[0]
        sources[folder] = _newest_path(entries) or sources.get(folder)
    for folder, example in sources.items():
        yield OutsidePaths(Holder.FILE_SOURCE, folder, example)
    for folder in checkpoint.listing.folders:
        if folder.rpartition("/")[2] == SINK_LOG:
            yield OutsidePaths(Holder.FILE_SINK, folder, _read_sink_path(checkpoint, storage, folder))


def _read_sink_path(checkpoint: Checkpoint, storage: Storage, folder: str) -> str | None:
    log = compactible_log(checkpoint.listing.in_folder(folder))
    if log.latest is None or log.interval <= 0:
        return None
    path = f"{folder}/{log.name_of(log.latest)}"
    request = file_logs.request_for(checkpoint.listing, path)
    (answer,) = storage.read_many([request])
    return _newest_path(parse_sink_log(path, file_logs.lines(request, answer))) if isinstance(answer, bytes) else None


def _newest_path(entries: tuple[SourceFile | SinkFile, ...] | Unreadable) -> str | None:
    return entries[-1].path if isinstance(entries, tuple) and entries else None
