"""One version of a store in one partition, as a snapshot that needs no other file: what a start loads first.

The version that a planned batch has written is made as the changes after it, a delta or a changelog: a start that runs
the batch again replaces that file, and would go on reading a snapshot beside it.

HDFS-backed: ``V.snapshot`` (``HDFSBackedStateStoreProvider.writeSnapshotFile``). RocksDB: ``V.zip`` of a database that
RocksDB itself made (``RocksDBFileManager.zipToDfsFile``), its SST file below ``SSTs/``; an empty store is a zip with
the entry ``metadata`` alone, for Spark creates the database then.
"""

import json
import struct
import zipfile
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from operator import eq
from pathlib import Path
from typing import Any
from uuid import uuid4

from ckpt.checkpoint.state.chains import Context
from ckpt.checkpoint.state.folders import SSTS
from ckpt.errors import CkptError, one_line
from ckpt.formats.rows.codecs import compress, decompress
from ckpt.formats.rows.rocksdb import import_rocksdict
from ckpt.formats.rows.row_checksums import write_checksum, write_removed
from ckpt.formats.statefiles import LZ4, RecordType
from ckpt.formats.text import write_utf
from ckpt.model import Json
from ckpt.new.rewrite.stored_rows import Families, Stored, array_of, encode_records, encode_removals, list_changes
from ckpt.settings import ROW_CHECKSUM
from ckpt.state.native.temporary import make_temporary_folder, report_no_room

_LENGTH = struct.Struct(">i")
_TABLE_FORMAT = 5  # rocksdb.formatVersion, the newest that every Spark reads
_BLOOM_BITS, _BLOCK_BYTES = 10, 4096  # as Spark's own options
_NOT_ROCKSDB = "rocksdict-config.json"  # which rocksdict puts beside the files of RocksDB
_THEN = (1980, 1, 1, 0, 0, 0)  # of zip entries: the same rows are the same bytes


@dataclass(frozen=True, slots=True)
class FileForm:
    """How rows are written into files, as the settings in the offsets say."""

    codec: str  # of deltas, changelogs and HDFS-backed snapshots
    checksums: bool  # of each row


def read_file_form(context: Context) -> FileForm:
    """How the rows of a query are written: as they were."""
    return FileForm(context.codec or LZ4, context.conf.get(ROW_CHECKSUM, "false") == "true")


def make_hdfs_snapshot(rows: Stored, form: FileForm) -> bytes:
    """The file of an HDFS-backed store: records, then an int of -1. Raises CkptError."""
    return _compress(encode_records(_add_checksums(rows, form, length=False)) + _LENGTH.pack(-1), form.codec)


def make_changes(before: Stored, after: Stored, form: FileForm, *, families: bool, rocksdb: bool) -> bytes:
    """A delta, or a changelog of RocksDB in checkpoint format 1: the changes from one version to the next.

    With ``families`` records begin with their type (``StateStoreChangelogWriterV2``), else they are those of a delta
    (``StateStoreChangelogWriterV1``). Raises CkptError.
    """
    changed, gone = list_changes(before, after)
    changed = _add_checksums(changed, form, length=rocksdb)
    if form.checksums:
        gone = array_of([write_removed(key) for key in gone.to_pylist()])
    if not families:
        return _compress(encode_records(changed) + encode_removals(gone) + _LENGTH.pack(-1), form.codec)
    put, delete = (bytes([kind]) for kind in (RecordType.PUT, RecordType.DELETE))
    return _compress(write_utf("v2") + encode_records(changed, put) + encode_removals(gone, delete) + b"\0", form.codec)


def _add_checksums(rows: Stored, form: FileForm, *, length: bool) -> Stored:
    if not form.checksums:
        return rows
    return Stored(rows.keys, array_of([write_checksum(*pair, length=length) for pair in rows.list_pairs()]))


def _compress(data: bytes, codec: str) -> bytes:
    compressed = compress(data, codec)
    _check_equal(decompress(iter([compressed]), codec, len(data)) == data)
    return compressed


def _check_equal(equal: bool) -> None:
    """Check that a snapshot reads as it was written. Raises CkptError."""
    if not equal:
        raise CkptError("a snapshot has different rows when it is read back: ckpt removes it")


def make_rocksdb_snapshot(rows: Stored, families: Families, stem: str, form: FileForm) -> dict[str, bytes]:
    """The files of a RocksDB store, whose keys differ, by path: ``stem``.zip, which names the others, is last.

    Raises CkptError where the temporary folder is full.
    """
    named = {number.to_bytes(2, "little"): name in families.internal for name, number in families.numbers.items()}
    internal = sum(named.get(key[:2], False) for key, _ in rows.list_pairs()) if any(named.values()) else 0
    named_ssts: list[Json] = []
    described: dict[str, Json] = {"sstFiles": named_ssts, "numKeys": len(rows) - internal, "numInternalKeys": internal}
    if named:
        described |= {
            "columnFamilyMapping": dict(families.numbers),
            "columnFamilyTypeMap": {name: name in families.internal for name in families.numbers},
            "maxColumnFamilyId": max(families.numbers.values()),
        }
    ssts: dict[str, bytes] = {}
    others: dict[str, bytes] = {}
    for name, data in _make_database_files(_add_checksums(rows, form, length=True).sort()) if len(rows) else ():
        if name.endswith(".sst"):
            own = f"{name.removesuffix('.sst')}-{uuid4()}.sst"
            ssts[f"{SSTS}/{own}"] = data
            named_ssts.append({"localFileName": name, "dfsSstFileName": own, "sizeBytes": len(data)})
        else:
            others[name] = data
    return {**ssts, f"{stem}.zip": _make_zip(others, described)}


def _make_zip(files: dict[str, bytes], described: Json) -> bytes:
    out = BytesIO()
    text = "v1\n" + json.dumps(described, separators=(",", ":"))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in [*files.items(), ("metadata", text.encode())]:
            archive.writestr(zipfile.ZipInfo(name, _THEN), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _make_database_files(rows: Stored) -> list[tuple[str, bytes]]:
    """Names and contents of the files of a database that has these keys, which are in order. Raises CkptError."""
    rocksdict = import_rocksdict()
    try:
        with make_temporary_folder() as folder:
            made = _make_database(rocksdict, Path(folder), rows)
            return [(file.name, file.read_bytes()) for file in sorted(made.iterdir()) if file.name != _NOT_ROCKSDB]
    except CkptError:
        raise
    except Exception as error:  # rocksdict raises nothing more special
        raise report_no_room(one_line(str(error))) from None


def _make_database(rocksdict: Any, folder: Path, rows: Stored) -> Path:
    """A checkpoint of the database, whose log is empty."""
    options = _make_options(rocksdict)
    table = folder / "rows.sst"
    writer = rocksdict.SstFileWriter(options)
    writer.open(str(table))
    for key, value in rows.list_pairs():
        writer[key] = value
    writer.finish()
    database = rocksdict.Rdict(str(folder / "database"), options=options)
    try:
        database.ingest_external_file([str(table)])
        _check_equal(all(map(eq, chain(database.items(), [None]), chain(rows.list_pairs(), [None]))))
        rocksdict.Checkpoint(database).create_checkpoint(str(folder / "made"))
    finally:
        database.close()
    return folder / "made"


def _make_options(rocksdict: Any) -> Any:
    table = rocksdict.BlockBasedOptions()
    table.set_format_version(_TABLE_FORMAT)
    table.set_bloom_filter(_BLOOM_BITS, False)
    table.set_block_size(_BLOCK_BYTES)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(rocksdict.DBCompressionType.lz4())
    return options
