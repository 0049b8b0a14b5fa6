"""Reads every byte, and gives what was seen to the same reading that a plain look makes."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from os import fspath
from typing import Annotated

from ckpt.checkpoint import reader
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.state.file_ends import Verdict, Verified
from ckpt.checkpoint.state.folders import STATE
from ckpt.checkpoint.state.needed_files import Needed, NeededFile, find_needed_files
from ckpt.checkpoint.state.one_file import FileOutcome, check_file
from ckpt.checkpoint.state.ranges import Ranges, intersect
from ckpt.checkpoint.state.read_steps import run
from ckpt.errors import CkptError, UsageError
from ckpt.model import DamageKind, FileDamage, Location, StateDamage, StateInventory
from ckpt.processes import Processes, Runner
from ckpt.state.reading.reading import StateRequest, choose
from ckpt.state.reading.units import state_units
from ckpt.storage import Storage, open_storage
from ckpt.storage.locations import is_in_memory
from ckpt.values import Value

_WORTH_A_PROCESS = 48 << 20  # bytes: what takes as long to verify as a process to start
_OF_LOAD = (DamageKind.BAD_ROW, DamageKind.MISSING_ROWS)

Watcher = Callable[[int, int], None]
"""Called with the bytes read so far, and with those of all files."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The amount that is about to be read."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StateVerification(Value):
    """The result of reading every byte."""

    checkpoint: Checkpoint  # with what was seen: ``inspect`` takes it
    files: Annotated[int, "files that were read to the last byte"]
    bytes: int
    damages: Annotated[tuple[FileDamage, ...], "by path"]
    unknown: tuple[Annotated[str, "a file with nothing to check it against, or that could not be read"], ...]
    loadable: Ranges  # committed batches whose state can be loaded
    reasons: Mapping[str, str] = field(default_factory=dict)  # why a file is unknown


def state_verify(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    jobs: int | None = None,
    engine: Runner | None = None,
    announce: Callable[[Estimate], None] | None = None,
    watcher: Watcher | None = None,
) -> StateVerification:
    """Read every byte of every state file that any readable batch needs, and compare it with its checksums.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For its file system, where it is remote.
        jobs: How many processes work at a time; by default one per core.
        engine: By default processes on this machine read; ``ckpt.types.Executors()`` uses Spark's.
        announce: Called once, before anything is read, with the amount to read.
        watcher: Called with the bytes read so far, and with those of all files.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: It cannot be read.
        CkptError: The checkpoint has no state, or the packages of the extra ``native`` are missing.

    >>> verification = ckpt.state_verify("sample_checkpoints/aggregation-hdfs-4.2")
    >>> verification.files, verification.damages, verification.loadable
    (26, (), ((0, 9),))
    """
    opened = read_every_byte(
        fspath(checkpoint), storage_options, jobs=jobs, engine=engine, announce=announce, watcher=watcher
    )
    reader.refuse_unread(opened)
    verification = opened.state.every_byte if opened.state else None
    if verification is None:
        raise CkptError(f"{opened.uri}: there is no state to verify")
    units = [unit.readable_batches for unit in state_units(opened)]
    return StateVerification(
        checkpoint=opened,
        files=verification.files,
        bytes=verification.bytes,
        damages=verification.damages,
        unknown=verification.unknown,
        loadable=reduce(intersect, units) if units else (),
        reasons=verification.reasons,
    )


def read_every_byte(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    batches: int = 10,
    jobs: int | None = None,
    engine: Runner | None = None,
    announce: Callable[[Estimate], None] | None = None,
    watcher: Watcher | None = None,
) -> Checkpoint:
    """Read a checkpoint as ``open_to_look`` does, and besides every byte of its state."""
    options = storage_options or {}
    storage = reader.open_live_version(uri, options)
    with suppress(reader.LeadsOut):
        look_at_every_byte(storage, options, jobs=jobs, engine=engine, announce=announce, watcher=watcher)
    return reader.look_beside(reader.read_checkpoint(storage, batches=batches, look_only=True), options)


def look_at_every_byte(
    storage: Storage,
    options: Mapping[str, str],
    *,
    jobs: int | None = None,
    engine: Runner | None = None,
    announce: Callable[[Estimate], None] | None = None,
    watcher: Watcher | None = None,
) -> None:
    """Read every byte of the state, so that each checkpoint which is read from ``storage`` afterwards is judged by it.

    That holds for the checkpoint as planned steps leave it, too. A file that was written since counts as not read.
    Raises as ``read_every_byte`` does.
    """
    if jobs is not None and jobs < 1:
        raise UsageError.of("{--jobs} must be at least 1")
    storage.names_only = True  # nothing is read twice
    checkpoint = reader.read_checkpoint(storage, look_only=True)
    reader.refuse_links_out(checkpoint)
    if checkpoint.state is None:
        return
    from ckpt.state.verify import contents  # noqa: F401  (who lacks a package learns it before any reading)

    needed = run(find_needed_files(checkpoint.listing, checkpoint.offsets, checkpoint.commits), storage.read_many)
    if announce is not None:
        announce(Estimate(len(needed.files), needed.bytes))
    verified = _verify_files(storage.uri, options, needed, jobs or os.cpu_count() or 1, engine, watcher)
    infos = ((file.path, checkpoint.listing.info(file.path)) for file in needed.files)
    verified = replace(verified, files={path: info for path, info in infos if info is not None})
    storage.look_deeper = partial(_read_with_verdicts, verified, storage.uri, options, engine or Processes(1))


