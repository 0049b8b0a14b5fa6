"""An object store that takes its time: each request costs some ms, and requests are counted.

It serves a local folder as object stores do: whole prefixes in pages of a thousand names, one request for
each file or byte range. ``slow:///absolute/folder`` with the storage option ``ms=50``.
"""

import os
import time
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import fsspec

PAGE = 1000


class SlowStore(fsspec.AbstractFileSystem):
    """A local folder behind a slow network. ``requests`` counts for all instances."""

    protocol = "slow"
    _counter: ClassVar["count[int]"] = count()

    def __init__(self, ms: float = 50.0, **storage_options: Any) -> None:
        super().__init__(**storage_options)
        self._seconds = ms / 1000

    @classmethod
    def register(cls) -> None:
        """Make ``slow://`` known to fsspec."""
        fsspec.register_implementation("slow", cls, clobber=True)

    @classmethod
    def requests(cls) -> int:
        """Requests since the last time this was asked."""
        asked: int = next(cls._counter)
        cls._counter = count()
        return asked

    def _request(self, names: int = 1) -> None:
        for _ in range(max(1, -(-names // PAGE))):
            next(SlowStore._counter)
            time.sleep(self._seconds)

    @staticmethod
    def _info(path: str) -> dict[str, Any]:
        found = os.stat(path)
        kind = "directory" if os.path.isdir(path) else "file"
        return {"name": path, "size": found.st_size, "type": kind, "mtime": found.st_mtime}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """One request."""
        self._request()
        return self._info(self._strip_protocol(path))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """One request for each thousand names in a folder."""
        path = self._strip_protocol(path)
        names = os.listdir(path)
        self._request(len(names))
        found = [self._info(os.path.join(path, name)) for name in names]
        return found if detail else [item["name"] for item in found]

    def find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, **_: Any) -> dict[str, Any]:
        """One request for each thousand objects below a prefix."""
        files = [str(file) for file in Path(self._strip_protocol(path)).rglob("*") if file.is_file()]
        self._request(len(files))
        return {file: self._info(file) for file in files}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """One request."""
        self._request()
        return Path(self._strip_protocol(path)).read_bytes()[start:end]
