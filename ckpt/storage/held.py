"""Files that were read, as a storage: whoever checks a file need not know where its bytes are."""

from collections.abc import Iterable, Mapping

from ckpt.errors import NotFound, StorageError
from ckpt.storage.base import Folder, Listing, ReadRequest, Storage


class HeldFiles(Storage):
    """Files in memory, by path; those that could not be read are answered by their errors."""

    def __init__(self, contents: Mapping[str, bytes | StorageError], *, local: bool) -> None:
        self.uri, self.local, self.whole_files = "", local, False
        self._contents = contents

    def list_level(self, path: str = "") -> Folder:
        """Nothing: files are asked for by their paths."""
        return Folder({}, frozenset())

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        """Nothing, too."""
        return Listing({"": {}})

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        """Answer requests with what was read."""
        return [self._cut(request) for request in requests]

    def _cut(self, request: ReadRequest) -> bytes | StorageError:
        content = self._contents.get(request.path, NotFound(request.path))
        return request.cut(content) if isinstance(content, bytes) else content
