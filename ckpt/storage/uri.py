"""From what a user typed, or pasted from Spark, to the storage that opens it.

Remote paths are used literally, as Hadoop and the vendors' own tools do. With ``s3``, ``gs`` and ``abfs`` a
trailing ``?key=value&…`` gives options, as in pyarrow's URIs.
"""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote

from ckpt.advice import words
from ckpt.errors import StorageError, UsageError, one_line
from ckpt.extras import install_command
from ckpt.storage.base import Root
from ckpt.storage.local import LocalStorage
from ckpt.storage.locations import OBJECT_STORES, SchemeFamily, family, local_path
from ckpt.texts import mask_secrets

if TYPE_CHECKING:
    from ckpt.storage.remote import Backend

_QUERY = re.compile(r"(?P<path>[^?]*)\?(?P<query>\w+=[^&]*(?:&\w+=[^&]*)*)", re.S)
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def open_storage(uri: str, options: Mapping[str, str] = NO_OPTIONS) -> Root:
    """Open the storage behind a local path, a ``file:`` URI, or any URI that pyarrow.fs or fsspec opens.

    Nothing is listed yet: use ``list_level`` to see whether anything is there. Raises UsageError where the URI is
    malformed, its scheme unknown, or an option not one of the file system's; StorageError where it cannot be
    reached, or a package is missing.
    """
    if not uri or "\0" in uri:
        raise UsageError("an empty path" if not uri else f"{one_line(uri)} is not a path: it contains a zero byte")
    local = local_path(uri)
    if local is None:
        from ckpt.storage.remote import RemoteStorage  # not at the top: a local checkpoint is read without pyarrow

        shown, root, backend = open_backend(uri, options)
        return RemoteStorage(shown, backend, root)
    if options:
        raise UsageError.of(
            "{--storage-options} {key} is unknown for a local path, which takes none", key=next(iter(options))
        )
    return LocalStorage(local, uri)


class Remote(NamedTuple):
    """A remote URI taken apart: ``scheme://user@host/path``, and the options of its query."""

    uri: str
    scheme: str
    user: str
    host: str
    path: str
    query: Mapping[str, str]

    @property
    def family(self) -> str:
        return family(self.scheme)

    @property
    def shown(self) -> str:
        return one_line(mask_secrets(self.uri))

    @property
    def place(self) -> str:
        """The URI as paths in messages begin with it: without the options of its query."""
        return self.shown.partition("?")[0] if self.query else self.shown


def parse_remote(uri: str) -> Remote:
    """Take a remote URI apart."""
    uri = re.sub("^dbfs:/+", "dbfs:///", uri, flags=re.I)
    scheme, _, rest = uri.partition("://")
    scheme = scheme.lower()
    query: dict[str, str] = {}
    if family(scheme) in OBJECT_STORES and (match := _QUERY.fullmatch(rest)):
        rest, query = match["path"], dict(parse_qsl(match["query"]))
    where, _, path = rest.partition("/")
    user, _, host = where.rpartition("@")
    return Remote(uri, scheme, user, host, re.sub("/{2,}", "/", path).strip("/"), query)


def open_backend(uri: str, options: Mapping[str, str]) -> "tuple[str, str, Backend]":
    """A remote URI as it is shown, what paths in messages begin with, and the backend behind it.

    Raises UsageError or StorageError as ``open_storage`` does.
    """
    from ckpt.storage.errors import explain, shorten_error

    remote = parse_remote(uri)
    try:
        backend = _open_backend(remote, {**remote.query, **options})
    except ImportError as error:
        raise StorageError(f"{remote.shown} needs a package that is not installed: {shorten_error(error)}") from error
    except (OSError, RuntimeError) as error:  # a bucket's region is unknown, or no name node configured
        cure = words("check the URI, or add the missing options with {--storage-options}")
        raise explain(error, remote.shown, cure) from error
    return remote.shown, remote.place, backend


def _open_backend(remote: Remote, options: Mapping[str, str]) -> "Backend":
    if remote.family in OBJECT_STORES:
        return _open_object_store(remote, options)
    if remote.family == SchemeFamily.HDFS:
        return _open_hdfs(remote, options)
    if find_spec("fsspec") is None:
        raise UsageError(f"ckpt itself does not know {remote.scheme}://: check it, or pip install fsspec")
    from ckpt.storage.bridge import open_fsspec

    return open_fsspec(remote.uri, remote.shown, options)


def _open_object_store(remote: Remote, options: Mapping[str, str]) -> "Backend":
    """The three that pyarrow opens by itself."""
    from ckpt.storage import arrow

    if not remote.host:
        raise UsageError(f"{remote.shown} names no bucket: write {remote.scheme}://bucket/folder")
    if remote.family == SchemeFamily.S3:
        key, _, secret = remote.user.partition(":")
        credentials = {"access_key": unquote(key), "secret_key": unquote(secret)} if secret else {}
        return arrow.s3(remote.host, remote.path, {**credentials, **options})
    if remote.family == SchemeFamily.GCS:
        credentials = {"anonymous": "true"} if remote.user == "anonymous" else {}
        return arrow.gcs(remote.host, remote.path, {**credentials, **options})
    container, account = (remote.user, remote.host) if remote.user else (remote.host, "")
    return arrow.azure(container, remote.path, account, options)


def _open_hdfs(remote: Remote, options: Mapping[str, str]) -> "Backend":
    """HDFS without a JVM where hdfs-native is installed, else through the Hadoop of this machine."""
    if find_spec("hdfs_native") is not None:
        from ckpt.storage.hdfs import HdfsBackend

        if remote.user:
            raise UsageError(
                f"{remote.shown} names a user: set HADOOP_USER_NAME={remote.user.partition(':')[0]} instead"
            )
        return HdfsBackend(remote.scheme, remote.host, remote.path, options)
    if os.environ.get("HADOOP_HOME") or os.environ.get("ARROW_LIBHDFS_DIR"):
        from ckpt.storage import arrow
        from ckpt.storage.errors import shorten_error

        host, _, port = remote.host.partition(":")
        try:
            return arrow.libhdfs(remote.scheme, host, int(port or 0), remote.user or None, remote.path, options)
        except (OSError, ValueError) as error:
            cure = f"{install_command('hdfs')}, which needs no Hadoop"
            raise StorageError(f"{remote.shown} cannot be opened by Hadoop ({shorten_error(error)}): {cure}") from error
    raise StorageError(f"{remote.shown} needs another package: {install_command('hdfs')}")
