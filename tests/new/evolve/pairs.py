"""Pairs of queries at random: what is said of the change, and the rows of the continued query beside a control.

The suite `evolve-pairs` of `python -m tests.record`. A pair differs in one to three of: operators, keys, windows,
watermarks, output modes, filters, generators, joins with tables.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import ckpt
from ckpt.inspection.preflight import PlannedStart, judge_start
from tests.new.evolve.running import SETTINGS, shorten, write_rows
from tests.record.answers import Document, Folder
from tests.record.suite import Cases
from tests.record.worker import Session

OLD, FILES, COUNT, SEED = 2, 4, 60, 46
SCHEMA = "id BIGINT, k INT, g STRING, v INT, xs ARRAY<INT>, t TIMESTAMP"
FILTERS = ("v IS NOT NULL", "v > 3", "NOT (g IS NULL)", "v IS NOT NULL AND k < 3", "g <> 'a'", "NOT (v <=> NULL)")


@dataclass(frozen=True)
class Query:
    """A query over a folder of files, from the source on."""

    watermark: str | None = "30 seconds"
    filters: tuple[str, ...] = ()
    generator: str = ""  # explode, explode_outer
    table: str = ""  # how a table that is not streamed is joined
    distinct: tuple[str, ...] = ()
    kind: str = "window"  # rows, window, keys, session, within, join
    keys: tuple[str, ...] = ("g",)
    length: str = "1 minute"
    slide: str | None = None
    how: str = "inner"
    mode: str = "update"

    def build(self, spark: Any, folder: Path) -> Any:
        """Return the frame; the same folder has the rows of the other side of a join."""
        functions = __import__("pyspark.sql.functions", fromlist=["expr"])

        def read() -> Any:
            reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
            rows = reader.json(str(folder))
            return rows.withWatermark("t", self.watermark) if self.watermark else rows

        rows = read()
        for text in self.filters:
            rows = rows.where(text)
        if self.generator:
            rows = rows.withColumn("x", functions.expr(f"{self.generator}(xs)"))
        if self.table:
            table = spark.sql("SELECT * FROM VALUES (0, 'zero'), (1, 'one'), (2, 'two') AS t(k, name)")
            rows = rows.join(table, "k", self.table)
        if self.distinct:
            rows = rows.dropDuplicates(list(self.distinct))
        match self.kind:
            case "rows":
                return rows.select("id", "g", "v")
            case "within":
                return rows.dropDuplicatesWithinWatermark(["id"]).select("id")
            case "join":
                other = read().selectExpr("id + 1 AS id2", "t AS t2", "v AS v2")
                on = "id = id2" if not self.watermark else f"id = id2 AND t2 BETWEEN t AND t + INTERVAL {self.length}"
                return rows.join(other, functions.expr(on), self.how).select("id", "v", "v2")
            case "session":
                rows = rows.groupBy(functions.session_window("t", self.length), *self.keys)
            case "window":
                rows = rows.groupBy(functions.window("t", self.length, self.slide), *self.keys)
            case _:
                rows = rows.groupBy(*self.keys)
        return rows.agg(functions.expr("count(*) AS n"), functions.expr("sum(v) AS s"))


@dataclass(frozen=True)
class Pair:
    """An old query, and the changed one."""

    old: Query
    new: Query

    @property
    def name(self) -> str:
        """What the old query is, and each difference."""
        old, new = asdict(self.old), asdict(self.new)
        said = (f"{name}={spell(old[name])} to {spell(new[name])}" for name in old if old[name] != new[name])
        return f"{self.old.kind} {spell(asdict(self.old))}: {', '.join(said)}"


def spell(value: Any) -> str:
    """Spell a field, or the fields that are not as by default."""
    if isinstance(value, dict):
        plain = asdict(Query())
        return " ".join(
            f"{name}={spell(part)}" for name, part in value.items() if part != plain[name] and name != "kind"
        )
    return "+".join(value) if isinstance(value, (list, tuple)) else str(value)


def make_query(chance: random.Random) -> Query:
    """Make a query that Spark can run."""
    kind = chance.choice(("rows", "window", "window", "window", "keys", "session", "within", "join"))
    mode = {"window": chance.choice(("append", "update", "complete")), "keys": chance.choice(("update", "complete"))}
    return fit(
        Query(
            chance.choice((None, "30 seconds", "30 seconds", "90 seconds")),
            (chance.choice(FILTERS),) if chance.random() < 0.4 else (),
            chance.choice(("", "", "explode", "explode_outer")),
            chance.choice(("", "", "", "inner", "left")),
            chance.choice(((), (), ("id",), ("id", "t"))),
            kind,
            chance.choice((("g",), ("g", "k"))),
            chance.choice(("1 minute", "2 minutes")),
            None,
            chance.choice(("inner", "leftOuter")),
            mode.get(kind, "append"),
        )
    )


def change(query: Query, chance: random.Random) -> Query:
    """Change one part of a query, or a few."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        match chance.choice(
            ("watermark", "mode", "filters", "generator", "table", "distinct", "window", "keys", "how")
        ):
            case "watermark":
                query = replace(query, watermark=chance.choice((None, "10 seconds", "30 seconds", "90 seconds")))
            case "mode":
                query = replace(query, mode=chance.choice(("append", "update", "complete")))
            case "filters":
                query = replace(query, filters=(*query.filters, chance.choice(FILTERS)) if not query.filters else ())
            case "generator":
                query = replace(query, generator=chance.choice(("", "explode", "explode_outer")))
            case "table":
                query = replace(query, table=chance.choice(("", "inner", "left")))
            case "distinct":
                query = replace(query, distinct=chance.choice(((), ("id",), ("id", "t"))))
            case "window":
                query = replace(query, length=chance.choice(("1 minute", "2 minutes", "3 minutes")))
            case "keys":
                query = replace(query, keys=chance.choice((("g",), ("g", "k"), ("k",))))
            case "how":
                query = replace(query, how=chance.choice(("inner", "leftOuter")))
    return fit(query)


