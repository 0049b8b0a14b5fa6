"""Apply a change, or revert one: locked, backed up first, one complete file at a time, and checked afterwards.

A crash at any point leaves files that are each as they were, as planned, or not there, so that ``undo`` restores the
checkpoint from the backup alone.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ckpt.change.activity import Refused, must_be_quiet
from ckpt.change.backup import Change, Content, Manifest, fingerprint, load, originals, save
from ckpt.change.steps import Step
from ckpt.errors import CkptError, NotFound, StorageError
from ckpt.storage import Listing, Storage
from ckpt.storage.base import one_line
from ckpt.storage.writer import Attributes, Writer


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of it."""

    applied: bool = False
    undone: bool = False  # everything is as it was
    backup: str | None = None
    problem: str | None = None  # why it was not applied, was reverted, or could not be reverted
    steps: tuple[Step, ...] = ()  # those that an undo performed


def apply(
    change: Change, storage: Storage, writer: Writer, backup: Writer, grace_s: float, check: Callable[[], str | None]
) -> Receipt:
    """Perform a change.

    ``check`` looks at the result and says what is wrong with it. The change is reverted then, if a step fails, and
    before an interrupt ends it; a second interrupt ends that as well, and leaves it to ``undo``.
    """
    receipt = Receipt(problem="nothing was changed: interrupted; you can delete an incomplete backup")
    try:
        with writer.lock():
            must_be_quiet(storage, change.listing, grace_s)
            manifest = save(change, storage.uri, writer, backup)
            receipt = Receipt(backup=backup.uri, problem="interrupted before everything was done or reverted")
            receipt = _perform(change.steps, manifest, storage, writer, backup.uri, check)
    except CkptError as error:
        return receipt if receipt.backup else Receipt(problem=f"nothing was changed: {error}")
    except KeyboardInterrupt:
        return receipt
    return receipt


def _perform(
    steps: Sequence[Step],
    manifest: Manifest,
    storage: Storage,
    writer: Writer,
    backup: str,
    check: Callable[[], str | None],
) -> Receipt:
    """All steps, or none. Raises only what interrupts."""
    kept = zip(manifest.entries, steps, strict=True)
    saved = {entry.file: step.before for entry, step in kept if entry.file and step.before is not None}
    problem: str | None
    try:
        likes = {step.like: writer.attributes(step.like) for step in steps if step.like}
        for step in steps:
            _do(step, storage, writer, likes[step.like] if step.like else None)
        problem = check()
    except CkptError as error:
        problem = str(error)
    except KeyboardInterrupt:
        problem = "interrupted"
    except BaseException:
        with suppress(CkptError):
            _restore(manifest, saved, storage, writer)
        raise
    if problem is None:
        return Receipt(applied=True, backup=backup)
    try:
        _restore(manifest, saved, storage, writer)
    except CkptError as error:
        return Receipt(backup=backup, problem=f"{problem}; what had been done could not be reverted: {error}")
    return Receipt(undone=True, backup=backup, problem=problem)


def _do(step: Step, storage: Storage, writer: Writer, like: Attributes | None) -> None:
    """One step, if the file is as the step expects it. Raises StorageError."""
    if _content(storage, step.path) != Content.of(step.before):
        raise StorageError(f"{step.path} changed since the plan was made: something else is writing here")
    if step.before is not None:
        writer.remove(step.path)
    if step.after is not None:
        writer.create(step.path, step.after, None if like is None else replace(like, mtime_ns=None))


def undo(
    storage: Storage, writer: Writer, backup: Storage, query_id: str | None, seen: Listing, grace_s: float
) -> Receipt:
    """Put everything back as the backup has it; finishes an apply or undo that was interrupted.

    ``query_id`` and ``seen`` are those of the checkpoint as it is now. Where all is as it was already, nothing happens.
    """
    try:
        manifest = load(backup)
        saved = originals(backup, manifest)
        with writer.lock():
            if manifest.query_id != query_id:
                raise Refused(
                    f"{one_line(backup.uri)} is a backup of query {one_line(str(manifest.query_id))}, and this is "
                    f"a checkpoint of query {one_line(str(query_id))}: name the backup of this query"
                )
            now = must_be_quiet(storage, seen, grace_s, manifest.paths)
            _must_be_untouched(manifest, now, storage)
            steps = _restore(manifest, saved, storage, writer)
            return Receipt(undone=True, backup=backup.uri, steps=steps)
    except CkptError as error:
        return Receipt(backup=backup.uri, problem=str(error))
    except KeyboardInterrupt:
        return Receipt(backup=backup.uri, problem="interrupted: run the same command again to finish")


def _must_be_untouched(manifest: Manifest, now: Listing, storage: Storage) -> None:
    """Raise Refused where somebody but ckpt wrote to the checkpoint since the backup."""
    cure = (
        "a query has continued from here, or files were changed by hand; an undo now would mix old files "
        "with new batches"
    )
    known: dict[str, set[Content | None]] = {}
    for entry in manifest.entries:
        known.setdefault(entry.path, {None}).update((entry.before, entry.after))
    for path, contents in known.items():
        if _content(storage, path) not in contents:
            raise Refused(f"{path} was written since the backup: {cure}")
    if fingerprint(now, manifest.paths) != manifest.others:
        newer = [
            path
            for path, info in now.walk()
            if path not in manifest.paths and (info.mtime_ms or 0) > manifest.created_ms
        ]
        named = f" ({newer[0]} and others)" if newer[1:] else f" ({newer[0]})" if newer else ""
        raise Refused(f"files appeared, disappeared or were written since the backup{named}: {cure}")


def _restore(manifest: Manifest, saved: Mapping[str, bytes], storage: Storage, writer: Writer) -> tuple[Step, ...]:
    """Take the steps back, last first, and say which; those that were not done are left. Raises StorageError."""
    done = []
    for entry in reversed(manifest.entries):
        writer.discard_temporary(entry.path)
        found = _read(storage, entry.path)
        if Content.of(found) == entry.before or Content.of(found) not in (entry.after, None):
            continue
        original = saved[entry.file] if entry.file else None
        if found is not None:
            writer.remove(entry.path)
        if original is not None:
            writer.create(entry.path, original, entry.attributes)
        done.append(Step(entry.path, found, original))
    first = {entry.path: entry.before for entry in reversed(manifest.entries)}
    for path, before in first.items():
        if _content(storage, path) != before:
            raise StorageError(f"{path} could not be restored: restore it from the backup by hand")
    return tuple(done)


def _content(storage: Storage, path: str) -> Content | None:
    return Content.of(_read(storage, path))


def _read(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path)
    except NotFound:
        return None
