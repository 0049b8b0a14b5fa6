"""A remote store that refuses a file of a new checkpoint, be it the first, the last or one between them."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from ckpt.errors import NotFound, StorageError
from ckpt.storage import open_storage
from ckpt.storage.remote_writer import RemoteWriter


def files(uri: str, options: dict[str, str]) -> list[str]:
    try:
        return sorted(path for path, _ in open_storage(uri, options).list_tree().walk())
    except NotFound:  # where there are no folders
        return []


def nothing_is_left(
    make: Callable[[], Any], new: str, options: dict[str, str], numbers: Iterable[int], patching: pytest.MonkeyPatch
) -> None:
    """Assert that writing `new` fails and leaves no file, for each number of the file that is refused."""
    own = RemoteWriter.create_from
    for refused in numbers:
        puts = itertools.count(1)

        def create(*words: Any, puts: Any = puts, refused: int = refused) -> None:
            if next(puts) == refused:
                raise StorageError("refused by the store")
            own(*words)

        patching.setattr(RemoteWriter, "create_from", create)
        with pytest.raises(StorageError, match="refused by the store"):
            make()
        assert files(new, options) == []
    patching.undo()