def fit(query: Query) -> Query:
    """Make a query one that Spark can run."""
    timed = query.kind in ("session", "within") or (query.kind == "window" and query.mode == "append")
    timed |= query.kind == "join" and query.how != "inner"
    query = replace(query, watermark=query.watermark or "30 seconds") if timed else query
    mode = query.mode
    if query.kind in ("rows", "within", "join") or (query.kind == "session" and mode == "update"):
        mode = "append"
    if query.kind == "keys" and mode == "append":
        mode = "update"
    parts = replace(query, mode=mode)
    if query.kind == "join":  # both sides read one folder
        parts = replace(parts, distinct=(), generator="", table="")
    if query.kind == "within":
        parts = replace(parts, distinct=())
    return parts


def make_pairs(count: int, seed: int = SEED) -> list[Pair]:
    """Make so many pairs, all different."""
    chance = random.Random(seed)
    pairs: dict[str, Pair] = {}
    while len(pairs) < count:
        old = make_query(chance)
        pair = Pair(old, change(old, chance))
        if pair.old != pair.new:
            pairs[pair.name] = pair
    return list(pairs.values())


def make_rows(number: int) -> list[dict[str, Any]]:
    """Return the rows of a file, a minute each: some come late, some twice, some have no value."""
    rows = []
    for n in range(24):
        second = number * 60 + n * 2 - (150 if n % 8 == 5 else 45 if n % 8 == 2 else 0)
        rows.append(
            {
                **{"id": (n * 5 + number * 7) % 41, "k": n % 4, "g": (None, "a", "b", "c")[(n + number) % 4]},
                **{"v": None if n % 5 == 1 else n, "xs": [[], [1], [1, 2], None][n % 4]},
                "t": f"2024-01-01T01:{(second + 600) // 60:02}:{second % 60:02}.000Z",
            }
        )
    return rows


