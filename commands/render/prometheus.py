"""A scan as metrics, in the text format of Prometheus (version 0.0.4): for its textfile collector.

Names and units follow Prometheus' conventions: base units, no ages but times, one family after the other.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.inspection.scan.scan import Scan
from ckpt.restart.findings import Severity
from ckpt.texts import escape_unprintable, mask_secrets

_Value = float | int | bool | None
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\""})


@dataclass(frozen=True, slots=True)
class _Gauge:
    """A metric that each checkpoint may have; None: it has not."""

    name: str
    help: str
    value: Callable[[ScannedCheckpoint], _Value]


_GAUGES = (
    _Gauge("readable", "Whether the checkpoint could be inspected.", lambda row: row.error is None),
    _Gauge(
        "restartable",
        "Whether every forecast that the verdict rests on says that the query runs after its next start.",
        lambda row: None if row.outcome is None else row.outcome.runs,
    ),
    _Gauge("latest_batch", "Id of the latest planned batch.", lambda row: row.latest_batch),
    _Gauge(
        "latest_batch_timestamp_seconds",
        "When the latest batch was planned, in seconds since 1970.",
        lambda row: None if row.latest_ms is None else row.latest_ms / 1000,
    ),
    _Gauge("uncommitted_batches", "Planned batches without a commit.", lambda row: row.uncommitted),
    _Gauge("files", "Files of the checkpoint.", lambda row: row.files),
    _Gauge("size_bytes", "Size of all files of the checkpoint.", lambda row: row.size),
    _Gauge("state_size_bytes", "Size of the state files, of all versions that are there.", lambda row: row.state_bytes),
    _Gauge(
        "snapshot_lag_versions",
        "Versions after its newest snapshot that a partition of the state replays at the next start, at most.",
        lambda row: row.snapshot_lag,
    ),
    _Gauge("source_lag_offsets", "Kafka offsets that wait to be read (with --sources).", lambda row: row.lag),
    _Gauge("deletable_bytes", "Files that no restart needs, as far as names and sizes say.", lambda row: row.deletable),
    _Gauge("replay_files", "Deltas and changelogs that the next start replays.", lambda row: row.replay_files),
)


def exposition(scan: Scan) -> str:
    """The text of all metrics, with a line end at its end."""
    return "".join(f"{line}\n" for line in _write_lines(scan))


def _write_lines(scan: Scan) -> Iterator[str]:
    yield from _write_head("ckpt_scan_timestamp_seconds", "When the scan ended, in seconds since 1970.")
    yield _write_sample("ckpt_scan_timestamp_seconds", {}, scan.ended_ms / 1000)
    yield from _write_head("ckpt_scan_duration_seconds", "How long the scan took.")
    yield _write_sample("ckpt_scan_duration_seconds", {}, (scan.ended_ms - scan.began_ms) / 1000)
    yield from _write_head(
        "ckpt_scan_root_checkpoints", "Checkpoints found below a root; none if it could not be listed."
    )
    for root in scan.roots:
        yield _write_sample("ckpt_scan_root_checkpoints", {"root": root.uri}, root.checkpoints)
    if scan.checkpoints:
        yield from _write_info(scan)
        yield from _write_findings(scan)
        for gauge in _GAUGES:
            yield from _write_gauge(scan, gauge)


def _write_gauge(scan: Scan, gauge: _Gauge) -> Iterator[str]:
    name = f"ckpt_checkpoint_{gauge.name}"
    values = [(row.path, value) for row in scan.checkpoints if (value := gauge.value(row)) is not None]
    if values:
        yield from _write_head(name, gauge.help)
        yield from (_write_sample(name, {"checkpoint": path}, value) for path, value in values)


def _write_info(scan: Scan) -> Iterator[str]:
    yield from _write_head("ckpt_checkpoint_info", "What the checkpoint is; always 1.")
    for row in scan.checkpoints:
        labels = {"checkpoint": row.path, "name": row.name, "query_id": row.query_id or "", "kind": row.kind or ""}
        yield _write_sample("ckpt_checkpoint_info", labels, 1)


def _write_findings(scan: Scan) -> Iterator[str]:
    readable = [row for row in scan.checkpoints if row.error is None]
    if readable:
        yield from _write_head("ckpt_checkpoint_findings", "What ckpt found, by severity; notes are no trouble.")
        for row in readable:
            for severity in Severity:
                labels = {"checkpoint": row.path, "severity": severity}
                yield _write_sample("ckpt_checkpoint_findings", labels, row.findings.get(severity, 0))


def _write_head(name: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"


def _write_sample(name: str, labels: Mapping[str, str], value: float | int | bool) -> str:
    spelled = ",".join(f'{key}="{_escape_label(text)}"' for key, text in labels.items())
    number = repr(float(value)) if isinstance(value, float) else str(int(value))
    return f"{name}{{{spelled}}} {number}" if spelled else f"{name} {number}"


def _escape_label(text: str) -> str:
    """A value of a label: printable, and without the secrets in it."""
    lines = (escape_unprintable(line).translate(_ESCAPES) for line in mask_secrets(text).split("\n"))
    return r"\n".join(lines)  # so that a name with a line end is another than one with a backslash and an n
