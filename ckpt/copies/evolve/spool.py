"""A checkpoint beside files of a temporary folder: state that was written anew waits there to be copied."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ckpt.errors import StorageError
from ckpt.state.native.temporary import report_no_room
from ckpt.storage import Folder, Listing, ReadRequest, Storage

_PREFIX = "ckpt-evolve:"  # of the paths of those files; no checkpoint has such a folder


@dataclass
class Spool(Storage):
    """A storage, and files that are kept for it in ``folder``."""

    storage: Storage
    folder: str
    _names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.uri, self.local = self.storage.uri, self.storage.local
        self.whole_files, self.look_deeper = self.storage.whole_files, self.storage.look_deeper

    def keep(self, data: bytes) -> str:
        """Keep a file; return the path by which it is read. Raises CkptError where there is no room."""
        path = f"{_PREFIX}{len(self._names)}"
        name = self._names[path] = os.path.join(self.folder, str(len(self._names)))
        try:
            Path(name).write_bytes(data)
        except OSError as error:
            raise report_no_room(str(error), os.path.dirname(self.folder)) from None
        return path

    def list_level(self, path: str = "") -> Folder:
        """One folder of the checkpoint."""
        return self.storage.list_level(path)

    def list_tree(self) -> Listing:
        """All files of the checkpoint."""
        return self.storage.list_tree()

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        """Answer requests for kept files, and others from the checkpoint."""
        wanted = list(requests)
        others = iter(self.storage.read_many([request for request in wanted if request.path not in self._names]))
        return [self._read(request) if request.path in self._names else next(others) for request in wanted]

    def _read(self, request: ReadRequest) -> bytes | StorageError:
        try:
            with open(self._names[request.path], "rb") as file:
                file.seek(request.offset)
                return file.read(-1 if request.length is None else request.length)
        except OSError as error:
            return StorageError(f"{request.path} cannot be read: {error.strerror}")
