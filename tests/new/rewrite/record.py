"""How queries continue on rewritten checkpoints: the suite `rewrite` of `python -m tests.record`.

Each interpreter, which needs pyspark alone, makes a checkpoint for every case. The ckpt of this one writes it in
another form, or exports and imports it, and copies it; state that is made by hand is for another one, which has seen no
row. Then the query runs on both, is killed by SIGKILL in a batch whose state is written, is started again, and is
killed ten batches later; the rows of every batch and the state in the end are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ckpt
from tests.new.fill.states_by_hand import BY_HAND, by_hand
from tests.new.rewrite.continuing import frames, state
from tests.record.answers import Document, Folder
from tests.record.suite import Suite, say
from tests.record.worker import Installed
from tests.support.spark.plans import GENERATION, ROWS, WITHOUT

FOLDER = Path(__file__).with_name("recorded")
STARTS = 3
AT_ONCE = 12
"""Cases whose queries run side by side; beside other work fewer, for Python workers have ten seconds to start."""
KILLED = (3, 13)
"""The query is killed in these batches after the rewrite."""
KILLED_EARLIER = (3, 8)
"""Likewise after an import of state, and for what was added later; on one version as many batches showed the same."""
_STORE = "spark.sql.streaming.stateStore."
BUSY = {f"{_STORE}maintenanceInterval": "1s", f"{_STORE}minDeltasForSnapshot": "3"}
CODEC = f"{_STORE}compression.codec"
JOIN_3 = {"spark.sql.streaming.join.stateFormatVersion": "3"}
JOIN_4 = {"spark.sql.streaming.join.stateFormatVersion": "4"}
CHECKSUMS = ((f"{_STORE}rowChecksum.enabled", "true"),)
AVRO = ((f"{_STORE}encodingFormat", "avro"),)
HAND = "by hand"
ONE_BATCH = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
TRANSFORM = "transform-with-state-event-time"
NO_FAMILIES = (
    *("aggregation", "windowed-aggregation", "session-window", "dedup", "dedup-within-watermark", "dedup-aggregation"),
    *("limit", "join", "pandas-with-state"),
)


@dataclass(frozen=True)
class Case:
    """A query whose state is kept in one way, and then in another."""

    query: str
    store: str
    provider: str | None = None
    partitions: int | None = None
    version: int | None = None
    since: str = "4.0"
    conf: tuple[tuple[str, str], ...] = ()
    shape: str | None = None  # of an export that is imported, or by hand; None is `ckpt rewrite`

    @property
    def name(self) -> str:
        """Such as `join hdfs, rocksdb, 5 partitions`."""
        own = (value if value != "true" else key.split(".")[-2] for key, value in self.conf)
        parts = [f"{self.query} {self.store}", *own, self.shape, self.provider]
        parts += [f"{self.partitions} partitions" if self.partitions else None]
        return ", ".join(filter(None, [*parts, f"format {self.version}" if self.version else None]))

    @property
    def settings(self) -> dict[str, str]:
        """Of the session at every start."""
        return {**BUSY, **dict(self.conf), **(ONE_BATCH if self.shape == HAND else {})}

    @property
    def after(self) -> str:
        """How the state is kept afterwards, in the words of `STATE_STORES`."""
        if self.version == 2:
            return "format2"
        return self.provider.replace("rocksdb", "changelog") if self.provider else self.store


CASES = (
    *(Case(query, "hdfs", "rocksdb", 5) for query in NO_FAMILIES),
    *(Case(query, "changelog", "hdfs") for query in NO_FAMILIES),
    *(Case(query, "rocksdb", None, 1) for query in ("aggregation", "session-window", TRANSFORM)),
    Case(TRANSFORM, "changelog", None, 3),
    Case("join", "changelog", None, 3, since="4.2", conf=tuple(JOIN_3.items())),
    *(Case(query, "changelog", None, 3, 2, since="4.2") for query in ("aggregation", "join", TRANSFORM)),
    *(Case(query, store, since="3.5") for query in NO_FAMILIES[:5] for store in ("hdfs", "rocksdb")),
    *(Case(query, "hdfs", shape="flat") for query in NO_FAMILIES),
    *(Case(query, "changelog", None, 3, shape="raw") for query in (*NO_FAMILIES, TRANSFORM)),
    Case("join", "changelog", None, 3, since="4.2", conf=tuple(JOIN_3.items()), shape="raw"),
    Case("aggregation", "hdfs", shape=HAND),
    *(Case(query, "changelog", shape=HAND) for query in ("join", TRANSFORM)),
)
CASES += (
    Case("join", "changelog", None, 3, since="4.3", conf=tuple(JOIN_4.items())),
    Case("join", "changelog", None, 3, 2, since="4.3", conf=tuple(JOIN_4.items())),
    Case("join", "changelog", since="4.3", conf=tuple(JOIN_4.items()), shape="flat"),
    Case("join", "rocksdb", None, 3, since="4.3", conf=(*JOIN_4.items(), *CHECKSUMS), shape="flat"),
)
CASES += (
    Case("aggregation", "hdfs", "rocksdb", 5, since="4.2", conf=CHECKSUMS),
    Case("join", "changelog", "hdfs", since="4.2", conf=CHECKSUMS),
    Case("join", "changelog", None, 3, since="4.2", conf=(*JOIN_3.items(), *CHECKSUMS)),
    Case("windowed-aggregation", "hdfs", None, 3, since="4.2", conf=CHECKSUMS, shape="flat"),
    Case("aggregation", "hdfs", since="3.5", conf=((CODEC, "lzf"),)),
    Case("windowed-aggregation", "hdfs", "rocksdb", 3, since="3.5", conf=((CODEC, "zstd"),)),
    Case("session-window", "changelog", "hdfs", since="3.5", conf=((CODEC, "snappy"),), shape="raw"),
    Case("aggregation", "hdfs", "rocksdb", since="3.5", conf=((CODEC, "lzf"),), shape="flat"),
    Case("windowed-aggregation", "hdfs", since="3.5", conf=((CODEC, "zstd"),), shape="flat"),
    Case("join", "changelog", None, 3, since="4.3", conf=tuple(JOIN_4.items()), shape="raw"),
    Case(TRANSFORM, "changelog", None, 3, since="4.2", conf=CHECKSUMS),
    Case("collecting", "changelog", None, 3, since="4.2", conf=CHECKSUMS),
    Case("collecting", "rocksdb", None, 3, 2, since="4.2", conf=CHECKSUMS, shape="flat"),
    Case("collecting", "changelog", None, 3, conf=AVRO),
    Case("collecting", "changelog", None, 3, conf=AVRO, shape="flat"),
)
WITHOUT_METADATA = (
    *(Case(query, "hdfs", "rocksdb", 5) for query in ("aggregation", "session-window", "join", "limit")),
    Case("pandas-with-state", "hdfs", "rocksdb", 5),
    *(Case(query, "changelog", "hdfs") for query in ("dedup", "session-window", "join")),
    *(Case(query, "hdfs", shape="flat") for query in ("aggregation", "session-window", "join")),
)
"""Asked of Spark 3.5, which records no operator: what is written in another form, or imported."""
MORE = (
    *(Case(query, "hdfs", None, 5, shape="raw") for query in ("aggregation", "session-window", "join")),
    *(Case(query, "changelog", shape="flat") for query in ("aggregation", "session-window", "join", TRANSFORM)),
    Case("join", "changelog", conf=tuple(JOIN_3.items()), shape="flat"),
    *(Case(query, "format2", None, 3, shape="flat") for query in ("aggregation", TRANSFORM)),
    *(Case(query, "changelog", shape=HAND) for query in BY_HAND if query not in ("join", TRANSFORM)),
    Case("join", "hdfs", shape=HAND),
)
"""Asked of one version only: it is the same of others in another provider or shape."""
MAIN = "4.2"


def cases(minor: str) -> list[Case]:
    """Those that a version can be asked."""
    every = (*CASES, *(MORE if minor == MAIN else ()))
    fits = [case for case in every if case.since <= minor]
    return fits if minor != "3.5" else [*(case for case in fits if case.since == minor), *WITHOUT_METADATA]


def killed(minor: str, case: Case) -> tuple[int, int]:
    """In which batches after the rewrite or import the query of a case is killed."""
    added = bool(case.conf) and case.conf != tuple(JOIN_3.items())
    if added or (minor == "3.5" and case in WITHOUT_METADATA):
        return KILLED_EARLIER
    return KILLED if case.shape is None or minor == MAIN else KILLED_EARLIER


def ask(spark: Installed, some: Iterable[Case], folder: Path) -> dict[str, Any]:
    """Results of each case on the old and on the new checkpoint."""
    chosen, newest = [*some], {}
    told: dict[str, Any] = {}
    for number in range(STARTS):
        made = _run(spark, folder, [*_making(chosen, folder, number)])
        assert not any(run["error"] for run in made["runs"]), [run["error"] for run in made["runs"] if run["error"]]
    for case in chosen:
        new = _renewed(case, folder / case.name)
        assert new.written, (case.name, new.refused)
        newest[case] = new.batch
    both = [(case, which) for case in chosen for which in ("old", "new")]
    rows: list[dict[str, Any]] = [{} for _ in both]
    for time in range(len(KILLED)):
        after = [killed(spark.minor, case)[time] for case, _ in both]
        runs = [
            _of(case, case.store if which == "old" else case.after, folder / case.name / which, newest[case] + batches)
            for (case, which), batches in zip(both, after, strict=True)
        ]
        ran = _run(spark, folder, runs)
        for kept, one, batches in zip(rows, ran["runs"], after, strict=True):
            assert one["error"] is None, one["error"]
            kept[f"to the kill {batches} batches later"] = one["rows"]
    for (case, which), kept in zip(both, rows, strict=True):
        there = state(folder / case.name / which)
        told.setdefault(case.name, {})[which] = {
            "rows": {run: {batch: _digest(found) for batch, found in of.items()} for run, of in kept.items()},
            "state": {unit: _digest(found) for unit, found in there.items()},
        }
    return told


def _making(chosen: Iterable[Case], folder: Path, number: int) -> Iterator[dict[str, Any]]:
    """The cases of one of the starts in which checkpoints are made; state by hand belongs to the first.

    Rows in Avro get another schema in the last one.
    """
    for case in chosen:
        if case.shape != HAND or number == 0:
            run = _of(case, case.store, folder / case.name / "made", None)
            earlier = {GENERATION: "0"} if case.conf == AVRO and number < STARTS - 1 else {}
            yield {**run, "conf": {**run["conf"], **earlier}}
        if case.shape == HAND and number == 0:
            run = _of(case, case.store, folder / case.name / "first", None)
            yield {**run, "conf": {**run["conf"], WITHOUT: "0"}}


def _renewed(case: Case, folder: Path) -> ckpt.types.Rewrite:
    """The new checkpoint, beside a copy of the old one; they run at the same time, so that their ids differ."""
    old, new = str(folder / "old"), str(folder / "new")
    ckpt.copy(str(folder / "made"), old)
    if case.conf == AVRO:  # rows of both schemas are there
        assert 0 < frames(old)["operator 0, variable last"]["value_x"].null_count < ROWS * STARTS
    form: Any = {"provider": case.provider, "partitions": case.partitions, "format_version": case.version}
    match case.shape:
        case "flat":
            to = str(folder / "export")
            ckpt.export_state(ckpt.types.ExportRequest(old, to=to, all_units=True, engine=ckpt.types.Engine.NATIVE))
            return ckpt.import_state(to, new, like=old, new_id=True, **form)
        case "raw":  # which Spark alone writes
            return ckpt.write_state(frames(old, "raw"), new, like=old, new_id=True, **form)
        case "by hand":
            first = str(folder / "first")
            assert not any(table.num_rows for table in frames(first, "flat").values())
            return ckpt.write_state(by_hand(case.query), new, like=first, **form)
    return ckpt.rewrite(old, new, new_id=True, **form)


def _of(case: Case, store: str, checkpoint: Path, until: int | None) -> dict[str, Any]:
    return {"query": case.query, "store": store, "conf": case.settings, "checkpoint": str(checkpoint), "until": until}


def _run(spark: Installed, folder: Path, runs: list[dict[str, Any]]) -> dict[str, Any]:
    return spark.ask("side-by-side", {"inputs": str(folder / "inputs"), "runs": runs})


def _digest(rows: list[str]) -> list[Any]:
    return [len(rows), hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]]


class SideBySide(Suite):
    """A suite that runs the queries of some cases at once, and writes their answers down before the next ones."""

    answers: Folder

    def recorded(self, minor: str) -> Document:
        answers: Document = self.answers.read(minor)["cases"]
        return answers

    def record_groups(self, spark: Installed, cases: list[Any], at_once: int, ask: Callable[..., Document]) -> None:
        """Let `ask` answer `at_once` cases at a time, in a folder of their own."""
        answers = self.recorded(spark.minor)
        for at in range(0, len(cases), at_once):
            with TemporaryDirectory(prefix="ckpt-rewrite-") as folder:
                answers |= ask(spark, cases[at : at + at_once], Path(folder))
            self.answers.write(spark.minor, {"spark": spark.version, "cases": answers})
            say(f"{spark.version} {max(0, len(cases) - at - at_once):4} left")


class Rewritten(SideBySide):
    """Queries that continue on both checkpoints, some of them side by side."""

    answers = Folder(FOLDER, key="cases")

    def wanted(self, minor: str) -> list[str]:
        return [case.name for case in cases(minor)]

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        missing = self.missing(spark.minor, only, fresh=fresh)
        self.record_groups(spark, [case for case in cases(spark.minor) if case.name in missing], AT_ONCE, ask)


SUITE = Rewritten()
