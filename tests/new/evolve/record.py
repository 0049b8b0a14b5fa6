"""Changed queries on checkpoints that `ckpt evolve` made for them: the suite `evolve` of `python -m tests.record`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import ckpt
from ckpt.query.compare_checkpoint import list_families
from ckpt.query.description import DescribedOperator, DescribedStore, parse_query
from ckpt.spark.executors import Executors
from tests.new.evolve.cases import CASES, Case
from tests.new.evolve.columns import COLUMN_CASES, OLD_STATE_CASES, ColumnCase
from tests.record.answers import Document, Folder
from tests.record.suite import Cases, a_broker
from tests.record.worker import Installed, Session
from tests.support.spark import queries

MAIN = "4.2"
PARTLY = (
    *("two files agg", "two files agg planned", "names agg", "offset log v2 agg"),
    *("hdfs rows", "hdfs agg", "hdfs dedup", "hdfs dedup agg", "two rates agg"),
)
"""Old queries that other versions are asked about: what is written is the same for all."""
_WITHOUT_STATE = (
    *("two files rows", "two files rows planned", "one file agg", "one batch", "batch 0 planned", "file and rate agg"),
)
"""More of them for Spark 3.5, which is not asked about state."""
_COLUMNS = {"4.0": 5, "4.1": 5, MAIN: 1, "4.3": 1}
"""Versions that are asked about columns: all, or each fifth. Spark 3.5, whose state nothing describes, has its own."""


def ask_columns(session: Session, case: ColumnCase, folder: Path, by: Executors | None) -> Document:
    """Make the old checkpoint, evolve it to a query with other columns of state, and continue."""
    old, new = folder / "old", folder / "new"
    folder.mkdir(parents=True)
    job = {**case.job, "root": str(folder.parent), "conf": {**queries.STATE_STORES[case.store], **dict(case.conf)}}
    made = session.ask({**job, "do": "columns: make", "checkpoint": str(old)})
    if case.plain:
        return dict(session.ask({**job, "do": "columns: continue", "evolved": str(old)}))
    plan, _ = ckpt.evolve(
        str(old),
        str(new),
        to=parse_query(made["new"]),
        from_query=parse_query(made["old"]) if case.known else None,
        map_column=case.map_column,
        default=dict(case.default),
        accept_from_now_on=True,
        engine=by,
    )
    if plan.refused is not None:
        return {"refused": str(plan.refused).replace(str(folder), "FOLDER")}
    answer = session.ask({**job, "do": "columns: continue", "evolved": str(new if plan.written else old)})
    return {"verdict": plan.verdict, "changes": [part.change for part in plan.parts], **answer}


def ask(session: Session, case: Case | ColumnCase, minor: str, folder: Path, by: Executors | None = None) -> Document:
    """Make the old checkpoint, evolve it, and continue with the changed query."""
    if isinstance(case, ColumnCase):
        return ask_columns(session, case, folder, by)
    old, new = folder / "old", folder / "new"
    folder.mkdir(parents=True)
    conf = {**queries.STATE_STORES[case.store], **dict(case.base.conf)}
    shape = case.shape or case.base.shape
    made = session.ask(
        {"do": "make", "checkpoint": str(old), "base": case.base.job, "root": str(folder.parent), "conf": conf}
    )
    operators = None
    if case.shape is not None:
        empty = {"described": str(folder / "described"), "empty": str(folder / "empty"), "shape": shape, "conf": conf}
        told = session.ask({"do": "describe", "words": case.words, **empty})
        assert told["error"] is None, told["error"]
        operators = describe_operators(str(folder / "described"))
    query = case.query(minor, made["inputs"], made["topics"], operators)
    plan, receipt = ckpt.evolve(
        str(old),
        None if case.in_place else str(new),
        to=query,
        map_source=case.map_source,
        start=dict(case.start),
        accept_from_now_on=True,
        apply=case.in_place,
        grace=0,
    )
    if plan.refused is not None:
        return {"refused": str(plan.refused).replace(str(folder), "FOLDER")}
    assert receipt.problem is None, receipt.problem
    assert plan.written or receipt.applied or not plan.steps
    run: Document = {
        "do": "continue",
        "checkpoint": str(old),
        "evolved": str(new if plan.written else old),
        "conf": conf,
        "shape": shape,
        "from_now_on": case.from_now_on,
        "old_words": case.base.words,
    }
    run |= {"words": case.words, "runs": case.runs, "begins": dict(case.begins), "options": case.options}
    return {"verdict": plan.verdict, "changes": [part.change for part in plan.parts], **session.ask(run)}


def check(case: Case | ColumnCase, answer: Document) -> None:
    """Assert that a changed query was refused as it should be, or lost no row, read none twice and has its columns."""
    if case.refused is not None:
        assert case.refused in answer["refused"], case.name
        return
    assert answer["error"] is None, case.name
    if isinstance(case, ColumnCase):
        assert case.fits(answer["columns"]), (case.name, answer["columns"])
    else:
        assert answer["wrong"] == {}, case.name


def describe_operators(checkpoint: str) -> tuple[DescribedOperator, ...]:
    """Describe the operators of a new checkpoint of the changed query, as `describe_query` does."""
    state = ckpt.open_checkpoint(checkpoint).state
    return tuple(
        DescribedOperator(
            operator.name or "",
            tuple(
                DescribedStore(store.name, list_families(store), store.prefix_columns, 2) for store in operator.stores
            ),
            metadata_version=1,
        )
        for operator in (state.operators if state else ())
    )


class Evolved(Cases[Case | ColumnCase]):
    """Changed queries. Those that need a broker have a session of their own."""

    partly = True
    """Other versions than 4.2 are asked a part."""
    answers = Folder(Path(__file__).with_name("recorded"))
    role = "evolve"
    _minor = ""

    def cases(self, minor: str) -> Iterator[Case | ColumnCase]:
        step = _COLUMNS.get(minor)
        yield from (case for case in COLUMN_CASES[::step] if case.first_version <= minor) if step else ()
        yield from OLD_STATE_CASES if minor == "3.5" else ()
        yield from self._list_source_cases(minor)

    @staticmethod
    def _list_source_cases(minor: str) -> Iterator[Case]:
        fits = (case for case in CASES if case.since <= minor and case.needs in ("", "kafka" * (minor == MAIN)))
        names = (*PARTLY, *_WITHOUT_STATE) if minor == "3.5" else PARTLY
        return (case for case in fits if minor == MAIN or case.base.name in names)

    def ask(self, session: Session, case: Case | ColumnCase, folder: Path) -> Document:
        return ask(session, case, self._minor, folder)

    def session_of(self, case: Case | ColumnCase) -> Hashable:
        return case.needs

    def settings(self, spark: Installed, case: Case | ColumnCase) -> AbstractContextManager[dict[str, str]]:
        self._minor = spark.minor
        return a_broker(spark.minor, needed=bool(case.needs))


SUITE = Evolved()
