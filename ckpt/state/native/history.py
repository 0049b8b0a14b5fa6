"""The history of a key: in which batches its state was created, changed and removed, read without Spark.

The state after each committed batch that is still there is followed, from the oldest on: by the delta or changelog of
each batch, and by a snapshot where there is none. Of all keys only those asked for are kept in memory.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from os import fspath
from typing import Annotated, Any, Unpack

import numpy as np

from ckpt.checkpoint.history import rate_sources
from ckpt.checkpoint.sources.registry import SourceRange, SourceView, source_ranges, source_views
from ckpt.checkpoint.state.chains import Chain, WantedVersion
from ckpt.checkpoint.state.folders import FileId, StorePartition, find_operators
from ckpt.checkpoint.state.ranges import Ranges
from ckpt.errors import LeftToSpark, Undecodable, UsageError
from ckpt.formats.changelog import ChangelogRecord, Overlay, changes_of, changes_of_key
from ckpt.formats.operators import AGGREGATIONS, TRANSFORM_WITH_STATE, TTL, OperatorName
from ckpt.formats.rows import avro
from ckpt.formats.rows.codecs import decompress
from ckpt.formats.rows.hdfs import find_rows, records_of
from ckpt.formats.rows.keys import keys_of
from ckpt.formats.rows.row_checksums import plain_changes, plain_file, plain_value
from ckpt.formats.rows.unsafe import VERSION, rows_at, structs_of
from ckpt.formats.statefiles import TYPED, RecordType, lineage_of, read_beginning
from ckpt.model import DamageKind, Json, Location, Provider
from ckpt.state.book import BOOK
from ckpt.state.native import lookup, rocksdb
from ckpt.state.native.entries import NOT_AS_WRITTEN, Entries, decode_bytes, decode_rows, make_flat, pick_field
from ckpt.state.native.json_values import make_objects
from ckpt.state.native.store_files import (
    MOST_ROWS,
    StoreFiles,
    UnitLayout,
    context_of,
    delimiter_of,
    find_files_of,
    has_row_checksums,
    layout_of,
    make_store_files,
)
from ckpt.state.reading.choose import Part, RequestedPart, StateDamaged
from ckpt.state.reading.columns import Column, columns_of
from ckpt.state.reading.reading import ChosenState, Moment, StateRequest, choose
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.values import Value

_KEY_FIRST = (UnitKind.MAP, UnitKind.TIMERS)  # the grouping key is one of several columns of the stored key
_BY_WATERMARK = AGGREGATIONS | {
    OperatorName.DEDUPLICATION,
    OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
    OperatorName.JOIN,
}
"""Operators that remove a key, or a row of a join, only once the watermark has passed it."""
_BY_QUERY = TRANSFORM_WITH_STATE | {OperatorName.GROUPS, OperatorName.GROUPS_IN_PANDAS}
"""Operators whose state only the user's function removes, but for what has a time to live."""


class KeyChange(StrEnum):
    """The events in the life of a key."""

    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"


class RemovalCause(StrEnum):
    """The causes of a removal that files can prove."""

    WATERMARK = "watermark"  # the operator removes nothing otherwise
    TTL = "ttl"  # its time to live had ended when the batch was planned
    QUERY = "query"  # the user's function: nothing else removes state of this operator, or its time had not ended


