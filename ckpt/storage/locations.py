"""Every way of spelling a place: what each scheme means, which spellings mean the same place, and how Spark spells it.

Only ``file:`` URIs are percent-decoded, and only by ckpt: Spark uses them literally (Hadoop's ``Path``), so that
``file:///a%20b`` may mean two folders. ckpt opens the decoded one.
"""

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ckpt.errors import UsageError, one_line

READ_ONLY = "its file system is mounted read-only (EROFS): mount it for writing"
"""Why nothing can be written in a folder, whoever tries."""


def is_read_only(folder: int | str) -> bool:
    """Tell whether the file system of a folder of this machine is mounted read-only. Raises OSError."""
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


class SchemeFamily(StrEnum):
    """Schemes that name the same files."""

    FILE = "file"
    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"
    HDFS = "hdfs"  # a viewfs mount table mostly leads to the same path of an HDFS
    DBFS = "dbfs"


OBJECT_STORES = frozenset({SchemeFamily.S3, SchemeFamily.GCS, SchemeFamily.AZURE})


SCHEMES: Mapping[str, SchemeFamily] = {
    "file": SchemeFamily.FILE,
    **dict.fromkeys(("s3", "s3a", "s3n"), SchemeFamily.S3),
    **dict.fromkeys(("gs", "gcs"), SchemeFamily.GCS),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az"), SchemeFamily.AZURE),
    **dict.fromkeys(("hdfs", "viewfs"), SchemeFamily.HDFS),
    "dbfs": SchemeFamily.DBFS,
}
HADOOP_NAMES: Mapping[str, str] = {"s3": "s3a", "s3n": "s3a", "gcs": "gs", "az": "abfs"}
"""The schemes that Hadoop, and so Spark, calls otherwise."""

DBFS_MOUNTS = (("/Volumes/", "/Volumes/"), ("/", "/dbfs/"))
"""Where Databricks mounts what ``dbfs:`` URIs name: the path in the URI, and the local one."""

_LOCAL_FILE = re.compile("(?://(?:localhost)?(?=/)|(?!//))(/.*)", re.I | re.S)
_URI = re.compile("([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)(.*)", re.S)  # so "./a:b" and "a:b" are paths
_ROOT = re.compile("[A-Za-z][A-Za-z0-9+.-]+:(?://[^/]*)?")
_OPTIONS = re.compile(r"\?\w+=.*$", re.S)


def family(scheme: str) -> str:
    """The name of all schemes that mean the same as this one."""
    return SCHEMES.get(scheme.lower(), scheme.lower())


def local_path(uri: str) -> str | None:
    """The local path that a URI or plain path means, or None where it is remote. Raises UsageError."""
    scheme, colon, rest = uri.partition(":")
    scheme = scheme.lower()
    if colon and scheme == "file":
        file = _LOCAL_FILE.fullmatch(rest)
        if file is None:
            raise UsageError(f"{one_line(uri)} is not an absolute path on this machine: write file:///path")
        return os.fsdecode(unquote(file[1], errors="surrogateescape"))
    if colon and scheme == "dbfs" and rest.startswith("/"):
        path = re.sub("^/+", "/", rest)
        prefix, mount = next(pair for pair in DBFS_MOUNTS if path.startswith(pair[0]))
        return mount + path.removeprefix(prefix) if os.path.isdir(mount) else None
    if _URI.match(uri):
        return None
    if scheme in SCHEMES and rest.startswith("/"):
        raise UsageError(f"{one_line(uri)} has one slash too few: write {scheme}://…")
    return uri


def is_of_one_host(uri: str) -> bool:
    """Tell whether a place may be on a disk of this host alone; every host mounts DBFS and volumes of Databricks.

    >>> is_of_one_host("/cp"), is_of_one_host("file:///cp"), is_of_one_host("s3://b/cp"), is_of_one_host("/dbfs/cp")
    (True, True, False, False)
    """
    with suppress(UsageError):
        path = local_path(uri)
        return path is not None and not path.startswith(tuple(mount for _, mount in DBFS_MOUNTS))
    return False


