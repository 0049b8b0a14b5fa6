"""Migrates samples to transformWithState and starts what was generated.

Of each sample one gets what its new checkpoint holds after batch 0 and what the initial state had, and what the guards
of `start.py` said. Nothing here knows how code is generated: constants
are set and functions replaced as a user would.
"""

import importlib
import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ckpt
from ckpt.errors import CkptError
from ckpt.migrate.generate.processor import processor_code
from ckpt.migrate.generate.start import start_code
from ckpt.migrate.transform import Api, TransformPlan, plan_transform
from ckpt.migrate.variables import Variable, VariableForm
from ckpt.spark.export import write_transform
from ckpt.spark.installed import find_pyspark_version
from ckpt.versions import Spark
from tests.support.places import SAMPLE_NAMES, SAMPLES
from tests.support.spark.queries import own_session
from tests.support.spark.recording import digest

STATEFUL = [name for name in SAMPLE_NAMES if not name.startswith("damaged") and (SAMPLES / name / "state").is_dir()]
ROW_API = [
    "windowed-aggregation-hdfs-4.2",
    "session-window-changelog-4.2",
    "tws-rocksdb-4.2",
    "join-changelog-4.2",
]
"""With the API for rows: a single value, sessions, variables, and lists; all that the two APIs do not share."""
_OF_ONE_BUFFER = "real-time-aggregation-4.3"  # otherwise like the aggregations that are recorded
RUNS = [(name, Api.PANDAS) for name in STATEFUL if name != _OF_ONE_BUFFER] + [(name, Api.ROW) for name in ROW_API]
LIVE = [("session-window-changelog-4.2", Api.ROW)]
"""Those that are run unless all are asked for; what the guards run has group state, and buffers of an aggregation."""
OPERATORS = {"dedup-aggregation-hdfs-4.2": 1}
"""Of samples with several operators the one that is taken."""

_DAY_MS = 24 * 60 * 60 * 1000
_LATER = int(time.time() * 1000) + 3650 * _DAY_MS
_AGGREGATION = "aggregation-hdfs-4.2"
_BIG = 2**53 + 1


def code_of(sample: str, api: Api) -> str:
    """What is generated from a sample, without comments and docstrings; or why nothing is."""
    try:
        plan = plan_transform(str(SAMPLES / sample), api=api, operator=OPERATORS.get(sample), spark=Spark.V4_2)
    except CkptError as error:
        return f"refused: {error}".replace(str(SAMPLES), "SAMPLES")
    code = (processor_code(plan) + start_code(plan, None)).replace(str(SAMPLES), "SAMPLES")
    return re.sub(r'"""[\s\S]*?"""|^ *#.*\n|  # .*', "", code, flags=re.MULTILINE)


def written(spark: Any, sample: str, folder: Path, api: Api = Api.PANDAS, operator: int | None = None) -> TransformPlan:
    plan = plan_transform(str(SAMPLES / sample), api=api, operator=operator, spark=find_pyspark_version())
    write_transform(spark, plan, f"file:{folder}")
    return plan


def imported(folder: Path) -> Any:
    """The generated `start`, with constants as a user fills them in, and a source that brings a batch without rows."""
    for name in ("start", "processor"):
        sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    start: Any = importlib.import_module("start")
    sys.path.remove(str(folder))
    start.CHECKPOINT = str(folder.with_name(f"{folder.name}-checkpoint"))
    start.SINK_FORMAT = "noop"
    for name in start.NEEDED[1:]:
        setattr(start, name, {"EVENT_TIME": "timestamp"}.get(name, "2 seconds"))
    for name in getattr(start, "INPUT", {}):
        start.INPUT[name] = "value"
    for name in getattr(start.processor, "TTL_MS", {}):
        start.processor.TTL_MS[name] = _DAY_MS
    for place in range(2):
        setattr(start, f"source_{place}", rate)
    start.prepare = lambda *rows: keyed(start, rows[0]).where("value < 0")
    return start


