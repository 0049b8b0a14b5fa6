"""The backup of a change, beside the checkpoint: every file as it was, and a manifest of what was to be done to it.

::

    manifest.json                 written last: without it nothing was changed
    0001-offsets-30               a file as it was, one for each step that removes or replaces

``manifest.json``: ``manifest`` (1), ``ckpt`` (version), ``command``, ``checkpoint`` (URI, for people), ``query_id``,
``created_ms``, ``others`` (fingerprint of every file that the change leaves alone) and ``steps``: ``path``,
``before`` and ``after``, each null or ``bytes`` and ``sha256``; ``before`` has ``file`` (its name in the backup) and,
for local files, ``mode``, ``uid``, ``gid``, ``mtime_ns``.

A manifest is read with suspicion: it may have been copied, edited or made for another checkpoint.
"""

import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, count
from typing import Any

from ckpt.changes.book import BOOK
from ckpt.changes.plan import ChangePlan
from ckpt.changes.steps import FileContent, FileStep, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, FIRST_START, METADATA, OFFSETS, SKIPPED, SOURCES, STATE
from ckpt.checkpoint.pipelines import sort_versions
from ckpt.errors import CkptError, NotFound, StorageError, UsageError, one_line
from ckpt.formats.sidecars import is_temporary_metadata
from ckpt.storage import Listing, Storage
from ckpt.storage.base import temporary
from ckpt.storage.locations import find_parent, is_in_memory, is_inside, is_same_kind, local_path, split_options
from ckpt.storage.writer import Attributes, Writer
from ckpt.versions import __version__

MANIFEST = "manifest.json"
FORMAT = 1
_BACKUP_NAME = re.compile(r"\d{4,}-[\w.%+-]+", re.ASCII)
_UNUSUAL = re.compile(r"[^\w.%+]", re.ASCII)  # of a path, in the name of its copy
_FOLDERS = (OFFSETS, COMMITS, STATE, SOURCES)  # in which files may be changed
_AT_THE_ROOT = (METADATA, sidecar(METADATA), FIRST_START, SKIPPED)


class NoBackup(StorageError):
    """A folder in which no backup can be made: another one helps."""


