"""A file that is too large to be held in memory: read in pieces while it is written elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.errors import StorageError
from ckpt.storage import FileInfo, Storage
from ckpt.storage.base import PIECE, one_line


@dataclass(frozen=True, slots=True)
class FilePieces:
    """The content of a file, as it was listed; each iteration reads it anew."""

    storage: Storage
    path: str
    info: FileInfo

    def __len__(self) -> int:
        """Bytes."""
        return self.info.size

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of ``PIECE`` bytes, the last one shorter. Raises NotFound, or StorageError if somebody wrote it."""
        for offset in range(0, self.info.size, PIECE):
            piece = self.storage.read_range(self.path, offset, PIECE)
            if len(piece) != min(PIECE, self.info.size - offset):
                self._raise_changed()
            yield piece
        folder, _, name = self.path.rpartition("/")
        if self.storage.list_level(folder).files.get(name, self.info) != self.info:
            self._raise_changed()

    def _raise_changed(self) -> None:
        raise StorageError(f"{one_line(self.path)} was written while it was copied: copy the checkpoint again")


def is_large(info: FileInfo | None) -> bool:
    """Tell whether a file is read in pieces."""
    return info is not None and info.size > PIECE
