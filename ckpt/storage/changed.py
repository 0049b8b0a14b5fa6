"""Shows a tree as it would be with other files in some places; nothing is written."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ckpt.errors import NotFound, StorageError
from ckpt.storage.base import FileInfo, Folder, Listing, ReadRequest, Storage, folders_above


class Elsewhere(NamedTuple):
    """A file that is read somewhere else: of the same storage, or of another one."""

    storage: Storage
    path: str
    size: int

    def __len__(self) -> int:
        """Bytes."""
        return self.size


Content = bytes | Elsewhere | None
"""The content of a path; None: no file is there."""


class ChangedStorage(Storage):
    """A storage with other files in some places."""

    def __init__(
        self,
        storage: Storage,
        listing: Listing,
        files: Mapping[str, Content],
        uri: str | None = None,
        *,
        empty_folders: bool = True,
    ) -> None:
        """``listing`` is the tree as it is, which is not listed again; ``uri`` is where it will be if not here.

        Without ``empty_folders`` those that have no file are left out, as a copy leaves them out.
        """
        self.uri = storage.uri if uri is None else uri
        self.local = storage.local
        self.whole_files = storage.whole_files
        self.look_deeper, self.names_only, self.seen = storage.look_deeper, storage.names_only, storage.seen
        self._storage = storage
        self._files = files
        self._listing = _change_listing(listing, files, empty_folders=empty_folders)

    def list_level(self, path: str = "") -> Folder:
        """One folder."""
        if not self._listing.has_folder(path):
            raise NotFound(f"{path} does not exist: check the path")
        return Folder(self._listing.in_folder(path), frozenset(self._listing.subfolders(path)))

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        """The whole tree."""
        return self._listing

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        """Answer requests for files that are at hand, and all others of a storage at once."""
        wanted = list(requests)
        contents = [
            self._files.get(path, Elsewhere(self._storage, path, 0)) for path in (request.path for request in wanted)
        ]
        answers: list[bytes | StorageError] = [
            request.cut(content)
            if isinstance(content, bytes)
            else NotFound(f"{request.path} does not exist: this plan removes it")
            for request, content in zip(wanted, contents, strict=True)
        ]
        others = [(number, file) for number, file in enumerate(contents) if isinstance(file, Elsewhere)]
        for storage in {id(file.storage): file.storage for _, file in others}.values():
            own = [(number, file.path) for number, file in others if file.storage is storage]
            read = storage.read_many([wanted[number]._replace(path=path) for number, path in own])
            for (number, _), answer in zip(own, read, strict=True):
                answers[number] = answer
        return answers


def _change_listing(listing: Listing, files: Mapping[str, Content], *, empty_folders: bool) -> Listing:
    folders = {path: dict(own) for path, own in listing.folders.items()}
    for path, content in files.items():
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders |= {above: {} for above in (*folders_above(folder), folder) if above not in folders}
        folders[folder].pop(name, None)
        if content is not None:
            folders[folder][name] = FileInfo(len(content), None)
    if not empty_folders:
        filled = {"", *(above for path, own in folders.items() if own for above in (*folders_above(path), path))}
        folders = {path: own for path, own in folders.items() if path in filled}
    changed = {path.rpartition("/")[0] for path in files} if listing.changed_ms else ()
    now_ms = int(time.time() * 1000)
    return replace(listing, folders=folders, changed_ms={**listing.changed_ms, **dict.fromkeys(changed, now_ms)})
