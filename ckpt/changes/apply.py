"""Apply a change, or revert one: locked, backed up first, one complete file at a time, and checked afterwards.

A crash at any point leaves files that are each as they were, as planned, or (where the storage cannot replace a file
in one step) not there, so that ``undo`` restores the checkpoint from the backup alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import fspath
from typing import Generic, NamedTuple, TypedDict, Unpack

from ckpt.advice import Option, Words, call, join, words
from ckpt.changes.backup import (
    Manifest,
    ManifestEntry,
    NoBackup,
    backup_to,
    choose_options,
    compute_fingerprint,
    discard,
    load,
    must_keep,
    read_original,
    save,
)
from ckpt.changes.book import BOOK
from ckpt.changes.plan import ChangePlan, Planned
from ckpt.changes.steps import FileContent, FileStep, view_changed
from ckpt.checkpoint.checkpoint import METADATA
from ckpt.checkpoint.pipelines import find_version, sort_versions
from ckpt.checkpoint.reader import NotACheckpoint, read_checkpoint
from ckpt.errors import CkptError, DiskFull, NotFound, StorageError, must_choose_reading, one_line
from ckpt.inspection.activity import Refused, must_be_quiet, must_be_seconds
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Json, Location
from ckpt.storage import Listing, Root, Storage, open_storage
from ckpt.storage.writer import Attributes, Writer
from ckpt.values import Value, show_document, show_html, show_text
from ckpt.versions import Spark

_COARSE_MS = 20  # a file system may give a file a time that is this much too early


@dataclass(frozen=True, slots=True)
class Receipt(Value):
    """The steps that were done, and where the backup is."""

    applied: bool = False
    undone: bool = False  # everything is as it was
    backup: str | None = None
    problem: str | None = None  # why it was not applied, was reverted, or could not be reverted
    other_backup: bool = False  # another folder for the backup helps
    steps: tuple[FileStep, ...] = ()  # those that an undo performed
    undone_command: str | None = None  # whose change was undone


def apply_plan(
    plan: ChangePlan,
    storage: Root,
    writer: Writer,
    backup: Writer,
    grace: float,
    first: Callable[[], None] = lambda: None,
) -> Receipt:
    """Perform a plan that has steps; the forecasts that it promised are checked before ckpt says that it is done.

    ``first`` is what has to be done elsewhere before them, and nothing is changed if it raises CkptError. The change is
    reverted if a promise is broken or a step fails, and before an interrupt ends it; a second interrupt ends that as
    well, and leaves it to ``undo``.
    """
    receipt = Receipt(problem="nothing was changed: interrupted; you can delete an incomplete backup")
    try:
        with writer.lock(required=plan.needs_lock):
            must_be_quiet(storage, plan.listing, grace)
            manifest = save(plan, storage, writer, backup)
            receipt = Receipt(backup=backup.uri, problem="interrupted before everything was done or reverted")
            receipt = _perform_steps(plan, manifest, storage, writer, backup, first)
            if receipt.undone:  # nothing is left to restore
                discard(plan, backup)
                receipt = replace(receipt, backup=None)
    except CkptError as error:
        if receipt.backup:
            return receipt
        elsewhere = isinstance(error, NoBackup | DiskFull)
        return Receipt(problem=f"nothing was changed: {error}", other_backup=elsewhere)
    except KeyboardInterrupt:
        return receipt
    return receipt


def _list_folders(paths: Iterable[str]) -> list[str]:
    """List the folders below those of a checkpoint in which files are, such as ``sources/2``, outer ones first.

    In the folder of a flow they are those of its versions.
    """
    parts = (path.split("/")[:-1] for path in paths)
    firsts = ((names, 1 if names and sort_versions(names[:1]) else 2) for names in parts)
    return sorted({"/".join(names[:length]) for names, first in firsts for length in range(first, len(names) + 1)})


def _are_of_versions(paths: Iterable[str]) -> bool:
    return any(sort_versions([path.partition("/")[0]]) for path in paths)


def _perform_steps(
    plan: ChangePlan, manifest: Manifest, storage: Root, writer: Writer, backup: Writer, first: Callable[[], None]
) -> Receipt:
    """All steps, or none. Raises only what interrupts."""
    problem: str | None
    other_backup, steps = False, plan.steps
    try:
        first()
        for folder in _list_folders(step.path for step in steps if step.before is None):
            writer.make_folder(folder)
        likes = {step.like: writer.attributes(step.like) for step in steps if step.like}
        for step, entry in zip(steps, manifest.entries, strict=True):
            _do(step, entry, storage, writer, likes[step.like] if step.like else None)
        broken = _find_broken_promise(plan, storage)
        problem = _warn_of_other_writes(manifest, storage.list_tree()) or broken
    except CkptError as error:
        problem, other_backup = str(error), isinstance(error, DiskFull)
    except KeyboardInterrupt:
        problem = "interrupted"
    except BaseException:
        with suppress(CkptError):
            _restore(manifest, backup, storage, writer)
        raise
    if problem is None:
        if _are_of_versions(step.path for step in steps):
            for folder in reversed(_list_folders(step.path for step in steps)):
                writer.remove_folder(folder)
        return Receipt(applied=True, backup=backup.uri)
    try:
        _restore(manifest, backup, storage, writer)
    except CkptError as error:
        return Receipt(backup=backup.uri, problem=f"{problem}; the completed steps could not be reverted: {error}")
    return Receipt(undone=True, backup=backup.uri, problem=problem, other_backup=other_backup)


def _do(step: FileStep, entry: ManifestEntry, storage: Storage, writer: Writer, like: Attributes | None) -> None:
    """One step, if the file is as it was backed up. Raises StorageError."""
    data = _read_if_there(storage, step.path)
    if FileContent.of(data) != entry.before:
        raise StorageError(f"{step.path} changed since the plan was made: something else is writing here")
    after = step.after if step.holder is None else step.holder.read(step.path)
    if FileContent.of(after) != entry.after:
        raise StorageError(f"{step.path} of the point changed since the plan was made")
    like = None if like is None else replace(like, mtime_ns=None)
    _write(writer, step.path, data, after if isinstance(after, bytes) else None, like)


def _write(writer: Writer, path: str, before: bytes | None, after: bytes | None, like: Attributes | None) -> None:
    """From a file as it was found to what it is to be; None is one that is not there. Raises StorageError."""
    if after is None:
        writer.remove(path)
    elif before is None:
        writer.create(path, after, like)
    else:
        writer.replace(path, after, before, like)


def undo(
    storage: Storage, writer: Writer, backup: Storage, query_id: str | None, listing: Listing, grace: float
) -> Receipt:
    """Put everything back as the backup has it; finishes an apply or undo that was interrupted.

    ``query_id`` and ``listing`` are those of the checkpoint now. Where all is as it was already, nothing happens.
    """
    try:
        manifest = load(backup)
        for entry in manifest.entries:
            read_original(backup, entry)  # so that nothing is changed where a file of the backup is not what it was
        with writer.lock():
            if manifest.query_id != query_id and METADATA not in manifest.paths:
                raise Refused(
                    f"{one_line(backup.uri)} is a backup of query {one_line(str(manifest.query_id))}, and this is "
                    f"a checkpoint of query {one_line(str(query_id))}: name the backup of this query"
                )
            now = must_be_quiet(storage, listing, grace, manifest.paths)
            _must_be_untouched(manifest, now, storage)
            steps = _restore(manifest, backup, storage, writer)
            problem = _warn_of_other_writes(manifest, storage.list_tree())
            if problem is not None:
                raise Refused(f"every file of the change is back to its old content, but {problem}")
            return Receipt(undone=True, backup=backup.uri, steps=steps, undone_command=manifest.command)
    except CkptError as error:
        return Receipt(backup=backup.uri, problem=str(error))
    except KeyboardInterrupt:
        return Receipt(backup=backup.uri, problem="interrupted: run the same command again to finish")


def _must_be_untouched(manifest: Manifest, now: Listing, storage: Storage) -> None:
    """Raise Refused where somebody but ckpt wrote to the checkpoint since the backup."""
    cure = str(BOOK.text("undo_mixes"))
    known: dict[str, set[FileContent | None]] = {}
    for entry in manifest.entries:
        known.setdefault(entry.path, {None}).update((entry.before, entry.after))
    for path, contents in known.items():
        if _read_content(storage, path) not in contents:
            raise Refused(f"{path} was written after the backup: {cure}")
    others = _find_other_changes(manifest, now)
    if others is not None:
        raise Refused(f"files appeared, disappeared or were written after the backup{others}: {cure}")


def _warn_of_other_writes(manifest: Manifest, now: Listing) -> str | None:
    """Warn that somebody wrote elsewhere in the checkpoint while ckpt changed it."""
    others = _find_other_changes(manifest, now)
    if others is None:
        return None
    return f"files appeared, disappeared or were written meanwhile{others}: something else is writing here. Stop it"


def _find_other_changes(manifest: Manifest, now: Listing) -> str | None:
    """The newest file that the change leaves alone, if any is not as it was and it is newer than the backup."""
    if compute_fingerprint(now, manifest.paths) == manifest.others:
        return None
    others = [(info.mtime_ms or 0, path) for path, info in now.walk() if path not in manifest.paths]
    newer = [path for mtime_ms, path in sorted(others, reverse=True) if mtime_ms > manifest.created_ms - _COARSE_MS]
    return f" ({newer[0]} and others)" if newer[1:] else f" ({newer[0]})" if newer else ""


def _restore(manifest: Manifest, backup: Storage | Writer, storage: Storage, writer: Writer) -> tuple[FileStep, ...]:
    """Undo the steps, last first, and say which; those that were not done are left.

    Raises BadBackup, StorageError.
    """
    done = []
    all_new = _are_of_versions(entry.path for entry in manifest.entries)  # of versions the folders go as well
    folders = _list_folders(entry.path for entry in manifest.entries if all_new or entry.before is None)
    for folder in folders:  # one may have been killed before it was there
        writer.make_folder(folder)
    for entry in reversed(manifest.entries):
        writer.discard_temporary(entry.path)
        data = _read_if_there(storage, entry.path)
        content = FileContent.of(data)
        if content == entry.before or content not in (entry.after, None):
            continue
        _write(writer, entry.path, data, read_original(backup, entry), entry.attributes)
        done.append(FileStep(entry.path, content, entry.before))
    for folder in reversed(folders):
        writer.remove_folder(folder)
    first = {entry.path: entry.before for entry in reversed(manifest.entries)}
    for path, before in first.items():
        if _read_content(storage, path) != before:
            raise StorageError(f"{path} could not be restored: restore it from the backup by hand")
    return tuple(done)


def _read_content(storage: Storage, path: str) -> FileContent | None:
    return FileContent.of(_read_if_there(storage, path))


def _read_if_there(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path)
    except NotFound:
        return None


class ChangeResult(NamedTuple, Generic[Planned]):
    """The plan of a change, and what came of it: ``plan, receipt = ckpt.rewind(...)``."""

    plan: Planned
    receipt: Receipt

    def __str__(self) -> str:
        """Return the page that the command prints, in the words of the library."""
        return show_text(self)

    def _repr_html_(self) -> str | None:
        """Return the page as a part of a notebook; None if the extra ``html`` is not installed."""
        return show_html(self)

    def to_dict(self) -> dict[str, Json]:
        """Return the JSON document that the command prints."""
        return show_document(self)


class ApplyOptions(TypedDict, total=False):
    """Options of a run; without ``apply`` or ``undo`` a change is only planned."""

    apply: bool  # perform it
    backup: Location | None  # a folder that does not exist yet; by default ``<checkpoint>.ckpt-backup-<UTC time>``
    undo: Location | None  # the backup folder of an earlier change: undo that change instead
    grace: float  # how many seconds old the youngest file must be before anything is changed; by default 30
    names_only: bool  # read no state, and plan by names, sizes and the ends of files
    deep: bool  # plan, and check what was done, by every byte of the state, as ``state_verify`` reads it
    watcher: Callable[[int, int], None] | None  # called with the bytes read for that, and with those of all files
    accept_skip: bool  # that rows are left out, or dropped by a sink that remembers batch ids
    accept_replay: bool  # that rows of finished batches are read again, or written again by a sink


def run_change(
    kind: type[Planned],
    planner: Callable[[Root], Planned],
    uri: str,
    storage_options: Mapping[str, str] | None,
    versions: Sequence[Spark] = (),
    first: Callable[[Planned], None] = lambda _: None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[Planned]:
    """The plan for a checkpoint, of the class ``kind``, and what came of it; an undo is described as a plan too.

    ``first`` is done elsewhere once the backup is there, before the checkpoint is changed.

    Raises NotACheckpoint, NotFound, StorageError, UsageError where a URI or option is wrong, or the backup would be
    inside the checkpoint, or TypeError for an argument that no change has.
    """
    known = ApplyOptions.__annotations__
    for name in how.keys() - known.keys():
        raise TypeError(f"unexpected keyword argument {name!r}: a change takes {', '.join(known)}")
    options, grace = storage_options or {}, how.get("grace", 30.0)
    must_be_seconds(grace)
    kept_at, back = (None if at is None else fspath(at) for at in (how.get("backup"), how.get("undo")))
    if kept_at is not None:
        must_keep(kept_at, uri)
    storage = open_storage(uri, options)
    from ckpt.storage.local_writer import open_writer  # who only plans loads nothing that writes

    if back is not None:
        backed_up = open_storage(back, choose_options(back, options, uri))
        return _undo_change(kind, storage, open_writer(uri, options), backed_up, versions, grace)
    must_choose_reading(deep=how.get("deep", False), names_only=how.get("names_only", False))
    storage.names_only = how.get("names_only", False)
    if how.get("deep"):
        from ckpt.state.verify.verify import look_at_every_byte

        look_at_every_byte(storage, options, watcher=how.get("watcher"))
    try:
        plan = _look_beside(planner(storage).if_possible(), options)
    except StorageError as error:
        raise _explain_unread(error, storage) from None
    if not (how.get("apply") and plan.steps):
        return ChangeResult(plan, Receipt())
    waits_for = None if plan.waits_for is None else str(plan.waits_for)
    problem = waits_for or _name_unaccepted_cost(plan, how)
    if problem is not None:
        return ChangeResult(plan, Receipt(problem=problem))
    backup, writer = backup_to(kept_at, uri, options), open_writer(uri, options)
    return ChangeResult(plan, apply_plan(plan, storage, writer, backup, grace, lambda: first(plan)))


def _explain_unread(error: StorageError, storage: Root) -> StorageError:
    """The error of a part that cannot be read, with the command that judges the rest; any other as it is."""
    with suppress(CkptError):
        if read_checkpoint(storage, look_only=True).refused:
            return StorageError(BOOK.text("not_until_read", why=str(error), rest=call("inspect", storage.uri)))
    return error


def inspect_root(storage: Root, versions: Sequence[Spark] = ()) -> Inspection:
    """Inspect a checkpoint; of the folder of a flow of a pipeline the version that runs use.

    Raises NotACheckpoint, NotFound, StorageError.
    """
    try:
        return inspect(read_checkpoint(storage), versions)
    except NotACheckpoint as error:
        if len(error.live) != 1 or "/" in error.live[0]:
            raise
        return inspect(read_checkpoint(storage.below(error.live[0])), versions)


def _look_beside(plan: Planned, options: Mapping[str, str]) -> Planned:
    """Return a plan with what is beside the checkpoint in a declarative pipeline."""
    checkpoint = plan.inspection.checkpoint
    flow = find_version(checkpoint.uri, options)
    if flow is None:
        return plan
    plan = replace(plan, inspection=replace(plan.inspection, checkpoint=replace(checkpoint, flow=flow)))
    if not (flow.superseded and plan.steps):
        return plan
    unused = words("Runs of the pipeline use {live}, not this version.", live=str(flow.live))
    return replace(plan, warnings=(*plan.warnings, unused))


def _name_unaccepted_cost(plan: ChangePlan, how: ApplyOptions) -> str | None:
    """Why a plan is not applied: what it costs, and nobody has accepted."""
    costs = {"accept_skip": plan.skips, "accept_replay": plan.repeats}
    missing = {name: cost.what for name, cost in costs.items() if cost is not None and not how.get(name)}
    if not missing:
        return None
    options, cost = join((Words((Option(name),)) for name in missing), " and "), join(missing.values(), "; ")
    return str(words("{cost}: check the plan, then add {options}", cost=cost, options=options))


def _find_broken_promise(plan: ChangePlan, storage: Root) -> str | None:
    """Why a changed checkpoint is not as its plan promised, by what the next start does; None if it is."""
    versions = tuple(dict.fromkeys(f.spark for f in plan.after))
    try:
        if plan.opened_as is None:
            now = inspect_root(storage, versions)
        else:
            opened = view_changed(storage, storage.list_tree(), uri=plan.opened_as)
            now = inspect(read_checkpoint(opened), versions)
    except CkptError as error:
        return f"the result cannot be checked: {error}"
    if [replace(f, because=()) for f in now.forecasts] == [replace(f, because=()) for f in plan.after]:
        return None
    return "the checkpoint differs from the plan: a query or something else wrote to it in the meantime"


def _undo_change(
    kind: type[Planned], storage: Root, writer: Writer, backup: Storage, versions: Sequence[Spark], grace: float
) -> ChangeResult[Planned]:
    inspection = inspect_root(storage, versions)
    checkpoint = inspection.checkpoint
    listing = checkpoint.listing if checkpoint.uri == storage.uri else storage.list_tree()
    receipt = undo(storage, writer, backup, checkpoint.query_id, listing, grace)
    after = inspect_root(storage, versions) if receipt.undone else None
    return ChangeResult(kind(inspection=inspection, needed=False, steps=receipt.steps, inspection_after=after), receipt)