def _read_with_verdicts(
    verified: Verified, uri: str, options: Mapping[str, str], runner: Runner, storage: Storage, batches: int
) -> Checkpoint:
    """Read a checkpoint with the verdicts on files of the one at ``uri``, and compare its rows."""
    checkpoint = reader.read_checkpoint(storage, batches=batches, fully_read=verified, look_only=True)
    plain = copy(storage)
    plain.uri, plain.look_deeper, plain.names_only = uri, None, True  # whoever reads rows reads them there
    return _add_contents(checkpoint, plain, options, runner)


def _add_contents(checkpoint: Checkpoint, storage: Storage, options: Mapping[str, str], runner: Runner) -> Checkpoint:
    """Add what a look at rows finds, or that no row can be looked at."""
    from ckpt.state.verify.contents import check_contents, find_misplaced_keys

    state = checkpoint.state
    if state is None or state.every_byte is None:
        return checkpoint
    try:
        chosen = choose(StateRequest(storage.uri, all_units=True), options, what_is_left=True, storage=storage)
    except CkptError:
        every_byte = replace(state.every_byte, rows_unread=True)
        return replace(checkpoint, state=replace(state, every_byte=every_byte))
    damages_of_rows, compared, partitions = check_contents(chosen, runner)
    of_rows = tuple(_blame_schemas(state, damages_of_rows))
    every = (*of_rows, *find_misplaced_keys(chosen, runner), *state.every_byte.damages)
    damages = {damage.path: damage for damage in every}
    bad = () if chosen.moment.state_version != state.needed_version else of_rows
    loaded = [_make_state_damage(damage, chosen.moment.state_version) for damage in bad if damage.kind in _OF_LOAD]
    every_byte = replace(
        state.every_byte,
        damages=tuple(damages[path] for path in sorted(damages)),
        partitions=partitions,
        compared=compared,
    )
    damages_of_load, in_files = (*state.damages, *loaded), every_byte.damages
    state = replace(state, every_byte=every_byte, damages=damages_of_load, damaged_files=in_files)
    return replace(checkpoint, state=state)


def _blame_schemas(state: StateInventory, damages: Sequence[FileDamage]) -> Iterator[FileDamage]:
    """Yield damages of rows; where none fits a schema that no start reads, the schema file is damaged instead.

    A start of a join whose metadata names its schemas elsewhere writes them again (``STATE_MOVED_JOIN``).
    """
    unfit = {damage.path: damage for damage in damages if damage.kind is DamageKind.BAD_ROW}
    for operator in state.operators:
        folder = f"{STATE}/{operator.id}"
        partitions = {f"{folder}/{there.partition}" for store in operator.stores for there in store.partitions}
        moved = bool(operator.schema_paths) and set(operator.schema_paths) <= set(state.moved_schemas)
        if moved and not operator.variables and partitions and partitions <= unfit.keys():
            path = f"{folder}/_stateSchema/{operator.schema_paths[0].rpartition('/_stateSchema/')[2]}"
            yield FileDamage(path, DamageKind.OTHER_SCHEMA, unfit[min(partitions)].detail)
            damages = [damage for damage in damages if damage.path not in partitions]
    yield from damages


def _make_state_damage(damage: FileDamage, version: int) -> StateDamage:
    """Bad or missing rows, as damage to the version that the next start loads."""
    operator, partition = (int(part) for part in damage.path.split("/")[1:3])
    return StateDamage(damage.kind, operator, None, partition, version, damage.path, None, damage.detail)


def _verify_files(
    uri: str, options: Mapping[str, str], needed: Needed, jobs: int, engine: Runner | None, watcher: Watcher | None
) -> Verified:
    """Check each file, one after the other, or side by side in processes, as they are done.

    Raises CkptError where a process ends before its work is done.
    """
    wrong: dict[str, Verdict] = {}
    unknown: dict[str, str] = {}
    done, total = 0, needed.bytes
    files: Sequence[NeededFile] = needed.files
    count = 1 if is_in_memory(uri) else min(jobs, total // _WORTH_A_PROCESS + 1)
    if count > 1:
        files = sorted(files, key=lambda file: file.size, reverse=True)  # shares of about the same size
    for file, outcome in (engine or Processes(count)).run(_open_checker, (uri, dict(options)), files):
        if isinstance(outcome, Verdict):
            wrong[file.path] = outcome
        elif outcome is not None:
            unknown[file.path] = outcome
        done += file.size
        if watcher is not None:
            watcher(done, total)
    return needed.ends.with_all(Verified(wrong, set(unknown), reasons=unknown))


def _open_checker(shared: tuple[str, Mapping[str, str]]) -> Callable[[NeededFile], Iterator[FileOutcome]]:
    storage = open_storage(*shared)
    return lambda file: iter([check_file(storage, file)])
