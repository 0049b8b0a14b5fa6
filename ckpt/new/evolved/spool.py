"""A checkpoint with the state of another one that was rewritten: at its final place, or in a temporary folder."""

from collections.abc import Iterable
from dataclasses import dataclass

from ckpt.errors import StorageError
from ckpt.new.copy.placing import Placing
from ckpt.storage import Folder, Listing, ReadRequest, Storage

_PREFIX = "ckpt-evolve:"  # of the paths of those files; no checkpoint has such a folder


def is_spooled(source: str) -> bool:
    """Tell whether the source of a step is such a file, and none of the checkpoint."""
    return source.startswith(_PREFIX)


@dataclass
class Spool(Storage):
    """A storage, and files that are written to ``new``: the new checkpoint, or for a plan a temporary folder."""

    storage: Storage
    new: Placing

    def __post_init__(self) -> None:
        self.uri, self.local = self.storage.uri, self.storage.local
        self.whole_files, self.look_deeper = self.storage.whole_files, self.storage.look_deeper

    def keep(self, path: str, data: bytes | int) -> str:
        """Write a file, or take one of so many bytes that a task has written; return the path by which it is read.

        Raises StorageError.
        """
        if isinstance(data, int):
            self.new.adopt(path, data)
        else:
            self.new.put({path: data})
        return _PREFIX + path

    def list_level(self, path: str = "") -> Folder:
        """One folder of the checkpoint."""
        return self.storage.list_level(path)

    def list_tree(self) -> Listing:
        """All files of the checkpoint."""
        return self.storage.list_tree()

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        """Answer requests for kept files, and others from the checkpoint."""
        wanted = list(requests)
        kept = [is_spooled(request.path) for request in wanted]
        there, here = (
            [request for request, is_kept in zip(wanted, kept, strict=True) if is_kept is which]
            for which in (False, True)
        )
        own = [request._replace(path=request.path.removeprefix(_PREFIX)) for request in here]
        answers = iter(self.storage.read_many(there)), iter(self.new.storage.read_many(own))
        return [next(answers[is_kept]) for is_kept in kept]
