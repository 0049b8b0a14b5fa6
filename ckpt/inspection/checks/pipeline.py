"""Findings about the versions of a flow of a declarative pipeline, and about flows that share a table."""

from collections.abc import Iterator

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
        detail = f"no batch is committed in version {flow.version}, and version {flow.before} has batches"
        table = quote_word(flow.flow.refreshed or "TABLE")
        folder, name = (
            ("folder", "a name that is no number") if len(flow.above) == 1 else ("folders", "names of no number")
        )
        rename = f"rename the {folder} {', '.join(flow.above)} to {name}, such as {flow.version}.unused"
        remedy = (
            f"If the table was to be refreshed in full, `spark-pipelines run --full-refresh {table}`: it empties the "
            "table, and reads again what the sources still have. If the table has its rows, before any other run "
            f"{rename}: the flow then continues in version {flow.before}."
        )
        yield Finding(diagnoses.modes.UNFINISHED_VERSION, "", detail, remedy)


def find_shared_table(checkpoint: Checkpoint, sink: SinkLog | None) -> Iterator[Finding]:
    """Find that several flows write one table: a warning where that is one of files, a note where nobody looked."""
    flow = checkpoint.flow
    if flow is None or not flow.siblings or (sink is not None and sink.kind != SinkKind.FILE):
        return
    names = ", ".join((flow.flow.name, *flow.siblings))
    detail = f"{flow.flow.table} has the flows {names}"
    yield Finding(diagnoses.modes.SHARED_TABLE, "", detail, minor=sink is None)