@dataclass(frozen=True, slots=True)
class SourceRead:
    """The range of one source that the batches of an event read."""

    view: SourceView
    range: SourceRange


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """One change of one key. A row without a key of its own (of a list, a join side, timers) comes or goes."""

    batch: Annotated[int, "the first batch after which the state is known to be like this"]
    after_batch: Annotated[
        int | None,
        "the newest earlier batch whose state is known: `batch` - 1, unless files are missing; null before batch 0. "
        "`ckpt offsets show --batch` with it gives the reader options that start at the event's input",
    ]
    change: KeyChange
    cause: Annotated[
        RemovalCause | None,
        "of a removal, if certain: the watermark, the end of the time to live, or the user's function",
    ]
    key: Annotated[
        dict[str, Json], "the columns of the key; for a row without a key (lists, join sides, timers) all columns"
    ]
    before: Annotated[dict[str, Json] | None, "the other columns before, or null"]
    after: Annotated[dict[str, Json] | None, "the other columns after it, or null"]
    planned_ms: Annotated[int | None, "when the batch was planned"]
    watermark_ms: Annotated[int | None, "the watermark of the batch"]
    sources: tuple[SourceRead, ...]

    @property
    def certain_batch(self) -> bool:
        """True if it happened in this batch, not in an earlier one whose state is not known."""
        return self.after_batch == (self.batch - 1 if self.batch else None)


@dataclass(frozen=True, slots=True)
class StateHistory(Value):
    """The events of the keys that were asked for, oldest first."""

    checkpoint: str  # as it was given
    unit: StateUnit
    moment: Moment  # the newest batch whose state is known
    columns: tuple[Column, ...]
    partition: Annotated[int | None, "the only partition that was searched, because the key belongs to it"]
    known_after: Annotated[
        int | None,
        "the oldest batch after which the state is known: there are no earlier events; null: known from batch 0 on",
    ]
    first_rows: Annotated[tuple[dict[str, Json], ...], "of the key after that batch, as in `rows` of `ckpt state show`"]
    rows: Annotated[tuple[dict[str, Json], ...], "of the key as of `batch`"]
    events: tuple[KeyEvent, ...]
    more: Annotated[bool, "there are older events than `--limit`"]
    unknown: Annotated[
        Ranges,
        "first and last of later batches after which the state is unknown: their files are missing or damaged",
    ]


