"""Finds changes of a query that Spark does not report at a start, though rows or values go wrong.

Only two descriptions show them, because a checkpoint does not have what the query computes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ckpt.advice import Option, Words, words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.query.compare_checkpoint import QueryComparison, find_misfit
from ckpt.query.compare_queries import (
    Knowledge,
    OperatorComparison,
    PartComparison,
    PartKind,
    compare_signatures,
    compare_watermarks,
    judge_window,
    pair_sources,
)
from ckpt.query.description import QueryDescription
from ckpt.restart import diagnoses
from ckpt.restart.book import BOOK
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

    Where Spark refuses an operator anyway, its parts are not compared. Where descriptions show what a column computes,
    the warning about its name is dropped.
    """
    wrong = find_misfit(old, checkpoint)
    if wrong is not None:
        why = words(
            "{old} describes another query than the one that wrote the checkpoint ({wrong}): it is not used",
            old=Option("old"),
            wrong=wrong.detail,
        )
        return QueryComparison(compared.findings, (*compared.unknown, why))
    refused = {finding.path for finding in compared.findings if finding.diagnosis.severity is Severity.ERROR}
    if any(path in ("", "state") or path.startswith("sources") for path in refused):
        return compared  # which operators and sources are the same is not known
    if old.operators is None or query.operators is None or checkpoint.offsets.latest is None:
        return compared
    sources = pair_sources(old.sources, query.sources)
    ids = range(min(len(old.operators), len(query.operators)))
    operators = {number: number for number in ids if old.operators[number].name == query.operators[number].name}
    findings: list[Finding] = []
    unknown: list[str | Words] = []
    explained: set[str] = set()
    begins: set[str] = set()  # operators with a column that knows rows from now on only
    metadata = None if checkpoint.offsets.newest is None else checkpoint.offsets.newest.metadata
    watermark_ms = 0 if metadata is None else metadata.watermark_ms
    for pair in compare_signatures(old, query, sources, operators):
        path = f"state/{pair.old}"
        if any(part.verdict is Knowledge.FROM_NOW_ON and part.kind is PartKind.VALUE for part in pair.parts):
            begins.add(path)
        if not any(_find_operator(name) == path for name in refused):
            both = old.operators[pair.old], query.operators[pair.new]
            judged = [judge_window(part, *both, watermark_ms).verdict for part in pair.parts]
            parts = [replace(part, verdict=verdict) for part, verdict in zip(pair.parts, judged, strict=True)]
            findings += _list_findings(parts, path)
        if _explains_names(pair):
            explained.add(path)
        doubted = (part for part in pair.parts if part.by_another_spark)
        unknown += [words("operator {id}: {why}", id=pair.old, why=part.why) for part in doubted]
    if checkpoint.operators:
        findings += _list_findings(tuple(compare_watermarks(old, query, sources)), "state")
    kept = [
        replace(finding, advice=BOOK.advise("evolve_from_now_on"))
        if finding.diagnosis is diagnoses.starting.VALUE_SCHEMA and _find_operator(finding.path) in begins
        else finding
        for finding in compared.findings
        if not _only_names(finding, explained)
    ]
    return QueryComparison((*kept, *findings), (*compared.unknown, *unknown))


def _list_findings(parts: Sequence[PartComparison], path: str) -> Iterator[Finding]:
    of_state = [part for part in parts if part.silent and part.kind is not PartKind.ROWS]
    impossible = any(part.verdict is Knowledge.IMPOSSIBLE for part in of_state)
    unknown = any(part.verdict is Knowledge.UNKNOWN and part.kind is not PartKind.WINDOW for part in of_state)
    for kind, diagnosis in _DIAGNOSES.items():
        silent = [part for part in parts if part.kind is kind and part.silent]
        if not silent:
            continue
        verdicts, advice = {part.verdict for part in silent}, None
        if kind is not PartKind.ROWS and (impossible or unknown):  # of any part: then nothing is carried over
            advice = BOOK.advise("not_there" if impossible else "read_otherwise")
        elif kind in (PartKind.VALUE, PartKind.WINDOW) and Knowledge.FROM_NOW_ON in verdicts:
            advice = BOOK.advise("evolve_from_now_on")
        yield Finding(diagnosis, path, "; ".join(str(part.why) for part in silent), advice)


def _explains_names(pair: OperatorComparison) -> bool:
    """Tell whether each column computes what it did, or is reported because it does not."""
    columns = [part for part in pair.parts if part.kind in (PartKind.KEY, PartKind.VALUE)]
    return any(part.silent for part in columns) or (bool(columns) and all(part.old == part.new for part in columns))


def _only_names(finding: Finding, explained: set[str]) -> bool:
    return finding.diagnosis is diagnoses.starting.RENAMED and _find_operator(finding.path) in explained


def _find_operator(path: str) -> str:
    return "/".join(path.split("/")[:2])