def name_everywhere(uri: str) -> str:
    """Name a place so that it is the same in every folder: a relative path as an absolute one.

    >>> name_everywhere("/cp/../cp"), name_everywhere("s3://bucket/cp"), name_everywhere("cp") == f"{os.getcwd()}/cp"
    ('/cp/../cp', 's3://bucket/cp', True)
    """
    with suppress(UsageError):  # which is said where it is opened
        if uri and local_path(uri) == uri:
            return str(Path(uri).absolute())
    return uri


def find_parent(uri: str) -> str | None:
    """The folder above a place, in the form in which that was given; None for the root of a bucket or file system.

    >>> find_parent("s3://bucket/cp/orders/?region=eu"), find_parent("/cp"), find_parent("hdfs://host/")
    ('s3://bucket/cp?region=eu', '/', None)
    """
    path, options = split_options(uri)
    if re.fullmatch(r"/*|[A-Za-z][\w+.-]*:/*[^/]*/*", path):
        return None
    return (path.rstrip("/").rpartition("/")[0] or "/") + options


def split_options(uri: str) -> tuple[str, str]:
    """Split a place into its URI, or its absolute path, and the options behind that with their question mark."""
    if local_path(uri) == uri:
        return os.path.abspath(uri), ""
    path, mark, options = uri.partition("?") if "://" in uri else (uri, "", "")
    return path, mark + options


def is_same_kind(uri: str, other: str) -> bool:
    """Tell whether two places are in file systems of one kind, so that options for one are for the other too."""
    schemes = (
        None if local_path(location) is not None else family(location.partition(":")[0]) for location in (uri, other)
    )
    return len(set(schemes)) == 1


def is_one_account(uri: str, other: str) -> bool:
    """Tell whether a key for one place may be for the other: no other Azure account, and no other server that is named.

    >>> is_one_account("abfss://c@one.dfs.core.windows.net/cp", "abfss://c@two.dfs.core.windows.net/cp")
    False
    """
    accounts = []
    for location in (uri, other):
        endpoint = re.search(r"[?&]endpoint_override=([^&]*)", location)
        host = "" if local_path(location) is not None else next(_read_spellings(location)).host
        accounts.append(host or (endpoint[1] if endpoint else ""))
    return len({*accounts}) == 1 or "" in accounts


def is_in_memory(uri: str) -> bool:
    """Tell whether a place is in the memory of this process, and gone when that ends."""
    return uri.lower().startswith("memory://")


def spark_uri(uri: str) -> str:
    """A path or URI that ckpt accepts, as Spark is to be given it: local paths absolute, schemes as in Hadoop."""
    scheme, colon, rest = uri.partition(":")
    scheme = scheme.lower()
    if colon and scheme == "file":
        return "file:" + os.path.abspath(unquote(re.sub("^//[^/]*", "", rest)))
    if not (colon and (rest.startswith("//") or scheme == "dbfs")):
        return "file:" + os.path.abspath(uri)
    if family(scheme) in (SchemeFamily.S3, SchemeFamily.GCS):
        rest = without_keys(rest)
    return f"{HADOOP_NAMES.get(scheme, scheme)}:{_OPTIONS.sub('', rest)}".rstrip("/")


def without_keys(rest: str) -> str:
    """Return what follows the scheme of a URI, without the keys before the bucket: Spark has them configured."""
    return re.sub("^//[^/@]*@", "//", rest)


def is_inside(location: str, folder: str) -> bool:
    """Tell whether a place is a folder, or may be in it, however each is spelled.

    Where that cannot be known (a name service and a name node, an Azure account that is not named), the answer is yes.
    """
    pairs = product(_resolve_links(location), _resolve_links(folder))
    return any(_may_be_one_root(left, right) and left.names[: len(right.names)] == right.names for left, right in pairs)


def is_same_store(location: str, other: str) -> bool:
    """Tell whether two places are on this machine, or in one bucket, container or cluster. Looks at no disk."""
    stores = ({spelling[:3] for spelling in _read_spellings(uri)} for uri in (location, other))
    return bool(next(stores) & next(stores))


