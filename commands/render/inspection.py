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

    at_least: Annotated[
        str | None,
        "the earliest Spark minor version, such as 4.2, that could have written the files, if they prove one",
    ]
    evidence: tuple[Annotated[str, "the proof of `at_least`"], ...]
    at_most: Annotated[
        str | None, "the latest version that could have written the newest offsets, if the files prove one"
    ] = None
    platform: Annotated[
        str | None, "the writer, such as `Databricks Runtime 18.0`, if it was not a version of Apache Spark"
    ] = None
    newer: tuple[Annotated[str, "something that no known version writes, but that a newer version may write"], ...] = ()


class CheckpointKeys(Keys):
    """The checkpoint of a document."""

    path: Annotated[str, "as given", of("checkpoint.uri")]
    kind: Annotated[Kind, of("checkpoint.kind")]
    query_id: Annotated[str | None, "from `metadata`", of("checkpoint.query_id")]
    written_by: WrittenByKeys
    stateful: Annotated[bool | None, "null if unknown from the files", of("checkpoint.stateful")]
    files: Annotated[int, of("checkpoint.listing.files")]
    bytes: Annotated[int, of("checkpoint.listing.bytes")]
    pipeline: Annotated[
        FlowVersion | None, "the checkpoint's place in a declarative pipeline; null if none", of("checkpoint.flow")
    ] = None


def _versions(log: Log[Any]) -> set[int]:
    return {entry.version for entry in log.entries.values() if not isinstance(entry, Unreadable)}


def _metadata(checkpoint: Checkpoint) -> OffsetMetadata | None:
    offsets = checkpoint.offsets.readable(checkpoint.offsets.latest)
    return offsets.metadata if offsets else None


class _Log(Keys):
    first: Annotated[int | None, "lowest batch id", lambda log: min(log.ids, default=None)]
    last: Annotated[int | None, "highest batch id", of("latest")]
    count: Annotated[int, "how many batches have a file", lambda log: len(log.ids)]
    missing: Annotated[
        tuple[Annotated[tuple[int, int], "`[from, to]`, both missing"], ...], "gaps between first and last"
    ]
    unreadable: tuple[Annotated[int, "a batch whose file cannot be read"], ...]
    formats: Annotated[
        tuple[Annotated[str, "a version line found in these files, such as `v1`"], ...],
        lambda log: [f"v{version}" for version in sorted(_versions(log))],
    ]


class _Advance(Keys):
    amount: int | None
    unit: Annotated[str, "the unit of the amount"]
    new_partitions: Annotated[int, NEW_PARTITIONS] = 0


class _Batch(Keys, record=Batch, keys="batch_id timestamp_ms watermark_ms committed unreadable advanced"):
    advanced: Annotated[tuple[Annotated[_Advance | None, "null if unknown"], ...], "one element per source"]


class _Batches(Keys):
    offsets: Annotated[_Log, "the folder `offsets/`", of("checkpoint.offsets")]
    commits: Annotated[_Log, "the folder `commits/`: the same keys", of("checkpoint.commits")]
    uncommitted: tuple[Annotated[int, "in `offsets/` and not in `commits/`"], ...]
    unplanned: tuple[Annotated[int, "in `commits/` and not in `offsets/`"], ...]
    pattern: Annotated[
        Pattern,
        "`async-progress`: a stateless query with at least one gap, offsets for every commit, and at most the latest "
        "batch uncommitted (ignoring batches without rows); this pattern does not prove the origin",
    ]
    shown: Annotated[tuple[_Batch, ...], "the newest batches, oldest first", of("batches")]


class _Latest(Keys):
    offset_batch: Annotated[int | None, of("offsets.latest")]
    committed_batch: Annotated[int | None, of("commits.latest")]
    committed_watermark_ms: Annotated[
        int | None,
        "the watermark after the committed batch",
        lambda checkpoint: getattr(checkpoint.commits.newest, "next_watermark_ms", None),
    ]
    watermark_ms: Annotated[int | None, lambda checkpoint: getattr(_metadata(checkpoint), "watermark_ms", None)]
    timestamp_ms: Annotated[int | None, lambda checkpoint: getattr(_metadata(checkpoint), "timestamp_ms", None)]
    conf: Annotated[
        Mapping[str, str],
        "recorded settings, as a map from names to text; they override the session's settings",
        lambda checkpoint: getattr(_metadata(checkpoint), "conf", {}),
    ]


class SourceKeys(Keys):
    """The position of one source."""

    index: int
    name: Annotated[str | None, "offset log v2 names sources"]
    type: Annotated[SourceType, "a `ckpt.sources` plugin may name other types"]
    offset: Annotated[Json, "as in the offset log; null if there is no offset or `well_formed` is false"]
    well_formed: Annotated[bool, "the offset can be read, or no offset exists"]
    decoded: Annotated[Mapping[str, Json], "its meaning, for known types"]
    live: Annotated[LiveKeys | None, "the answer to `--sources`; null if the source was not asked"]


class _Range(Keys):
    index: int
    from_: Annotated[Json, "an offset, or null for the beginning of the source", of("start")]
    to: Annotated[Json, "an offset; null for a new batch", of("end")]


class ReadRangeKeys(Keys):
    """A range of a source, and how far the source goes in it."""

    index: int
    from_: Annotated[Json, "an offset, or null for the beginning of the source or partition", of("start")]
    to: Annotated[Json, "an offset, or null if unknown", of("end")]
    amount: Annotated[int | None, lambda reading: getattr(reading.advance, "amount", None)]
    unit: Annotated[str | None, "the unit of the amount", lambda reading: getattr(reading.advance, "unit", None)]
    new_partitions: Annotated[int, NEW_PARTITIONS, lambda reading: getattr(reading.advance, "new_partitions", 0)]


