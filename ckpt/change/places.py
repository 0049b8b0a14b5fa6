"""Where a backup goes: beside the checkpoint, never inside it."""

import os
import re
from datetime import UTC, datetime

from ckpt.errors import UsageError
from ckpt.storage.base import one_line
from ckpt.storage.uri import local_path


def default_backup(uri: str) -> str:
    """``<checkpoint>.ckpt-backup-<UTC time>``, a sibling of the checkpoint, in the form in which that was given.

    Raises UsageError where the checkpoint has no sibling: the root of a bucket or of a file system.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path, _, query = uri.partition("?") if "://" in uri else (uri, "", "")
    if local_path(uri) is not None and "file:" not in uri[:5].lower():
        path = os.path.abspath(path)
    root = re.fullmatch(r"/*|[A-Za-z][\w+.-]*:/*[^/]*/*", path)
    if root:
        raise UsageError(f"{one_line(uri)} has no folder beside it for a backup: name one with --backup DIR")
    return f"{path.rstrip('/')}.ckpt-backup-{stamp}" + (f"?{query}" if query else "")


def must_lie_outside(backup: str, checkpoint: str) -> None:
    """Raise UsageError for a backup inside the checkpoint, which Spark would find there."""
    inner, outer = (_spelled(uri) for uri in (backup, checkpoint))
    if inner == outer or inner.startswith(outer.rstrip("/") + "/"):
        raise UsageError(f"{one_line(backup)} lies inside the checkpoint: name a folder outside it with --backup DIR")


def _spelled(uri: str) -> str:
    """One spelling for each place: local paths without links, URIs without options."""
    local = local_path(uri)
    if local is not None:
        return os.path.realpath(local)
    return re.sub("(?<!:)/+", "/", re.sub(r"^(s3|abfs|wasb)[ans](?=://)", r"\1", uri.partition("?")[0])).rstrip("/")
