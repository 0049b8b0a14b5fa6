"""Pairs of queries at random: what is said of the change, and the rows of the continued query beside a control.

The suite `evolve-pairs` of `python -m tests.record`: all pairs of `pair_queries.py` are described and judged, some of
them continued by Spark, on NEW and on a plain copy.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ckpt
from ckpt.inspection.preflight import PlannedStart, judge_start
from tests.new.evolve.pair_queries import Pair, Query, make_pairs, make_rows
from tests.new.evolve.running import SETTINGS, shorten, write_rows
from tests.record.answers import Document, Folder
from tests.record.suite import Cases
from tests.record.worker import Session
from tests.support.spark import queries

Batches = list[list[str]]
OLD, FILES = 2, 4
CONF = {**SETTINGS, "spark.sql.shuffle.partitions": "1"}


class Pairs:
    """Checkpoints of old queries, descriptions, and runs of controls, made once each."""

    def __init__(self) -> None:
        self._made: dict[Query, Path] = {}
        self._described: dict[Query, ckpt.types.QueryDescription] = {}
        self._controls: dict[Query, tuple[Batches, Batches] | str] = {}

    def answer(self, spark: Any, job: Document, scratch: Path) -> Document:
        """Describe a pair, ask preflight and evolve, and start the changed query on what they give."""
        old, new = (parse(job[name]) for name in ("old", "new"))
        root = Path(job["root"])
        sessions = [open_session(spark, query) for query in (old, new)]
        folder, case = root / "inputs", root / f"case {len(list(root.glob('case *')))}"
        put(folder, range(OLD))
        if old not in self._made:
            path = root / f"old {len(self._made)}"
            _, error = run(sessions[0], folder, old, path)
            if error is not None:
                return {"error": error}
            self._made[old] = path
        made = self._made[old]
        for query, session in zip((old, new), sessions, strict=True):
            if query not in self._described:
                frame = query.build(session, folder)
                self._described[query] = ckpt.describe_query(frame, output_mode=query.mode)
        queries = [self._described[query] for query in (old, new)]
        if queries[1].unsupported is not None:
            return {"unsupported": shorten(queries[1].unsupported)}
        answer = judge(made, case / "new", queries)
        if job["continued"]:
            control = self._control(sessions[1], root, new)
            if isinstance(control, str):
                return {"error": control}
            before, after = control if old.united != new.united else ([], control[1])
            shutil.copytree(made, case / "plain")
            for name in ("plain", "new"):
                if (case / name).exists():
                    batches, error = continue_on(sessions[1], folder, new, case / name)
                    same = error is None and is_same(new, batches, before, after)
                    said = {} if same or error else differ(settle(new, batches), settle(new, [*before, *after]))
                    answer["evolved" if name == "new" else name] = {"error": error, "same": same, **said}
            if answer["refused"] is None:
                answer.setdefault("evolved", answer["plain"])
        shutil.rmtree(case)
        return answer

    def _control(self, session: Any, root: Path, query: Query) -> tuple[Batches, Batches] | str:
        """Return the batches of a query that ran from the beginning, until the change and after it; or its error."""
        if query not in self._controls:
            folder, place = root / "control inputs" / "inputs", root / "control"
            put(folder, range(OLD))
            before, error = run(session, folder, query, place)
            put(folder, range(OLD, FILES))
            after, error = run(session, folder, query, place) if error is None else ([], error)
            self._controls[query] = (before, after) if error is None else error
            shutil.rmtree(folder.parent)
            shutil.rmtree(place)
        return self._controls[query]


def open_session(spark: Any, query: Query) -> Any:
    """Open a session with the settings of a query."""
    return queries.own_session(spark, {**CONF, "spark.sql.session.timeZone": query.zone})


def judge(made: Path, new: Path, queries: list[ckpt.types.QueryDescription]) -> Document:
    """Return what preflight and evolve say of the change."""
    ready = judge_start(ckpt.open_checkpoint(str(made)), PlannedStart(query=queries[1], old=queries[0]))
    told = [rated.finding.diagnosis.code for rated in (*ready.holds, *ready.warnings)]
    told += ["not compared" for line in ready.unknown if str(line).startswith("operator ")]
    new.parent.mkdir(parents=True)
    plan, _ = ckpt.evolve(str(made), str(new), to=queries[1], from_query=queries[0], accept_from_now_on=True, jobs=1)
    refused = None if plan.refused is None else shorten(str(plan.refused))
    said = {"go": ready.go, "told": sorted({*told}), "verdict": plan.verdict}
    return {**said, "refused": refused}


def continue_on(session: Any, folder: Path, query: Query, place: Path) -> tuple[Batches, str | None]:
    """Continue a query with the files that the old one has not read."""
    put(folder, range(OLD, FILES))
    batches, error = run(session, folder, query, place)
    for file in folder.parent.glob(f"*inputs/f[{OLD}-{FILES - 1}].json"):
        file.unlink()
    return batches, error


def settle(query: Query, batches: Batches) -> Counter[str]:
    """Return the rows of a complete sink, or of all batches."""
    return Counter(row for batch in (batches[-1:] if query.mode == "complete" else batches) for row in batch)


def is_same(query: Query, batches: Batches, before: Batches, after: Batches) -> bool:
    """Tell whether a query emitted what its control did after the change; a new source may have brought more.

    That source's rows of before come late: they are those that the control emitted ``before``, or the same sums.
    """
    has, wants, total = (settle(query, each) for each in (batches, after, [*before, *after]))
    if not before or query.mode == "complete":
        return has == wants
    if query.mode == "append":
        return wants <= has <= total
    newest = [
        {row.partition(", 'count___'")[0]: row for batch in each for row in batch}
        for each in (batches, after, [*before, *after])
    ]
    return newest[0].items() <= newest[2].items() and newest[1].keys() <= newest[0].keys()


def parse(spec: Mapping[str, Any]) -> Query:
    """Return the query of a job."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in spec.items()}
    return Query(**fields)


