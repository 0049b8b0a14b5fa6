"""The tables of ``ckpt sql``: the rows of one checkpoint in each. Their names and columns are in ``tables.toml``.

``Needs`` says how much of a checkpoint is read for a table. Times are in UTC. Texts have their secrets masked, so that
no function of SQL gets at them.
"""

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from typing import Any

import pyarrow as pa

from ckpt.checkpoint import history
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchOffset
from ckpt.checkpoint.sources.registry import SourceView, source_views
from ckpt.checkpoint.sources.unknown import NumberOffset
from ckpt.checkpoint.state.folders import SSTS, find_operators, stores_of
from ckpt.formats.statefiles import parse_name
from ckpt.inspection.inspection import Inspection
from ckpt.inspection.scan.rows import ScannedCheckpoint, make_row
from ckpt.model import OffsetLog, Provider, StateFileKind, Unreadable
from ckpt.storage.base import Listing
from ckpt.texts import mask_json, mask_secrets

_LARGEST = 2**63 - 1
_YEAR_10000_MS = 253_402_300_800_000
_LONG, _INT, _TIME = pa.int64(), pa.int32(), pa.timestamp("us")


class Needs(Enum):
    """How much of a checkpoint is read."""

    LOGS = "logs"  # offsets, commits, logs of sources; state is not even listed
    NAMES = "names"  # names and sizes of all files; none is opened
    INSPECTION = "inspection"  # as much as ``ckpt inspect`` reads


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table."""

    name: str
    type: Any  # of Arrow
    meaning: str


Row = tuple[Any, ...]
"""The values of a row, in the order of the columns after ``checkpoint``."""


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    """A table, and how the rows of a checkpoint are made from what ``needs`` reads."""

    name: str
    meaning: str
    needs: Needs
    own: tuple[TableColumn, ...]  # without ``checkpoint``, which every table has first
    rows: Callable[[Any], Iterable[Row]]

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """All columns."""
        return (TableColumn("checkpoint", pa.string(), "URI of the checkpoint"), *self.own)

    @property
    def schema(self) -> Any:
        """The columns as an Arrow schema."""
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])

    def batch(self, checkpoint: str, subject: Any) -> Any:
        """Make a record batch of the rows of a checkpoint."""
        return self.fill([(checkpoint, *row) for row in self.rows(subject)])

    def fill(self, rows: list[Row]) -> Any:
        """Make a record batch of complete rows."""
        values = list(zip(*rows, strict=True)) or [()] * len(self.columns)
        schema = self.schema
        arrays = [
            pa.array([_fit(value, kind) for value in column], kind)
            for column, kind in zip(values, schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _fit(value: Any, kind: Any) -> Any:
    """A value that a column takes: no number beyond 64 bits, no time beyond the year 9999, no secret."""
    if isinstance(value, str):
        return mask_secrets(value.encode("utf-8", "replace").decode())  # a file of UTF-8 cannot have half a character
    if isinstance(value, tuple | list):
        return [_fit(item, kind.value_type) for item in value]
    if kind == _TIME:
        return value * 1000 if value is not None and 0 < value < _YEAR_10000_MS else None
    if kind in (_LONG, _INT) and value is not None:
        return value if -_LARGEST <= value <= (_LARGEST if kind == _LONG else 2**31 - 1) else None
    return value


def _json(value: Any) -> str | None:
    return None if value is None else mask_json(json.dumps(value))


def _batches(checkpoint: Checkpoint) -> Iterator[Row]:
    planned = {batch.batch_id: batch for batch in history.batches(checkpoint, 0)}
    for batch_id in sorted({*planned, *checkpoint.commits.ids}):
        batch = planned.get(batch_id)
        logged = (batch.timestamp_ms, batch.watermark_ms, batch.unreadable) if batch else (None, None, None)
        yield batch_id, batch is not None, batch_id in checkpoint.commits, checkpoint.is_skipped(batch_id), *logged


def list_parts(view: SourceView) -> dict[tuple[str | None, int | None], int | None]:
    """The numbers of an offset, by topic or table and partition."""
    match view.record:
        case KafkaOffset(partitions):
            return {(topic, partition): offset for (topic, partition), offset in partitions.items()}
        case DeltaOffset(table, version):
            return {(table, None): version}
        case IcebergOffset(end) | FileOffset(end) | RateMicroBatchOffset(end) | NumberOffset(end):
            return {(None, None): end}
    return {(None, None): None}


def _offsets(checkpoint: Checkpoint) -> Iterator[Row]:
    rate = history.rate_sources(checkpoint)
    earlier: OffsetLog | None = None
    for batch_id in checkpoint.offsets.ids:
        log = checkpoint.offsets.readable(batch_id)
        if log is not None:
            views = source_views(earlier, rate) if earlier else ()
            before = {(view.name or view.index, view.type): list_parts(view) for view in views}
            committed = batch_id in checkpoint.commits
            for view in source_views(log, rate):
                starts = before.get((view.name or view.index, view.type), {})
                for (topic, partition), end in list_parts(view).items():
                    start = starts.get((topic, partition))
                    offset = _json(view.offset)
                    yield batch_id, committed, view.index, view.name, view.type, topic, partition, start, end, offset
        earlier = log if batch_id + 1 in checkpoint.offsets else None


def _commits(checkpoint: Checkpoint) -> Iterator[Row]:
    commits = checkpoint.commits
    for batch_id in commits.ids:
        commit, entry = commits.readable(batch_id), commits.entries.get(batch_id)
        info = checkpoint.listing.info(f"{commits.folder}/{batch_id}")
        logged: Row = (None, None, [])
        if commit:
            logged = commit.version, commit.next_watermark_ms, [sink.name for sink in commit.sinks]
        why = entry.reason if isinstance(entry, Unreadable) else None
        yield batch_id, batch_id in checkpoint.offsets, info.mtime_ms if info else None, *logged, why


def _sources(checkpoint: Checkpoint) -> Iterator[Row]:
    for view in history.sources(checkpoint):
        latest = checkpoint.offsets.latest
        yield view.index, view.name, view.type, latest, sorted(view.topics), _json(view.offset)


def _settings(checkpoint: Checkpoint) -> Iterator[Row]:
    for name, value in checkpoint.conf.items():
        pair = mask_secrets(f"{name}={value}")
        yield name, pair.removeprefix(f"{name}="), checkpoint.offsets.latest


def describe_checkpoint(row: ScannedCheckpoint, committed: int | None = None) -> Row:
    """Make the row of table ``checkpoints`` from that of a scan."""
    judged = row.name, row.query_id, row.kind, row.verdict, row.outcome, row.severity, row.codes, row.stateful
    batches = row.latest_batch, row.latest_ms, committed, row.uncommitted
    return (*judged, *batches, row.files, row.size, row.state_bytes, row.replay_files, row.deletable, row.error)


def _checkpoints(inspection: Inspection) -> Iterator[Row]:
    checkpoint = inspection.checkpoint
    yield describe_checkpoint(make_row(inspection, checkpoint.uri), checkpoint.commits.latest)


def _forecasts(inspection: Inspection) -> Iterator[Row]:
    for forecast in inspection.forecasts:
        start = forecast.spark, forecast.progress, forecast.outcome, forecast.batch_id, forecast.reexecutes
        codes = sorted({finding.diagnosis.code for finding in forecast.because})
        yield *start, forecast.error, forecast.never_run, codes, forecast in inspection.counted


def _findings(inspection: Inspection) -> Iterator[Row]:
    for rated in inspection.findings:
        diagnosis, finding = rated.finding.diagnosis, rated.finding
        words = (finding.path, finding.detail, str(rated.meaning), rated.remedy)
        yield diagnosis.code, diagnosis.name, rated.severity, *words


def _operators(inspection: Inspection) -> Iterator[Row]:
    for operator in inspection.checkpoint.operators:
        variables = [variable.name for variable in operator.variables]
        names = [store.name for store in operator.stores]
        yield operator.id, operator.name, names, variables, sum(store.bytes for store in operator.stores)


def _stores(inspection: Inspection) -> Iterator[Row]:
    state = inspection.checkpoint.state
    for operator, store in inspection.checkpoint.stores():
        assert state is not None
        form = operator.id, store.name, state.provider, state.format_version
        held = len(store.partitions), store.expected_partitions, store.bytes, store.num_keys, store.changelog
        replays = (partition.replay_versions for partition in store.partitions)
        ranges = store.readable_batches or ((None, None),)
        yield *form, *held, max((n for n in replays if n is not None), default=None), ranges[0][0], ranges[-1][1]


def _state_files(listing: Listing) -> Iterator[Row]:
    for operator in find_operators(listing, Provider.UNKNOWN):
        for partition in operator.partitions:
            for store, folder in stores_of(listing, f"{operator.path}/{partition}"):
                for within in (folder, f"{folder}/{SSTS}"):
                    for name, info in listing.in_folder(within).items():
                        parsed = parse_name(name)
                        if within != folder and name.endswith(f".{StateFileKind.SST}"):
                            kind, version, unique_id = StateFileKind.SST, None, None
                        elif parsed is not None and within == folder:
                            kind, version, unique_id = parsed.kind, parsed.version, parsed.unique_id
                        else:
                            continue
                        path = f"{within}/{name}"
                        yield operator.id, partition, store, kind, version, unique_id, path, info.size, info.mtime_ms


_ROWS: Mapping[str, Callable[[Any], Iterable[Row]]] = {
    "checkpoints": _checkpoints,
    "batches": _batches,
    "offsets": _offsets,
    "commits": _commits,
    "sources": _sources,
    "settings": _settings,
    "forecasts": _forecasts,
    "findings": _findings,
    "operators": _operators,
    "stores": _stores,
    "state_files": _state_files,
}
_TYPES = {
    "text": pa.string(),
    "long": _LONG,
    "int": _INT,
    "yes": pa.bool_(),
    "time": _TIME,
    "texts": pa.list_(pa.string()),
    "longs": pa.list_(_LONG),
}


def _declare(name: str, needs: str, meaning: str, columns: Mapping[str, Sequence[str]]) -> TableDeclaration:
    own = tuple(TableColumn(column, _TYPES[kind], text) for column, (kind, text) in columns.items())
    return TableDeclaration(name, meaning, Needs(needs), own, _ROWS[name])


_FILE = files("ckpt.tables").joinpath("tables.toml").read_text(encoding="utf-8")
TABLES = {name: _declare(name, **table) for name, table in tomllib.loads(_FILE).items()}
