"""An inspection as the JSON document of the contract, and the parts of it that other documents have too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from ckpt.checkpoint.checkpoint import Checkpoint, Log
from ckpt.checkpoint.history import Batch, Pattern
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView, advance
from ckpt.inspection.inspection import Inspection, RatedFinding, Space
from ckpt.live.outlook import SourceOutlook
from ckpt.model import Json, Kind, Operator, Provider, StateInventory, Store, Unreadable
from ckpt.restart.findings import Severity
from ckpt.restart.forecast import Forecast, Outcome, SourceRange
from ckpt.versions import Progress, __version__

from .keys import copied
from .live import LiveKeys, live_keys
from .sink import SinkKeys, sink_keys

SCHEMA = 1
Document = Mapping[str, Any]
"""A document whose keys are not declared."""


@dataclass(frozen=True, slots=True)
class ToolKeys:
    """The program that wrote a document."""

    version: Annotated[str, "of ckpt"] = __version__
    schema: Annotated[int, "of this document: 1"] = SCHEMA


@dataclass(frozen=True, slots=True)
class WrittenByKeys:
    """The Spark version that wrote a checkpoint, as far as its files prove one."""

    at_least: Annotated[
        str | None,
        "the earliest minor version of Spark, such as 4.2, that can have written it, if the files prove one",
    ]
    evidence: tuple[Annotated[str, "what proves it"], ...]


@dataclass(frozen=True, slots=True)
class CheckpointKeys:
    """The checkpoint of a document."""

    path: Annotated[str, "as given"]
    kind: Kind
    query_id: Annotated[str | None, "from `metadata`"]
    written_by: WrittenByKeys
    stateful: Annotated[bool | None, "null if the files do not say"]
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LogKeys:
    """The folder ``offsets/`` or ``commits/``."""

    first: Annotated[int | None, "lowest batch id"]
    last: Annotated[int | None, "highest batch id"]
    count: Annotated[int, "how many batches have a file"]
    missing: Annotated[
        tuple[Annotated[tuple[int, int], "`[from, to]`, both missing"], ...], "gaps between first and last"
    ]
    unreadable: tuple[Annotated[int, "a batch whose file cannot be read"], ...]
    formats: tuple[Annotated[str, "a version line that was seen, such as `v1`"], ...]


@dataclass(frozen=True, slots=True)
class AdvanceKeys:
    """How far a batch advanced a source."""

    amount: int | None
    unit: Annotated[str, "what the amount counts"]


@dataclass(frozen=True, slots=True)
class BatchKeys:
    """One planned batch."""

    batch_id: int
    timestamp_ms: Annotated[int | None, "when it was planned"]
    watermark_ms: int | None
    committed: bool
    unreadable: Annotated[str | None, "why its offsets cannot be read"]
    advanced: Annotated[tuple[Annotated[AdvanceKeys | None, "null if unknown"], ...], "one element per source"]


@dataclass(frozen=True, slots=True)
class BatchesKeys:
    """Both logs, and the newest batches."""

    offsets: Annotated[LogKeys, "the folder `offsets/`"]
    commits: Annotated[LogKeys, "the folder `commits/`: the same keys"]
    uncommitted: tuple[Annotated[int, "in `offsets/` and not in `commits/`"], ...]
    unplanned: tuple[Annotated[int, "in `commits/` and not in `offsets/`"], ...]
    pattern: Annotated[
        Pattern,
        "`async-progress`: at least one gap, every commit has its offsets, at most the latest batch is uncommitted "
        "(ignoring those without rows), stateless; a shape, not a proof of origin",
    ]
    shown: Annotated[tuple[BatchKeys, ...], "the newest batches, oldest first"]


@dataclass(frozen=True, slots=True)
class LatestKeys:
    """The newest batch of each log."""

    offset_batch: int | None
    committed_batch: int | None
    watermark_ms: int | None
    timestamp_ms: int | None
    conf: Annotated[Mapping[str, str], "recorded settings, name to text; they override the session's"]


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The position of one source."""

    index: int
    name: Annotated[str | None, "offset log v2 names sources"]
    type: SourceType
    offset: Annotated[Json, "as in the offset log"]
    decoded: Annotated[Mapping[str, Json], "its meaning, for known types"]
    live: Annotated[LiveKeys | None, "what `--sources` was answered; null: not asked"]


