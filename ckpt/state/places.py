"""Whether two ways of writing a path mean the same place."""

import os
import re
from typing import NamedTuple
from urllib.parse import unquote

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.S)
_FILE = re.compile(r"file:(?://(?:localhost)?)?(/.*)", re.S)
_DBFS = re.compile(r"(?:dbfs:(?://)?|/dbfs)(/.*)", re.S)
ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs", "az": "abfs"}
"""Schemes that name the same file system as another one."""


class _Place(NamedTuple):
    """A path in a form that can be compared."""

    scheme: str
    authority: str
    path: str


def lies_elsewhere(schema_path: str, operator: int, uri: str) -> bool:
    """Whether a schema file's absolute path, as operator metadata records it, is outside the checkpoint at ``uri``.

    False where that cannot be told. Spark writes ``file:`` paths without percent-encoding; users write both forms.
    """
    root, found, _ = schema_path.rpartition(f"/state/{operator}/_stateSchema/")
    if not found:
        return True
    return not is_same_place(root, uri)


def is_same_place(recorded: str, uri: str) -> bool:
    """Whether a path as Spark records it is the one that a user spelled, in either form."""
    here = {_place(uri, decode=False), _place(uri, decode=True)}
    place = _place(recorded, decode=False)
    return any(_same(place, one) for one in here)


def _same(one: _Place, other: _Place) -> bool:
    """Equal, or equal but for the name of the cluster, which HDFS paths may leave out or spell in many ways."""
    if one == other:
        return True
    return one.scheme == other.scheme == "hdfs" and one.path == other.path


def _place(text: str, *, decode: bool) -> _Place:
    local = _FILE.fullmatch(text)
    if local:
        path = unquote(local[1]) if decode else local[1]
        return _Place("file", "", os.path.normpath(path))
    dbfs = _DBFS.fullmatch(text)
    if dbfs:
        return _Place("dbfs", "", os.path.normpath(dbfs[1]))
    remote = _URI.fullmatch(text)
    if remote is None:
        return _Place("file", "", os.path.abspath(text))
    scheme = remote[1].lower()
    path = remote[3].partition("?")[0]
    authority = remote[2].lower().replace(".blob.", ".dfs.")
    return _Place(ALIASES.get(scheme, scheme), authority, os.path.normpath(path) if path.strip("/") else "/")