def state_history(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    key: Mapping[str, str | None] | None = None,
    limit: int = 20,
    **part: Unpack[Part],
) -> StateHistory:
    """Find the batches that created, changed and removed a key, from the state after every batch that is still there.

    A batch that writes a key with its old value is not an event. A complete key is looked up in its one
    partition, as by ``state_show``.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the path.
        key: Columns of the key and their values as text, as for ``state_show``; left out only where a unit has one key
            without columns.
        limit: Return at most this many events, the newest.
        part: The part of the state.

    Raises:
        StateDamaged: No batch has complete state.
        UsageError: The choice does not exist, or there is no key.
        CkptError: The bytes are damaged, or of a kind that only Spark reads; the text names file and reason.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> history = ckpt.state_show("sample_checkpoints/aggregation-hdfs-4.2", key={"key": "3"}).history()
    >>> [(event.batch, str(event.change)) for event in history.events][:2]
    [(0, 'created'), (1, 'changed')]
    """
    path = fspath(checkpoint)
    if limit < 1:
        raise UsageError.of("{--limit} must be at least 1")
    question = StateRequest(
        path, RequestedPart(**part), lost=frozenset()
    )  # the state of the newest batch may be damaged
    chosen = choose(question, storage_options, every_batch=True)
    (unit,) = chosen.units
    columns = columns_of(unit)
    parts = lookup.parse_key_parts(columns, key or {})
    keys = [column.name for column in columns.kept if column.of_key]
    if keys and not parts:
        raise UsageError.of("{--key}: name the key to follow; it has {keys}", keys=", ".join(keys))
    walk = _Walk(chosen, unit, parts)
    steps = list(walk.states())
    if walk.row is not None and not any(step.state for step in steps):
        walk = _Walk(chosen, unit, parts, by_bytes=False)  # the row may have been built in another way
        steps = list(walk.states())
    if not steps:
        raise walk.trouble or StateDamaged(f"{chosen.checkpoint.uri}: the state of no batch can be read")
    first, last = steps[0], steps[-1]
    events = list(_find_events(walk, steps))
    batches = [*(step.moment.batch for step in steps), (chosen.checkpoint.commits.latest or 0) + 1]
    unknown = tuple((before + 1, batch - 1) for before, batch in pairwise(batches) if batch - before > 1)
    begins = first.moment.batch == 0
    return StateHistory(
        checkpoint=path,
        unit=unit,
        moment=last.moment,
        columns=columns.kept,
        partition=last.partition,
        known_after=None if begins else first.moment.batch,
        first_rows=() if begins else tuple(walk.decode(first.state)),
        rows=tuple(walk.decode(last.state)),
        events=tuple(events[-limit:]),
        more=len(events) > limit,
        unknown=unknown,
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """The keys asked for after one committed batch, as they are stored."""

    moment: Moment
    state: dict[bytes, bytes]
    partition: int | None


@dataclass(slots=True)
class _Followed:
    """One partition of a store, and what is known of it."""

    place: StorePartition
    at: FileId | None = None  # the version that ``state`` is
    state: dict[bytes, bytes] | None = None
    number: bytes | None = None  # of the column family


class _Walk:
    """Follows the keys that are asked for through the versions of a store."""

    def __init__(
        self, chosen: ChosenState, unit: StateUnit, parts: tuple[lookup.KeyPart, ...], *, by_bytes: bool = True
    ) -> None:
        self.chosen, self.unit, self.parts = chosen, unit, parts
        self.layout: UnitLayout = layout_of(chosen, unit)
        self.columns = columns_of(unit)
        self.trouble: Exception | None = None  # why the state of some batch is not known
        whole = by_bytes and self.layout.rows_are_keys and lookup.find_partition(chosen, unit, parts) is not None
        self.row = lookup.encode_key_row(self.layout.key, parts) if whole else None
        folders = {folder.id: folder for folder in find_operators(chosen.checkpoint.listing, unit.provider)}
        stores = folders[unit.operator].stores.get(self.layout.store, {})
        self.stores = {partition: _Followed(store_partition) for partition, store_partition in sorted(stores.items())}

    def states(self) -> Iterator[_Step]:
        """The state after each committed batch, oldest first, if both it and the offsets of the batch can be read."""
        checkpoint = self.chosen.checkpoint
        batches = [batch for batch in checkpoint.commits.ids if checkpoint.offsets.readable(batch)]
        if batches[:1] == [0]:
            for followed in self.stores.values():
                followed.at, followed.state = (0, None), {}
        for batch in batches:
            chosen = self.chosen.as_of(batch)
            only = lookup.find_partition(chosen, self.unit, self.parts)
            try:
                yield _Step(chosen.moment, self._read(chosen, only), only)
            except (StateDamaged, Undecodable) as error:
                self.trouble = error

    def _read(self, chosen: ChosenState, only: int | None) -> dict[bytes, bytes]:
        """The state after a batch. Raises StateDamaged, Undecodable and StorageError."""
        count = context_of(chosen).shuffle_partitions
        damages = (damage for damage in self.unit.damages if damage.kind is DamageKind.MISSING_PARTITION)
        lost = {damage.partition for damage in damages if damage.partition is not None}
        there = {partition for partition in self.stores if count is None or partition < count}
        state: dict[bytes, bytes] = {}
        for partition in sorted(there | lost) if only is None else [only]:
            followed = self.stores.get(partition)
            if followed is None:
                folder = f"state/{self.unit.operator}/{partition}"
                raise StateDamaged(f"{chosen.checkpoint.uri}: {folder} has no state of {self.unit.label}")
            try:
                self._move(followed, chosen)
            except (StateDamaged, Undecodable):
                followed.at = followed.state = None
                raise
            state |= followed.state or {}
        return state

    def _move(self, followed: _Followed, chosen: ChosenState) -> None:
        """Read one partition as of a batch: by the changes since the last one, if they are there."""
        store_partition = followed.place
        target = context_of(chosen).target(store_partition)
        if target is None:
            raise StateDamaged(BOOK.text("read_unknown", uri=chosen.checkpoint.uri, folder=store_partition.folder))
        at, state = (target.version, target.unique_id), followed.state
        logs = _list_logs_since(followed, target)
        if state is not None and logs is not None:
            files = make_store_files(chosen, store_partition, Chain(None, logs))
            changed = dict(state)
            if all(self._apply(followed, files, path, changed, followed.at) for path in files.logs):
                followed.at, followed.state = at, changed
                return
        files = find_files_of(chosen, store_partition)
        changed = {}
        if files.snapshot is not None:
            self._apply_snapshot(followed, replace(files, chain=Chain(files.chain.snapshot, ())), changed)
        for path in files.logs:
            self._apply(followed, files, path, changed, None)
        followed.at, followed.state = at, changed

    def _apply_snapshot(self, followed: _Followed, files: StoreFiles, state: dict[bytes, bytes]) -> None:
        path = files.snapshot
        assert path is not None
        if self.unit.provider is Provider.HDFS:
            self._apply(followed, files, path, state, None)
            return
        number = self._number(followed, files)
        with rocksdb.store(files) as store, files.refusing(path):
            if self.row is not None:
                value = store.snapshot.value(number + VERSION + self.row)
                if value is not None:
                    state[number + VERSION + self.row] = value
                return
            for pairs in store.snapshot.batches(MOST_ROWS, number):
                keys = [key for key, _ in pairs]
                for index in self._match_keys(files, number, keys):
                    state[keys[index]] = pairs[index][1]

    def _apply(
        self, followed: _Followed, files: StoreFiles, path: str, state: dict[bytes, bytes], after: FileId | None
    ) -> bool:
        """Apply the changes in a file; False, without any, if it names another version than ``after`` as its base."""
        with files.refusing(path):
            data = decompress(files.pieces(path), files.codec, files.most)
            if self.unit.provider is Provider.HDFS:
                self._apply_records(files, plain_file(data) if files.checksums else data, state)
                return True
            if after is not None and after[1] is not None:
                lineage = lineage_of(data)
                if not lineage or lineage[-1] != after:
                    return False
            self._apply_changes(files, self._number(followed, files), data, state)
        return True

    def _apply_records(self, files: StoreFiles, data: bytes, state: dict[bytes, bytes]) -> None:
        """The records of a delta or an HDFS-backed snapshot."""
        if self.row is not None and self.row not in data:
            return
        records = records_of(data)
        if self.row is not None:
            rows = find_rows(records, self.row)
        else:
            keys = structs_of(self.layout.key, rows_at(data, records.key_at, records.key_size), "key")
            rows = self._match(keys)
        for key, value in records.take(rows).pairs():
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value

    def _apply_changes(self, files: StoreFiles, number: bytes, data: bytes, state: dict[bytes, bytes]) -> None:
        own = None if self.row is None else number + VERSION + self.row
        if own is not None and own not in data and read_beginning(data)[0] not in TYPED:
            return
        if own is None or files.checksums:  # which are in front of a key that is removed
            changes = changes_of(data)
            records = list(plain_changes(changes) if files.checksums else changes)
        else:
            records = changes_of_key(data, own)
        overlay = Overlay(files.delimiter)
        overlay.apply(self._keep_matching(files, number, own, records))
        for key in {*state, *overlay.said}:
            value = overlay.value(key, state.get(key))
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value

    def _keep_matching(
        self, files: StoreFiles, number: bytes, own: bytes | None, records: list[ChangelogRecord]
    ) -> Iterator[ChangelogRecord]:
        """Records of the keys asked for, and of ranges."""
        matching = {own}
        if own is None:
            keys = {item.key for item in records if item.action is not RecordType.DELETE_RANGE}
            listed = [key for key in keys if key.startswith(number)]
            matching = {listed[index] for index in self._match_keys(files, number, listed)}
        yield from (item for item in records if item.action is RecordType.DELETE_RANGE or item.key in matching)

    def _match_keys(self, files: StoreFiles, number: bytes, keys: Sequence[bytes]) -> list[int]:
        if not keys:
            return []
        blobs = [key[len(number) :] for key in keys]
        try:
            structs = keys_of(
                self.layout.key, self.layout.encoder, blobs, avro.key_columns if self.layout.avro else None
            )
        except NOT_AS_WRITTEN as error:
            raise files.refused(files.place.folder, error) from None
        rows: list[int] = self._match(structs).tolist()
        return rows

    def _match(self, keys: Any) -> Any:
        """The rows whose key has the values asked for."""
        columns = keys.flatten() if self.unit.kind in _KEY_FIRST else [keys]
        mask: Any = np.ones(len(keys), bool)
        for part in self.parts:
            mask &= np.asarray(lookup.compare_with(part, pick_field(columns, part.column.places)).fill_null(False))
        return np.flatnonzero(mask)

    def _number(self, followed: _Followed, files: StoreFiles) -> bytes:
        """The prefix of the unit's keys: the number of its column family, which only snapshots record."""
        if self.layout.family is None:
            return b""
        if followed.number is None:
            followed.number = _find_number(followed.place, files, self.layout.family)
        return followed.number

    def decode(self, state: Mapping[bytes, bytes]) -> list[dict[str, Json]]:
        """Rows of keys, flat. Raises Undecodable."""
        try:
            return make_objects(make_flat(self.columns, self.unit, self._decode(state))) if state else []
        except NOT_AS_WRITTEN as error:
            what = f"{self.chosen.checkpoint.uri}: state/{self.unit.operator}"
            raise Undecodable(f"{what}: a row of {self.unit.label} does not match its schema: {error}") from None

    def _decode(self, state: Mapping[bytes, bytes]) -> Entries:
        keys, values = list(state), list(state.values())
        if self.unit.provider is Provider.HDFS:
            return decode_rows(0, self.layout, _join_rows(keys), _join_rows(values))
        number = next((len(item.number) for item in self.stores.values() if item.number is not None), 0)
        if has_row_checksums(self.chosen):
            delimiter = delimiter_of(self.chosen.recorded)
            values = [plain_value(key, value, delimiter) for key, value in state.items()]
        return decode_bytes(0, self.layout, [key[number:] for key in keys], values)


def _join_rows(rows: Sequence[bytes]) -> Any:
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    return rows_at(b"".join(rows), np.cumsum(sizes) - sizes, sizes)


def _list_logs_since(followed: _Followed, target: WantedVersion) -> tuple[FileId, ...] | None:
    """The logs from the version that is known to another; None where some is not there.

    Of format 2 one log at most: which version it continues is in it.
    """
    if followed.at is None:
        return None
    version, unique_id = followed.at
    if target.unique_id is None and unique_id is None:
        logs: list[FileId] = [(number, None) for number in range(version + 1, target.version + 1)]
    else:
        logs = [(target.version, target.unique_id)] if target.version == version + 1 else []
    return tuple(logs) if logs and all(log in followed.place.names.logs for log in logs) else None


def _find_number(store_partition: StorePartition, files: StoreFiles, family: str) -> bytes:
    """The number of a column family in a partition, which its oldest and its newest snapshot must agree on.

    Changelogs before a snapshot were applied under the numbers that it records. Raises Undecodable.
    """
    snapshots = sorted(store_partition.names.snapshots, key=lambda snapshot: (snapshot[0], snapshot[1] or ""))
    numbers = set()
    for snapshot in {*snapshots[:1], *snapshots[-1:]}:
        recorded = rocksdb.read_recorded(replace(files, chain=Chain(snapshot, ())))
        if recorded is not None and family in recorded.column_families:
            numbers.add(recorded.column_families[family])
    if len(numbers) != 1:
        which = "without a snapshot nothing shows" if not snapshots else "its snapshots disagree on"
        raise LeftToSpark(f"{which} which number the column family {family} has")
    return numbers.pop().to_bytes(2, "little")


def _find_events(walk: _Walk, steps: Sequence[_Step]) -> Iterator[KeyEvent]:
    """Compare the states after batches that follow each other, oldest first."""
    before: dict[bytes, bytes] | None = {} if steps[0].moment.batch == 0 else None
    earlier: int | None = None
    for step in steps:
        after, moment = step.state, step.moment
        if before is not None and before != after:
            changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
            old, new = ({key: state[key] for key in changed if key in state} for state in (before, after))
            sources = tuple(_list_sources(walk.chosen, earlier, moment.batch))
            for key, was, now in _pair_rows(walk, old, new):
                change = KeyChange.REMOVED if now is None else KeyChange.CREATED if was is None else KeyChange.CHANGED
                times = moment.planned_ms, moment.watermark_ms
                event = KeyEvent(moment.batch, earlier, change, None, key, was, now, *times, sources)
                yield replace(event, cause=_find_cause(walk.unit, event))
        before, earlier = after, moment.batch


_Row = dict[str, Json]


def _pair_rows(
    walk: _Walk, old: Mapping[bytes, bytes], new: Mapping[bytes, bytes]
) -> list[tuple[_Row, _Row | None, _Row | None]]:
    """Key, row before and row after, of what differs: in order of the keys' bytes, or of the rows."""
    rows_before, rows_after = walk.decode(old), walk.decode(new)
    names = [column.name for column in walk.columns.kept if column.of_key]
    if walk.unit.has_key:
        by_key = [dict(zip(state, rows, strict=True)) for state, rows in ((old, rows_before), (new, rows_after))]
        pairs = []
        for stored in sorted({**old, **new}):
            before, after = (_split(rows.get(stored), names) for rows in by_key)
            if before != after:
                row = by_key[1].get(stored) or by_key[0][stored]
                pairs.append(({name: row[name] for name in names}, before, after))
        return pairs
    counts = [Counter(json.dumps(row) for row in rows) for rows in (rows_before, rows_after)]
    gone, come = counts[0] - counts[1], counts[1] - counts[0]
    return [
        *((json.loads(row), {}, None) for row in sorted(gone.elements())),
        *((json.loads(row), None, {}) for row in sorted(come.elements())),
    ]


def _split(row: _Row | None, names: Sequence[str]) -> _Row | None:
    return None if row is None else {name: value for name, value in row.items() if name not in names}


def _find_cause(unit: StateUnit, event: KeyEvent) -> RemovalCause | None:
    """Name who removed a row, where only one can have.

    Operators that evict by watermark have no other way (``StateStoreSaveExec``, ``BaseStreamingDeduplicateExec``,
    ``StreamingSymmetricHashJoinExec``); a session also goes when it grows into another one, and a timer when it fires.
    State with a time to live is removed in the first batch whose time is not before its end (``StateTTL.isExpired``).
    """
    if event.change is not KeyChange.REMOVED:
        return None
    if unit.operator_name in _BY_WATERMARK:
        return RemovalCause.WATERMARK if event.watermark_ms else None
    if unit.operator_name not in _BY_QUERY or unit.kind is UnitKind.TIMERS:
        return None
    if not unit.ttl:
        return RemovalCause.QUERY
    ends = [value for name, value in {**event.key, **(event.before or {})}.items() if name.endswith(TTL)]
    if len(ends) != 1 or not isinstance(ends[0], int) or event.planned_ms is None:
        return None
    if ends[0] > event.planned_ms:
        return RemovalCause.QUERY
    return RemovalCause.TTL if event.certain_batch else None


def _list_sources(chosen: ChosenState, earlier: int | None, batch: int) -> Iterator[SourceRead]:
    """The ranges of the sources after a batch up to the end of another."""
    offsets = chosen.checkpoint.offsets
    log = offsets.readable(batch)
    if log is None:
        return
    reads = source_ranges(None if earlier is None else offsets.readable(earlier), log)
    for view, source_range in zip(source_views(log, rate_sources(chosen.checkpoint)), reads, strict=False):
        yield SourceRead(view, source_range)
