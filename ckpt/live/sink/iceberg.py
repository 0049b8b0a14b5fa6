"""Reads the metadata of an Iceberg table: one listing, one file, and nothing that its paths name; no JVM.

A table may be named by its catalog, ``iceberg://CATALOG/NAMESPACE.TABLE``: it is read, and taken back. The catalog is
one of pyiceberg's configuration (``.pyiceberg.yaml``, ``PYICEBERG_CATALOG__...``), which also brings the credentials.
It knows which metadata file is current, which a folder of files does not tell.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from ckpt.errors import NotFound, StorageError, UsageError, one_line
from ckpt.formats import iceberg
from ckpt.formats.limits import LARGEST_ACTION
from ckpt.formats.text import Damaged
from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
from ckpt.storage import Storage, open_storage
from ckpt.storage.base import retry_vanished
from ckpt.storage.errors import shorten_error
from ckpt.storage.locations import local_path

_PLACE = re.compile(r"iceberg://(?P<catalog>[^/?]+)/(?P<name>[^/?]+)", re.I)
_NEEDED = "pip install 'pyiceberg>=0.12'"  # which has rollback_to_snapshot
METADATA = "metadata"
ASK_THE_CATALOG = "if its catalog names another metadata file, give that file instead of the table"


class ReadTable(NamedTuple):
    """A table, and where it was read."""

    table: iceberg.IcebergTable
    file: str  # below the place of the table


def has_metadata(storage: Storage) -> bool:
    """Tell whether a folder is an Iceberg table. Raises StorageError, NotFound where it has no folder ``metadata``."""
    return any(map(iceberg.is_metadata, storage.list_level(METADATA).files))


def read_batches(uri: str, storage_options: Mapping[str, str]) -> SinkLog:
    """Read which batches a table has, if its metadata can be read. Raises what ``read_iceberg`` does, but Damaged."""
    try:
        return find_batches(uri, *read_iceberg(uri, storage_options))
    except Damaged as damage:
        why = f"its metadata cannot be read: {damage.reason}; {ASK_THE_CATALOG}"
        return SinkLog(uri, SinkKind.ICEBERG, unknown=one_line(why), unreached=True)


def find_batches(uri: str, table: iceberg.IcebergTable, file: str) -> SinkLog:
    """Find each query's newest batch among the ancestors of the current snapshot (``findLastCommittedEpochId``)."""
    ancestors = list(table.ancestors())
    batches: dict[str, list[tuple[int, iceberg.IcebergSnapshot]]] = {}
    for snapshot in ancestors:
        if snapshot.query_id is not None and snapshot.batch is not None:
            batches.setdefault(snapshot.query_id, []).append((snapshot.batch, snapshot))
    writers = tuple(
        SinkWriter(
            query_id,
            written[0][0],
            written[0][1].written_ms,
            expired=False,
            before={
                batch: parent
                for batch, each in written
                if (parent := each.parent) is not None and parent in table.snapshots
            },
            written_ms={batch: each.written_ms for batch, each in reversed(written)},
        )
        for query_id, written in batches.items()
    )
    cut = bool(ancestors) and ancestors[-1].parent is not None
    return SinkLog(uri, SinkKind.ICEBERG, writers=writers, read_from=file, cut=cut)


def split_metadata_uri(uri: str) -> tuple[str, str] | None:
    """Split the URI of a metadata file into its folder, as a URI, and its name; None for every other place."""
    path, question, options = (uri, "", "") if local_path(uri) is not None else uri.partition("?")
    folder, slash, name = path.rpartition("/")
    return (f"{folder or slash or '.'}{question}{options}", name) if iceberg.is_metadata(name) else None


def read_iceberg_files(uri: str, storage_options: Mapping[str, str]) -> ReadTable:
    """Read the table at a place, or of a metadata file. Raises NotFound, StorageError, UsageError, Damaged."""
    file = split_metadata_uri(uri)
    if file is None:
        storage = open_storage(uri, storage_options)
        return retry_vanished(lambda: _read_newest(storage))
    folder, name = file
    return ReadTable(_parse(open_storage(folder, storage_options), name), name)


def _read_newest(storage: Storage) -> ReadTable:
    names = storage.list_level(METADATA).files
    hint = storage.read_range(f"{METADATA}/{iceberg.VERSION_HINT}", 0, 32) if iceberg.VERSION_HINT in names else None
    path = f"{METADATA}/{iceberg.choose_newest_metadata(names, hint)}"
    return ReadTable(_parse(storage, path), path)


def _parse(storage: Storage, path: str) -> iceberg.IcebergTable:
    try:
        return iceberg.parse_iceberg_table(storage.read_range(path, 0, LARGEST_ACTION + 1))
    except Damaged as damage:
        raise Damaged(damage.fault, f"{path}: {damage.reason}") from None


def is_in_catalog(uri: str) -> bool:
    """Tell whether a place names a table of a catalog."""
    return uri.lower().startswith("iceberg://")


def read_iceberg(uri: str, storage_options: Mapping[str, str]) -> ReadTable:
    """Read the table at a place, of a metadata file, or of a catalog.

    Raises NotFound, StorageError, UsageError, Damaged.
    """
    if not is_in_catalog(uri):
        return read_iceberg_files(uri, storage_options)
    table = _load(uri)
    return ReadTable(iceberg.parse_iceberg_table(table.metadata.model_dump_json().encode()), table.metadata_location)


def roll_back(uri: str, newest: int, number: int) -> None:
    """Make an ancestor the current snapshot, if ``newest`` is the current one; the catalog compares it once more.

    Raises NotFound, StorageError, UsageError.
    """
    table = _load(uri)
    current = table.metadata.current_snapshot_id
    if current != newest:
        raise StorageError(f"the table now has snapshot {current}, but {newest} was the newest")
    with _explain(uri):
        table.manage_snapshots().rollback_to_snapshot(number).commit()


def _load(uri: str) -> Any:
    named = _PLACE.fullmatch(uri)
    if named is None:
        raise UsageError(f"{one_line(uri)} names no table in a catalog: write iceberg://CATALOG/NAMESPACE.TABLE")
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
    except ImportError:
        raise StorageError(f"{one_line(uri)} needs a package that is not installed: {_NEEDED}") from None
    with _explain(uri):
        try:
            return load_catalog(named["catalog"]).load_table(named["name"])
        except (NoSuchNamespaceError, NoSuchTableError) as error:
            raise NotFound(f"{one_line(uri)}: the catalog has no such table") from error


@contextmanager
def _explain(uri: str) -> Iterator[None]:
    """Put what a library, a database or a server says in one line."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        cure = "check pyiceberg's configuration of the catalog"
        raise StorageError(f"{one_line(uri)} cannot be reached ({shorten_error(error)}): {cure}") from error