@dataclass(frozen=True, slots=True)
class RangeKeys:
    """The part of one source that a batch reads."""

    index: int
    from_: Annotated[Json, "an offset, or null for the beginning of the source"]
    to: Annotated[Json, "an offset; null for a new batch"]


@dataclass(frozen=True, slots=True)
class RestartKeys:
    """One forecast."""

    spark: Annotated[str, "a minor version of Spark, such as 4.2; later versions of ckpt know later ones"]
    progress: Progress
    outcome: Outcome
    batch_id: Annotated[int | None, "the batch that runs, or would run, first"]
    reexecutes: Annotated[bool | None, "whether that batch was planned before"]
    sources: Annotated[tuple[RangeKeys, ...], "what it reads"]
    error: Annotated[str | None, "words that Spark's own message will contain"]
    never_run: tuple[Annotated[int, "a planned batch that no start will run or replay"], ...]
    because: tuple[Annotated[str, "code of a finding that explains it"], ...]


@dataclass(frozen=True, slots=True)
class VariableKeys:
    """A state variable of transformWithState."""

    name: str
    kind: Annotated[str, "as Spark names it: ValueState, ListState, MapState, TimerState"]
    ttl: bool


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """One partition of a state store."""

    partition: int
    bytes: int
    num_keys: int | None
    newest_version: int | None
    replay_versions: Annotated[int | None, "how many versions a load of the required one replays"]


@dataclass(frozen=True, slots=True)
class StoreKeys:
    """One state store."""

    name: str
    partitions: int
    num_keys: Annotated[int | None, "null if no file records it"]
    bytes: int
    changelog: Annotated[bool, "RocksDB with changelog checkpointing"]
    readable_batches: tuple[
        Annotated[
            tuple[int, int],
            "`[from, to]`: batches whose state files are complete in every partition; Spark needs the schemas too, "
            "see CKPT305 and CKPT311",
        ],
        ...,
    ]
    newest_snapshot_version: Annotated[int | None, "that every partition has"]
    column_families: tuple[str, ...]
    key_schema: Annotated[Json, "a StructType as Spark writes it, or null"]
    value_schema: Json
    per_partition: tuple[PartitionKeys, ...]


@dataclass(frozen=True, slots=True)
class OperatorKeys:
    """One stateful operator."""

    id: int
    name: Annotated[str | None, "Spark before 4.0 does not record it"]
    variables: Annotated[tuple[VariableKeys, ...], "of transformWithState"]
    stores: tuple[StoreKeys, ...]


@dataclass(frozen=True, slots=True)
class StateKeys:
    """The folder ``state/``."""

    provider: Provider
    format_version: Annotated[int, "state store checkpoint format: 1 or 2"]
    operators: tuple[OperatorKeys, ...]


@dataclass(frozen=True, slots=True)
class FindingKeys:
    """One finding."""

    code: Annotated[str, "never reused"]
    name: str
    severity: Annotated[Severity, "error: stops a restart, loses data or makes state unreadable"]
    path: Annotated[str, "relative to the checkpoint"]
    meaning: Annotated[str, "for people; its words are not fixed"]
    detail: Annotated[str, "for people; its words are not fixed"]
    remedy: Annotated[
        str | None, "a ckpt command, a Spark setting or exact manual steps; commands and code stand in backquotes"
    ]


@dataclass(frozen=True, slots=True)
class InspectionDocument:
    """The document of ``ckpt inspect``."""

    ckpt: ToolKeys
    verdict: Annotated[str, "one sentence for people; its words are not fixed"]
    checkpoint: CheckpointKeys
    batches: BatchesKeys
    latest: LatestKeys
    sources: Annotated[tuple[SourceKeys, ...], "the position of each at the end of the latest batch"]
    restart: Annotated[tuple[RestartKeys, ...], "one for each requested Spark version and progress mode"]
    state: Annotated[StateKeys | None, "null if there is no state"]
    space: Annotated[Space, "bytes of files that no restart needs ([space](scan.md#space))"]
    sink: Annotated[SinkKeys | None, "what `--sink` found; null: not asked"]
    findings: Annotated[tuple[Annotated[FindingKeys, "see [findings](findings.md)"], ...], "worst first"]


