"""Make a plan from a history, follow it with real starts, and follow the known answer in the same way."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ckpt.changes.plan import ChangePlan
from ckpt.changes.relocate.plan import relocate
from ckpt.changes.rewind.plan import Replayed
from ckpt.changes.rewind.rewind import rewind
from ckpt.changes.skip.plan import skip
from ckpt.versions import Progress
from tests.changes.oracle.cases import LAST, Case, History
from tests.changes.oracle.histories import copy as copy_of, digest
from tests.record.worker import Session

STARTS = 3
Answer = dict[str, Any]


def job(history: History, folder: Path, do: str, /, **more: Any) -> dict[str, Any]:
    """A job for the worker; inputs are shared by a history and all that comes of it."""
    inputs = str(folder / "inputs")
    return {
        "do": do,
        "query": history.query,
        "store": history.store,
        "conf": history.settings,
        "inputs": inputs,
        **more,
    }


def asked(session: Session, what: dict[str, Any]) -> dict[str, Any]:
    """The answer to a job that went well."""
    answer = session.ask(what)
    assert "error" not in answer, answer["error"]
    return answer


def tell(session: Session, history: History, folder: Path) -> None:
    """Let a history happen below `folder`."""
    asked(session, job(history, folder, "history", folder=str(folder)))


def copy(history: History, folder: Path, batch: int, to: Path) -> Path:
    """The checkpoint as it was after a batch, at a path that no query has used."""
    copy_of(folder / str(batch), to)
    if history.absolute:
        assert relocate(str(to), apply=True, backup=f"{to}.relocated", grace=0)[1].applied
    return to


def ask(session: Session, case: Case, folder: Path) -> Answer:
    """What came of a plan, and of the query that it is to equal."""
    place = folder / case.name.replace("/", "-")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    answer = _skipped(session, case, folder, place) if case.skips else _rewound(session, case, folder, place)
    shutil.rmtree(place, ignore_errors=True)  # Spark's maintenance of the state may still write there
    return answer


def _rewound(session: Session, case: Case, folder: Path, place: Path) -> Answer:
    known = copy(case.history, folder, case.batch, place / "known")
    top = copy(case.history, folder, LAST, place / "rewound")
    state = {path: path.read_bytes() for path in top.glob("state/*/[0-9]*/**/*") if path.is_file()}
    plan, receipt = rewind(
        str(top),
        to_batch=case.batch,
        replay=Replayed.SAME if case.way == "same" else Replayed.NEW,
        accept_skip=True,
        accept_replay=True,
        apply=True,
        backup=str(place / "backup"),
        grace=0,
    )
    assert receipt.applied, receipt.problem or plan.refused
    for path, data in state.items() if case.leaves else ():
        path.write_bytes(data)
    times = [2] * (STARTS + 2 if case.leaves else STARTS)  # what is left is loaded some batches later
    known_times = [1, *times[1:]] if case.way == "same" else times
    expected = asked(session, job(case.history, folder, "follow", checkpoint=str(known), times=known_times))
    found = asked(session, job(case.history, folder, "follow", checkpoint=str(top), times=times))
    return {"promised": promised(plan), "expected": told(expected), "found": told(found)}


def _skipped(session: Session, case: Case, folder: Path, place: Path) -> Answer:
    """The batch after `case.batch` is poison; the known answer is the same query that does not see its rows."""
    known = copy(case.history, folder, case.batch, place / "known")
    poisoned = copy(case.history, folder, case.batch, place / str(LAST + 1))
    asked(session, job(case.history, folder, "poison", checkpoint=str(poisoned), after=case.way == "skip-after"))
    top = copy(case.history, place, LAST + 1, place / "skipped")
    plan, receipt = skip(str(top), apply=True, backup=str(place / "backup"), grace=0)
    assert receipt.applied, receipt.problem or plan.refused
    poison = case.batch + 1
    times = [1] + [2] * STARTS
    expected = asked(session, job(case.history, folder, "follow", checkpoint=str(known), times=times, without=poison))
    found = asked(session, job(case.history, folder, "follow", checkpoint=str(top), times=[2] * STARTS))
    assert str(poison) not in found["rows"]
    expected["read"].pop(str(poison), None)
    for one in (expected, found):  # what the batch would have emitted without new rows comes with the next
        one["rows"] = {"all": [row for rows in one["rows"].values() for row in rows]}
    return {"promised": promised(plan), "expected": told(expected), "found": told(found)}


def told(followed: Mapping[str, Any]) -> Answer:
    """What was seen, short: of the rows of each batch how many and a digest, what was read, and the state."""
    rows = {batch: digest(found) for batch, found in followed["rows"].items()}
    read = {str(batch): of for batch, of in followed["read"].items()}
    return {"rows": rows, "read": read, "state": followed["state"]}


def promised(plan: ChangePlan) -> Answer:
    """What the plan says of the next start."""
    one = next(f for f in plan.after if f.progress is Progress.SYNC and f.outcome.runs)
    ends = [[source.start, source.end] for source in one.sources]
    return {"batch": one.batch_id, "again": one.reexecutes, "sources": ends, "steps": len(plan.steps)}
