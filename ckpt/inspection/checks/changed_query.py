"""What a start passes over when a query has changed: rows or values go wrong, and Spark reports nothing.

Seen in two descriptions, because a checkpoint does not have what the query computes (``ckpt.inspection.evolution``).
"""

from collections.abc import Iterator

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.inspection.checks.query import QueryComparison, compare_operators, compare_sources
from ckpt.inspection.evolution import (
    OperatorComparison,
    PartComparison,
    PartKind,
    compare_signatures,
    compare_watermarks,
    pair_sources,
)
from ckpt.inspection.query import QueryDescription
from ckpt.restart import diagnoses
from ckpt.restart.findings import Diagnosis, Finding, Severity

_DIAGNOSES: dict[PartKind, Diagnosis] = {
    PartKind.KEY: diagnoses.starting.OTHER_KEY,
    PartKind.VALUE: diagnoses.starting.OTHER_VALUE,
    PartKind.WINDOW: diagnoses.starting.OTHER_WINDOW,
    PartKind.ROWS: diagnoses.starting.OTHER_ROWS,
}


def compare_with_old(
    compared: QueryComparison, query: QueryDescription, old: QueryDescription, checkpoint: Checkpoint
) -> QueryComparison:
    """Add what only the description of the query that wrote the checkpoint shows.

    Where Spark refuses an operator anyway, its parts are not compared. Where both descriptions show that a column only
    has another name, the warning about names is dropped.
    """
    wrong = _find_misfit(old, checkpoint)
    if wrong is not None:
        why = f"`old` describes another query than the one that wrote the checkpoint ({wrong.detail}): it is not used"
        return QueryComparison(compared.findings, (*compared.unknown, why))
    if old.operators is None or query.operators is None or checkpoint.offsets.latest is None:
        return compared
    sources = pair_sources(old.sources, query.sources)
    ids = range(min(len(old.operators), len(query.operators)))
    operators = {number: number for number in ids if old.operators[number].name == query.operators[number].name}
    refused = {finding.path for finding in compared.findings if finding.diagnosis.severity is Severity.ERROR}
    findings: list[Finding] = []
    unknown: list[str] = []
    alike: set[str] = set()
    for pair in compare_signatures(old, query, sources, operators):
        path = f"state/{pair.old}"
        if not any(name.startswith(path) for name in refused):
            findings += _list_findings(pair.parts, path)
        if _is_alike(pair):
            alike.add(path)
        unknown += [f"operator {pair.old}: {part.why}" for part in pair.parts if "another Spark version" in part.why]
    if checkpoint.operators:
        findings += _list_findings(tuple(compare_watermarks(old, query, sources)), "state")
    kept = (finding for finding in compared.findings if not _only_names(finding, alike))
    return QueryComparison((*kept, *findings), (*compared.unknown, *unknown))


def _find_misfit(old: QueryDescription, checkpoint: Checkpoint) -> Finding | None:
    """Find what shows that a query did not write a checkpoint."""
    comparisons = (compare_sources(old, checkpoint), compare_operators(old, checkpoint, old.spark))
    findings = (finding for compared in comparisons for finding in compared.findings)
    return next((finding for finding in findings if finding.diagnosis.severity is Severity.ERROR), None)


def _list_findings(parts: tuple[PartComparison, ...], path: str) -> Iterator[Finding]:
    for kind, diagnosis in _DIAGNOSES.items():
        details = [part.why for part in parts if part.kind is kind and part.silent]
        if details:
            yield Finding(diagnosis, path, "; ".join(details))


def _is_alike(pair: OperatorComparison) -> bool:
    """Tell whether each column computes what it did."""
    columns = [part for part in pair.parts if part.kind in (PartKind.KEY, PartKind.VALUE)]
    return bool(columns) and all(part.old == part.new and part.old is not None for part in columns)


def _only_names(finding: Finding, alike: set[str]) -> bool:
    return finding.diagnosis is diagnoses.starting.RENAMED and "/".join(finding.path.split("/")[:2]) in alike
