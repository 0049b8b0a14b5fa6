"""From what a user typed to the storage that opens it."""

from collections.abc import Mapping

from ckpt.storage.base import Storage
from ckpt.storage.local import LocalStorage


def open_storage(uri: str, options: Mapping[str, str] = {}) -> Storage:
    """Open a local path or URI."""
    return LocalStorage(uri, uri)
