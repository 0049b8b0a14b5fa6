"""Findings about the versions of a flow of a declarative pipeline, and about flows that share a table."""

from collections.abc import Iterator

from ckpt.advice import Code
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.restart import diagnoses
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Finding
from ckpt.texts import quote_word


def find_versions(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find a version that no run uses, and one that runs begin with though an earlier one has batches."""
    flow = checkpoint.flow
    if flow is None:
        return
    if flow.superseded:
        yield Finding(diagnoses.modes.SUPERSEDED, "", f"runs use version {flow.live}")
    elif flow.before is not None and checkpoint.commits.latest is None:
        detail = f"no batch is committed in version {flow.version}, but version {flow.before} has batches"
        run = Code(f"spark-pipelines run --full-refresh {quote_word(flow.flow.refreshed or 'TABLE')}")
        named = {"unused": f"{flow.version}.unused", "folders": ", ".join(flow.above), "before": flow.before}
        advice = BOOK.advise("version_without_batches", run=run, **named)
        yield Finding(diagnoses.modes.UNFINISHED_VERSION, "", detail, advice)


def find_shared_table(checkpoint: Checkpoint, sink: SinkLog | None) -> Iterator[Finding]:
    """Find that several flows write one table: a warning where that is one of files, a note where nobody looked."""
    flow = checkpoint.flow
    if flow is None or not flow.siblings or (sink is not None and sink.kind != SinkKind.FILE):
        return
    names = ", ".join((flow.flow.name, *flow.siblings))
    detail = f"{flow.flow.table} has the flows {names}"
    yield Finding(diagnoses.modes.SHARED_TABLE, "", detail, minor=sink is None)