def is_same_place(recorded: str, uri: str, *, links: bool = True) -> bool:
    """Tell whether a path as Spark records it may be the one that a user spelled; the cluster of an HDFS is left open.

    ``links``: also behind symbolic links.
    """
    pairs = product(_read_spellings(recorded), _resolve_links(uri) if links else _read_spellings(uri))
    same = ((left, right) for left, right in pairs if left.names == right.names)
    return any(
        left.family == right.family == SchemeFamily.HDFS or _may_be_one_root(left, right) for left, right in same
    )


def begins_with(file: str, path: str) -> bool:
    """Tell whether a file's path may begin with another as text, as Spark compares them: ``/in2/a.json`` with ``/in``.

    Links are not followed. A path without a scheme may be in the file system of the file.
    """
    root = _ROOT.match(file)
    spelled = [path, root[0] + path] if root and path.startswith("/") else [path]
    pairs = product(_read_spellings(file), chain.from_iterable(map(_read_spellings, spelled)))
    same = ((left, right) for left, right in pairs if _may_be_one_root(left, right))
    return any("/".join(left.names).startswith("/".join(right.names)) for left, right in same)


class _Place(NamedTuple):
    family: str
    bucket: str  # or Azure's container
    host: str  # the Azure account or the cluster of HDFS; empty where it is not named
    names: tuple[str, ...]


def _may_be_one_root(left: _Place, other: _Place) -> bool:
    """Tell whether two places may be in one file system; a name service of HDFS may be any name node."""
    if (left.family, left.bucket) != (other.family, other.bucket):
        return False
    if left.host == other.host or not (left.host and other.host):
        return True
    return left.family == SchemeFamily.HDFS and (":" in left.host) != (":" in other.host)


def _resolve_links(uri: str) -> Iterator[_Place]:
    """Each place that a user may mean: also behind symbolic links."""
    yield from _read_spellings(uri)
    local = local_path(uri)
    if local is not None:
        yield from (_local(os.path.abspath(local)), _local(os.path.realpath(local)))


def _read_spellings(uri: str) -> Iterator[_Place]:
    """A spelling to the letter, and with the dots in it resolved. Looks at no disk."""
    scheme, colon, rest = uri.partition(":")
    scheme = scheme.lower()
    if colon and scheme == "file":
        yield _local(re.sub("^//(localhost)?(?=/)", "", rest, flags=re.I))
    elif colon and scheme == "dbfs":
        yield _place(SchemeFamily.DBFS, "", "", posixpath.normpath(rest))
    elif remote := _URI.fullmatch(uri):
        root, path = _root(scheme, remote[2]), _OPTIONS.sub("", remote[3])
        if scheme not in SCHEMES:  # whether such a file system has hosts or buckets, only fsspec knows
            root, path = (scheme, "", ""), f"{remote[2]}/{path}".lower()
        yield from (_place(*root, path), _place(*root, posixpath.normpath(path)))
    else:
        yield _local(os.path.abspath(uri))


def _root(scheme: str, authority: str) -> tuple[str, str, str]:
    kind, (user, at, host) = family(scheme), authority.lower().rpartition("@")
    if kind == SchemeFamily.AZURE:
        return (kind, user, host.replace(".blob.", ".dfs.")) if at else (kind, host, "")
    return (kind, "", host) if kind == SchemeFamily.HDFS else (kind, host, "")


def _local(path: str) -> _Place:
    """A local path, or what it shows of Databricks' file system."""
    path = posixpath.normpath(path)
    if path.startswith(("/dbfs/", "/Volumes/")):
        return _place(SchemeFamily.DBFS, "", "", path.removeprefix("/dbfs"))
    return _place(SchemeFamily.FILE, "", "", path)


def _place(kind: str, bucket: str, host: str, path: str) -> _Place:
    return _Place(kind, bucket, host, tuple(name for name in path.split("/") if name not in ("", ".")))
