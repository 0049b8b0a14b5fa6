"""What was said of checkpoints and Iceberg tables that no longer fit, what was done about it, and what came of that.

The suite `iceberg-sink` of `python -m tests.record` keeps the answers in `iceberg.json`, by Spark version, and of the
last version also what ckpt was asked about each time, checkpoints and the metadata of tables, in `iceberg.tar.xz`: so a
recorded case asks the ckpt of today.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ckpt.changes.fixes.repair import repair
from ckpt.changes.rewind.plan import Replayed
from ckpt.changes.rewind.rewind import rewind
from ckpt.live.sink.iceberg import read_iceberg
from tests.live.iceberg.remedies_followed import ckpt
from tests.live.sink.iceberg_query import BATCHES
from tests.live.sink.mismatches import Change, new_checkpoint, new_id, rewound, uncommitted
from tests.live.sink.mismatches_repaired import ask_again, inspected, keep
from tests.record.answers import OneFile
from tests.record.packages import ICEBERG, PACKAGE, jar
from tests.record.suite import Whole
from tests.record.worker import Installed, Worker
from tests.support.remedies import NOW, remove

RECORDED = Path(__file__).with_name("iceberg.json")
KEPT = Path(__file__).with_name("iceberg.tar.xz")
TABLE, CHECKPOINT = "now/db/t", "now/checkpoint"
Answer = dict[str, Any]


class Query:
    """A query into an Iceberg table, in a folder where both are put back for each scenario."""

    def __init__(self, session: Worker, folder: Path) -> None:
        self._session, self.folder = session, folder
        self.place, self.checkpoint = folder / "now", folder / CHECKPOINT
        self.kind, self.how = "stateless", {}  # type: str, dict[str, Any]
        self.kept: list[Mapping[str, bytes]] = []

    def put(self, kind: str = "stateless", **how: Any) -> None:
        """As it was when the query had stopped."""
        self.kind, self.how, self.kept = kind, how, []
        for do in ("put",) if (self.folder / f"made {kind}").exists() else ("make", "put"):
            self._do(do)

    def _do(self, do: str, **more: Any) -> dict[str, Any]:
        return self._session.ask({"do": do, "folder": str(self.folder), "kind": self.kind, **self.how, **more})

    def table(self, *steps: list[Any]) -> None:
        """Methods of `tests.live.iceberg.cases.Table`, with what they are given."""
        self._do("table", steps=steps)

    def start(self, **more: Any) -> str:
        """What a start failed with."""
        return str(self._do("start", **more)["error"])

    def times(self) -> dict[str, int]:
        """How often each row is in the table."""
        found: dict[str, int] = self._do("times")["times"]
        return found

    def ask(self) -> dict[str, Any]:
        """What `ckpt inspect --sink` says; what it was asked about is kept."""
        places = [*self.checkpoint.rglob("*"), *(self.folder / TABLE / "metadata").glob("*.metadata.json")]
        places.append(self.folder / TABLE / "metadata" / "version-hint.text")
        self.kept.append({str(one.relative_to(self.folder)): one.read_bytes() for one in places if one.is_file()})
        return _inspected(self.folder)


def _inspected(folder: Path) -> dict[str, Any]:
    """What is said of the checkpoint and the table in a folder."""
    return inspected(folder / CHECKPOINT, folder / TABLE, "4.0")


def remedy(said: dict[str, Any], code: str) -> str:
    (text,) = [one["remedy"] for one in said["findings"] if one["code"] == code]
    return str(text)


Scenario = Callable[[Query], Answer]


def _after(*changes: Change) -> Scenario:
    """Something happened, and the query is started as it is."""

    def scenario(query: Query) -> Answer:
        query.put()
        for change in changes:
            change(query, query.place)
        before = query.times()
        query.ask()
        return {"before": before, "error": query.start(), "times": query.times()}

    return scenario


def _rewound(steps: int, replayed: Replayed) -> Change:
    return rewound(BATCHES - 1 - steps, replayed)


def _older(query: Query, _: Path) -> None:
    shutil.rmtree(query.checkpoint)
    shutil.copytree(query.folder / f"older {query.kind}", query.checkpoint)


def _of_table(*steps: list[Any]) -> Change:
    return lambda query, _: query.table(*steps)


_NEWEST = BATCHES - 1
_BACK_TWO = _of_table(["roll_back", _NEWEST - 2])
_EXPIRED = _of_table(["expire", *range(_NEWEST)])
_FORGOTTEN = _of_table(["append", 100, 1], ["expire", *range(BATCHES)])
"""Somebody else commits, and every snapshot of the query expires."""

STARTED: Mapping[str, Scenario] = {
    "continued": _after(),
    "rewound by one": _after(_rewound(1, Replayed.NEW)),
    "rewound by three": _after(_rewound(3, Replayed.NEW)),
    "rewound by one, same": _after(_rewound(1, Replayed.SAME)),
    "rewound by three, same": _after(_rewound(3, Replayed.SAME)),
    "restored older": _after(_older),
    "crashed after the sink": _after(uncommitted),
    "crashed before the sink": _after(uncommitted, _of_table(["roll_back", _NEWEST - 1])),
    "new checkpoint": _after(new_checkpoint),
    "new id": _after(uncommitted, new_id),
    "recreated": _after(_of_table(["create_again"])),
    "rolled back": _after(_BACK_TWO),
    "rolled back, uncommitted": _after(_BACK_TWO, uncommitted),
    "expired": _after(_EXPIRED),
    "expired, uncommitted": _after(_EXPIRED, uncommitted),
    "forgotten": _after(_FORGOTTEN),
    "forgotten, uncommitted": _after(_FORGOTTEN, uncommitted),
    "compacted, uncommitted": _after(_of_table(["compact"]), uncommitted),
    "others too, restored older": _after(_of_table(["append", 100, 1]), _older),
}
"""What is said before a start has to be what the start does."""


def _cured(change: Change) -> Scenario:
    """The table is rolled back to where the remedy says, and the query started."""

    def scenario(query: Query) -> Answer:
        query.put()
        change(query, query.place)
        text = remedy(query.ask(), "CKPT411")
        (snapshot,) = re.findall(r"rollback_to_snapshot\('TABLE', ([0-9]+)\)", text)
        query.table(["roll_back_to", int(snapshot)])
        query.ask()
        return {"error": query.start(), "times": query.times()}

    return scenario


def _made_good(query: Query) -> Answer:
    """The table lacks batches, and the query is rewound as the remedy says."""
    query.put()
    _BACK_TWO(query, query.place)
    (command,) = re.findall("`ckpt (rewind [^`]+)`", remedy(query.ask(), "CKPT412"))
    sink = ["--sink", query.folder / TABLE]  # with which nothing is said of rows that a sink drops
    run = ckpt(*shlex.split(command), *sink, "--apply", "--grace", "0", "--accept-replay")
    assert run.exit_code == 0, run.output
    query.ask()
    return {"error": query.start(), "times": query.times()}


def _named_again(query: Query) -> Answer:
    """A lost ``metadata`` is written with the id that the table has, after a crash between sink and commit."""
    query.put()
    uncommitted(query, query.place)
    remove(query.checkpoint / "metadata")
    found = query.ask()["sink"]["query_id"]
    assert repair(str(query.checkpoint), query_id=found, **NOW)[1].applied
    query.ask()
    return {"error": query.start(), "times": query.times()}


def _crashed(kind: str, *, state_lost: bool = False, **how: Any) -> Scenario:
    """A query with state crashes between sink and commit."""

    def scenario(query: Query) -> Answer:
        query.put(kind, **how)
        uncommitted(query, query.place)
        if state_lost:
            remove(query.checkpoint / "state" / "0" / "0" / f"{BATCHES}.delta")
        query.ask()
        return {"error": query.start(), "times": query.times()}

    return scenario


CURED: Mapping[str, Scenario] = {
    "restored older, rolled back": _cured(_older),
    "rewound by one, rolled back": _cured(_rewound(1, Replayed.NEW)),
    "rewound by three, rolled back": _cured(_rewound(3, Replayed.NEW)),
    "rewound by three, same, rolled back": _cured(_rewound(3, Replayed.SAME)),
    "made good": _made_good,
    "named again": _named_again,
    "deduplication": _crashed("deduplication"),
    "state lost": _crashed("deduplication", state_lost=True),
    "complete": _crashed("complete"),
    "format 2": _crashed("format 2", **{"format 2": True}),
}


def _back_together(
    *changes: Change, kind: str = "stateless", replayed: Replayed = Replayed.NEW, time: bool = False
) -> Scenario:
    """Query and table go back by three batches, to a snapshot or a time, as the plan says."""

    def scenario(query: Query) -> Answer:
        query.put(kind)
        table = read_iceberg(str(query.folder / TABLE), {}).table
        (snapshot,) = [each for each in table.ancestors() if each.batch == _NEWEST - 3]
        version = datetime.fromtimestamp(snapshot.written_ms / 1000, UTC).isoformat() if time else str(snapshot.id)
        for change in changes:
            change(query, query.place)
        how: Any = {"to_sink_version": version, "sink": str(query.folder / TABLE), "replay": replayed}
        plan, held = rewind(str(query.checkpoint), **how, **NOW)
        (number,) = re.findall(r"rollback_to_snapshot\('TABLE', ([0-9]+)\)", plan.table.statement if plan.table else "")
        if not held.applied:
            query.table(["roll_back_to", int(number)])
        receipt = held if held.applied else rewind(str(query.checkpoint), **how, **NOW)[1]
        assert receipt.applied, receipt.problem
        query.ask()
        return {"held": held.problem, "error": query.start(), "times": query.times()}

    return scenario


BACK: Mapping[str, Scenario] = {
    "back together": _back_together(),
    "back together, same": _back_together(replayed=Replayed.SAME),
    "back together, deduplication": _back_together(kind="deduplication"),
    "back together, to a time": _back_together(time=True),
    "back together, others too": _back_together(_of_table(["append", 100, 1])),
    "back together, uncommitted": _back_together(uncommitted),
    "back together, rolled back before": _back_together(_of_table(["roll_back", _NEWEST - 3])),
}
"""Query and table go back together (``--to-sink-version``)."""

SCENARIOS: Mapping[str, Scenario] = {**STARTED, **CURED, **BACK}


class Scenarios(Whole):
    """All scenarios of a version; what ckpt was asked is kept of the version that was recorded last."""

    answers = OneFile(RECORDED, lambda found: json.dumps(found).replace('"before"', '\n"before"'))

    def wanted(self, minor: str) -> Iterable[str]:
        return SCENARIOS if minor in ICEBERG else ()

    def recorded(self, minor: str) -> Answer:
        answers: Answer = self.answers.read(minor)["answers"]
        return answers

    def ask_all(self, spark: Installed) -> None:
        package, answers, asked = ICEBERG[spark.minor], {}, {}
        with (
            TemporaryDirectory() as scratch,
            Worker(spark.python, spark.log, "iceberg-sink", {PACKAGE: package}) as session,
        ):
            query = Query(session, Path(scratch))
            for name, scenario in SCENARIOS.items():
                answers[name] = scenario(query)
                asked[name] = query.kept
        keep(KEPT, asked)
        self.answers.write(spark.minor, {"spark": spark.version, "jar": jar(package), "answers": answers})


SUITE = Scenarios()


def asked_again(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return ask_again(KEPT, folder, _inspected, (CHECKPOINT,))
