"""The folder of an export, as rows that are to be state; Delta tables are read through ``deltalake``, without Spark."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet
from pyarrow.dataset import ParquetReadOptions
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from ckpt.errors import CkptError, NotFound, StorageError, one_line
from ckpt.extras import install_command
from ckpt.formats import limits
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json
from ckpt.new.book import BOOK
from ckpt.state.export.targets import MANIFEST, Format
from ckpt.state.reading.columns import Shape
from ckpt.storage import Listing, Storage, open_storage
from ckpt.storage.locations import local_path

_LOG, _PARQUET, _MAGIC = "_delta_log", ".parquet", b"PAR1"


class ExportedUnit(NamedTuple):
    """A unit of state in an export, as its manifest describes it."""

    folder: str
    is_delta: bool
    columns: Collection[str] | None
    rows: int | None  # before anybody edited them
    planned_ms: int | None  # when the batch was planned


@dataclass(frozen=True, slots=True)
class Export:
    """The folder that ``ckpt export-state --all-units --to`` has written, whoever has edited it since."""

    place: str
    options: Mapping[str, str]  # of its file system
    storage: Storage
    listing: Listing
    units: Mapping[str, ExportedUnit]  # by label
    query_id: str | None
    batch: int | None

    def __reduce__(self) -> tuple[Any, ...]:
        return open_export, (self.place, dict(self.options))

    def list_files(self, label: str) -> Sequence[str]:
        """List the Parquet files, in the order of their names; those that a Delta table consists of now.

        Raises CkptError for a folder that holds anything else.
        """
        folder = self.units[label].folder
        where = f"{self.place}/{folder}".rstrip("/")
        if self._is_delta(folder):
            with self._open_delta(folder) as (files, _):
                return sorted(files)
        if self.units[label].is_delta:
            raise CkptError(one_line(f"{where} has no {_LOG}, but its {MANIFEST} calls it a Delta table"))
        names = sorted(name for name in self.listing.in_folder(folder) if name[0] not in "_.")
        inside = [name for name in self.listing.subfolders(folder) if name[0] not in "_."] if folder else []
        strange = [*inside, *(name for name in names if not name.endswith(_PARQUET))]
        if strange or not names:
            why = f"it contains {strange[0]}" if strange else "it contains none"
            raise CkptError(one_line(f"{where} must contain only Parquet files, but {why}"))
        return [f"{folder}/{name}".lstrip("/") for name in names]

    def read_file(self, label: str, path: str) -> pa.Table:
        """Read one of the files. Raises CkptError."""
        folder = self.units[label].folder
        _check_size(self.place, self.listing, path, limits.LARGEST_PART)
        if not self._is_delta(folder):
            self._check_end(path)
            return _read_table(f"{self.place}/{path}", self.storage.read(path))
        with self._open_delta(folder) as (files, read):
            if path not in files:
                raise CkptError(one_line(f"{self.place}/{path} is no longer in its Delta table: import it again"))
            return read(path)

    def _check_end(self, path: str) -> None:
        """Raise StorageError, before it is read as a whole, where a file does not end as Parquet does."""
        info = self.listing.info(path)
        if info is not None and self.storage.read_range(path, max(info.size - len(_MAGIC), 0), len(_MAGIC)) != _MAGIC:
            raise StorageError(one_line(f"{self.place}/{path} cannot be read as Parquet: it does not end with PAR1"))

    def _is_delta(self, folder: str) -> bool:
        return f"{folder}/{_LOG}".lstrip("/") in self.listing.folders

    @contextmanager
    def _open_delta(self, folder: str) -> Iterator[tuple[Collection[str], Callable[[str], pa.Table]]]:
        """The files that a Delta table consists of now, and what reads one. Raises CkptError.

        Of a remote table the log, and each file that is read, are copied into a temporary folder first.
        """
        where, here = f"{self.place}/{folder}".rstrip("/"), local_path(self.place)
        for name, _ in self.listing.walk(f"{folder}/{_LOG}".lstrip("/")):
            _check_size(self.place, self.listing, name, limits.LARGEST_ACTION)
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError
        except ImportError:
            needed = f"importing it needs one more package: {install_command('deltalake')}"
            raise CkptError(one_line(f"{where} is a Delta table, and {needed}")) from None
        try:
            with TemporaryDirectory(prefix="ckpt-delta-") as temporary:
                if here is None:
                    self._copy_files(f"{folder}/{_LOG}/".lstrip("/"), temporary)
                top = Path(here if here is not None else temporary, folder)
                table = DeltaTable(top)
                if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
                    problem = "has column mapping, which deltalake does not read: write it without"
                    raise CkptError(one_line(f"{where} {problem}"))
                options = ParquetReadOptions(coerce_int96_timestamp_unit="us")
                files_here = SubTreeFileSystem(str(top), LocalFileSystem())  # its own calls Python from other threads
                dataset = table.to_pyarrow_dataset(filesystem=files_here, parquet_read_options=options)
                fragments = {f"{folder}/{part.path}".lstrip("/"): part for part in dataset.get_fragments()}

                def read(path: str) -> pa.Table:
                    if here is None:
                        self._copy_files(path, temporary)
                    return fragments[path].to_table(schema=dataset.schema, use_threads=False)

                yield fragments.keys(), read
        except (DeltaError, pa.ArrowException, OSError) as error:
            raise CkptError(one_line(f"{where} is not a Delta table that deltalake reads: {error}")) from None

    def _copy_files(self, start: str, to: str) -> None:
        """Copy every file whose path begins so. Raises OSError, StorageError."""
        for path, _ in self.listing.walk():
            if path.startswith(start) and ".." not in path.split("/"):
                own = Path(to, path)
                own.parent.mkdir(parents=True, exist_ok=True)
                own.write_bytes(self.storage.read(path))


def open_export(uri: str, options: Mapping[str, str]) -> Export:
    """The folder of an export. Raises CkptError where it is none, or of a kind that is not imported."""
    storage = open_storage(uri, options)
    listing = storage.list_tree()
    manifest = _read_manifest(uri, storage, listing, MANIFEST)
    folders = {unit: folder for folder, unit in _list_folders(manifest)}
    missing = [folder for folder in folders.values() if folder not in listing.folders]
    if missing:
        raise CkptError(one_line(f"{uri}: the folder {missing[0]} is missing, but its {MANIFEST} names it"))
    units = {}
    for unit, folder in folders.items():
        path = f"{folder}/{MANIFEST}".lstrip("/")
        own = _read_manifest(uri, storage, listing, path) if listing.info(path) else manifest
        is_delta = _find_format(uri, own) is Format.DELTA
        columns = [name for name, _ in named_fields(own["schema"])] if fields_of(own.get("schema")) else None
        units[unit] = ExportedUnit(folder, is_delta, columns, _take_int(own, "rows"), _take_int(own, "planned_ms"))
    query = manifest.get("query_id")
    own_query = query if isinstance(query, str) else None
    return Export(uri, options, storage, listing, units, own_query, _take_int(manifest, "batch"))


def _take_int(manifest: Mapping[str, Json], name: str) -> int | None:
    value = manifest.get(name)
    return value if isinstance(value, int) else None


def _check_size(uri: str, listing: Listing, path: str, largest: int) -> None:
    """Raise CkptError where a file is larger than any that is read."""
    info = listing.info(path)
    if info is not None and (why := limits.describe_excess(info.size, largest)) is not None:
        raise CkptError(one_line(f"{uri}/{path}: {why}"))


def _read_manifest(uri: str, storage: Storage, listing: Listing, path: str) -> dict[str, Json]:
    _check_size(uri, listing, path, limits.LARGEST_RECORD)
    try:
        manifest: Json = json.loads(storage.read(path))
    except NotFound:
        raise CkptError(BOOK.text("fill_no_manifest", uri=one_line(uri), manifest=path)) from None
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise CkptError(one_line(f"{uri}/{path} is not the JSON that ckpt wrote"))
    return manifest


def _list_folders(manifest: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Folders and the units in them; of an export of one unit its own."""
    unit, listed = manifest.get("unit"), manifest.get("folders")
    if isinstance(unit, str):
        yield "", unit
    for entry in listed if isinstance(listed, list) else ():
        match entry:
            case {"folder": str(folder), "unit": str(label)}:
                yield folder, label


