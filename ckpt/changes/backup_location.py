"""Where a backup goes: next to the checkpoint, never inside it."""

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from ckpt.errors import UsageError
from ckpt.storage import Storage, open_storage
from ckpt.storage.base import one_line
from ckpt.storage.local_writer import open_writer
from ckpt.storage.locations import is_in_memory, is_inside, local_path
from ckpt.storage.writer import Writer


def backup_to(location: str | None, uri: str, storage_options: Mapping[str, str]) -> Writer:
    """Where the original files of a checkpoint are kept; by default next to it. Raises UsageError, StorageError."""
    if location is None:
        location = name_default_backup(uri)
    must_keep(location, uri)
    return open_writer(location, _options_of(location, storage_options))


def backup_at(location: str, storage_options: Mapping[str, str]) -> Storage:
    """A backup that is there. Raises UsageError, StorageError."""
    return open_storage(location, _options_of(location, storage_options))


def _options_of(location: str, storage_options: Mapping[str, str]) -> Mapping[str, str]:
    """A local folder takes no storage options."""
    return {} if local_path(location) is not None else storage_options


def name_default_backup(uri: str) -> str:
    """``<checkpoint>.ckpt-backup-<UTC time>``, a sibling of the checkpoint, in the form in which that was given.

    Raises UsageError where the checkpoint has no sibling: the root of a bucket or of a file system.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path, _, query = uri.partition("?") if "://" in uri else (uri, "", "")
    if local_path(uri) is not None and "file:" not in uri[:5].lower():
        path = os.path.abspath(path)
    root = re.fullmatch(r"/*|[A-Za-z][\w+.-]*:/*[^/]*/*", path)
    if root:
        raise UsageError(f"{one_line(uri)} has no parent folder for a backup: name one with `backup`")
    return f"{path.rstrip('/')}.ckpt-backup-{stamp}" + (f"?{query}" if query else "")


def must_keep(backup: str, checkpoint: str) -> None:
    """Raise UsageError for a backup inside the checkpoint, where Spark would find it, or one that a crash would end."""
    if not backup:
        raise UsageError("an empty path: name a folder that does not exist yet with `backup`")
    if is_in_memory(backup) and not is_in_memory(checkpoint):
        raise UsageError(f"{one_line(backup)} is gone when ckpt ends: name a folder that stays with `backup`")
    if is_inside(backup, checkpoint):
        raise UsageError(f"{one_line(backup)} is inside the checkpoint: name a folder outside it with `backup`")
