"""Findings about the versions of a flow of a declarative pipeline, and about flows that share a table."""

from collections.abc import Iterator

from ckpt.advice import Code, Do, advise, do, words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.restart import diagnoses
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
        table = quote_word(flow.flow.refreshed or "TABLE")
        refresh = words(
            "If the table was meant to be refreshed in full, run {run}: it empties the table, and "
            "rereads everything that the sources still have.",
            run=Code(f"spark-pipelines run --full-refresh {table}"),
        )
        rename = words(
            "If the table has its rows, rename each of these folders before any other run, to a name "
            "that is not a number, such as {unused}: {folders}. The flow then continues in version {before}.",
            unused=f"{flow.version}.unused",
            folders=", ".join(flow.above),
            before=flow.before,
        )
        advice = advise(do(Do.CHANGE, refresh).or_(do(Do.CHANGE, rename)))
        yield Finding(diagnoses.modes.UNFINISHED_VERSION, "", detail, advice)


def find_shared_table(checkpoint: Checkpoint, sink: SinkLog | None) -> Iterator[Finding]:
    """Find that several flows write one table: a warning where that is one of files, a note where nobody looked."""
    flow = checkpoint.flow
    if flow is None or not flow.siblings or (sink is not None and sink.kind != SinkKind.FILE):
        return
    names = ", ".join((flow.flow.name, *flow.siblings))
    detail = f"{flow.flow.table} has the flows {names}"
    yield Finding(diagnoses.modes.SHARED_TABLE, "", detail, minor=sink is None)
