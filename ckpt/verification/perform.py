"""Reads every byte, and gives what was seen to the same reading that a plain look makes."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from ckpt.checkpoint import Checkpoint
from ckpt.errors import CkptError, UsageError
from ckpt.model import FileDamage
from ckpt.reader import read_checkpoint
from ckpt.state import Needed, Verdict, Verified, needed_files
from ckpt.state.ranges import Ranges, common
from ckpt.state.steps import run
from ckpt.state.units import state_units
from ckpt.storage import open_storage

Watcher = Callable[[int, int], None]
"""Called with the bytes read so far, and with those of all files."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is about to be read."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StateVerification:
    """What came of reading every byte."""

    checkpoint: Checkpoint  # with what was seen: ``inspect`` takes it
    files: int
    bytes: int
    damages: tuple[FileDamage, ...]  # by path
    unknown: tuple[str, ...]  # files without anything to compare them with, or that could not be read
    loadable: Ranges  # committed batches whose state can be loaded


def verify_state(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    jobs: int | None = None,
    told: Callable[[Estimate], None] | None = None,
    watcher: Watcher | None = None,
) -> StateVerification:
    """Read every byte of every state file that any readable batch needs, and compare it with its checksums.

    Args:
        uri: A local path, or any URI that ``open_checkpoint`` opens.
        storage_options: For its file system, where it is remote.
        jobs: How many processes work at a time; by default as many as there are cores.
        told: Called once, before anything is read, with how much that will be.
        watcher: Called with the bytes read so far, and with those of all files.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: It cannot be read.
        CkptError: The checkpoint has no state, or the packages of the extra ``native`` are missing.

    >>> found = ckpt.verify_state("sample_checkpoints/aggregation-hdfs-4.2")
    >>> found.files, found.damages, found.loadable
    (26, (), ((0, 9),))

    """
    checkpoint = deep_checkpoint(uri, storage_options, jobs=jobs, told=told, watcher=watcher)
    found = checkpoint.state.every_byte if checkpoint.state else None
    if found is None:
        raise CkptError(f"{checkpoint.uri}: there is no state to verify")
    units = [unit.readable_batches for unit in state_units(checkpoint)]
    return StateVerification(
        checkpoint, found.files, found.bytes, found.damages, found.unknown, reduce(common, units) if units else ()
    )


def deep_checkpoint(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    batches: int = 10,
    jobs: int | None = None,
    told: Callable[[Estimate], None] | None = None,
    watcher: Watcher | None = None,
) -> Checkpoint:
    """The checkpoint as ``open_checkpoint`` reads it, and besides every byte of its state."""
    if jobs is not None and jobs < 1:
        raise UsageError("`jobs` has to be 1 or more")
    options = storage_options or {}
    storage = open_storage(uri, options)
    checkpoint = read_checkpoint(storage, batches=batches)
    if checkpoint.state is None:
        return checkpoint
    _load_packages()
    needed = run(needed_files(checkpoint.listing, checkpoint.offsets, checkpoint.commits), storage.read_many)
    if told is not None:
        told(Estimate(len(needed.files), needed.bytes))
    seen = _verified(uri, options, needed, jobs or os.cpu_count() or 1, watcher)
    return _with_partitions(read_checkpoint(storage, batches=batches, seen=seen), uri, options)


def _load_packages() -> None:
    """Whoever lacks the packages of the extra ``native`` learns it before anything is read. Raises CkptError."""
    from ckpt.verification import partitions, workers  # noqa: F401


def _with_partitions(found: Checkpoint, uri: str, options: Mapping[str, str]) -> Checkpoint:
    """The same, with what a look at keys finds."""
    from ckpt.verification.partitions import misplaced_keys

    state = found.state
    if state is None or state.every_byte is None:
        return found
    damages = {damage.path: damage for damage in (*misplaced_keys(uri, options), *state.every_byte.damages)}
    every_byte = replace(state.every_byte, damages=tuple(damages[path] for path in sorted(damages)))
    return replace(found, state=replace(state, every_byte=every_byte))


def _verified(uri: str, options: Mapping[str, str], needed: Needed, jobs: int, watcher: Watcher | None) -> Verified:
    from ckpt.verification.workers import outcomes

    wrong: dict[str, Verdict] = {}
    unknown = set[str]()
    done, total = 0, needed.bytes
    for file, outcome in outcomes(uri, options, needed.files, jobs):
        if outcome.verdict is not None:
            wrong[file.path] = outcome.verdict
        if outcome.unknown:
            unknown.add(file.path)
        done += file.size
        if watcher is not None:
            watcher(done, total)
    seen = Verified(wrong, frozenset(unknown), {}, frozenset(file.path for file in needed.files))
    return needed.ends.with_all(seen)
