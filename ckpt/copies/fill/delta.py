"""The rows of a Delta table as of its current version, through the package ``deltalake``: without Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyarrow.dataset import ParquetReadOptions

from ckpt.errors import CkptError
from ckpt.storage import Listing, Storage
from ckpt.storage.base import one_line
from ckpt.storage.locations import local_path

LOG = "_delta_log"


def list_delta_files(uri: str, folder: str, storage: Storage, listing: Listing) -> list[str]:
    """The paths below ``uri`` of the files that are part of a table now, in the order of their names.

    ``folder`` is the table's path below ``uri``. Raises CkptError where it cannot be read, or not by ``deltalake``.
    """
    with _open_table(uri, folder, storage, listing) as (dataset, _):
        return [*_fragments(dataset, folder)]


def read_delta_files(
    uri: str, folder: str, storage: Storage, listing: Listing, only: str | None = None
) -> Iterator[tuple[str, Any]]:
    """The rows of each file of ``list_delta_files``, or of one, as Arrow tables.

    A remote file is copied into the temporary folder first. Raises CkptError likewise.
    """
    with _open_table(uri, folder, storage, listing) as (dataset, copy):
        for path, fragment in _fragments(dataset, folder).items():
            if only in (None, path):
                if copy is not None:
                    _copy_files(path, storage, listing, copy)
                yield path, fragment.to_table(schema=dataset.schema)


def _fragments(dataset: Any, folder: str) -> dict[str, Any]:
    """The files of a table by their paths."""
    fragments = {f"{folder}/{fragment.path}".lstrip("/"): fragment for fragment in dataset.get_fragments()}
    return dict(sorted(fragments.items()))


@contextmanager
def _open_table(uri: str, folder: str, storage: Storage, listing: Listing) -> Iterator[tuple[Any, Path | None]]:
    """A table as a dataset; of a remote one also the copy of ``uri``, which has only its log. Raises CkptError."""
    where = f"{uri}/{folder}".rstrip("/")
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        needed = "is a Delta table, and to import it one more package is needed: pip install 'spark-ckpt[deltalake]'"
        raise CkptError(one_line(f"{where} {needed}")) from None
    try:
        with TemporaryDirectory(prefix="ckpt-delta-") as temporary:
            here = local_path(uri)
            copy = Path(temporary) if here is None else None
            if copy is not None:
                _copy_files(f"{folder}/{LOG}/".lstrip("/"), storage, listing, copy)
            table = DeltaTable(Path(here if here is not None else temporary, folder))
            if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
                raise CkptError(
                    one_line(f"{where} has column mapping, which deltalake does not read: write it without")
                )
            options = ParquetReadOptions(coerce_int96_timestamp_unit="us")
            yield table.to_pyarrow_dataset(parquet_read_options=options), copy
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise CkptError(one_line(f"{where} is not a Delta table that deltalake reads: {error}")) from None


def _copy_files(start: str, storage: Storage, listing: Listing, to: Path) -> None:
    """Copy every file whose path begins so. Raises OSError, StorageError."""
    for path, _ in listing.walk():
        if path.startswith(start) and ".." not in path.split("/"):
            own = to / path
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_bytes(storage.read(path))
