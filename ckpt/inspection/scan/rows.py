"""One checkpoint as one line: what ``ckpt inspect`` says of it, in numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from ckpt.checkpoint.history import sources
from ckpt.checkpoint.pipelines import FlowVersion, parse_version
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.inspection.inspection import Inspection
from ckpt.live.records import KafkaNow
from ckpt.model import Kind, NotRead
from ckpt.restart.findings import Outcome, Severity, worst

Number = TypeVar("Number", int, float)
_WORST_LAST = (
    Outcome.RESUMES,
    Outcome.STARTS_FRESH,
    Outcome.UNKNOWN,
    Outcome.REFUSED,
    Outcome.FAILS_AT_COMMIT,
    Outcome.FAILS_IN_BATCH,
    Outcome.FAILS_AT_START,
)


@dataclass(frozen=True, slots=True)
class WorstFinding:
    """The first of the warnings and errors of a checkpoint."""

    code: str
    name: str
    path: Annotated[str, "relative to the checkpoint"]
    detail: str
    remedy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedCheckpoint:
    """One checkpoint in a scan. With an ``error`` it could not be looked at, and the rest is unknown."""

    path: Annotated[str, "as for `ckpt inspect`"]
    name: Annotated[str, "its last folder, with the parent folder if it is called `checkpoint` or similar"]
    verdict: Annotated[str | None, "the verdict of `ckpt inspect`; its words are not fixed"] = None
    outcome: Annotated[Outcome | None, "the worst outcome in the forecasts that decide the verdict"] = None
    kind: Kind | None = None
    query_id: str | None = None
    stateful: bool | None = None
    latest_batch: Annotated[int | None, "planned"] = None
    latest_ms: Annotated[int | None, "when it was planned; if not recorded, when its file was written"] = None
    uncommitted: Annotated[int | None, "how many planned batches have no commit"] = None
    files: int | None = None
    size: int | None = None  # bytes, of all files
    state_bytes: Annotated[int | None, "including old versions; null without state"] = None
    state_growth: Annotated[
        float | None,
        "bytes per batch, from the oldest to the newest snapshot of each partition; null if no partition has two, "
        "and for RocksDB state with more than 1,000 partitions (remote: 120)",
    ] = None
    snapshot_lag: Annotated[
        int | None, "most versions that a partition replays after its newest snapshot at the next start"
    ] = None
    replay_files: Annotated[int | None, "deltas and changelogs that the next start replays, in all partitions"] = None
    deletable: int | None = None  # bytes of files that no restart needs, as far as names and sizes say
    not_read: Annotated[NotRead | None, "state files that the next start loads but that were not read completely"] = (
        None
    )
    lag: Annotated[int | None, "with `--sources`: unread Kafka offsets; null: not asked, or unknown"] = None
    lost: Annotated[int | None, "those of them that a start with `failOnDataLoss=false` would never read"] = None
    sources_error: Annotated[
        str | None, "why its sources could not be asked; the other values are as without `--sources`"
    ] = None
    positions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # where its latest batch ends in topics
    findings: Mapping[str, int] = field(default_factory=dict)  # by severity
    codes: tuple[Annotated[str, "of warnings and errors, worst first"], ...] = ()
    worst: Annotated[WorstFinding | None, "the first of them"] = None
    error: Annotated[str | None, "why it could not be read; the other values are then null"] = None
    pipeline: Annotated[FlowVersion | None, "its place in a declarative pipeline; null: in none"] = None
    points: Annotated[
        tuple[str, ...], "if it is a point of `ckpt copy --keep`: all points of its query, oldest first"
    ] = ()

    @property
    def severity(self) -> Severity | None:
        """The worst of what was found; what could not be looked at counts as an error."""
        if self.error is not None:
            return Severity.ERROR
        return worst(Severity(name) for name, count in self.findings.items() if count)

    def fails(self, least: Severity) -> bool:
        """Tell whether the worst finding is as bad as ``least``, or worse."""
        return self.severity is not None and self.severity.rank >= least.rank


def make_row(inspection: Inspection, path: str, sources_error: str | None = None) -> ScannedCheckpoint:
    """Make the row of a checkpoint that was inspected; pure."""
    checkpoint = inspection.checkpoint
    stores = [store for _, store in checkpoint.stores()]
    replays = (partition.replay_versions for store in stores for partition in store.partitions)
    replayed = [versions for versions in replays if versions is not None]
    return ScannedCheckpoint(
        path=path,
        name=short_name(path),
        verdict=inspection.verdict,
        outcome=max((forecast.outcome for forecast in inspection.counted), key=_WORST_LAST.index, default=None),
        kind=checkpoint.kind,
        query_id=checkpoint.query_id,
        stateful=checkpoint.stateful,
        latest_batch=checkpoint.offsets.latest,
        latest_ms=_find_latest_ms(inspection),
        uncommitted=len(inspection.uncommitted),
        files=checkpoint.listing.files,
        size=checkpoint.listing.bytes,
        state_bytes=sum(store.bytes for store in stores) if checkpoint.operators else None,
        state_growth=_sum(store.growth for store in stores),
        snapshot_lag=max(replayed, default=None),
        replay_files=_sum(replayed),
        deletable=inspection.space.known,
        not_read=inspection.not_read,
        lag=_sum(source.waiting for source in inspection.live),
        lost=_sum(source.lost for source in inspection.live),
        sources_error=sources_error,
        positions=_find_positions(inspection),
        findings={grade.value: sum(rated.severity is grade for rated in inspection.findings) for grade in Severity},
        codes=tuple(dict.fromkeys(rated.finding.diagnosis.code for rated in inspection.troubles)),
        worst=_find_worst(inspection),
        pipeline=checkpoint.flow,
    )


def make_unreadable_row(path: str, error: str) -> ScannedCheckpoint:
    """Make the row of a checkpoint, or a folder, that could not be looked at."""
    return ScannedCheckpoint(path=path, name=short_name(path), error=error, pipeline=parse_version(path))


def short_name(path: str) -> str:
    """Return a checkpoint's short name: its last folder, with those above it that a name for all checkpoints needs.

    Of a pipeline: its table, flow and version.
    """
    if version := parse_version(path):
        return f"{version.flow.table}/{version.flow.name}/{version.version}"
    parts = [part for part in path.partition("?")[0].split("/") if part]
    last = len(parts) - 1
    while last > 0 and parts[last].strip("_.").lower() in ("checkpoint", "checkpoints", "ckpt"):
        last -= 1
    return "/".join(parts[last:]) or path


def _find_positions(inspection: Inspection) -> dict[str, dict[str, int]]:
    """Find where a start continues in each partition that is there now; of two sources that read it, the earlier."""
    positions: dict[str, dict[str, int]] = {}
    views = sources(inspection.checkpoint)
    for live in (outlook.live for outlook in inspection.live):
        end, now = views[live.index].record, live.answer
        if not isinstance(end, KafkaOffset) or not isinstance(now, KafkaNow):
            continue
        for (topic, partition), offset in end.partitions.items():
            if (topic, partition) in now.partitions:
                own = positions.setdefault(topic, {})
                own[str(partition)] = min(offset, own.get(str(partition), offset))
    return positions


def _sum(counts: Iterable[Number | None]) -> Number | None:
    """Add up the numbers that are known; None where none is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _find_latest_ms(inspection: Inspection) -> int | None:
    offsets = inspection.checkpoint.offsets
    entry = offsets.newest
    if entry is not None and entry.metadata is not None:
        return entry.metadata.timestamp_ms
    info = inspection.checkpoint.listing.info(f"{offsets.folder}/{offsets.latest}")
    return info.mtime_ms if info else None


def _find_worst(inspection: Inspection) -> WorstFinding | None:
    if not inspection.troubles:
        return None
    rated = inspection.troubles[0]
    return WorstFinding(rated.code, rated.name, rated.path, rated.finding.detail, rated.remedy)
