"""The root of a checkpoint as Spark spells it in the paths that it records.

Spark takes a checkpoint location as Hadoop's ``Path`` does: a ``file:`` URI is not percent-decoded, so that
``file:///a%20b`` is a folder whose name holds a percent sign. It records the qualified path without encoding anything
(measured): ``file:/data/my checkpoint``, ``hdfs://host:8020/a%20b``.
"""

import os
import posixpath
import re
from collections.abc import Iterable

from ckpt.errors import UsageError
from ckpt.storage.base import one_line
from ckpt.storage.locations import HADOOP_NAMES, SCHEMES, SchemeFamily, family, local_path, without_keys
from ckpt.texts import mask_secrets

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//[^/]*)?(/.*)?", re.S)
_NAME_IT = "name with `to` the URI that Spark will use"


def read_spark_root(uri: str) -> str:
    """A location as Spark is given it, as Spark records it. Raises UsageError if that is unknown.

    Never percent-decoded. A path without a scheme is a local one. A URI with a key in it is refused: the checkpoint
    would keep it.
    """
    if mask_secrets(uri) != uri:
        raise UsageError(f"`to` {one_line(uri)} holds a secret, which the checkpoint would keep: leave it out")
    if uri.startswith("/"):
        return "file:" + _tidy(uri)
    parts = _SCHEME.fullmatch(uri)
    if parts is None:
        raise UsageError(f"`to` {one_line(uri)} is not an absolute path: write /path or scheme://authority/path")
    scheme, authority, path = parts[1], parts[2] or "", parts[3] or "/"
    if scheme.lower() == "file":
        if parts[3] is None or authority not in ("", "//"):
            raise UsageError(f"`to` {one_line(uri)} is not an absolute path: write file:///path")
        return "file:" + _tidy(path)
    if len(authority) < 3 and scheme.lower() != "dbfs":
        raise UsageError(f"`to` {one_line(uri)} names no bucket or host: write {scheme}://authority/path")
    return scheme + ":" + ("" if authority == "//" else authority) + _tidy(path)


def guess_spark_root(uri: str, recorded: Iterable[str]) -> str:
    """Where a checkpoint is, as Spark records it. Raises UsageError if only the user knows how Spark opens it.

    Args:
        uri: The checkpoint as ckpt opened it.
        recorded: The roots that it names now: a scheme that means the same keeps their spelling (``s3`` and ``s3a``).

    """
    local = local_path(uri)
    if local is not None:
        path = _tidy(os.path.abspath(local))
        return "dbfs:" + path.removeprefix("/dbfs") if path.startswith("/dbfs/") else "file:" + path
    scheme, _, rest = uri.partition("?")[0].partition(":")
    spelled = [old.partition(":")[0] for old in recorded]
    like = next((spelling for spelling in spelled if family(spelling) == family(scheme)), scheme)
    authority = rest.removeprefix("//").partition("/")[0]
    known = like in SCHEMES and like not in HADOOP_NAMES
    if not known or (family(like) == SchemeFamily.AZURE and "@" not in authority):
        raise UsageError(f"{one_line(uri)} is how ckpt opens it: {_NAME_IT} (such as s3a://bucket/path)")
    if family(like) == SchemeFamily.S3:
        rest = without_keys(rest)
    return read_spark_root(f"{like}:{rest}")


def _tidy(path: str) -> str:
    """An absolute path as Hadoop normalizes it: single slashes, no dots, none at the end but for the root."""
    tidy = posixpath.normpath(re.sub("/{2,}", "/", path))
    return "" if tidy == "/" else tidy
