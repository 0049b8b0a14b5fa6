"""From a path or URI to the ``Writer`` behind it; only ``ckpt.changes`` may import this module."""

from collections.abc import Mapping

from ckpt.storage.local_writer import LocalWriter
from ckpt.storage.locations import local_path
from ckpt.storage.uri import NO_OPTIONS, open_backend
from ckpt.storage.writer import Writer


def open_writer(uri: str, options: Mapping[str, str] = NO_OPTIONS) -> Writer:
    """Open a place for writing: whatever ``open_storage`` opens.

    Raises UsageError or StorageError as ``open_storage`` does.
    """
    local = local_path(uri)
    if local is not None:
        return LocalWriter(local, uri)
    from ckpt.storage.remote_writer import RemoteWriter  # so that a local checkpoint is changed without pyarrow

    shown, root, backend = open_backend(uri, options)
    return RemoteWriter(shown, backend, root)
