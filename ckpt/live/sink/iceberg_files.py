"""The metadata of an Iceberg table at a place: one listing, one file, and nothing that its paths name."""

from collections.abc import Mapping
from typing import NamedTuple

from ckpt.errors import NotFound
from ckpt.formats.iceberg import VERSION_HINT, IcebergTable, iceberg_table, is_metadata, newest_metadata
from ckpt.formats.limits import LARGEST_ACTION
from ckpt.formats.text import Damaged
from ckpt.storage import Storage, open_storage
from ckpt.storage.locations import local_path

METADATA = "metadata"
ASK_THE_CATALOG = "if its catalog names another metadata file, give that file instead of the table"
_LOOKS = 3  # how often it is listed again, where the file was replaced meanwhile


class ReadTable(NamedTuple):
    """A table, and where it was read."""

    table: IcebergTable
    file: str  # below the place of the table


def of_metadata_file(uri: str) -> tuple[str, str] | None:
    """Of the URI of a metadata file its folder, as a URI, and its name; None for every other place."""
    place, question, options = (uri, "", "") if local_path(uri) is not None else uri.partition("?")
    folder, slash, name = place.rpartition("/")
    return (f"{folder or slash or '.'}{question}{options}", name) if is_metadata(name) else None


def read_metadata_file(folder: str, name: str, storage_options: Mapping[str, str]) -> ReadTable:
    """One metadata file. Raises NotFound, StorageError or UsageError where it cannot be read, Damaged where it is."""
    return ReadTable(_read(open_storage(folder, storage_options), name), name)


def read_table(storage: Storage) -> ReadTable:
    """The newest metadata in a table's folder. Raises StorageError, or Damaged where it cannot be told, or be read."""
    for look in range(_LOOKS):
        try:
            return _newest(storage)
        except NotFound:
            if look == _LOOKS - 1:
                raise
    raise AssertionError("unreachable")


def _newest(storage: Storage) -> ReadTable:
    names = storage.list_level(METADATA).files
    hint = storage.read_range(f"{METADATA}/{VERSION_HINT}", 0, 32) if VERSION_HINT in names else None
    path = f"{METADATA}/{newest_metadata(names, hint)}"
    return ReadTable(_read(storage, path), path)


def _read(storage: Storage, path: str) -> IcebergTable:
    try:
        return iceberg_table(storage.read_range(path, 0, LARGEST_ACTION + 1))
    except Damaged as damage:
        raise Damaged(damage.fault, f"{path}: {damage.reason}") from None