def _find_format(uri: str, manifest: Mapping[str, Json]) -> Format:
    """The format of an export. Raises CkptError for one that is not of all rows, raw or flat, in Parquet or Delta."""
    shape, kind = manifest.get("shape", Shape.FLAT), manifest.get("format")
    if manifest.get("changes_from") is not None:
        raise CkptError(one_line(f"{uri} contains the changes of some batches, not the state"))
    if shape == Shape.INITIAL_STATE:
        raise CkptError(one_line(f"{uri} has the shape {shape}, but ckpt imports {Shape.FLAT} and {Shape.RAW}"))
    if kind not in (Format.PARQUET, Format.DELTA):
        raise CkptError(one_line(f"{uri} has the format {kind}, but ckpt imports Parquet and Delta: export it as one"))
    return Format(kind)


def _read_table(path: str, data: bytes) -> pa.Table:
    """A Parquet file; timestamps that Spark writes as INT96 are instants. Raises StorageError.

    No thread of Arrow takes part: if one lets go of ``data``, or calls Python, while Python ends, the process aborts.
    """
    try:
        file = parquet.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
        table = file.read(use_threads=False)
        instants = [file.schema.column(at).physical_type == "INT96" for at in range(len(file.schema))]
        leaves = iter(instants)
        fields = [column.with_type(_replace_int96(column.type, leaves)) for column in table.schema]
        return table.cast(pa.schema(fields)) if any(instants) else table
    except (pa.ArrowException, OSError) as error:
        raise StorageError(one_line(f"{path} cannot be read as Parquet: {error}")) from None


def _replace_int96(kind: pa.DataType, leaves: Iterator[bool]) -> pa.DataType:
    """The type in which every leaf that is INT96 is an instant; leaves are in the order of the columns."""
    if pa.types.is_map(kind):
        key = _replace_int96(kind.key_type, leaves)
        return pa.map_(key, kind.item_field.with_type(_replace_int96(kind.item_type, leaves)))
    if pa.types.is_struct(kind):
        inner = [kind.field(ordinal) for ordinal in range(kind.num_fields)]
        return pa.struct([child.with_type(_replace_int96(child.type, leaves)) for child in inner])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_replace_int96(kind.value_type, leaves)))
    return pa.timestamp("us", "UTC") if next(leaves) else kind