def rate(spark: Any) -> Any:
    """Rows (timestamp, value)."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).option("numPartitions", 1)
    return reader.option("startTimestamp", 1_700_000_100_000).load()


def keyed(start: Any, rows: Any) -> Any:
    for name, kind in start.KEYS.items():
        if name not in ("window_start", "window_end", "everything"):
            rows = rows.withColumn(name, rows["value"].cast(kind))
    return rows


def run(start: Any, spark: Any) -> str:
    """Run everything there is; what it failed with, if it did. A machine under load is given more than one try.

    Spark gives the Python process that declares the state ten seconds to come up; the next start is as the first.
    """
    for _ in range(15):
        failed = run_once(start, spark)
        if "Python worker failed to connect back" not in failed:
            break
    return failed


def run_once(start: Any, spark: Any) -> str:
    """Run everything there is; what it failed with, if it did."""
    try:
        start.start(spark).awaitTermination(300)
    except start.StartError as error:
        return str(error)
    except Exception as error:
        return f"Spark: {error}"
    return ""


def loaded(spark: Any, plan: TransformPlan, checkpoint: str) -> dict[str, Any]:
    """What the new checkpoint holds after batch 0, variable by variable; without TTL expiries, which begin anew."""
    found: dict[str, Any] = {}
    for variable in plan.variables:
        frame = ckpt.read_state(checkpoint, session=spark, batch=0, variable=variable.name)
        found[variable.name] = ordered(list(row)[: -1 if variable.ttl else None] for row in frame.collect())
    if timers_of(plan):
        found["timers"] = ordered(map(list, ckpt.read_state(checkpoint, session=spark, batch=0, timers=True).collect()))
    return found


def wanted(plan: TransformPlan, rows: list[Any]) -> dict[str, Any]:
    """The same from the rows of the initial state."""
    keys = [key.name for key in plan.shape.keys]
    found: dict[str, Any] = {
        variable.name: ordered(
            [*([row[key] for key in keys] or [0]), *held] for row in rows for held in held_by(variable, row)
        )
        for variable in plan.variables
    }
    timers = timers_of(plan)
    if timers:
        found["timers"] = ordered(
            [*[row[key] for key in keys], moment] for row in rows for moment in moments(timers, row)
        )
    return found


def held_by(variable: Variable, row: Any) -> Iterator[list[Any]]:
    """The values, elements or entries of one key."""
    if variable.name == "seen" and not variable.columns:
        yield [True]
    elif variable.spread:
        values = [row[name] for name in variable.columns]
        if variable.name != "state" or any(value is not None for value in values):
            yield values
    else:
        held = row[variable.columns[0]]
        match variable.form:
            case VariableForm.VALUE if held is not None:
                yield from [flat(held)] * (not variable.ttl or row[variable.expires] == _LATER)
            case VariableForm.LIST | VariableForm.MAP if variable.ttl:
                yield from (flat(one)[:-1] for one in held if one["expires_at_ms"] == _LATER)
            case VariableForm.LIST | VariableForm.MAP:
                yield from map(flat, held)


def alive(plan: TransformPlan, frame: Any) -> Any:
    """The initial state with times to live that end in ten years, but for key 3, whose are over; no timer fires yet."""
    from pyspark.sql import functions as F

    ends = F.when(F.col("key") == 3, 1).otherwise(_LATER)
    for variable in plan.variables:
        if variable.expires:
            frame = frame.withColumn(variable.expires, ends)
        elif variable.ttl:
            changed = F.transform(variable.columns[0], lambda one: one.withField("expires_at_ms", ends))
            frame = frame.withColumn(variable.columns[0], changed)
    # those of the samples were a day ahead when the samples were made
    return frame.withColumn("timers", F.transform("timers", lambda one: one + 3650 * _DAY_MS))


def flat(value: Any) -> list[Any]:
    return [leaf for one in value for leaf in (flat(one) if hasattr(one, "asDict") else [one])]


def timers_of(plan: TransformPlan) -> str:
    """Where the timers of a key come from: a column of the initial state."""
    columns = [column.name for column in (*plan.shape.keys, *plan.shape.state)]
    names = ("timers", "timeoutTimestamp", "sessions", "expiresAtMicros", "window_end")
    return "" if plan.time_mode == "None" else next((name for name in names if name in columns), "")


def moments(column: str, row: Any) -> list[int]:
    """The timers that belong to a key, in ms: the last one that lies before the end."""
    value = row[column]
    match column:
        case "timers":
            return list(value)
        case "timeoutTimestamp":
            return [value] if value > 0 else []
        case "sessions":
            return [int(one["end"].timestamp() * 1000) - 1 for one in value]
        case "expiresAtMicros":
            return [-(-value // 1000) - 1]
    return [int(value.timestamp() * 1000) - 1]


def ordered(rows: Any) -> list[str]:
    """Rows as text, in an order that does not depend on Spark."""
    return sorted(repr(list(row)) for row in rows)


def samples(spark: Any, folder: Path, asked: list[tuple[str, Api]]) -> dict[str, Any]:
    return {run_name(name, api): sample(spark, folder, name, api) for name, api in asked if api in apis()}


def run_name(name: str, api: Api) -> str:
    """Such as `limit-hdfs-4.2-pandas`."""
    return f"{name}-{api}"


def sample(spark: Any, folder: Path, name: str, api: Api) -> dict[str, Any]:
    """What its new checkpoint holds, and what it should."""
    place = folder / run_name(name, api)
    try:
        plan = written(spark, name, place, api, OPERATORS.get(name))
    except CkptError as error:
        return {"refused": str(error).replace(str(SAMPLES), "SAMPLES")}
    start = imported(place)
    if any(variable.ttl for variable in plan.variables):
        replace(spark, start, lambda frame: alive(plan, frame))
    rows = spark.read.parquet(str(place / "initial_state")).collect()
    failed = run(start, spark)
    return {
        "error": failed,
        "keys": len(rows),
        "wanted": wanted(plan, rows),
        "loaded": {} if failed else loaded(spark, plan, start.CHECKPOINT),
    }


def guards(spark: Any, folder: Path) -> dict[str, Any]:
    """What `start.py` says where something does not fit."""
    said: dict[str, Any] = {}

    def fresh(name: str, sample: str = _AGGREGATION, api: Api = Api.PANDAS) -> Any:
        first = folder / run_name(sample, api)
        if not first.exists():
            written(spark, sample, first, api)
        start = imported(shutil.copytree(first, folder / name))
        start.INITIAL_STATE = start.INITIAL_STATE.replace(str(first), str(folder / name))
        return start

    start = fresh("empty")
    start.CHECKPOINT = ""
    said["empty"] = run(start, spark)
    start.CHECKPOINT = "new/checkpoint"
    said["relative"] = run(start, spark)
    start.CHECKPOINT = str(SAMPLES / _AGGREGATION)
    said["old"] = run(start, spark)
    start = fresh("ttl", "tws-changelog-4.0")
    start.processor.TTL_MS["last"] = 0
    said["ttl"] = run(start, spark)
    start = fresh("type")
    start.prepare = lambda rows: rows.selectExpr("CAST(value AS STRING) AS key", "value")
    said["type"] = run(start, spark)
    start.prepare = lambda rows: rows
    said["column"] = run(start, spark)
    start = fresh("event-time", "windowed-aggregation-hdfs-4.2")
    start.prepare = lambda rows: keyed(start, rows.drop("timestamp"))
    said["event-time"] = run(start, spark)
    start = fresh("twice")
    replace(spark, start, lambda frame: frame.union(frame.where("key = 3")))
    said["twice"] = run(start, spark)
    start = fresh("null")
    replace(spark, start, lambda frame: frame.selectExpr("NULLIF(key, 3) AS key", "count", "sum"))
    said["null"] = run(start, spark)
    start = fresh("null-row")
    start.prepare = lambda rows: rows.selectExpr("NULLIF(value, 1) AS key", "value")
    said["null-row"] = run(start, spark)
    said["exact"] = {api: exact(spark, fresh(f"exact-{api}", api=api)) for api in apis()}
    said["crash"] = crash(spark, fresh("crash"))
    said["timeout"] = timeout(spark, fresh("timeout", "pandas-with-state-changelog-4.2"))
    written(spark, "session-window-changelog-4.2", folder / "durations")
    said["none"] = none(spark, fresh("none", "pandas-with-state-changelog-4.2"))
    said["durations"] = durations(spark, folder / "durations")
    said["settings"] = settings(spark, fresh("settings", "pandas-with-state-changelog-4.2"))
    return said


def apis() -> list[Api]:
    """Those that the installed Spark has."""
    return [Api.PANDAS] + [Api.ROW] * find_pyspark_version().at_least(Spark.V4_1)


def replace(spark: Any, start: Any, change: Any) -> None:
    """Put another initial state in the place of the one that was written."""
    path = Path(start.INITIAL_STATE.removeprefix("file:"))
    frame = change(spark.read.parquet(str(path)))
    frame.write.parquet(f"{path}-other")
    shutil.rmtree(path)
    Path(f"{path}-other").rename(path)


def exact(spark: Any, start: Any) -> list[Any]:
    """What becomes of numbers that no float holds, in columns that have NULLs."""
    rows = [(1, _BIG, None), (2, None, _BIG), (_BIG, None, None), (_BIG - 1, _BIG, -_BIG)]
    replace(spark, start, lambda frame: spark.createDataFrame(rows, frame.schema))
    error = run(start, spark)
    if error:
        return [error]
    return sorted(list(row) for row in ckpt.read_state(start.CHECKPOINT, session=spark, variable="buffers").collect())


def crash(spark: Any, start: Any) -> dict[str, Any]:
    """Batch 0 fails; it is started again, and again once the initial state is gone."""
    start.prepare = lambda rows: rows.selectExpr("value AS key", "value")

    def fails(self: Any, key: Any, rows: Any, timers: Any) -> Any:
        raise RuntimeError("not today")

    def ignores(self: Any, key: Any, rows: Any, timers: Any) -> Any:
        return iter(())

    start.processor.Processor.update = fails
    said = {"error": run(start, spark), "commits": len(list(Path(start.CHECKPOINT, "commits").glob("[0-9]*")))}
    start.processor.Processor.update = ignores
    said["again"] = run(start, spark)

    def state() -> list[list[Any]]:
        return sorted(
            list(row) for row in ckpt.read_state(start.CHECKPOINT, session=spark, variable="buffers").collect()
        )

    if said["again"]:
        return said
    said["loaded"] = state()
    path = start.INITIAL_STATE.removeprefix("file:")
    said["wanted"] = sorted(list(row) for row in spark.read.parquet(path).collect())
    shutil.rmtree(path)
    said["later"] = run(start, spark)
    said["kept"] = state()
    said["committed"] = len(list(Path(start.CHECKPOINT, "commits").glob("[0-9]*")))
    return said


def timeout(spark: Any, start: Any) -> dict[str, Any]:
    """Which keys have a timer after a batch with rows of keys 10 to 13, and which had a timeout in the state."""
    start.prepare = lambda rows: rows.selectExpr("timestamp", "value + 10 AS key")
    had = spark.read.parquet(start.INITIAL_STATE).where("timeoutTimestamp > 0").collect()
    error = run(start, spark)
    timers = [] if error else ckpt.read_state(start.CHECKPOINT, session=spark, batch=0, timers=True).collect()
    return {"error": error, "had": sorted(row["key"] for row in had), "have": sorted(row["key_key"] for row in timers)}


def none(spark: Any, start: Any) -> dict[str, Any]:
    """Which keys have a group state, and which a timer, after that of key 3 was one of NULLs only."""
    from pyspark.sql import functions as F

    def emptied(frame: Any) -> Any:
        return frame.withColumns({name: F.when(frame["key"] != 3, frame[name]) for name in ("rows", "last")})

    replace(spark, start, emptied)
    had = spark.read.parquet(start.INITIAL_STATE).where("timeoutTimestamp > 0").collect()
    error = run(start, spark)
    state = [] if error else ckpt.read_state(start.CHECKPOINT, session=spark, batch=0, variable="state").collect()
    timers = [] if error else ckpt.read_state(start.CHECKPOINT, session=spark, batch=0, timers=True).collect()
    keys = {"states": [row["key_key"] for row in state], "timers": [row["key_key"] for row in timers]}
    return {"error": error, "had": sorted(row["key"] for row in had), **{name: sorted(keys[name]) for name in keys}}


def durations(spark: Any, folder: Path) -> str:
    """What a processor fails with that says what its `GAP_MS` and `DELAY_MS` are."""
    code = folder / "processor.py"
    said = 'raise RuntimeError(f"gap {GAP_MS}, delay {DELAY_MS}")'
    code.write_text(code.read_text().replace("for _ in rows:\n            pass", said))
    start = imported(folder)
    start.GAP, start.DELAY = "5 minutes", "1 hour"
    start.prepare = lambda rows: keyed(start, rows)
    return run(start, spark)


def settings(spark: Any, start: Any) -> dict[str, Any]:
    """The session's settings that a start changes, before and after it; one of them is set, one is not."""
    named = [*start.SETTINGS, "spark.sql.streaming.noDataMicroBatches.enabled"]

    def now() -> list[Any]:
        return [spark.conf.get(name, None) for name in named]

    before = now()
    return {"error": run(start, spark), "before": before, "after": now(), "during": list(start.SETTINGS.values())}


def own(spark: Any) -> Any:
    return own_session(spark, {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}, partitions=1)


def found(spark: Any, folder: Path, asked: list[tuple[str, Api]]) -> dict[str, Any]:
    """What the guards say, and what became of samples."""
    session = own(spark)
    both = {"guards": guards(session, folder / "guards"), "samples": samples(session, folder / "samples", asked)}
    told: dict[str, Any] = json.loads(json.dumps(both, default=str))
    return told


def recorded(spark: Any, folder: Path) -> dict[str, Any]:
    """All `RUNS`, each with the code that it ran; digests in place of rows."""
    told = {}
    for name, api in RUNS:
        one = sample(own(spark), folder, name, api)
        for part in ("wanted", "loaded") if "refused" not in one else ():
            one[part] = {variable: digest(rows) for variable, rows in one[part].items()}
        told[run_name(name, api)] = {"code": digest([code_of(name, api)]), **one}
    return told
