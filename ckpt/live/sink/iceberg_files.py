"""Reads the metadata of an Iceberg table: one listing, one file, and nothing that its paths name; no JVM."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ckpt.errors import one_line
from ckpt.formats.iceberg import (
    VERSION_HINT,
    IcebergSnapshot,
    IcebergTable,
    choose_newest_metadata,
    is_metadata,
    parse_iceberg_table,
)
from ckpt.formats.limits import LARGEST_ACTION
from ckpt.formats.text import Damaged
from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
from ckpt.storage import Storage, open_storage
from ckpt.storage.base import retry_vanished
from ckpt.storage.locations import local_path

METADATA = "metadata"
ASK_THE_CATALOG = "if its catalog names another metadata file, give that file instead of the table"


class ReadTable(NamedTuple):
    """A table, and where it was read."""

    table: IcebergTable
    file: str  # below the place of the table


def has_metadata(storage: Storage) -> bool:
    """Tell whether a folder is an Iceberg table. Raises StorageError, NotFound where it has no folder ``metadata``."""
    return any(map(is_metadata, storage.list_level(METADATA).files))


def read_iceberg_sink(uri: str, storage: Storage) -> SinkLog:
    """Read which batches an Iceberg table has. Raises StorageError where it cannot be read."""
    return read_batches(uri, lambda: read_table(storage))


def read_iceberg_metadata_sink(uri: str, storage_options: Mapping[str, str]) -> SinkLog | None:
    """Read which batches the table of a metadata file has; None where the URI is not one of such a file.

    Raises NotFound, StorageError or UsageError where it cannot be read.
    """
    file = split_metadata_uri(uri)
    return None if file is None else read_batches(uri, lambda: read_metadata_file(*file, storage_options))


def read_batches(uri: str, read: Callable[[], ReadTable]) -> SinkLog:
    """Read which batches a table has, if its metadata can be read. Raises what reading it raises, but Damaged."""
    try:
        return find_batches(uri, *read())
    except Damaged as damage:
        why = f"its metadata cannot be read: {damage.reason}; {ASK_THE_CATALOG}"
        return SinkLog(uri, SinkKind.ICEBERG, unknown=one_line(why), unreached=True)


def find_batches(uri: str, table: IcebergTable, file: str) -> SinkLog:
    """Find each query's newest batch among the ancestors of the current snapshot (``findLastCommittedEpochId``)."""
    ancestors = list(table.ancestors())
    batches: dict[str, list[tuple[int, IcebergSnapshot]]] = {}
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
    return (f"{folder or slash or '.'}{question}{options}", name) if is_metadata(name) else None


def read_metadata_file(folder: str, name: str, storage_options: Mapping[str, str]) -> ReadTable:
    """Read one metadata file. Raises NotFound, StorageError or UsageError, and Damaged where it is no metadata."""
    return ReadTable(_parse(open_storage(folder, storage_options), name), name)


def read_table(storage: Storage) -> ReadTable:
    """Read the newest metadata in a table's folder. Raises StorageError, and Damaged where it cannot be told."""
    return retry_vanished(lambda: _read_newest(storage))


def _read_newest(storage: Storage) -> ReadTable:
    names = storage.list_level(METADATA).files
    hint = storage.read_range(f"{METADATA}/{VERSION_HINT}", 0, 32) if VERSION_HINT in names else None
    path = f"{METADATA}/{choose_newest_metadata(names, hint)}"
    return ReadTable(_parse(storage, path), path)


def _parse(storage: Storage, path: str) -> IcebergTable:
    try:
        return parse_iceberg_table(storage.read_range(path, 0, LARGEST_ACTION + 1))
    except Damaged as damage:
        raise Damaged(damage.fault, f"{path}: {damage.reason}") from None
