"""Read a checkpoint: list it once, read what a start looks at, keep what cannot be parsed as such. Never writes."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import fspath
from typing import TypeAlias, TypeVar

from ckpt.checkpoint.checkpoint import (
    COMMITS,
    FIRST_START,
    JUDGED,
    METADATA,
    OFFSETS,
    SKIPPED,
    SOURCES,
    AddedSpace,
    Checkpoint,
    Log,
)
from ckpt.checkpoint.pipelines import find_live_versions, find_version, list_if_there, parse_flow, parse_version
from ckpt.checkpoint.recognised import describe_other, find_parts, is_checkpoint, made_by_spark
from ckpt.checkpoint.renamed import find_renamed
from ckpt.checkpoint.sources import file_logs
from ckpt.checkpoint.sources.kafka import is_kafka
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import decode, offsets_of, source_type
from ckpt.checkpoint.state.file_ends import NOTHING, Verified
from ckpt.checkpoint.state.folders import STATE
from ckpt.checkpoint.state.loaded_files import Allowance
from ckpt.checkpoint.state.read_steps import run
from ckpt.checkpoint.state.reader import MOST_TAILS, MOST_TAILS_REMOTE, read_state
from ckpt.errors import CkptError, NotAFolder, NotFound, NotThereYet, StorageError, one_line
from ckpt.formats import commits, limits, metadata, names, offsets, sidecars, text
from ckpt.formats.offsets import is_continuous
from ckpt.formats.rocksdb import parse_zip_tail
from ckpt.formats.sourcelogs import SourceFile, parse_first_source_file, parse_kafka_start
from ckpt.model import (
    CommitLog,
    Fault,
    Json,
    Kind,
    Location,
    OffsetLog,
    QueryMetadata,
    RocksDBSnapshot,
    StateInventory,
    Unreadable,
)
from ckpt.storage import Folder, Listing, ReadRequest, Root, Storage, open_storage
from ckpt.storage.base import NOT_FOLLOWED, Oddity
from ckpt.storage.local import is_gone
from ckpt.storage.locations import find_parent

_LOOKS = 3  # how often a checkpoint that moves is read again
_UNCOMMITTED = 50  # how many uncommitted batches are read besides the newest
_NAMED = 5  # versions of flows that a message names
_LOOK_BELOW = 50  # how many folders are opened to find checkpoints one level below
Record = TypeVar("Record")
Parser: TypeAlias = Callable[[str, bytes], Record | Unreadable]


class NotACheckpoint(CkptError):
    """There is something at the path, but it is not a checkpoint.

    ``live``: of a part of a declarative pipeline, the version of each of its flows that runs use, relative to it.
    """

    live: tuple[str, ...] = ()


class LeadsOut(StorageError):
    """A part of the checkpoint is a symbolic link out of it, which Spark follows and ckpt does not."""


def open_checkpoint(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    batches: int = 10,
    names_only: bool = False,
) -> Checkpoint:
    """Read the checkpoint at a local path or URI.

    Args:
        checkpoint: A local path, or any URI that pyarrow.fs or fsspec opens, such as ``s3://bucket/checkpoints/orders``.
        storage_options: For the file system of the URI, such as ``{"region": "eu-west-1"}``.
        batches: How many of the newest offset and commit files are read, but never fewer than are judged
            (``ckpt.checkpoint.checkpoint.JUDGED``); 0 reads them all.
        names_only: Do not read the state that the next start loads; by default it is read completely, up to a limit.

    Raises:
        NotACheckpoint: The path exists, but is not a checkpoint.
        NotFound, StorageError, UsageError: It cannot be read.

    >>> ckpt.open_checkpoint("sample_checkpoints/kafka-4.2").commits.latest
    5
    """
    storage = _open(checkpoint, storage_options, names_only=names_only)
    return look_beside(read_checkpoint(storage, batches=batches), storage_options)


def _open(checkpoint: Location, storage_options: Mapping[str, str] | None, *, names_only: bool) -> Root:
    storage = open_storage(fspath(checkpoint), storage_options or {})
    storage.names_only = names_only
    return storage


def look_beside(checkpoint: Checkpoint, storage_options: Mapping[str, str] | None = None) -> Checkpoint:
    """Return a checkpoint with what is beside it in a declarative pipeline; one that is of none as it is."""
    flow = find_version(checkpoint.uri, storage_options)
    return checkpoint if flow is None else replace(checkpoint, flow=flow)


def open_for_start(
    checkpoint: Location, storage_options: Mapping[str, str] | None = None, *, names_only: bool = False
) -> Checkpoint:
    """Read the checkpoint on which a query is to be started: where there is no folder yet, Spark makes one.

    Raises as ``open_to_look``, and NotFound where there is no bucket either.
    """
    if isinstance(checkpoint, Checkpoint):
        return checkpoint
    storage = _open(checkpoint, storage_options, names_only=names_only)
    try:
        return look_beside(read_checkpoint(storage, look_only=True), storage_options)
    except NotThereYet:
        missing = _find_missing_folder(fspath(checkpoint), storage_options or {})
        if missing is None:
            raise
        return replace(_Reading(storage, Listing({"": {}}), 0, NOTHING).checkpoint(), missing_folder=missing)


def _find_missing_folder(uri: str, options: Mapping[str, str]) -> str | None:
    """The highest folder on the way to a place that does not exist; None where there is no file system or bucket."""
    missing = uri
    while (parent := find_parent(missing)) is not None:
        try:
            open_storage(parent, options).list_level()
        except NotThereYet:
            missing = parent
        else:
            return missing
    return None


def as_checkpoint(checkpoint: Location, storage_options: Mapping[str, str] | None = None) -> Checkpoint:
    """Return a checkpoint as it was read, or read the one at a path or URI, as ``open_checkpoint`` does."""
    if isinstance(checkpoint, Checkpoint):
        refuse_unread(checkpoint)
        return checkpoint
    return open_checkpoint(checkpoint, storage_options=storage_options)


def open_to_look(
    checkpoint: Location,
    storage_options: Mapping[str, str] | None = None,
    *,
    batches: int = 10,
    names_only: bool = False,
) -> Checkpoint:
    """Return a checkpoint for whoever only says what there is: links out of it are not read, and are a finding.

    Of a part of a declarative pipeline with one flow, that is the version that runs use.

    Raises NotACheckpoint, NotFound, StorageError, UsageError as ``open_checkpoint``, but not LeadsOut.
    """
    if isinstance(checkpoint, Checkpoint):
        return checkpoint
    storage = _open(checkpoint, storage_options, names_only=names_only)
    try:
        read = read_checkpoint(storage, batches=batches, look_only=True)
    except NotACheckpoint as error:
        if len(error.live) != 1:
            raise
        read = read_checkpoint(storage.below(error.live[0]), batches=batches, look_only=True)
    return look_beside(read, storage_options)


def open_live_version(uri: str, storage_options: Mapping[str, str]) -> Root:
    """Open a checkpoint; of a part of a pipeline with one flow, the version that runs use.

    Raises NotFound, StorageError, UsageError.
    """
    storage = open_storage(uri, storage_options)
    top = storage.list_level()
    live = () if find_parts(top) else find_live_versions(storage, top)
    return storage.below(live[0]) if len(live) == 1 else storage


def refuse_links_out(checkpoint: Checkpoint) -> None:
    """Raise LeadsOut where a part of the checkpoint is a link out of it."""
    for path in checkpoint.links_out:
        raise LeadsOut(f"{one_line(f'{checkpoint.uri}/{path}')} is {Oddity.OUTSIDE}: {NOT_FOLLOWED}")


def refuse_unread(checkpoint: Checkpoint) -> None:
    """Raise LeadsOut or StorageError where a part of the checkpoint was not read: only who just looks accepts that."""
    refuse_links_out(checkpoint)
    for why in checkpoint.refused.values():
        raise StorageError(why)


def read_checkpoint(
    storage: Storage, *, batches: int = 10, fully_read: Verified = NOTHING, look_only: bool = False
) -> Checkpoint:
    """Read a checkpoint whose storage is open already.

    ``fully_read``: verdicts on the state files that ``ckpt.state.verify`` read completely. Raises LeadsOut where a part
    is a link out of it, and StorageError where a file or folder cannot be read; if this is ``look_only``, both are data
    (``links_out``, ``refused``), unless a log cannot be listed, or nothing that was asked for first can be read.
    """
    if storage.look_deeper is not None and fully_read is NOTHING:
        checkpoint: Checkpoint = storage.look_deeper(storage, batches)
        if not look_only:
            refuse_unread(checkpoint)
        return checkpoint
    top = _list_top(storage)
    if not find_parts(top) or made_by_spark(storage, top) is False:
        _must_be_new(storage, top)
    with _without_collector():
        listing = storage.list_tree(tolerant=look_only)
        checkpoint = _Reading(storage, listing, batches, fully_read, look_only=look_only).checkpoint()
        if not look_only:
            refuse_links_out(checkpoint)
        for _ in range(_LOOKS):
            now = (list_if_there(storage, folder).files.keys() for folder in (OFFSETS, COMMITS))
            listed = [checkpoint.listing.in_folder(folder).keys() for folder in (OFFSETS, COMMITS)]
            if not _is_torn(checkpoint) or list(now) == listed:
                return checkpoint
            listing = storage.list_tree(tolerant=look_only)
            checkpoint = _Reading(storage, listing, batches, fully_read, look_only=look_only).checkpoint()
    return replace(checkpoint, moving=True)


def _list_top(storage: Storage) -> Folder:
    """List the root. Raises NotFound, which for a file that bears the name of a version of a flow says what it does."""
    try:
        return storage.list_level()
    except NotAFolder as error:
        if parse_version(storage.uri) is None:
            raise
        raise NotAFolder(
            f"{storage.uri} is a file with the name of a flow version: pipeline runs use the highest version, so they "
            "fail if it is this file; move it away"
        ) from error


def _is_torn(checkpoint: Checkpoint) -> bool:
    planned, committed = checkpoint.offsets.latest, checkpoint.commits.latest
    ahead = committed is not None and (planned is None or committed > planned)
    return ahead or (checkpoint.state is not None and checkpoint.state.newer is not None)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the search for cycles: a large listing has none, and looking for them costs a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # what was made counts as old: it is not looked through at once
        if was_on:
            gc.enable()


def _must_be_new(storage: Storage, top: Folder) -> None:
    """Raise NotACheckpoint unless the folder is empty, hidden files apart."""
    if all(name.startswith(".") for name in (*top.files, *top.folders)):
        return
    if live := find_live_versions(storage, top):
        error = NotACheckpoint(f"{storage.uri}: not a checkpoint; {_name_versions(storage.uri, live)}")
        error.live = live
        raise error
    looks = ((name, storage.list_level(name)) for name in sorted(top.folders)[:_LOOK_BELOW])
    below = [name for name, inner in looks if is_checkpoint(storage, inner, name)]
    hint = describe_other(storage, top) or "use the folder that the query names as checkpointLocation"
    why = "it contains no checkpoint file" if find_parts(top) else "it has no offsets/, commits/ or metadata"
    flow = parse_flow(storage.uri)
    if flow is not None and flow[1] is None and len(flow[0].table.split(".")) > 1:
        hint = "it is a pipeline flow without a version: its next run starts version 0 from nothing"
    elif below:
        hint = f"there are checkpoints in it: {', '.join(below[:5])}" + (" ..." if len(below) > 5 else "")
    raise NotACheckpoint(f"{storage.uri}: not a checkpoint ({why}); {hint}")


def _name_versions(uri: str, live: Sequence[str]) -> str:
    folder, mark, options = uri.partition("?") if "://" in uri else (uri, "", "")
    paths = [one_line(f"{folder.rstrip('/')}/{version}{mark}{options}") for version in live[:_NAMED]]
    if len(live) == 1:
        return f"it has one pipeline flow: use {paths[0]}, the version that runs use"
    more = f" and {len(live) - _NAMED} others" if len(live) > _NAMED else ""
    return f"it has {len(live)} pipeline flows: use the version that runs use, {', '.join(paths)}{more}"


@dataclass
class _Reading:
    storage: Storage
    listing: Listing
    batches: int
    fully_read: Verified
    look_only: bool = False
    vanished: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    source_texts: dict[str, bytes] = field(default_factory=dict)  # of files of source logs

    def checkpoint(self) -> Checkpoint:
        """Read the logs in one round, then what describes the state and what of it the next start loads."""
        offset_names = names.sort_batch_names(self.listing.in_folder(OFFSETS))
        commit_names = names.sort_batch_names(self.listing.in_folder(COMMITS))
        planned = self._choose_ids(offset_names.ids, _find_uncommitted(offset_names.ids, commit_names.ids))
        done = self._choose_ids(commit_names.ids)
        paths = [path for path in (METADATA, FIRST_START, SKIPPED) if self.listing.info(path)]
        paths += [f"{OFFSETS}/{i}" for i in planned] + [f"{COMMITS}/{i}" for i in done]
        if self.batches:
            paths = limits.choose_affordable({path: self._size_of(path) for path in paths})
        self.refused |= self.listing.refused
        for folder in self.refused.keys() & {OFFSETS, COMMITS}:
            raise StorageError(self.refused[folder])
        raw = self._read(paths)
        if paths and self.refused.keys() >= {*paths}:
            raise StorageError(self.refused[paths[0]])
        offset_log = self._parse_log(OFFSETS, offset_names, raw, offsets.parse_offset_log)
        commit_log = self._parse_log(COMMITS, commit_names, raw, commits.parse_commit_log)
        marked = self._parse_file(SKIPPED, raw.get(SKIPPED), metadata.parse_skipped)
        query = self._parse_file(METADATA, raw.get(METADATA), metadata.parse_metadata)
        first = self._parse_file(FIRST_START, raw.get(FIRST_START), metadata.parse_first_start)
        skipped = marked if isinstance(marked, tuple) else ()
        read = Checkpoint(
            self.storage.uri,
            Kind.MICRO_BATCH,
            self.listing,
            query,
            offset_log,
            commit_log,
            local=self.storage.local,
            first_start=first,
            marked_skipped=skipped,
            flow=parse_version(self.storage.uri),
        )
        if read.links_out:  # what the rest says, without those parts, could be wrong
            if {OFFSETS, COMMITS}.isdisjoint(read.links_out):
                return read
            nothing = names.sort_batch_names(())
            return replace(read, offsets=Log(OFFSETS, nothing), commits=Log(COMMITS, nothing))
        most_tails, whole = MOST_TAILS if self.storage.local else MOST_TAILS_REMOTE, self.storage.whole_files
        logs, uri, allowance = (offset_log, commit_log), self.storage.uri, self._allow_reading()
        may_read = allowance.bytes > 0
        step = read_state(self.listing, *logs, uri, most_tails, allowance, whole_files=whole)
        state = run(step, self._read_many)
        if may_read:
            self.storage.seen = allowance.verified
        read = replace(read, refused=self.refused)
        if state is not None and self.refused:  # that nothing is seen of them is no damage
            damages = (damage for damage in state.damages if not read.is_refused(damage.path))
            state = replace(state, damages=tuple(damages))
        source_entries = self._read_source_entries(offset_log.newest, planned=bool(offset_names.ids))
        respaced = self._find_respaced(raw | self.source_texts)
        entries = dict(offset_log.entries)
        for batch_id, log in offset_log.entries.items():
            if isinstance(log, OffsetLog) and (added := respaced.get(f"{OFFSETS}/{batch_id}")):
                entries[batch_id] = own = offsets.drop_blank_sources(log)
                respaced[f"{OFFSETS}/{batch_id}"] = added._replace(sources=len(log.sources) - len(own.sources))
        if respaced:  # git changes all files
            respaced |= self._find_respaced(self._read(self._list_operator_metadata()))
        proof = {sidecars.sidecar(path) for path in respaced}
        stale = tuple(path for path in self._find_stale_sidecars(raw) if path not in proof)
        return replace(
            read,
            kind=_judge_kind(offset_log, commit_log, state),
            state=state,
            offsets=replace(offset_log, entries=entries),
            stale_sidecars=stale,
            respaced=respaced,
            metadata_checksums=self._read_metadata_checksums(query),
            renamed=find_renamed(self.listing, self._read),
            source_entries=source_entries,
            source_snapshots=self._read_source_snapshots(offset_log.newest),
            initial_offsets=self._read_initial_offsets(offset_log, commit_log),
            lost_schemas=tuple(path for path in (state.moved_schemas if state else ()) if is_gone(path)),
            vanished=tuple(self.vanished),
        )

    def _allow_reading(self) -> Allowance:
        """How much of the state is read completely: nothing where only names and ends are looked at, or all was."""
        if self.fully_read.files or self.storage.names_only or not self.listing.has_folder(STATE):
            return Allowance(verified=self.fully_read.without_changed(self.listing))
        before: Verified = NOTHING if self.storage.seen is None else self.storage.seen
        return Allowance.of(local=self.storage.local, verified=before.without_changed(self.listing))

    def _choose_ids(self, ids: Sequence[int], besides: Set[int] = frozenset()) -> Sequence[int]:
        """The newest ids: as many as were asked for, and the one before them, where the oldest of them begins."""
        newest = ids[-max(self.batches, JUDGED) - 1 :] if self.batches else ids
        return sorted({*besides, *newest}) if besides else newest

    def _read(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Files by path; None for one that has vanished or is too large."""
        odd = self.listing.oddities
        readable = [path for path in paths if odd.get(path) is not Oddity.OUTSIDE]
        sized = [path for path in readable if 0 < self._size_of(path) <= limits.LARGEST_RECORD]
        answers = self._read_many([ReadRequest(path) for path in sized])
        contents: dict[str, bytes | None] = {
            path: None if limits.refuse_too_large(path, self._size_of(path)) else b"" for path in paths
        }
        for path, answer in zip(sized, answers, strict=True):
            contents[path] = answer if isinstance(answer, bytes) else None
        return contents

    def _size_of(self, path: str) -> int:
        """How many bytes a file has, by the listing; 0 where there is none."""
        info = self.listing.info(path)
        return info.size if info else 0

    def _read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        """Answer requests; a file that vanished is remembered, and one that cannot be read too, if this only looks."""
        listed = list(requests)
        answers = self.storage.read_many(listed)
        for request, answer in zip(listed, answers, strict=True):
            if isinstance(answer, NotFound):
                self.vanished.append(request.path)
            elif isinstance(answer, StorageError) and self.look_only:
                self.refused[request.path] = str(answer)
            elif isinstance(answer, StorageError):
                raise answer
        return answers

    def _parse_log(
        self, folder: str, listed: names.BatchNames, raw: Mapping[str, bytes | None], parse: Parser[Record]
    ) -> Log[Record]:
        """The files that were read, and those that the listing shows to be empty."""
        empty = {name for name, info in self.listing.in_folder(folder).items() if info.size == 0}
        known = empty.union(path.rpartition("/")[2] for path in raw if path.startswith(f"{folder}/"))
        entries: dict[int, Record | Unreadable] = {}
        for batch_id in (i for i in listed.ids if str(i) in known):
            path = f"{folder}/{batch_id}"
            entry = self._parse_file(path, raw.get(path, b""), parse)
            if entry is not None:
                entries[batch_id] = entry
        return Log(folder, listed, entries)

    def _parse_file(self, path: str, data: bytes | None, parse: Parser[Record]) -> Record | Unreadable | None:
        """A parsed file; None where it is not there."""
        if self.listing.info(path) is None:
            return None
        if self.listing.oddities.get(path) is Oddity.OUTSIDE:
            return Unreadable(path, Fault.LEADS_OUT, f"it is {Oddity.OUTSIDE}")
        if path in self.refused:
            return Unreadable(path, Fault.REFUSED, self.refused[path])
        if data is None:
            gone = Unreadable(path, Fault.VANISHED, "it was gone when ckpt tried to read it")
            return limits.refuse_too_large(path, self._size_of(path)) or gone
        return parse(path, data)

    def _read_source_entries(
        self, latest: OffsetLog | None, *, planned: bool
    ) -> dict[str, tuple[SourceFile, ...] | Unreadable]:
        """The entries of file source logs that a start reads, by path; before the first batch, those that are bad."""
        if not planned:
            first = [f"{SOURCES}/{k}/0" for k in self.listing.subfolders(SOURCES)]
            raw = self._read([path for path in first if self.listing.info(path)])
            parsed = {path: self._parse_file(path, data, parse_first_source_file) for path, data in raw.items()}
            return {path: entry for path, entry in parsed.items() if isinstance(entry, Unreadable)}
        logs = file_logs.file_source_logs(self.listing, latest)
        requests = [file_logs.request_for(self.listing, path) for log in logs for path in log.needed()]
        answers = zip(requests, self._read_many(requests), strict=True)
        whole = [(request, data) for request, data in answers if isinstance(data, bytes)]
        self.source_texts = {request.path: data for request, data in whole if not request.offset}
        return {request.path: file_logs.parse(request, data) for request, data in whole}

    def _read_source_snapshots(self, latest: OffsetLog | None) -> dict[str, RocksDBSnapshot | Unreadable]:
        """The newest snapshot of the list of files of each Auto Loader source."""
        kinds = [source_type(offset) for offset in offsets_of(latest)] if latest else []
        folders = [
            file_logs.rocksdb_folder(self.listing, latest, k)
            for k, kind in enumerate(kinds)
            if kind == SourceType.CLOUD_FILES
        ]
        zips = [path for folder in folders if (path := self._find_newest_zip(folder)) is not None]
        raw = self._read(zips)
        return {path: parse_zip_tail(path, data, len(data)) for path, data in raw.items() if data is not None}

    def _find_newest_zip(self, folder: str) -> str | None:
        """The snapshot with the highest number in a folder of RocksDB files."""
        stems = (name.removesuffix(".zip") for name in self.listing.in_folder(folder) if name.endswith(".zip"))
        numbers = [int(name) for name in stems if name.isascii() and name.isdecimal() and len(name) < 19]
        return f"{folder}/{max(numbers)}.zip" if numbers else None

    def _read_initial_offsets(self, planned: Log[OffsetLog], committed: Log[CommitLog]) -> dict[int, Json]:
        """Where Kafka sources began, by source: what the first batch of the log is read from, if that runs again."""
        first = planned.newest
        if first is None or planned.latest in committed or planned.before(planned.latest or 0) is not None:
            return {}
        of_kafka = (k for k, offset in enumerate(offsets_of(first)) if is_kafka(offset))
        paths = {k: f"{file_logs.source_folder(self.listing, first, k)}/0" for k in of_kafka}
        raw = self._read([path for path in paths.values() if self.listing.info(path)])
        starts = {k: parse_kafka_start(path, raw[path] or b"") for k, path in paths.items() if path in raw}
        return {
            k: start for k, start in starts.items() if not isinstance(start, Unreadable) and is_kafka(decode(start))
        }

    def _find_stale_sidecars(self, raw: Mapping[str, bytes | None]) -> tuple[str, ...]:
        """Hidden checksum files that do not match their file, for the log files that were read."""
        stale = []
        for path, known in self._read_checksums(raw).items():
            data = raw[path]
            if data is not None and known is not None and (isinstance(known, Unreadable) or not known.match(data)):
                stale.append(sidecars.sidecar(path))
        return tuple(stale)

    def _read_checksums(self, paths: Iterable[str]) -> dict[str, sidecars.HadoopChecksums | Unreadable | None]:
        """The hidden checksum files that are beside files, by the paths of these; None for one that was not read."""
        beside = {path: sidecars.sidecar(path) for path in paths if self.listing.info(sidecars.sidecar(path))}
        raw = self._read(list(beside.values()))
        return {
            path: None if (data := raw[sidecar]) is None else sidecars.parse_hadoop_sidecar(sidecar, data)
            for path, sidecar in beside.items()
        }

    def _find_respaced(self, raw: Mapping[str, bytes | None]) -> dict[str, AddedSpace]:
        """Text files with added white space, if their checksums are those of the rest, or there are none."""
        rest = {
            path: own for path, data in raw.items() if data and (own := text.drop_white_space(data)) not in (b"", data)
        }
        checksums = self._read_checksums(rest)
        respaced = {}
        for path, own in rest.items():
            data, known, proven = raw[path] or b"", checksums.get(path), path in checksums
            is_read = data.splitlines() != own.splitlines()
            if (not proven and is_read) or (isinstance(known, sidecars.HadoopChecksums) and known.match(own)):
                respaced[path] = AddedSpace(text.describe_white_space(data), is_read, proven)
        return respaced

    def _list_operator_metadata(self) -> list[str]:
        folders = [folder for folder in self.listing.folders if f"{folder}/".find("/_metadata/") > 0]
        return [f"{folder}/{name}" for folder in folders for name in self.listing.in_folder(folder) if name[0] != "."]

    def _read_metadata_checksums(self, query: QueryMetadata | Unreadable | None) -> sidecars.HadoopChecksums | None:
        """The checksums of a ``metadata`` that is missing, or names no query; None where nothing was kept."""
        if isinstance(query, QueryMetadata) and metadata.is_query_id(query.query_id):
            return None
        checksums = self._read_checksums([METADATA]).get(METADATA)
        return checksums if isinstance(checksums, sidecars.HadoopChecksums) and checksums.values else None


def _find_uncommitted(planned: Sequence[int], committed: Sequence[int]) -> Set[int]:
    """The newest planned batches without a commit, each with the one before it.

    Those that ``ckpt repair-async`` writes into the gaps of asynchronous tracking have no rows (``history.pattern``).
    """
    done = frozenset(committed)
    indexes = [index for index, batch_id in enumerate(planned) if index and batch_id not in done][-_UNCOMMITTED:]
    return {planned[i] for index in indexes for i in (index - 1, index)}


def _judge_kind(offset_log: Log[OffsetLog], commit_log: Log[CommitLog], state: StateInventory | None) -> Kind:
    if offset_log.latest is None and commit_log.latest is None and state is None:
        return Kind.EMPTY
    newest = offset_log.newest
    return Kind.CONTINUOUS if newest is not None and is_continuous(newest) else Kind.MICRO_BATCH
