"""The rows of a Delta table as of its current version, through the package ``deltalake``: without Spark."""

from collections.abc import Iterator
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


def delta_files(uri: str, folder: str, storage: Storage, listing: Listing) -> Iterator[tuple[str, Any]]:
    """The files of a table that are part of it now, in the order of their names, and their rows as Arrow tables.

    ``folder`` is its path below ``uri``. A remote one is copied into the temporary folder first. Raises
    CkptError where it cannot be read, or not by ``deltalake``.
    """
    where = f"{uri}/{folder}".rstrip("/")
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        needed = "is a Delta table, and to import it one more package is needed: pip install 'spark-ckpt[deltalake]'"
        raise CkptError(one_line(f"{where} {needed}")) from None
    try:
        with TemporaryDirectory(prefix="ckpt-delta-") as copy:
            here = local_path(uri)
            top = Path(here if here is not None else copy, folder)
            if here is None:
                _copy(folder, storage, listing, Path(copy))
            table = DeltaTable(top)
            if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
                raise CkptError(
                    one_line(f"{where} has column mapping, which deltalake does not read: write it without")
                )
            dataset = table.to_pyarrow_dataset(
                parquet_read_options=ParquetReadOptions(coerce_int96_timestamp_unit="us")
            )
            for fragment in sorted(dataset.get_fragments(), key=lambda one: str(one.path)):
                yield str(fragment.path), fragment.to_table(schema=dataset.schema)
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise CkptError(one_line(f"{where} is not a Delta table that deltalake reads: {error}")) from None


def _copy(folder: str, storage: Storage, listing: Listing, to: Path) -> None:
    """Every file of a folder, and below it. Raises OSError, StorageError."""
    for path, _ in listing.walk():
        if path.startswith(f"{folder}/" if folder else "") and ".." not in path.split("/"):
            own = to / path
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_bytes(storage.read(path))