def put(folder: Path, numbers: Iterable[int]) -> None:
    """Write these files of both sources, if they are not there."""
    for number in numbers:
        for more, place in enumerate((folder, folder.with_name("more inputs"))):
            if not (place / f"f{number}.json").exists():
                write_rows(place / f"f{number}.json", make_rows(number, more=more > 0), 1.7e9 + number)


def run(session: Any, folder: Path, query: Query, checkpoint: Path) -> tuple[Batches, str | None]:
    """Run a query over what is there: the rows of each batch, and its error."""
    try:
        batches = queries.drain(query.build(session, folder), checkpoint, query.mode).values()
    except Exception as exception:
        return [], shorten(str(exception))
    return [[str(row.asDict(recursive=True)) for row in rows] for rows in batches], None


def differ(rows: Counter[str], control: Counter[str]) -> Document:
    """Return a few rows that only one of both has."""
    return {
        "differing": [
            f"{sign} {row}" for sign, own in (("+", rows - control), ("-", control - rows)) for row in [*own][:1]
        ]
    }


class Continued(Cases[Pair]):
    """All pairs, first those that are continued by Spark."""

    answers = Folder(Path(__file__).with_name("recorded_pairs"))
    role = "evolve-pairs"
    partly = True

    def cases(self, minor: str) -> Iterable[Pair]:
        return sorted(make_pairs(), key=lambda pair: not pair.continued) if minor == "4.2" else ()

    def fingerprint(self, case: Pair) -> str:
        return hashlib.sha256(repr(case).encode()).hexdigest()[:8]

    def session_of(self, case: Pair) -> str:
        return case.number.partition(".")[0][:-1]  # ten old queries

    def ask(self, session: Session, case: Pair, folder: Path) -> Document:
        job = {"old": asdict(case.old), "new": asdict(case.new), "continued": case.continued}
        text = json.dumps(session.ask({**job, "root": str(folder.parent)})).replace(str(folder.parent), "FOLDER")
        return dict(json.loads(text))


SUITE = Continued()
_PAIRS = Pairs()


def answer(spark: Any, job: Document, scratch: Path) -> Document:
    """Answer a job: the role of `tests/record/process.py`."""
    return _PAIRS.answer(spark, job, scratch)
