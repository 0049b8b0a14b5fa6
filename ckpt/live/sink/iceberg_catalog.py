"""A table by its name in an Iceberg catalog, ``iceberg://CATALOG/NAMESPACE.TABLE``: read, and taken back.

The catalog is one of pyiceberg's configuration (``.pyiceberg.yaml``, ``PYICEBERG_CATALOG__...``), which also brings the
credentials. It knows which metadata file is current, which a folder of files does not tell.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ckpt.errors import NotFound, StorageError, UsageError, one_line
from ckpt.formats.iceberg import parse_iceberg_table
from ckpt.live.sink.iceberg_files import ReadTable, read_metadata_file, read_table, split_metadata_uri
from ckpt.storage import open_storage
from ckpt.storage.errors import shorten_error

_PLACE = re.compile(r"iceberg://(?P<catalog>[^/?]+)/(?P<name>[^/?]+)", re.I)
_NEEDED = "pip install 'pyiceberg>=0.12'"  # which has rollback_to_snapshot


def is_in_catalog(uri: str) -> bool:
    """Tell whether a place names a table of a catalog."""
    return uri.lower().startswith("iceberg://")


def read_catalog_table(uri: str) -> ReadTable:
    """Read the table as its catalog has it. Raises NotFound, StorageError, UsageError, Damaged."""
    table = _load(uri)
    return ReadTable(parse_iceberg_table(table.metadata.model_dump_json().encode()), table.metadata_location)


def read_iceberg(uri: str, storage_options: Mapping[str, str]) -> ReadTable:
    """Read the table at a place, of a metadata file, or of a catalog.

    Raises NotFound, StorageError, UsageError, Damaged.
    """
    if is_in_catalog(uri):
        return read_catalog_table(uri)
    file = split_metadata_uri(uri)
    if file is not None:
        return read_metadata_file(*file, storage_options)
    return read_table(open_storage(uri, storage_options))


def roll_back(uri: str, newest: int, number: int) -> None:
    """Make an ancestor the current snapshot, if ``newest`` is the current one; the catalog compares it once more.

    Raises NotFound, StorageError, UsageError.
    """
    table = _load(uri)
    current = table.metadata.current_snapshot_id
    if current != newest:
        raise StorageError(f"the table has snapshot {current} by now, and {newest} was the newest")
    with _explain(uri):
        table.manage_snapshots().rollback_to_snapshot(number).commit()


def _load(uri: str) -> Any:
    """Load a table of pyiceberg."""
    named = _PLACE.fullmatch(uri)
    if named is None:
        raise UsageError(f"{one_line(uri)} names no table of a catalog: write iceberg://CATALOG/NAMESPACE.TABLE")
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
