"""From what a user typed, or pasted from Spark, to the storage that opens it.

Only ``file:`` URIs are percent-decoded. Remote paths are taken as they stand, as Hadoop and the vendors'
own tools take them. With ``s3``, ``gs`` and ``abfs`` a trailing ``?key=value&…`` gives options, as in
pyarrow's URIs.
"""

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from ckpt.errors import StorageError, UsageError
from ckpt.storage.base import Storage, one_line
from ckpt.storage.local import LocalStorage

if TYPE_CHECKING:
    from ckpt.storage.remote import Drive

# Apart from the two schemes that Spark writes with one slash, a URI is told by "://": "./a:b" is a path.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.S)
_FILE = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)?", re.I | re.S)
_DBFS = re.compile(r"dbfs:(?://)?(/.*)", re.I | re.S)
_QUERY = re.compile(r"(?P<path>[^?]*)\?(?P<query>\w+=[^&]*(?:&\w+=[^&]*)*)", re.S)
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

_S3 = {"s3", "s3a", "s3n"}
_GCS = {"gs", "gcs"}
_AZURE = {"abfs", "abfss", "wasb", "wasbs", "az"}
_HDFS = {"hdfs", "viewfs"}


def open_storage(uri: str, options: Mapping[str, str] = _NO_OPTIONS) -> Storage:
    """Open the storage behind a local path, a ``file:`` URI, or any URI that pyarrow.fs or fsspec opens.

    Nothing is listed yet: whether anything is there, ``list_top`` tells.

    Args:
        uri: As the user gave it.
        options: ``--storage-option`` keys and values, for the file system's constructor.

    Raises:
        UsageError: The URI is malformed, its scheme unknown, or an option not one of the file system's.
        StorageError: The storage cannot be reached, or a package is missing.

    """
    if not uri or "\0" in uri:
        raise UsageError("an empty path" if not uri else f"{one_line(uri)} is no path: it holds a zero byte")
    local = _local_path(uri)
    if local is None:
        return _open_remote(uri, options)
    if options:
        raise UsageError(f"--storage-option {next(iter(options))} is unknown for a local path: it takes none")
    return LocalStorage(local, uri)


def _local_path(uri: str) -> str | None:
    """The local path that a URI or plain path means, or None where it is remote."""
    if file := _FILE.fullmatch(uri):
        if (file["host"] or "").lower() not in ("", "localhost") or not file["path"]:
            raise UsageError(f"{one_line(uri)} names another host: write file:///path, with three slashes")
        return os.fsdecode(unquote(file["path"], errors="surrogateescape"))
    if dbfs := _DBFS.fullmatch(uri):
        path = dbfs[1]
        mounted = path if path.startswith("/Volumes/") else f"/dbfs{path}"
        return mounted if os.path.isdir(os.path.join("/", mounted.split("/")[1])) else None
    return None if _URI.fullmatch(uri) else uri


@dataclass(frozen=True, slots=True)
class _Parts:
    """A remote URI taken apart: ``scheme://user@host/path``, and the options of its query."""

    scheme: str
    user: str
    host: str
    path: str
    query: Mapping[str, str]


def _parts(uri: str) -> _Parts:
    found = _URI.fullmatch(uri)
    if found is None:
        raise UsageError(f"{one_line(uri)} is no URI: write scheme://…")
    scheme, rest = found[1].lower(), found[2]
    query: dict[str, str] = {}
    if scheme in _S3 | _GCS | _AZURE and (asked := _QUERY.fullmatch(rest)):
        rest, query = asked["path"], dict(parse_qsl(asked["query"]))
    where, _, path = rest.partition("/")
    user, _, host = where.rpartition("@")
    return _Parts(scheme, user, host, re.sub("/{2,}", "/", path).strip("/"), query)


def _open_remote(uri: str, options: Mapping[str, str]) -> Storage:
    # Imported here, so that a local checkpoint is read without pyarrow.
    from ckpt.storage.remote import RemoteStorage
    from ckpt.storage.trouble import explain, short

    if dbfs := _DBFS.fullmatch(uri):
        uri = f"dbfs://{dbfs[1]}"
    parts = _parts(uri)
    shown = one_line(uri.replace(f"//{parts.user}@", "//***@", 1) if ":" in parts.user else uri)
    try:
        drive = _drive(uri, parts, {**parts.query, **options})
    except ImportError as error:
        raise StorageError(f"{shown} needs a package that is not installed: {short(error)}") from error
    except OSError as error:  # asking for a bucket's region
        raise explain(error, shown, "check the URI, or give --storage-option region=…") from error
    return RemoteStorage(shown, drive)


def _drive(uri: str, parts: _Parts, options: Mapping[str, str]) -> "Drive":
    """The kind of remote storage that a scheme stands for."""
    if parts.scheme in _S3 | _GCS | _AZURE:
        from ckpt.storage import arrow

        if not parts.host:
            raise UsageError(f"{one_line(uri)} names no bucket: write {parts.scheme}://bucket/folder")
        if parts.scheme in _S3:
            key, _, secret = parts.user.partition(":")
            given = {"access_key": unquote(key), "secret_key": unquote(secret)} if secret else {}
            return arrow.s3(parts.host, parts.path, {**given, **options})
        if parts.scheme in _GCS:
            given = {"anonymous": "true"} if parts.user == "anonymous" else {}
            return arrow.gcs(parts.host, parts.path, {**given, **options})
        container, account = (parts.user, parts.host) if parts.user else (parts.host, "")
        return arrow.azure(container, parts.path, account, options)
    if parts.scheme in _HDFS:
        return _hdfs_drive(uri, parts, options)
    if not _installed("fsspec"):
        raise UsageError(
            f"{parts.scheme}:// is not known to ckpt itself: check the URI, or pip install fsspec"
        )
    from ckpt.storage.bridge import open_fsspec

    return open_fsspec(uri, options)


def _hdfs_drive(uri: str, parts: _Parts, options: Mapping[str, str]) -> "Drive":
    """HDFS without a JVM where hdfs-native is installed, else through the Hadoop of this machine."""
    if _installed("hdfs_native") and _installed("fsspec"):
        from ckpt.storage.bridge import open_fsspec

        if parts.user:
            raise UsageError(
                f"{one_line(uri)}: name the user by HADOOP_USER_NAME={parts.user}, not in the URI"
            )
        # Hadoop's settings (dfs.…, fs.…) are passed on; by default hdfs-native retries for three minutes.
        settings = {"dfs.client.failover.max.attempts": "4", "dfs.client.failover.sleep.max.millis": "1000"}
        return open_fsspec(uri, {**settings, **options}, free=lambda key: "." in key)
    if os.environ.get("HADOOP_HOME") or os.environ.get("ARROW_LIBHDFS_DIR"):
        from ckpt.storage import arrow

        host, _, port = parts.host.partition(":")
        return arrow.libhdfs(parts.scheme, host, int(port or 0), parts.user or None, parts.path, options)
    raise StorageError(
        f"{one_line(uri)} needs a package that is not installed: pip install 'spark-ckpt[hdfs]'"
    )


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