class BadBackup(CkptError):
    """A backup that cannot be used: no manifest, not ckpt's, damaged, or of another query."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One step as the manifest records it."""

    path: str
    before: FileContent | None
    after: FileContent | None
    file: str | None  # the name in the backup of the file as it was
    attributes: Attributes | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a backup."""

    command: str  # that made the change
    query_id: str | None
    created_ms: int
    others: str  # fingerprint of all files that the change leaves alone
    entries: tuple[ManifestEntry, ...]

    @property
    def paths(self) -> frozenset[str]:
        """Every file that the change touches, and the temporary names under which they are written."""
        named = frozenset(entry.path for entry in self.entries)
        return named | frozenset(temporary(path) for path in named)


def compute_fingerprint(listing: Listing, but: Iterable[str]) -> str:
    """A digest of the names, sizes and times of all files but the given ones; it changes when one is written."""
    left_out = frozenset(but)
    lines = sorted(f"{path}\0{info.size}\0{info.mtime_ms}" for path, info in listing.walk() if path not in left_out)
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def save(plan: ChangePlan, storage: Storage, writer: Writer, backup: Writer) -> Manifest:
    """Back up every file that the steps touch, one at a time, the manifest last.

    Raises StorageError, also where a step is not possible, such as behind a symbolic link; nothing was changed then,
    and no part of the backup is left.
    """
    folders = plan.listing.has_folder
    owned = [writer.attributes(step.path) if folders(step.path.rpartition("/")[0]) else None for step in plan.steps]
    try:
        backup.make_root()
    except StorageError as error:
        why = str(error)
        raise NoBackup.of("the backup cannot be made ({why}); name another folder with {--backup}", why=why) from error
    try:
        return _save_files(plan, storage, backup, owned)
    except CkptError:
        discard(plan, backup)
        raise


def discard(plan: ChangePlan, backup: Writer) -> None:
    """Remove a backup whose change did not come about, as far as it can be removed; the manifest first."""
    for name in (MANIFEST, *(_name_kept_file(number, step) for number, step in enumerate(plan.steps, 1))):
        for remove in (backup.discard_temporary, backup.remove):
            with suppress(CkptError):
                remove(name)
    backup.remove_folder("")


def _name_kept_file(number: int, step: FileStep) -> str:
    return f"{number:04}-{_UNUSUAL.sub('_', step.path)}"


def _save_files(plan: ChangePlan, storage: Storage, backup: Writer, owned: Sequence[Attributes | None]) -> Manifest:
    checkpoint, entries = plan.inspection.checkpoint, []
    for number, (step, own_attributes) in enumerate(zip(plan.steps, owned, strict=True), 1):
        file = before = attributes = None
        if step.before is not None:
            file, attributes = _name_kept_file(number, step), own_attributes
            data = _read_planned_file(step, storage)
            before = FileContent.of(data)
            backup.create(file, data)
        entries.append(ManifestEntry(step.path, before, FileContent.of(step.after), file, attributes))
    touched = Manifest(plan.command, checkpoint.query_id, time.time_ns() // 1_000_000, "", tuple(entries))
    manifest = replace(touched, others=compute_fingerprint(plan.listing, touched.paths))
    recorded = {
        "manifest": FORMAT,
        "ckpt": __version__,
        "command": plan.command,
        "checkpoint": storage.uri,
        "query_id": checkpoint.query_id,
        "created_ms": manifest.created_ms,
        "others": manifest.others,
        "steps": [_write_entry(entry) for entry in entries],
    }
    backup.create(MANIFEST, json.dumps(recorded, indent=2).encode())
    return manifest


def _read_planned_file(step: FileStep, storage: Storage) -> bytes:
    """The file that a step replaces or removes, read now if the plan did not. Raises StorageError."""
    if isinstance(step.before, bytes):
        return step.before
    data = storage.read(step.path)
    if step.before is not None and step.before.size != len(data):
        raise StorageError(f"{step.path} changed since the plan was made: something else is writing here")
    return data


def _write_entry(entry: ManifestEntry) -> dict[str, Any]:
    before, after, kept = entry.before, entry.after, entry.attributes
    fields: dict[str, Any] = {"path": entry.path, "before": None, "after": None}
    if after is not None:
        fields["after"] = {"bytes": after.size, "sha256": after.sha256}
    if before is not None:
        fields["before"] = {"bytes": before.size, "sha256": before.sha256, "file": entry.file}
    if before is not None and kept is not None:
        fields["before"] |= {"mode": kept.mode, "uid": kept.uid, "gid": kept.gid, "mtime_ns": kept.mtime_ns}
    return fields


def load(backup: Storage) -> Manifest:
    """Read a backup's manifest. Raises BadBackup, or StorageError where it cannot be reached."""
    try:
        raw = backup.read(MANIFEST)
    except NotFound as error:
        cure = "use the folder that ckpt printed; without a manifest nothing was changed"
        raise BadBackup(
            f"{one_line(backup.uri)} is not a backup made by ckpt (it has no {MANIFEST}): {cure}"
        ) from error
    try:
        recorded = json.loads(raw)
        version = recorded["manifest"]
        if type(version) is not int or version != FORMAT:  # True is 1 as well
            raise BadBackup(f"{_name_backup(backup)} has format {version!r}: use the ckpt that wrote it")
        command, query_id, others = (recorded[key] for key in ("command", "query_id", "others"))
        if not (isinstance(command, str) and isinstance(query_id, str | None) and isinstance(others, str)):
            raise TypeError
        steps = tuple(_read_entry(step) for step in recorded["steps"])
        return Manifest(command, query_id, int(recorded["created_ms"]), others, steps)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise BadBackup(f"{_name_backup(backup)} does not have ckpt's format: restore the files by hand") from error


