"""Runs real queries whose columns of state change, beside the changed query over all rows, and over new ones alone."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ckpt
from tests.new.evolve.running import SETTINGS, UNNAMED, shorten, write_rows
from tests.support.spark import queries

OLD, FILES = 2, 5  # of the files, those that the old query has read; each is a batch


BURSTS = "timestamp_seconds(1704067200 + CAST(dd AS INT) + 10 * (CAST(dd AS INT) DIV 10))"
"""Times of sessions: 10 s with rows, and 10 s without."""


def make_rows(number: int) -> list[dict[str, Any]]:
    """Return the rows of a file: others in each, over the same keys and more."""
    rows = []
    for n in range(number * 9, number * 9 + 12 + number):
        value = None if n % 7 == 3 else (n * 37 + number * 11) % 83 - 20 - number
        rows.append(
            {
                **{
                    "id": n % 31,
                    "k": n % (4 + number // 2),
                    "c": "one" if number < OLD or n % 3 else "two",
                    "g": n % 3,
                },
                **{
                    "v": value,
                    "v2": (n * 53 + 7) % 61 - number * 5,
                    "d": f"{(n * 17) % 97}.25",
                    "dd": f"{n}.5",
                    "f": (n % 13) / 4,
                },
                "t": f"2024-01-01T00:00:{(n * 3) % 40:02}.000Z",
            }
        )
    return rows


def build(spark: Any, folder: Path, query: Mapping[str, Any]) -> Any:
    """Return the data frame of a query over a folder of inputs."""
    functions = __import__("pyspark.sql.functions", fromlist=["expr"])

    def read(name: str) -> Any:
        reader = spark.readStream.schema(query["schema"]).option("maxFilesPerTrigger", "1")
        return reader.json(str(folder / name))

    rows = read("all")
    if query["variables"] or query["group"]:
        return keep_state(rows.select("k", "g", "v2"), query)
    if query["join"]:
        left, right = query["join"]
        own = rows.selectExpr("id AS key", *left)
        other = read("left").selectExpr("id AS key2", *(f"{name} AS r_{name}" for name in right))
        return own.join(other, functions.expr("key = key2"), "inner")
    if query["within"]:
        return rows.withWatermark("t", "1 day").dropDuplicatesWithinWatermark(list(query["distinct"]))
    if query["distinct"]:
        return rows.dropDuplicates(list(query["distinct"]))
    keys = [functions.expr(key) for key in query["keys"]]
    if query["window"]:
        rows = rows.withWatermark("t", query["watermark"]) if query["watermark"] else rows
        keys.append(functions.window("t", *query["window"].split("/")))
    if query["gap"]:
        rows = rows.withColumn("t", functions.expr(BURSTS))
        rows = rows.withWatermark("t", query["watermark"]) if query["watermark"] else rows
        keys.append(functions.session_window("t", query["gap"]))
    return rows.groupBy(*keys).agg(*[functions.expr(text) for text in query["aggregates"]])


def keep_state(rows: Any, query: Mapping[str, Any]) -> Any:
    """Return a query whose state is kept by functions of users."""
    variables, fields = query["variables"], query["group"]
    columns = [column for column, _ in fields] or [variable[0] for variable in variables]
    output = f"k {dict(rows.dtypes)['k']}, {', '.join(f'{column} STRING' for column in columns)}"
    groups = rows.groupBy("k")
    if fields:
        schema = ", ".join(f"{name} {kind}" for name, kind in fields)
        return groups.applyInPandasWithState(make_function(columns), output, schema, "update", "NoTimeout")
    transform = groups.transformWithState if query["by_rows"] else groups.transformWithStateInPandas
    return transform(make_processor(variables, by_rows=query["by_rows"]), output, "Update", query["time_mode"])


def make_function(names: Sequence[str]) -> Any:
    """Return a function that is local, so that workers need no module."""
    import pandas as pd

    def update(key: tuple[int], frames: Any, state: Any) -> Any:
        old = dict(zip(names, state.get, strict=True)) if state.exists else {}
        values = [int(value) for frame in frames for value in frame["v2"]]
        greatest = [*values, *([int(old["m"])] if old.get("m") is not None else [])]
        total = (old.get("s") or old.get("total") or 0) + sum(values)
        new = {"s": total, "total": total, "n": (old.get("n") or 0) + len(values), "m": max(greatest)}
        state.update(tuple(new.get(name) for name in names))
        yield pd.DataFrame({"k": [key[0]], **{name: [str(new.get(name))] for name in names}})

    return update


def make_processor(variables: Sequence[Any], *, by_rows: bool) -> Any:
    """Return a processor of a class that is local: each variable is shown as a column."""
    import pandas as pd
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Keeps(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.states = [self._open(handle, *variable) for variable in variables]

        @staticmethod
        def _open(handle: Any, _: str, name: str, kind: str, schema: str, ttl: int | None) -> Any:
            if kind == "map":
                key, _, value = schema.partition(" | ")
                return handle.getMapState(name, key, value, ttl)
            return getattr(handle, f"get{kind.capitalize()}State")(name, schema, ttl)

        def handleInputRows(self, key: tuple[int], frames: Any, timers: Any) -> Any:
            rows = list(frames) if by_rows else pd.concat(list(frames)).to_dict("records")
            values, groups = [int(row["v2"]) for row in rows], [int(row["g"]) for row in rows]
            shown: dict[str, Any] = {"k": key[0]}
            for (column, _, kind, schema, _), state in zip(variables, self.states, strict=True):
                if kind == "value":
                    new = self._add([part.split()[0] for part in schema.split(",")], state, values)
                elif kind == "list":
                    state.appendList([(value,) for value in values])
                    new = [int(row[0]) for row in state.get()]
                else:
                    for group in groups:
                        count = int(state.getValue((group,))[0]) if state.containsKey((group,)) else 0
                        state.updateValue((group,), (count + 1,))
                    new = sorted((int(pair[0][0]), int(pair[1][0])) for pair in state.iterator())
                shown[column] = str(new)
            yield Row(**shown) if by_rows else pd.DataFrame([shown])

        @staticmethod
        def _add(names: Sequence[str], state: Any, values: Sequence[int]) -> list[Any]:
            old = dict(zip(names, state.get(), strict=True)) if state.exists() else {}
            new = {"s": int(old.get("s") or 0) + sum(values), "n": int(old.get("n") or 0) + len(values)}
            new["m"] = max([*values, *([int(old["m"])] if old.get("m") is not None else [])])
            state.update(tuple(new[name] for name in names))
            return sorted((name, new[name]) for name in names)

        def close(self) -> None:
            """Nothing is open."""

    return Keeps()


class Columns:
    """Checkpoints of old queries, and what changed queries put out; the same ones are run once."""

    def __init__(self) -> None:
        self._made: dict[str, Path] = {}
        self._runs: dict[str, list[list[dict[str, Any]]]] = {}

    def make(self, spark: Any, job: dict[str, Any]) -> dict[str, Any]:
        """Copy the checkpoint of the old query, and describe both queries."""
        root, session = Path(job["root"]), _open(spark, job["conf"])
        folder = root / "columns inputs" / "old"
        if not folder.exists():
            _put(folder, range(OLD))
        key = json.dumps([job["old"], job["conf"]], sort_keys=True)
        if key not in self._made:
            checkpoint = root / "columns made" / str(len(self._made))
            _, error = self._run(session, folder, job["old"], checkpoint)
            assert error is None, error
            self._made[key] = checkpoint
        if any(self._made[key].glob("state/*/_stateSchema")):  # which metadata names by absolute path
            ckpt.copy(str(self._made[key]), job["checkpoint"])
        else:
            shutil.copytree(self._made[key], job["checkpoint"], copy_function=shutil.copy2)
        mode = _mode_of(job["old"])
        queries = {}
        for name in ("old", "new"):
            frame = build(session, folder, job[name])
            described = ckpt.describe_query(frame, output_mode=mode, checkpoint=job["checkpoint"])
            queries[name] = json.loads(described.to_json())
        return queries

    def go_on(self, spark: Any, job: dict[str, Any]) -> dict[str, Any]:
        """Continue with the changed query, restarted once, and compare each column."""
        root, session, query = Path(job["root"]), _open(spark, job["conf"]), job["new"]
        own = root / "columns inputs" / "old"
        batches: list[list[dict[str, Any]]] = []
        rest = [(name, number) for name in ("all", "left") for number in range(OLD, FILES)]
        try:
            for numbers in (range(OLD, FILES - 1), range(FILES - 1, FILES)):
                _put(own, numbers)
                new, error = self._run(session, own, query, Path(job["evolved"]))
                if error is not None:
                    return {"error": error}
                batches += new
        finally:
            for name, number in rest:
                (own / name / f"f{number}.json").unlink(missing_ok=True)
        full = self._run_all(session, root, query, job["conf"], range(FILES))[OLD:]
        now = self._run_all(session, root, query, job["conf"], range(OLD, FILES))
        if "agg" not in _kind_of(query):
            return {"columns": _compare_rows(batches, full, now), "error": None}
        shown = [text.rpartition(" AS ")[2] for text in query["aggregates"]]
        shown += [variable[0] for variable in query["variables"]] + [name for name, _ in query["group"]]
        keys = [name for name in next(filter(None, full))[0] if name not in shown]
        return {"columns": _compare_columns(batches, full, now, keys), "error": None}

    def _run_all(
        self, session: Any, root: Path, query: dict[str, Any], conf: Mapping[str, str], numbers: range
    ) -> list[list[dict[str, Any]]]:
        """Return the batches of a query that has read these files alone."""
        key = json.dumps([query, [*numbers], conf], sort_keys=True)
        if key not in self._runs:
            folder = root / "columns inputs" / f"from {numbers[0]}"
            if not folder.exists():
                _put(folder, numbers)
            checkpoint = root / "columns made" / f"run {len(self._runs)}"
            batches, error = self._run(session, folder, query, checkpoint)
            assert error is None, error
            self._runs[key] = batches
        return self._runs[key]

    @staticmethod
    def _run(
        session: Any, folder: Path, query: Mapping[str, Any], checkpoint: Path
    ) -> tuple[list[list[dict[str, Any]]], str | None]:
        every = bool(query["variables"] or query["gap"])  # each file is a batch, and nothing else
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", str(not every).lower())

        try:
            batches = queries.drain(build(session, folder, query), checkpoint, _mode_of(query)).values()
        except Exception as exception:
            return [], shorten(str(exception))
        return [[_plain(row.asDict(recursive=True)) for row in rows] for rows in batches if rows or query["gap"]], None


def _open(spark: Any, conf: Mapping[str, str]) -> Any:
    return queries.own_session(spark, {**SETTINGS, **UNNAMED, "spark.sql.session.timeZone": "UTC", **conf})


def _put(folder: Path, numbers: range) -> None:
    """Write these files alone; others are left as they are."""
    for name in ("all", "left"):
        for number in numbers:
            write_rows(folder / name / f"f{number}.json", make_rows(number), 1.7e9 + number)


def _kind_of(query: Mapping[str, Any]) -> str:
    return "join" if query["join"] else "distinct" if query["distinct"] else "agg"


def _mode_of(query: Mapping[str, Any]) -> str:
    if query["mode"]:
        return str(query["mode"])
    return "update" if _kind_of(query) == "agg" and not query["gap"] else "append"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Values that can be compared: lists sorted, floats rounded, all others as text."""
    return {name: _spell(value) for name, value in row.items()}


