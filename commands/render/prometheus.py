"""A scan as metrics, in the text format of Prometheus (version 0.0.4): for its textfile collector.

Names and units follow Prometheus' conventions: base units, no ages but times, one family after the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.inspection.scan.scan import Scan
from ckpt.restart.diagnoses.logs import BATCHES_VANISHED
from ckpt.restart.findings import Severity
from ckpt.texts import escape_unprintable, mask_secrets

from .book import BOOK

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\""})


_GAUGES: Mapping[str, Callable[[ScannedCheckpoint], float | int | bool | None]] = {
    "readable": lambda row: row.error is None,
    "restartable": lambda row: None if row.outcome is None else row.outcome.runs,
    "batches_vanished": lambda row: None if row.error is not None else BATCHES_VANISHED.code in row.codes,
    "latest_batch": lambda row: row.latest_batch,
    "latest_batch_timestamp_seconds": lambda row: None if row.latest_ms is None else row.latest_ms / 1000,
    "uncommitted_batches": lambda row: row.uncommitted,
    "files": lambda row: row.files,
    "size_bytes": lambda row: row.size,
    "state_size_bytes": lambda row: row.state_bytes,
    "snapshot_lag_versions": lambda row: row.snapshot_lag,
    "source_lag_offsets": lambda row: row.lag,
    "deletable_bytes": lambda row: row.deletable,
    "not_read_bytes": lambda row: None if row.not_read is None else row.not_read.bytes,
    "replay_files": lambda row: row.replay_files,
}
"""Metrics that each checkpoint may have; None: it has not."""


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
    for name, find in _GAUGES.items():
        values = [({"checkpoint": row.path}, value) for row in scan.checkpoints if (value := find(row)) is not None]
        yield from _write_family(f"ckpt_checkpoint_{name}", str(BOOK.text(f"metric_{name}")), values)


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
