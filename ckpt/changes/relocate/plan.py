"""The plan of ``ckpt relocate``: a checkpoint finds its schemas from the place where Spark opens it.

Operator metadata v2 (``state/<op>/_metadata/v2/<batch>``: transformWithState, and joins of state format 3 and 4) names
the schema files ``state/<op>/_stateSchema/<store>/<batch>_<uuid>`` by absolute path (``stateSchemaFilePaths``). All of
its files are rewritten: a start reads the newest, the state reader the one that was current for the requested batch.

Other absolute paths are reported, never changed. A file source's log names the input files that were read, a file
sink's log (``_spark_metadata`` in its output folder) the files that were written. Neither file belongs to the
checkpoint, and neither moves with it.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from os import fspath
from typing import Annotated, ClassVar, Unpack

from ckpt.advice import RowCost, Words
from ckpt.changes.apply import ApplyOptions, ChangeResult, run_change
from ckpt.changes.book import BOOK
from ckpt.changes.plan import STOP_FIRST, ChangePlan, NoWay, inspect_changed
from ckpt.changes.steps import must_fit, plan_writing, read_files
from ckpt.checkpoint.checkpoint import STATE, Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources import file_logs
from ckpt.checkpoint.state.folders import lies_elsewhere, sort_numbers
from ckpt.errors import UsageError, one_line
from ckpt.formats.names import compactible_log
from ckpt.formats.operators import parse_operator_metadata, replace_schema_paths
from ckpt.formats.sourcelogs import parse_sink_log
from ckpt.inspection.inspection import inspect
from ckpt.live.sink.records import FILE_LOG
from ckpt.model import Location, Unreadable
from ckpt.storage import Storage
from ckpt.storage.locations import HADOOP_NAMES, SCHEMES, SchemeFamily, family, is_same_place, local_path, without_keys
from ckpt.texts import mask_secrets

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//[^/]*)?(/.*)?", re.S)


def read_spark_root(uri: str) -> str:
    """A location as Spark is given it, as Spark records it. Raises UsageError if that is unknown.

    Spark takes a location as Hadoop's ``Path`` does: a ``file:`` URI is not percent-decoded, so that ``file:///a%20b``
    is a folder whose name holds a percent sign. It records the qualified path without encoding anything (measured):
    ``file:/data/my checkpoint``, ``hdfs://host:8020/a%20b``. A path without a scheme is a local one. A URI with a key
    in it is refused: the checkpoint would keep it.
    """
    shown = one_line(uri)
    if mask_secrets(uri) != uri:
        raise UsageError.of("{--to=} contains a secret, which the checkpoint would store: leave it out", to=shown)
    if uri.startswith("/"):
        return "file:" + _tidy(uri)
    parts = _SCHEME.fullmatch(uri)
    if parts is None:
        raise UsageError.of("{--to=} is not an absolute path: write /path or scheme://authority/path", to=shown)
    scheme, authority, path = parts[1], parts[2] or "", parts[3] or "/"
    if scheme.lower() == "file":
        if parts[3] is None or authority not in ("", "//"):
            raise UsageError.of("{--to=} is not an absolute path: write file:///path", to=shown)
        return "file:" + _tidy(path)
    if len(authority) < 3 and scheme.lower() != "dbfs":
        raise UsageError.of("{--to=} names no bucket or host: write {s}://authority/path", to=shown, s=scheme)
    return scheme + ":" + ("" if authority == "//" else authority) + _tidy(path)


def guess_spark_root(uri: str, recorded: Iterable[str]) -> str:
    """Where a checkpoint that ckpt opened as ``uri`` is, as Spark records it.

    A scheme that means the same as that of a ``recorded`` root keeps its spelling (``s3`` and ``s3a``). Raises
    UsageError if only the user knows how Spark opens it.
    """
    local = local_path(uri)
    if local is not None:
        path = _tidy(os.path.abspath(local))
        return "dbfs:" + path.removeprefix("/dbfs") if path.startswith("/dbfs/") else "file:" + path
    scheme, _, rest = uri.partition("?")[0].partition(":")
    spelled = [old.partition(":")[0] for old in recorded]
    like = next((spelling for spelling in spelled if family(spelling) == family(scheme)), scheme)
    authority = rest.removeprefix("//").partition("/")[0]
    known = like in SCHEMES and like not in HADOOP_NAMES
    if not known or (family(like) == SchemeFamily.AZURE and "@" not in authority):
        raise UsageError(BOOK.text("ambiguous_uri", uri=one_line(uri)))
    if family(like) == SchemeFamily.S3:
        rest = without_keys(rest)
    return read_spark_root(f"{like}:{rest}")


def _tidy(path: str) -> str:
    """An absolute path as Hadoop normalizes it: single slashes, no dots, none at the end but for the root."""
    tidy = posixpath.normpath(re.sub("/{2,}", "/", path))
    return "" if tidy == "/" else tidy


_SCHEMA = re.compile(rf"(?P<root>.*)/{STATE}/(?P<operator>\d+)/_stateSchema/(?P<file>[^/]+/[^/]+)", re.S)


class Holder(StrEnum):
    """Whose log it is."""

    FILE_SOURCE = "file-source"
    FILE_SINK = "file-sink"


@dataclass(frozen=True, slots=True)
class OutsidePaths:
    """A log that holds absolute paths."""

    holder: Annotated[Holder, "the owner of the log"]
    folder: Annotated[str, "relative to the checkpoint"]
    example: Annotated[str | None, "one of the paths"]  # percent-encoded; None where it cannot be read, or names none

    @property
    def meaning(self) -> Words:
        """A consequence for somebody who moves a checkpoint."""
        parts = {"folder": self.folder, "named": f", such as {self.example}" if self.example else ""}
        return BOOK.text("of_file_source" if self.holder is Holder.FILE_SOURCE else "of_file_sink", **parts)


def find_outside_paths(checkpoint: Checkpoint, storage: Storage) -> Iterator[OutsidePaths]:
    """The logs that hold absolute paths."""
    sources: dict[str, str | None] = {}
    for path, entries in sorted(checkpoint.source_entries.items()):
        folder = path.rpartition("/")[0]
        newest = entries[-1].path if isinstance(entries, tuple) and entries else None
        sources[folder] = newest or sources.get(folder)
    for folder, example in sources.items():
        yield OutsidePaths(Holder.FILE_SOURCE, folder, example)
    for folder in checkpoint.listing.folders:
        if folder.rpartition("/")[2] == FILE_LOG:
            yield OutsidePaths(Holder.FILE_SINK, folder, _read_sink_path(checkpoint, storage, folder))


def _read_sink_path(checkpoint: Checkpoint, storage: Storage, folder: str) -> str | None:
    log = compactible_log(checkpoint.listing.in_folder(folder))
    if log.latest is None or log.interval <= 0:
        return None
    path = f"{folder}/{log.name_of(log.latest)}"
    request = file_logs.request_for(checkpoint.listing, path)
    (answer,) = storage.read_many([request])
    paths = parse_sink_log(path, file_logs.lines(request, answer)) if isinstance(answer, bytes) else ()
    return paths[-1] if isinstance(paths, tuple) and paths else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocationPlan(ChangePlan):
    """The paths in operator metadata that change; ``inspection_after`` is seen from ``to``."""

    command: ClassVar[str] = "relocate"

    to: Annotated[
        str | None,
        "the root from which Spark opens it, as Spark records it; null if no path is recorded, and after an undo",
    ] = None
    named: str | None = None  # ``to`` as named in the call
    recorded: tuple[Annotated[str, "a root where operator metadata looked for schemas"], ...] = ()
    held: Annotated[
        tuple[OutsidePaths, ...], "logs that name files outside the checkpoint by absolute path; never changed"
    ] = ()

    @property
    def away(self) -> bool:
        """Tell whether Spark will open the checkpoint elsewhere than it is now."""
        return self.to is not None and not is_same_place(self.to, self.inspection.checkpoint.uri)

    @property
    def sound(self) -> bool:
        """Tell whether the inspection has nothing but notes, once opened where Spark opens it."""
        return (self.inspection_after or self.inspection).sound


def relocate(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    to: Location | None = None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[RelocationPlan]:
    """Do what ``ckpt relocate`` does; return the plan and its receipt. Without ``apply`` or ``undo`` it only plans.

    Args:
        checkpoint: Its current location: a path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        to: The URI that Spark will use; by default the current location.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier relocation; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.relocate("sample_checkpoints/tws-rocksdb-4.2", to="s3a://bucket/moved")
    >>> plan.needed, plan.to, receipt.applied
    (True, 's3a://bucket/moved', False)
    """
    named = None if to is None else fspath(to)

    def plan(storage: Storage) -> RelocationPlan:
        return replace(plan_relocation(storage, named), named=named)

    return run_change(RelocationPlan, plan, fspath(checkpoint), storage_options, **how)


def plan_relocation(storage: Storage, to: str | None = None) -> RelocationPlan:
    """Plan a relocation, as ``relocate`` does.

    Raises NotACheckpoint, NotFound, StorageError, or UsageError where ``to`` is no absolute path or URI, or is needed.
    """
    target = None if to is None else read_spark_root(to)
    inspection = inspect(read_checkpoint(storage))
    checkpoint = inspection.checkpoint
    plan = RelocationPlan(inspection=inspection, needed=False, held=tuple(find_outside_paths(checkpoint, storage)))
    recorded: tuple[str, ...] = ()
    try:
        files = list(_read_metadata_files(storage, checkpoint))
        recorded = tuple(dict.fromkeys(parts["root"] for file in files for parts in file.schemas.values()))
        target = target or (guess_spark_root(storage.uri, recorded) if recorded else None)
        changed = [(file, file.moved(checkpoint, target, explicit=to is not None)) for file in files if target]
        steps = tuple(
            step
            for file, paths in changed
            if paths
            for step in plan_writing(storage, checkpoint.listing, file.path, replace_schema_paths(file.data, paths))
        )
    except (NoWay, UnicodeEncodeError) as error:
        return replace(plan, to=target, recorded=recorded, needed=True, refused=str(error))
    plan = replace(plan, to=target, recorded=recorded)
    if not steps:
        why = "no operator metadata of this checkpoint names a file by absolute path, so it opens anywhere"
        if recorded:
            why = f"operator metadata looks for its schemas under {recorded[0]}, from which Spark opens it"
        return replace(plan, why=why, inspection_after=inspect_changed(storage, inspection, (), uri=to))
    return replace(
        plan,
        needed=True,
        steps=steps,
        inspection_after=inspect_changed(storage, inspection, steps, uri=target),
        opened_as=target,
        rows=RowCost.NONE,
        warnings=tuple(_warn_of_relocation(plan, target or "")),
    )


@dataclass(frozen=True, slots=True)
class _MetadataFile:
    """One file of operator metadata v2."""

    path: str  # relative to the checkpoint
    operator: int
    data: bytes
    schemas: dict[str, re.Match[str]]  # recorded path -> its parts

    def moved(self, checkpoint: Checkpoint, target: str, *, explicit: bool) -> dict[str, str]:
        """The paths that change, and what they become. Raises NoWay where a schema file is not here.

        ``explicit``: the target was named, and is meant to the letter.
        """
        paths = {}
        for recorded, parts in self.schemas.items():
            below = f"{STATE}/{self.operator}/_stateSchema/{parts['file']}"
            new = f"{target}/{below}"
            if new == recorded or not (explicit or lies_elsewhere(recorded, self.operator, checkpoint.uri)):
                continue
            if checkpoint.listing.info(below) is None:
                raise NoWay(BOOK.text("schema_elsewhere", file=self.path, schema=below))
            paths[recorded] = new
        return paths


def _read_metadata_files(storage: Storage, checkpoint: Checkpoint) -> Iterator[_MetadataFile]:
    """Read all metadata files. Raises NoWay for one that is damaged or names files as Spark does not, StorageError."""
    listing = checkpoint.listing
    files = [
        (operator, f"{STATE}/{operator}/_metadata/v2/{batch}")
        for operator in sort_numbers(listing.subfolders(STATE))
        for batch in sort_numbers(listing.in_folder(f"{STATE}/{operator}/_metadata/v2"))
    ]
    must_fit(listing, (path for _, path in files))
    contents = read_files(storage, (path for _, path in files))
    for operator, path in files:
        data = contents[path]
        metadata = parse_operator_metadata(path, data)
        if isinstance(metadata, Unreadable):
            raise NoWay(f"{path} cannot be read ({metadata.reason}): restore it from a copy of the checkpoint")
        schemas = {}
        for recorded in (schema_path for store in metadata.stores for schema_path in store.schema_paths):
            parts = _SCHEMA.fullmatch(recorded)
            if parts is None or int(parts["operator"]) != operator or {".", ".."} & set(parts["file"].split("/")):
                raise NoWay(f"{path} names a schema file in a form that Spark does not write: {recorded}")
            schemas[recorded] = parts
        yield _MetadataFile(path, operator, data, schemas)


def _warn_of_relocation(plan: RelocationPlan, target: str) -> Iterator[Words]:
    yield STOP_FIRST
    if plan.away:
        yield BOOK.text("opens_only_there", to=target)
    if "%" in target or " " in target:
        yield BOOK.text("used_literally", to=target)
    if any(root != target for root in plan.recorded):
        yield BOOK.text("two_places", old=plan.recorded[0])
    yield from (paths.meaning for paths in plan.held)