def _spell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return str(sorted(map(_spell, value))) if isinstance(value, list) else str(value)


def _compare_columns(
    batches: Sequence[Sequence[Mapping[str, str]]],
    full: Sequence[Sequence[Mapping[str, str]]],
    now: Sequence[Sequence[Mapping[str, str]]],
    keys: Sequence[str],
) -> dict[str, str]:
    """Tell of each column what it is, batch by batch and key by key."""
    by_key = [
        {(batch, *(row[name] for name in keys)): row for batch, rows in enumerate(each) for row in rows}
        for each in (batches, full, now)
    ]
    if by_key[0].keys() != by_key[1].keys() or len(by_key[0]) != sum(map(len, batches)):
        return {"keys": "others"}
    columns = {}
    for name in next(filter(None, full))[0]:
        values = [{key: row[name] for key, row in each.items()} for each in by_key]
        fits = [word for word, other in (("full", values[1]), ("now", values[2])) if values[0] == other]
        if name not in keys:
            columns[name] = "full" if values[1] == values[2] == values[0] else (fits[0] if fits else "none")
            if len(fits) == 2:
                columns[name] += ", and now"
    return dict(sorted(columns.items()))


def _compare_rows(
    batches: Sequence[Sequence[Mapping[str, str]]],
    full: Sequence[Sequence[Mapping[str, str]]],
    now: Sequence[Sequence[Mapping[str, str]]],
) -> dict[str, str]:
    """Tell what the rows are, batch by batch; of a join also without the column that is new."""
    counts = [[Counter(tuple(sorted(row.items())) for row in rows) for rows in each] for each in (batches, full, now)]
    fits = [word for word, other in (("full", counts[1]), ("now", counts[2])) if counts[0] == other]
    columns = {"rows": ", and ".join(fits) or "none"}
    if not fits:
        short = [
            [Counter(tuple(sorted((n, v) for n, v in row.items() if n != "c")) for row in rows) for rows in each]
            for each in (batches, full)
        ]
        columns["rows without c"] = "full" if short[0] == short[1] else "none"
    return columns
