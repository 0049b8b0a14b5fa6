"""A scan as metrics, in the text format of Prometheus (version 0.0.4): for its textfile collector.

Names and units follow Prometheus' conventions: base units, no ages but times, one family after the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.inspection.scan.scan import Scan
from ckpt.restart.diagnoses.logs import BATCHES_VANISHED
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
        "Whether the query runs after its next start, according to all forecasts that decide the verdict.",
        lambda row: None if row.outcome is None else row.outcome.runs,
    ),
    _Gauge(
        "batches_vanished",
        "Whether the query's folders exist but contain no batch, although the query ran.",
        lambda row: None if row.error is not None else BATCHES_VANISHED.code in row.codes,
    ),
    _Gauge("latest_batch", "Id of the latest planned batch.", lambda row: row.latest_batch),
    _Gauge(
        "latest_batch_timestamp_seconds",
        "When the latest batch was planned, in seconds since 1970.",
        lambda row: None if row.latest_ms is None else row.latest_ms / 1000,
    ),
    _Gauge("uncommitted_batches", "Planned batches without a commit.", lambda row: row.uncommitted),
    _Gauge("files", "Files of the checkpoint.", lambda row: row.files),
    _Gauge("size_bytes", "Total size of the checkpoint's files.", lambda row: row.size),
    _Gauge("state_size_bytes", "Size of the state files, including old versions.", lambda row: row.state_bytes),
    _Gauge(
        "snapshot_lag_versions",
        "Largest number of versions that a state partition replays after its newest snapshot at the next start.",
        lambda row: row.snapshot_lag,
    ),
    _Gauge("source_lag_offsets", "Unread Kafka offsets (with --sources).", lambda row: row.lag),
    _Gauge(
        "deletable_bytes",
        "Size of files that no restart needs, judging by names and sizes.",
        lambda row: row.deletable,
    ),
    _Gauge(
        "not_read_bytes",
        "Size of state files that the next start loads but that were not read completely.",
        lambda row: None if row.not_read is None else row.not_read.bytes,
    ),
    _Gauge("replay_files", "Deltas and changelogs that the next start replays.", lambda row: row.replay_files),
)


def exposition(scan: Scan) -> str:
    """The text of all metrics, with a line end at its end."""
    return "".join(f"{line}\n" for line in write_metrics(scan))


def write_metrics(scan: Scan) -> Iterator[str]:
    """Yield the lines of all metrics."""
    of_all: dict[str, str] = {}  # no labels
    ended = [(of_all, scan.ended_ms / 1000)]
    yield from _write_family("ckpt_scan_timestamp_seconds", "When the scan ended, in seconds since 1970.", ended)
    took = [(of_all, (scan.ended_ms - scan.began_ms) / 1000)]
    yield from _write_family("ckpt_scan_duration_seconds", "How long the scan took.", took)
    roots = [({"root": root.uri}, root.checkpoints) for root in scan.roots]
    about = "Checkpoints found below a root; none if the root could not be listed."
    yield from _write_family("ckpt_scan_root_checkpoints", about, roots)
    infos = [
        ({"checkpoint": row.path, "name": row.name, "query_id": row.query_id or "", "kind": row.kind or ""}, 1)
        for row in scan.checkpoints
    ]
    yield from _write_family("ckpt_checkpoint_info", "Facts about the checkpoint; always 1.", infos)
    findings = [
        ({"checkpoint": row.path, "severity": severity}, row.findings.get(severity, 0))
        for row in scan.checkpoints
        for severity in (Severity if row.error is None else ())
    ]
    about = "Findings of ckpt by severity; notes are harmless."
    yield from _write_family("ckpt_checkpoint_findings", about, findings)
    for gauge in _GAUGES:
        values = [
            ({"checkpoint": row.path}, value) for row in scan.checkpoints if (value := gauge.value(row)) is not None
        ]
        yield from _write_family(f"ckpt_checkpoint_{gauge.name}", gauge.help, values)


def _write_family(name: str, text: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """A metric with its samples, each with its labels; nothing if there are none."""
    if samples:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
        yield from (_write_sample(name, labels, value) for labels, value in samples)


def _write_sample(name: str, labels: Mapping[str, str], value: float) -> str:
    spelled = ",".join(f'{key}="{_escape_label(text)}"' for key, text in labels.items())
    number = repr(float(value)) if isinstance(value, float) else str(int(value))
    return f"{name}{{{spelled}}} {number}" if spelled else f"{name} {number}"


def _escape_label(text: str) -> str:
    """A value of a label: printable, and without the secrets in it."""
    lines = (escape_unprintable(line).translate(_ESCAPES) for line in mask_secrets(text).split("\n"))
    return r"\n".join(lines)  # so that a name with a line end is another than one with a backslash and an n