class Pairs:
    """Checkpoints of old queries and runs of controls, made once each."""

    def __init__(self) -> None:
        self._made: dict[Query, Path] = {}
        self._controls: dict[Query, list[str] | str] = {}

    def answer(self, spark: Any, job: Document, scratch: Path) -> Document:
        """Describe a pair, ask preflight and evolve, and start the changed query on what they give."""
        old, new = (parse(job[name]) for name in ("old", "new"))
        root = Path(job["root"])
        session = spark.newSession()
        for name, value in {
            **SETTINGS,
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.session.timeZone": "UTC",
        }.items():
            session.conf.set(name, value)
        folder, case = root / "inputs", root / f"case {len(list(root.glob('case *')))}"
        put(folder, range(OLD))
        if old not in self._made:
            path = root / f"old {len(self._made)}"
            _, error = run(session, folder, old, path)
            if error is not None:
                return {"error": error}
            self._made[old] = path
        made = self._made[old]
        queries = [
            ckpt.describe_query(query.build(session, folder), output_mode=query.mode, checkpoint=str(made))
            for query in (old, new)
        ]
        if queries[1].unsupported or queries[1].operators is None:
            return {"error": "unsupported"}
        answer = judge(made, case / "new", queries)
        control = self._control(session, root, new)
        for name, place in (("plain", case / "plain"), ("evolved", case / "new")):
            if name == "plain":
                shutil.copytree(made, place)
            elif not place.exists():
                if answer["refused"] is not None:
                    continue
                shutil.copytree(made, place)
            put(folder, range(OLD, FILES))
            rows, error = run(session, folder, new, place)
            for number in range(OLD, FILES):
                (folder / f"f{number}.json").unlink()
            answer[name] = {"error": error, "same": error is None and rows == control}
            if error is None and rows != control:
                answer[name]["differing"] = differ(rows, control)
        return answer

    def _control(self, session: Any, root: Path, query: Query) -> list[str] | str:
        if query not in self._controls:
            folder, place = root / f"control inputs {len(self._controls)}", root / f"control {len(self._controls)}"
            put(folder, range(OLD))
            _, error = run(session, folder, query, place)
            assert error is None, error
            put(folder, range(OLD, FILES))
            rows, error = run(session, folder, query, place)
            assert error is None, error
            self._controls[query] = rows
        return self._controls[query]


def judge(made: Path, new: Path, queries: list[ckpt.types.QueryDescription]) -> Document:
    """Return what preflight and evolve say of the change."""
    ready = judge_start(ckpt.open_checkpoint(str(made)), PlannedStart(query=queries[1], old=queries[0]))
    told = [rated.finding.diagnosis.code for rated in (*ready.holds, *ready.warnings)]
    new.parent.mkdir(parents=True)
    plan, _ = ckpt.evolve(str(made), str(new), to=queries[1], from_query=queries[0], accept_from_now_on=True, jobs=1)
    refused = None if plan.refused is None else shorten(str(plan.refused))
    said = {"go": ready.go, "told": sorted({*told}), "verdict": plan.verdict}
    return {**said, "refused": refused}


def parse(spec: Mapping[str, Any]) -> Query:
    """Return the query of a job."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in spec.items()}
    return Query(**fields)


def put(folder: Path, numbers: Iterable[int]) -> None:
    """Write these files, if they are not there."""
    for number in numbers:
        if not (folder / f"f{number}.json").exists():
            write_rows(folder / f"f{number}.json", make_rows(number), 1.7e9 + number)


def run(session: Any, folder: Path, query: Query, checkpoint: Path) -> tuple[list[str], str | None]:
    """Run a query over what is there: its rows, or in complete mode those of the last batch; and its error."""
    batches: list[list[str]] = []

    def take(frame: Any, _: int) -> None:
        batches.append([str(row.asDict(recursive=True)) for row in frame.collect()])

    writer = query.build(session, folder).writeStream.option("checkpointLocation", str(checkpoint))
    try:
        started = writer.outputMode(query.mode).trigger(availableNow=True).foreachBatch(take).start()
        started.awaitTermination(120)
    except Exception as exception:
        return [], shorten(str(exception))
    kept = batches[-1:] if query.mode == "complete" else batches
    return sorted(row for batch in kept for row in batch), None


def differ(rows: Iterable[str], control: Iterable[str]) -> list[str]:
    """Return a few rows that only one of both has."""
    pairs = (("+", Counter(rows) - Counter(control)), ("-", Counter(control) - Counter(rows)))
    return [f"{sign} {row}" for sign, counted in pairs for row in [*counted][:2]]


class Continued(Cases[Pair]):
    """Pairs that are continued by Spark."""

    answers = Folder(Path(__file__).with_name("recorded_pairs"))
    role = "evolve-pairs"
    partly = True

    def cases(self, minor: str) -> Iterable[Pair]:
        return make_pairs(COUNT) if minor == "4.2" else ()

    def ask(self, session: Session, case: Pair, folder: Path) -> Document:
        job = {"old": asdict(case.old), "new": asdict(case.new), "root": str(folder.parent)}
        text = json.dumps(session.ask(job)).replace(str(folder.parent), "FOLDER")
        return dict(json.loads(text))


SUITE = Continued()
_PAIRS = Pairs()


def answer(spark: Any, job: Document, scratch: Path) -> Document:
    """Answer a job: the role of `tests/record/process.py`."""
    return _PAIRS.answer(spark, job, scratch)