class RestartKeys(Keys):
    """One forecast."""

    spark: Annotated[str, "a minor version of Spark, such as 4.2; later ckpt versions may know later versions"]
    progress: Progress
    outcome: Outcome
    batch_id: Annotated[int | None, "the batch that runs, or would run, first"]
    reexecutes: Annotated[bool | None, "whether that batch was already planned"]
    sources: Annotated[tuple[_Range, ...], "the offsets it reads"]
    error: Annotated[str | None, "words that Spark's own message will contain"]
    never_run: tuple[Annotated[int, "a planned batch that no start will run or replay"], ...]
    lost: tuple[Annotated[int, "a batch in `never_run` that had rows, or may have had rows"], ...]
    because: Annotated[
        tuple[Annotated[str, "code of a finding that explains the forecast"], ...],
        lambda forecast: sorted({finding.diagnosis.code for finding in forecast.because}),
    ]
    reasons: Annotated[
        tuple[Annotated[tuple[str, str], "`[code, path]` of such a finding"], ...],
        lambda forecast: tuple(dict.fromkeys(finding.key for finding in forecast.because)),
    ]


class _Partition(Keys, record=PartitionState, keys="partition bytes num_keys newest_version replay_versions"): ...


class _Family(Keys):
    name: str
    key_schema: Annotated[Json, "a StructType as Spark writes it"]
    value_schema: Json


class _Store(Keys):
    name: str
    partitions: Annotated[int, lambda store: len(store.partitions)]
    num_keys: Annotated[int | None, "null if no file records it"]
    bytes: int
    changelog: Annotated[bool, "RocksDB with changelog checkpointing"]
    readable_batches: tuple[
        Annotated[
            tuple[int, int],
            "`[from, to]`: batches whose state files are complete in every partition; Spark also needs the schemas "
            "(see CKPT305 and CKPT311)",
        ],
        ...,
    ]
    newest_snapshot_version: Annotated[int | None, "the newest snapshot version that every partition has"]
    column_families: Annotated[tuple[str, ...], lambda store: [family.name for family in store.column_families]]
    key_schema: Annotated[Json, "a StructType as Spark writes it, or null"]
    value_schema: Json
    families: Annotated[tuple[_Family, ...], "the column families with their schemas", of("column_families")]
    per_partition: Annotated[tuple[_Partition, ...], of("partitions")]


class _Operator(Keys):
    id: int
    name: Annotated[str | None, "Spark versions before 4.0 do not record the name"]
    has_metadata: Annotated[bool, "operator metadata exists"]
    properties: Annotated[Json, "as in operator metadata: `operatorPropertiesJson`"]
    variables: Annotated[tuple[StateVariable, ...], "of transformWithState"]
    stores: tuple[_Store, ...]


class _State(Keys):
    provider: Provider
    format_version: Annotated[int, "state store checkpoint format: 1 or 2"]
    operators: tuple[_Operator, ...]


class FindingKeys(Keys):
    """One finding."""

    code: Annotated[str, "never reused", of("finding.diagnosis.code")]
    name: Annotated[str, of("finding.diagnosis.name")]
    severity: Annotated[Severity, "an error stops a restart, loses data or makes state unreadable"]
    path: Annotated[str, "relative to the checkpoint", of("finding.path")]
    meaning: ForPeople
    detail: Annotated[str, "for people; the wording may change", of("finding.detail")]
    remedy: Annotated[
        str | None, "a ckpt command, a Spark setting or exact manual steps; commands and code are in backquotes"
    ]
    advice: Annotated[
        Json,
        "`remedy` as data, for `ckpt preflight`; null without a remedy, or if an earlier finding of this code has the "
        "same remedy",
    ] = None
    stored: Annotated[bool, "the files show the finding for every start; false if only some starts are affected"]


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

    verdict: Annotated[str, "one sentence for people; the wording may change"]
    cause: Annotated[Cause | None, "the worst finding, named by the verdict; null if none is worse than a note"] = None
    checkpoint: Annotated[CheckpointKeys, itself]
    deep: Annotated[bool, "every byte of the state was read, and its rows were decoded"]
    not_read: Annotated[
        NotRead | None,
        "state files that the next start loads, but that were not read completely or do not match any checksum",
    ] = None
    batches: Annotated[_Batches, itself]
    latest: Annotated[_Latest, of("checkpoint")]
    sources: Annotated[tuple[SourceKeys, ...], "the position of each source at the end of the latest batch"]
    restart: Annotated[
        tuple[RestartKeys, ...], "one forecast for each requested Spark version and progress mode", of("forecasts")
    ]
    state: Annotated[_State | None, "null if there is no state", of("checkpoint.state")]
    space: Annotated[Space, "bytes of files that no restart needs ([space](scan.md#space))"]
    sink: Annotated[SinkKeys | None, "the findings of `--sink`; null if the sink was not asked"]
    not_asked: Annotated[
        tuple[Literal["sources", "sink"], ...], "sources or a sink that were not checked but could show more losses"
    ]
    findings: Annotated[tuple[Annotated[FindingKeys, "see [findings](findings.md)"], ...], "worst first"]


def source_keys(source: SourceView, live: Sequence[SourceOutlook] = ()) -> Document:
    """The position of one source, and what it has now if it was asked."""
    return derive(SourceKeys, source, live=live_keys(live, source.index))
