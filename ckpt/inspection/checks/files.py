"""Findings about files that are not what Spark reads: checksums, temporary files, vanished ones."""

import re
from collections.abc import Iterator

from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.formats.names import sort_batch_names
from ckpt.model import Kind
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding


def find_vanished(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find files that were listed and gone when they were to be read."""
    if checkpoint.moving:
        yield Finding(diagnoses.others.CHANGED_WHILE_READ, "", "files came and went from one look to the next")
    elif checkpoint.vanished:
        detail = f"{len(checkpoint.vanished)} of the files listed were gone when ckpt tried to read them"
        yield Finding(diagnoses.others.CHANGED_WHILE_READ, checkpoint.vanished[0], detail)


def find_orphan_sidecars(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find ``.N.crc`` without ``N`` in a log: in the way where batch N is still to come, harmless below."""
    latest = checkpoint.offsets.latest
    for log in (checkpoint.offsets, checkpoint.commits):
        names = checkpoint.listing.in_folder(log.folder)
        orphans = [name for file in log.names.others if file.endswith(".crc") and (name := file[1:-4]) not in names]
        for belongs_to in sorted(name for name in orphans if name.isdecimal()):
            detail = f"the file {log.folder}/{belongs_to} that it belongs to is missing"
            commit_due = log is checkpoint.commits and int(belongs_to) == latest
            to_come = latest is None or int(belongs_to) > latest or commit_due
            blocks = to_come and checkpoint.local
            diagnosis = diagnoses.others.ORPHAN_SIDECAR_BLOCKS if blocks else diagnoses.others.ORPHAN_SIDECAR
            yield Finding(diagnosis, f"{log.folder}/.{belongs_to}.crc", detail)


def find_directories(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find folders with the name of a batch that is still to come."""
    latest = checkpoint.offsets.latest
    for log in (checkpoint.offsets, checkpoint.commits):
        for name in checkpoint.listing.subfolders(log.folder):
            if name.isdecimal() and (latest is None or int(name) > latest):
                path = f"{log.folder}/{name}"
                yield Finding(diagnoses.others.DIRECTORY_IN_THE_WAY, path, f"Spark has to write the file {path}")


def find_stale_sidecars(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find log files whose hidden checksum file does not match."""
    for path in checkpoint.stale_sidecars:
        yield Finding(diagnoses.others.STALE_SIDECAR, path, "its checksums do not match the file next to it")


def find_leftovers(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find temporary files of writes that broke off, anywhere in the checkpoint."""
    paths = [path for path, _ in checkpoint.listing.walk() if path.endswith((".tmp", ".tmp.crc"))]
    if paths:
        count = f"{len(paths)} temporary files" if len(paths) > 1 else "a temporary file"
        yield Finding(diagnoses.others.LEFTOVER, paths[0], f"{count} in this checkpoint")


_OF_ICEBERG = re.compile(r"sources/[0-9]+/offsets")
"""Where an Iceberg source keeps the place at which the query began, as file 0 (``InitialOffsetStore``)."""


def find_nested(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find folders that are checkpoints of their own, however deep."""
    for folder in sorted(checkpoint.listing.folders):
        above, _, name = folder.rpartition("/")
        ids = sort_batch_names(checkpoint.listing.in_folder(folder)).ids if above and name == OFFSETS else ()
        if ids and not (tuple(ids) == (0,) and _OF_ICEBERG.fullmatch(folder)):
            yield Finding(diagnoses.others.NESTED, above, "a checkpoint of its own, which is not looked at here")


def find_nothing(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that there is nothing yet, or nothing any more."""
    if checkpoint.kind is Kind.EMPTY and checkpoint.query_id is None:
        missing = checkpoint.missing_folder
        detail = "there are no offsets, commits or state"
        yield Finding(diagnoses.others.EMPTY, "", f"{missing} does not exist" if missing else detail)


CHECKS = (
    find_nothing,
    find_vanished,
    find_orphan_sidecars,
    find_directories,
    find_stale_sidecars,
    find_leftovers,
    find_nested,
)
