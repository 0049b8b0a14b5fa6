"""Auto Loader's list of the files that it has read: ``sources/<k>/rocksdb``, as far as names, sizes and zips tell.

The layout is that of Spark's ``RocksDBFileManager``: ``<n>.zip`` names the SST files in ``SSTs/`` and the write-ahead
logs in ``logs/``. Databricks Runtime 18.0 names its files so; which was tested with files of Spark. No SST is opened.
"""

import re
from collections.abc import Iterator

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.file_logs import rocksdb_folder
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import offsets_of, source_type
from ckpt.checkpoint.state.folders import LOGS, SSTS
from ckpt.model import Unreadable
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.texts import plural, size

_ZIP = re.compile(r"\.?(\d{1,18})\.zip(\.crc)?", re.ASCII)  # a snapshot, or its checksum file


def find_auto_loader(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Name Auto Loader as a source, and find parts of its list of files that are missing."""
    latest = checkpoint.offsets.newest
    for index, offset in enumerate(offsets_of(latest) if latest is not None else ()):
        if source_type(offset) == SourceType.CLOUD_FILES:
            yield from _look_into(checkpoint, rocksdb_folder(checkpoint.listing, latest, index))


def _look_into(checkpoint: Checkpoint, folder: str) -> Iterator[Finding]:
    listing, incomplete = checkpoint.listing, diagnoses.modes.AUTO_LOADER_INCOMPLETE
    if not listing.has_folder(folder):
        yield Finding(incomplete, folder, "there is no such folder")
        return
    files = [*listing.walk(folder)]
    detail = f"{plural(len(files), 'file')}, {size(sum(info.size for _, info in files))}"
    names = listing.in_folder(folder)
    zips = {int(zip_name[1]) for name in names if (zip_name := _ZIP.fullmatch(name))}
    if not zips:
        yield Finding(incomplete, folder, "it has no snapshot (N.zip)")
    elif (newest := f"{max(zips)}.zip") not in names:
        lost = "its checksum file exists, but the file does not"
        yield Finding(incomplete, f"{folder}/{newest}", lost)
    snapshots = {path: zip_ for path, zip_ in checkpoint.source_snapshots.items() if path.startswith(f"{folder}/")}
    for path, snapshot in snapshots.items():
        if isinstance(snapshot, Unreadable):
            yield Finding(incomplete, path, snapshot.reason)
            continue
        detail += f"; {path.rpartition('/')[2]} names {plural(len(snapshot.ssts), 'SST file')}"
        missing = []
        for kind, named in ((SSTS, snapshot.ssts), (LOGS, snapshot.logs)):
            there = listing.in_folder(f"{folder}/{kind}")
            missing += [f"{kind}/{name}" for name, length in named if name not in there or there[name].size != length]
        if not snapshot.ssts and not snapshot.logs and path == f"{folder}/{max(zips)}.zip":
            yield Finding(incomplete, path, "it belongs to an empty list, though files were found")
        if missing:
            others = f" and {plural(len(missing) - 1, 'other')}" if missing[1:] else ""
            lost = f"it names {missing[0]}{others}: missing or of a different size"
            yield Finding(incomplete, path, lost)
    yield Finding(diagnoses.modes.AUTO_LOADER, folder, detail)