def _read_entry(recorded: Mapping[str, Any]) -> ManifestEntry:
    """One step. Raises ValueError for a path or name that leads elsewhere, other errors for another shape."""
    path, before, after = recorded["path"], recorded["before"], recorded["after"]
    parts = path.split("/")
    parts = parts[1:] if sort_versions(parts[:1]) else parts  # a version of a flow of a pipeline
    in_folder = parts[0] in _FOLDERS and len(parts) > 1
    at_the_root = "/".join(parts) in _AT_THE_ROOT or is_temporary_metadata("/".join(parts))
    if not (in_folder or at_the_root) or {"", ".", ".."} & set(parts):
        raise ValueError
    path.encode("utf-8", "surrogateescape")  # any name that a file can have
    file = attributes = None
    if before is not None:
        file = before["file"]
        if not _BACKUP_NAME.fullmatch(file):
            raise ValueError
        if "mode" in before:
            mode, uid, gid, mtime_ns = (int(before[key]) for key in ("mode", "uid", "gid", "mtime_ns"))
            if mode & ~0o777 or not (0 <= uid < 2**32 - 1 and 0 <= gid < 2**32 - 1 and abs(mtime_ns) < 2**62):
                raise ValueError  # what no file has, or bits that would let others act as its owner
            attributes = Attributes(mode, uid, gid, mtime_ns)
    return ManifestEntry(path, _read_content(before), _read_content(after), file, attributes)


def _read_content(recorded: Mapping[str, Any] | None) -> FileContent | None:
    return None if recorded is None else FileContent(int(recorded["bytes"]), str(recorded["sha256"]))


def read_original(backup: Storage | Writer, entry: ManifestEntry) -> bytes | None:
    """A file as it was; None if it was not there. Raises BadBackup where it is not what it was, or StorageError."""
    if entry.file is None:
        return None
    try:
        data = backup.read(entry.file)
    except NotFound as error:
        raise BadBackup(
            BOOK.text("backup_incomplete", backup=one_line(backup.uri), file=entry.file, copied=one_line(entry.path))
        ) from error
    if FileContent.of(data) != entry.before:
        raise BadBackup(f"{one_line(backup.uri)}/{entry.file} was changed after the backup: restore the file by hand")
    return data


def _name_backup(backup: Storage) -> str:
    return f"{one_line(backup.uri.rstrip('/'))}/{MANIFEST}"


def backup_to(location: str | None, uri: str, storage_options: Mapping[str, str]) -> Writer:
    """Where the original files of a checkpoint are kept; by default next to it. Raises UsageError, StorageError."""
    if location is None:
        location = name_default_backup(uri)
    must_keep(location, uri)
    from ckpt.storage.local_writer import open_writer  # a plan loads nothing that writes

    return open_writer(location, choose_options(location, storage_options, uri))


def choose_options(location: str, storage_options: Mapping[str, str], beside: str | None = None) -> Mapping[str, str]:
    """A local folder takes no storage options, and a remote one not those of a place ``beside`` it of another kind."""
    strange = beside is not None and local_path(beside) is None and not is_same_kind(location, beside)
    return {} if strange or local_path(location) is not None else storage_options


def name_default_backup(uri: str) -> str:
    """``<checkpoint>.ckpt-backup-<UTC time>``, a sibling of the checkpoint, in the form in which that was given.

    On a local disk two changes may come in one second: then ``-2`` and so on follows.

    Raises UsageError where the checkpoint has no sibling: the root of a bucket or of a file system.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path, options = split_options(uri)
    if find_parent(uri) is None:
        raise UsageError.of("{uri} has no parent folder for a backup: name one with {--backup}", uri=one_line(uri))
    name = f"{path.rstrip('/')}.ckpt-backup-{stamp}"
    names = chain((name,), (f"{name}-{number}" for number in count(2)))
    free = next(name for name in names if (local := local_path(name)) is None or not os.path.lexists(local))
    return free + options


def must_keep(backup: str, checkpoint: str) -> None:
    """Raise UsageError for a backup inside the checkpoint, where Spark would find it, or one that a crash would end."""
    shown = one_line(backup)
    if not backup:
        raise UsageError.of("an empty path: name a folder that does not exist yet with {--backup}")
    if is_in_memory(backup) and not is_in_memory(checkpoint):
        raise UsageError.of("{given} exists only while ckpt runs: name a permanent folder with {--backup}", given=shown)
    if is_inside(backup, checkpoint):
        raise UsageError.of("{given} is inside the checkpoint: name a folder outside it with {--backup}", given=shown)