def inspection_document(inspection: Inspection) -> InspectionDocument:
    """The document of an inspection."""
    checkpoint = inspection.checkpoint
    return InspectionDocument(
        ckpt=ToolKeys(),
        verdict=inspection.verdict,
        checkpoint=checkpoint_keys(inspection),
        batches=BatchesKeys(
            offsets=_log(checkpoint.offsets),
            commits=_log(checkpoint.commits),
            uncommitted=inspection.uncommitted,
            unplanned=inspection.unplanned,
            pattern=inspection.pattern,
            shown=tuple(map(_batch, inspection.batches)),
        ),
        latest=_latest(checkpoint),
        sources=tuple(source_keys(source, inspection.live) for source in inspection.sources),
        restart=tuple(map(restart_keys, inspection.forecasts)),
        state=_state(checkpoint.state) if checkpoint.state is not None else None,
        space=inspection.space,
        sink=sink_keys(inspection.sink),
        findings=tuple(map(finding_keys, inspection.findings)),
    )


def checkpoint_keys(inspection: Inspection) -> CheckpointKeys:
    """The checkpoint of a document."""
    checkpoint = inspection.checkpoint
    return copied(
        CheckpointKeys,
        checkpoint,
        path=checkpoint.uri,
        written_by=copied(WrittenByKeys, inspection.written_by),
        files=checkpoint.listing.files,
        bytes=checkpoint.listing.bytes,
    )


def _batch(batch: Batch) -> BatchKeys:
    return copied(BatchKeys, batch, advanced=[each and copied(AdvanceKeys, each) for each in batch.advanced])


def _log(log: Log[Any]) -> LogKeys:
    versions = {entry.version for entry in log.entries.values() if not isinstance(entry, Unreadable)}
    return LogKeys(
        first=log.ids[0] if log.ids else None,
        last=log.latest,
        count=len(log.ids),
        missing=tuple(log.missing),
        unreadable=tuple(log.unreadable),
        formats=tuple(f"v{version}" for version in sorted(versions)),
    )


def _latest(checkpoint: Checkpoint) -> LatestKeys:
    offsets = checkpoint.offsets.readable(checkpoint.offsets.latest)
    metadata = offsets.metadata if offsets else None
    return LatestKeys(
        offset_batch=checkpoint.offsets.latest,
        committed_batch=checkpoint.commits.latest,
        watermark_ms=metadata.watermark_ms if metadata else None,
        timestamp_ms=metadata.timestamp_ms if metadata else None,
        conf=metadata.conf if metadata else {},
    )


def source_keys(source: SourceView, live: Sequence[SourceOutlook] = ()) -> SourceKeys:
    """The position of one source, and what it has now if it was asked."""
    return copied(SourceKeys, source, live=live_keys(live, source.index))


def restart_keys(forecast: Forecast) -> RestartKeys:
    """One forecast."""
    return copied(
        RestartKeys,
        forecast,
        sources=[RangeKeys(reading.index, reading.start, reading.end) for reading in forecast.sources],
        because=sorted({finding.diagnosis.code for finding in forecast.because}),
    )


def grown_range(reading: SourceRange) -> Document:
    """A range with how far the source goes in it."""
    grown = None if reading.end is None else advance(reading.start, reading.end)
    amount, unit = (grown.amount, grown.unit) if grown else (None, None)
    return {"index": reading.index, "from": reading.start, "to": reading.end, "amount": amount, "unit": unit}


def _state(state: StateInventory) -> StateKeys:
    return copied(StateKeys, state, operators=tuple(map(_operator, state.operators)))


def _operator(operator: Operator) -> OperatorKeys:
    return copied(
        OperatorKeys,
        operator,
        variables=[copied(VariableKeys, variable) for variable in operator.variables],
        stores=tuple(map(_store, operator.stores)),
    )


def _store(store: Store) -> StoreKeys:
    return copied(
        StoreKeys,
        store,
        partitions=len(store.partitions),
        column_families=[family.name for family in store.column_families],
        per_partition=[copied(PartitionKeys, partition) for partition in store.partitions],
    )


def finding_keys(rated: RatedFinding) -> FindingKeys:
    """One finding."""
    finding = rated.finding
    return copied(
        FindingKeys,
        rated,
        code=finding.diagnosis.code,
        name=finding.diagnosis.name,
        path=finding.path,
        detail=finding.detail,
    )
