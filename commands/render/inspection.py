"""An inspection as the JSON document of the contract, and the parts of it that other documents have too."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from ckpt.checkpoint.checkpoint import Checkpoint, Log
from ckpt.checkpoint.history import Batch, Pattern
from ckpt.checkpoint.pipelines import FlowVersion
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.inspection.inspection import Cause, RatedFinding, Space
from ckpt.live.outlook import SourceOutlook
from ckpt.model import Json, Kind, NotRead, OffsetMetadata, PartitionState, Provider, StateVariable, Unreadable
from ckpt.restart.findings import Outcome, Severity
from ckpt.versions import Progress

from .advice import to_data
from .document import Document, DocumentKeys
from .keys import ForPeople, Keys, derive, itself, of
from .live import LiveKeys, SinkKeys, live_keys

NEW_PARTITIONS = "Kafka partitions not named in any earlier batch; the amount excludes them"


class WrittenByKeys(Keys):
    """The minor versions of Spark that can have written a checkpoint."""

    at_least: str | None
    evidence: tuple[str, ...]
    at_most: str | None = None
    platform: str | None = None
    newer: tuple[str, ...] = ()


class CheckpointKeys(Keys):
    """The checkpoint of a document."""

    path: Annotated[str, of("checkpoint.uri")]
    kind: Annotated[Kind, of("checkpoint.kind")]
    query_id: Annotated[str | None, of("checkpoint.query_id")]
    written_by: WrittenByKeys
    stateful: Annotated[bool | None, of("checkpoint.stateful")]
    files: Annotated[int, of("checkpoint.listing.files")]
    bytes: Annotated[int, of("checkpoint.listing.bytes")]
    pipeline: Annotated[FlowVersion | None, of("checkpoint.flow")] = None


def _versions(log: Log[Any]) -> set[int]:
    return {entry.version for entry in log.entries.values() if not isinstance(entry, Unreadable)}


def _metadata(checkpoint: Checkpoint) -> OffsetMetadata | None:
    offsets = checkpoint.offsets.readable(checkpoint.offsets.latest)
    return offsets.metadata if offsets else None


class _Log(Keys):
    first: Annotated[int | None, lambda log: min(log.ids, default=None)]
    last: Annotated[int | None, of("latest")]
    count: Annotated[int, lambda log: len(log.ids)]
    missing: tuple[tuple[int, int], ...]
    unreadable: tuple[int, ...]
    formats: Annotated[tuple[str, ...], lambda log: [f"v{version}" for version in sorted(_versions(log))]]


class _Advance(Keys):
    amount: int | None
    unit: str
    new_partitions: Annotated[int, NEW_PARTITIONS] = 0


class _Batch(Keys, record=Batch, keys="batch_id timestamp_ms watermark_ms committed unreadable advanced"):
    advanced: tuple[_Advance | None, ...]


class _Batches(Keys):
    offsets: Annotated[_Log, of("checkpoint.offsets")]
    commits: Annotated[_Log, of("checkpoint.commits")]
    uncommitted: tuple[int, ...]
    unplanned: tuple[int, ...]
    pattern: Pattern
    shown: Annotated[tuple[_Batch, ...], of("batches")]


class _Latest(Keys):
    offset_batch: Annotated[int | None, of("offsets.latest")]
    committed_batch: Annotated[int | None, of("commits.latest")]
    committed_watermark_ms: Annotated[
        int | None, lambda checkpoint: getattr(checkpoint.commits.newest, "next_watermark_ms", None)
    ]
    watermark_ms: Annotated[int | None, lambda checkpoint: getattr(_metadata(checkpoint), "watermark_ms", None)]
    timestamp_ms: Annotated[int | None, lambda checkpoint: getattr(_metadata(checkpoint), "timestamp_ms", None)]
    conf: Annotated[Mapping[str, str], lambda checkpoint: getattr(_metadata(checkpoint), "conf", {})]


class SourceKeys(Keys):
    """The position of one source."""

    index: int
    name: str | None
    type: SourceType
    offset: Json
    well_formed: bool
    decoded: Mapping[str, Json]
    live: LiveKeys | None


class _Range(Keys):
    index: int
    from_: Annotated[Json, of("start")]
    to: Annotated[Json, of("end")]


class ReadRangeKeys(Keys):
    """A range of a source, and how far the source goes in it."""

    index: int
    from_: Annotated[Json, of("start")]
    to: Annotated[Json, of("end")]
    amount: Annotated[int | None, lambda reading: getattr(reading.advance, "amount", None)]
    unit: Annotated[str | None, lambda reading: getattr(reading.advance, "unit", None)]
    new_partitions: Annotated[int, NEW_PARTITIONS, lambda reading: getattr(reading.advance, "new_partitions", 0)]


class SourceReadKeys(Keys):
    """A source, and what some batches read of it."""

    index: Annotated[int, of("view.index")]
    name: Annotated[str | None, of("view.name")]
    type: Annotated[SourceType, of("view.type")]
    from_: Annotated[Json, of("range.start")]
    to: Annotated[Json, of("range.end")]
    amount: Annotated[int | None, lambda read: getattr(read.range.advance, "amount", None)]
    unit: Annotated[str | None, lambda read: getattr(read.range.advance, "unit", None)]
    new_partitions: Annotated[int, NEW_PARTITIONS, lambda read: getattr(read.range.advance, "new_partitions", 0)]


class RestartKeys(Keys):
    """One forecast."""

    spark: str
    progress: Progress
    outcome: Outcome
    batch_id: int | None
    reexecutes: bool | None
    sources: tuple[_Range, ...]
    error: str | None
    never_run: tuple[int, ...]
    lost: tuple[int, ...]
    because: Annotated[
        tuple[str, ...], lambda forecast: sorted({finding.diagnosis.code for finding in forecast.because})
    ]
    reasons: Annotated[
        tuple[tuple[str, str], ...], lambda forecast: tuple(dict.fromkeys(finding.key for finding in forecast.because))
    ]


class _Partition(Keys, record=PartitionState, keys="partition bytes num_keys newest_version replay_versions"): ...


class _Family(Keys):
    name: str
    key_schema: Json
    value_schema: Json


class _Store(Keys):
    name: str
    partitions: Annotated[int, lambda store: len(store.partitions)]
    num_keys: int | None
    bytes: int
    changelog: bool
    readable_batches: tuple[tuple[int, int], ...]
    newest_snapshot_version: int | None
    column_families: Annotated[tuple[str, ...], lambda store: [family.name for family in store.column_families]]
    key_schema: Json
    value_schema: Json
    families: Annotated[tuple[_Family, ...], of("column_families")]
    per_partition: Annotated[tuple[_Partition, ...], of("partitions")]


class _Operator(Keys):
    id: int
    name: str | None
    has_metadata: bool
    properties: Json
    variables: tuple[StateVariable, ...]
    stores: tuple[_Store, ...]


class _State(Keys):
    provider: Provider
    format_version: int
    operators: tuple[_Operator, ...]


class FindingKeys(Keys):
    """One finding."""

    code: Annotated[str, of("finding.diagnosis.code")]
    name: Annotated[str, of("finding.diagnosis.name")]
    severity: Severity
    path: Annotated[str, of("finding.path")]
    meaning: ForPeople
    detail: Annotated[str, of("finding.detail")]
    remedy: str | None
    advice: Json = None
    stored: bool


def finding_keys(findings: Iterable[RatedFinding]) -> tuple[Document, ...]:
    """Return the findings of a document, in which the same advice stands once."""
    stated: set[tuple[str, str | None]] = set()
    made = []
    for rated in findings:
        remedy = (rated.code, rated.remedy)
        made.append(derive(FindingKeys, rated, advice=None if remedy in stated else to_data(rated.advice)))
        stated.add(remedy)
    return tuple(made)


class InspectionDocument(DocumentKeys):
    """The document of ``ckpt inspect``."""

    verdict: str
    cause: Cause | None = None
    checkpoint: Annotated[CheckpointKeys, itself]
    deep: bool
    not_read: NotRead | None = None
    batches: Annotated[_Batches, itself]
    latest: Annotated[_Latest, of("checkpoint")]
    sources: tuple[SourceKeys, ...]
    restart: Annotated[tuple[RestartKeys, ...], of("forecasts")]
    state: Annotated[_State | None, of("checkpoint.state")]
    space: Space
    sink: SinkKeys | None
    not_asked: tuple[Literal["sources", "sink"], ...]
    findings: tuple[FindingKeys, ...]


def source_keys(source: SourceView, live: Sequence[SourceOutlook] = ()) -> Document:
    """The position of one source, and what it has now if it was asked."""
    return derive(SourceKeys, source, live=live_keys(live, source.index))
