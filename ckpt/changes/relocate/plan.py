"""The plan of ``ckpt relocate``: a checkpoint finds its schemas from the place where Spark opens it.

Operator metadata v2 (``state/<op>/_metadata/v2/<batch>``: transformWithState, and joins of state format 3 and 4) names
the schema files ``state/<op>/_stateSchema/<store>/<batch>_<uuid>`` by absolute path (``stateSchemaFilePaths``). All of
its files are rewritten: a start reads the newest, the state reader the one that was current for the requested batch.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import fspath
from typing import ClassVar, Unpack

from ckpt.changes.plan import STOP_FIRST, ChangePlan, inspect_changed
from ckpt.changes.relocate.outside import OutsidePaths, find_outside_paths
from ckpt.changes.relocate.spark_root import guess_spark_root, read_spark_root
from ckpt.changes.run import ChangeResult, How, run_change
from ckpt.changes.steps import must_fit, plan_writing
from ckpt.checkpoint.checkpoint import STATE, Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.folders import lies_elsewhere, sort_numbers
from ckpt.errors import CkptError, StorageError
from ckpt.formats.operators import parse_operator_metadata, replace_schema_paths
from ckpt.inspection.inspection import inspect
from ckpt.model import Location, Unreadable
from ckpt.storage import ReadRequest, Storage
from ckpt.storage.locations import is_same_place

_SCHEMA = re.compile(rf"(?P<root>.*)/{STATE}/(?P<operator>\d+)/_stateSchema/(?P<file>[^/]+/[^/]+)", re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocationPlan(ChangePlan):
    """The paths in operator metadata that change; ``inspection_after`` is seen from ``to``."""

    command: ClassVar[str] = "relocate"

    to: str | None = None  # the root under which Spark opens it, as Spark records it; None after an undo
    recorded: tuple[str, ...] = ()  # the roots under which operator metadata looks for schemas now
    held: tuple[OutsidePaths, ...] = ()  # absolute paths that stay unchanged

    @property
    def away(self) -> bool:
        """Tell whether Spark will open the checkpoint elsewhere than it is now."""
        return self.to is not None and not is_same_place(self.to, self.inspection.checkpoint.uri)

    @property
    def sound(self) -> bool:
        """Tell whether the inspection has nothing but notes, once opened where Spark opens it."""
        return (self.inspection_after or self.inspection).sound


class _NoWay(CkptError):
    """Paths lead elsewhere, and ckpt cannot lead them here."""


def relocate(
    checkpoint: Location,
    storage_options: Mapping[str, str] | None = None,
    *,
    to: str | None = None,
    **how: Unpack[How],
) -> ChangeResult[RelocationPlan]:
    """All that ``ckpt relocate`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        checkpoint: Where it is now: a path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        to: The URI under which Spark will open it; by default where it is.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier relocation; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.relocate("sample_checkpoints/tws-rocksdb-4.2", to="s3a://bucket/moved")
    >>> plan.needed, plan.to, receipt.applied
    (True, 's3a://bucket/moved', False)

    """
    uri = fspath(checkpoint)
    return run_change(RelocationPlan, partial(plan_relocation, to=to), uri, storage_options, **how)


def plan_relocation(storage: Storage, to: str | None = None) -> RelocationPlan:
    """Plan what ``ckpt relocate`` would change; nothing is written.

    Args:
        storage: The checkpoint's current location.
        to: The URI that Spark will use; by default the current location.

    Raises:
        NotACheckpoint, NotFound, StorageError: It cannot be read.
        UsageError: ``to`` is not an absolute path or URI, or is required.

    """
    target = None if to is None else read_spark_root(to)
    inspection = inspect(read_checkpoint(storage))
    checkpoint = inspection.checkpoint
    plan = RelocationPlan(inspection=inspection, needed=False, held=tuple(find_outside_paths(checkpoint, storage)))
    recorded: tuple[str, ...] = ()
    try:
        files = list(_read_metadata_files(storage, checkpoint))
        recorded = tuple(dict.fromkeys(root for file in files for root in file.roots))
        target = target or (guess_spark_root(storage.uri, recorded) if recorded else None)
        changed = [(file, file.moved(checkpoint, target, explicit=to is not None)) for file in files if target]
        steps = tuple(
            step
            for file, paths in changed
            if paths
            for step in plan_writing(storage, checkpoint.listing, file.path, replace_schema_paths(file.data, paths))
        )
    except (_NoWay, UnicodeEncodeError) as error:
        return replace(plan, to=target, recorded=recorded, needed=True, refused=str(error))
    plan = replace(plan, to=target, recorded=recorded)
    if not steps:
        return replace(
            plan,
            why=_explain_nothing_to_do(recorded),
            inspection_after=inspect_changed(storage, inspection, (), uri=to),
        )
    return replace(
        plan,
        needed=True,
        steps=steps,
        inspection_after=inspect_changed(storage, inspection, steps, uri=target),
        opened_as=target,
        warnings=tuple(warn_of_relocation(target or "", recorded, plan.held, away=plan.away)),
    )


def _explain_nothing_to_do(recorded: Sequence[str]) -> str:
    if not recorded:
        return "no operator metadata of this checkpoint names a file by absolute path, so it opens anywhere"
    return f"operator metadata looks for its schemas under {recorded[0]}, which is where Spark opens it"


@dataclass(frozen=True, slots=True)
class _MetadataFile:
    """One file of operator metadata v2."""

    path: str  # relative to the checkpoint
    operator: int
    data: bytes
    schemas: dict[str, re.Match[str]] = field(default_factory=dict)  # recorded path -> its parts

    @property
    def roots(self) -> Iterator[str]:
        """Under which it looks for schemas."""
        return (parts["root"] for parts in self.schemas.values())

    def moved(self, checkpoint: Checkpoint, target: str, *, explicit: bool) -> dict[str, str]:
        """The paths that change, and what they become. Raises _NoWay where a schema file is not here.

        ``explicit``: the target was named, and is meant to the letter.
        """
        paths = {}
        for recorded, parts in self.schemas.items():
            below = f"{STATE}/{self.operator}/_stateSchema/{parts['file']}"
            new = f"{target}/{below}"
            if new == recorded or not (explicit or lies_elsewhere(recorded, self.operator, checkpoint.uri)):
                continue
            if checkpoint.listing.info(below) is None:
                raise _NoWay(
                    f"{self.path} names the schema file {below}, which is not in this checkpoint: restore it from "
                    "a copy of the checkpoint, and try again"
                )
            paths[recorded] = new
        return paths


def _read_metadata_files(storage: Storage, checkpoint: Checkpoint) -> Iterator[_MetadataFile]:
    """Read all metadata files. Raises _NoWay for one that is damaged or names files as Spark does not, StorageError."""
    listing = checkpoint.listing
    files = [
        (operator, f"{STATE}/{operator}/_metadata/v2/{batch}")
        for operator in sort_numbers(listing.subfolders(STATE))
        for batch in sort_numbers(listing.in_folder(f"{STATE}/{operator}/_metadata/v2"))
    ]
    must_fit(listing, (path for _, path in files))
    answers = storage.read_many([ReadRequest(path) for _, path in files])
    for (operator, path), data in zip(files, answers, strict=True):
        if isinstance(data, StorageError):
            raise data
        metadata = parse_operator_metadata(path, data)
        if isinstance(metadata, Unreadable):
            raise _NoWay(f"{path} cannot be read ({metadata.reason}): restore it from a copy of the checkpoint")
        schemas = {}
        for recorded in (schema_path for store in metadata.stores for schema_path in store.schema_paths):
            parts = _SCHEMA.fullmatch(recorded)
            if parts is None or int(parts["operator"]) != operator or {".", ".."} & set(parts["file"].split("/")):
                raise _NoWay(f"{path} names a schema file in a form that Spark does not write: {recorded}")
            schemas[recorded] = parts
        yield _MetadataFile(path, operator, data, schemas)


def warn_of_relocation(
    target: str, recorded: Sequence[str], held: Sequence[OutsidePaths], *, away: bool
) -> Iterator[str]:
    """Return the warnings of a plan.

    Args:
        target: The root under which Spark will open the checkpoint, as Spark spells it.
        recorded: The roots under which it looks for its schemas now.
        held: Absolute paths that stay unchanged.
        away: That is not its current location.

    """
    yield STOP_FIRST
    if away:
        yield (
            f"Afterwards it opens as {target} and nowhere else: move all of it there before anything starts it or "
            "reads its state."
        )
    if "%" in target or " " in target:
        yield (
            f"Spark takes {target} literally, and runs the query there. But its state reader finds nothing below a "
            "path with a space or a percent sign; locally a symbolic link without them helps."
        )
    if any(root != target for root in recorded):
        yield (
            f"A checkpoint that was copied is one query in two places: never start it again at {recorded[0]} as well, "
            "or both write the same batch ids to the same sink."
        )
    for place_held in held:
        yield place_held.meaning
