"""The parts of ``start.py`` that are the same in all: guards against what Spark does silently."""

from ckpt import settings

OWN_PROCESSOR = '''

def own_processor() -> Any:
    """processor.py beside this file; `import` may give that of another migration."""
    file = Path(globals().get("__file__", "start.py")).with_name("processor.py")
    found = spec_from_file_location(f"processor of {file.parent}", file)
    if not file.exists() or found is None or found.loader is None:
        return import_module("processor")  # spark-submit --py-files
    module = module_from_spec(found)
    sys.modules[module.__name__] = module
    found.loader.exec_module(module)
    return module


processor = own_processor()'''

START = '''

def start(spark: SparkSession) -> StreamingQuery:
    """Start the query in the session, whose own settings are as before when it runs."""
    filled_in()
    settings = dict(SETTINGS){empty_batches}
    before = {{name: spark.conf.get(name, None) for name in settings}}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        return started(spark)
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)'''

NO_EMPTY_BATCHES = f"""
    if TRIGGER.get("availableNow") or TRIGGER.get("once"):
        # otherwise batches without rows would follow each other forever
        settings["{settings.EMPTY_BATCHES}"] = "false\""""

MILLISECONDS = '''

def milliseconds(spark: SparkSession, duration: str) -> int:
    """A duration such as "10 minutes", as Spark reads it."""
    until = f"TIMESTAMP'1970-01-01 00:00:00Z' + CAST('{duration}' AS INTERVAL)"
    return int(spark.range(1).selectExpr(f"unix_millis({until})").collect()[0][0])'''

SINK = '''

def sink(writer: DataStreamWriter) -> DataStreamWriter:
    """The sink of the results; write foreachBatch here."""
    return writer.format(SINK_FORMAT).options(**SINK_OPTIONS)'''

START_ERROR = '''

class StartError(Exception):
    """The query was not started; the text says what to do."""'''

WINDOWED = """\
    rows = rows.withColumn("window", F.window(EVENT_TIME, WINDOW, SLIDE or None))
    rows = rows.withColumn("window_start", F.col("window.start"))
    rows = rows.withColumn("window_end", F.col("window.end"))
    # Spark takes a row's lateness from the one column that is marked as event time:
    # let that be the window, as it was when the old query grouped by it
    unmarked = F.timestamp_micros(F.unix_micros(EVENT_TIME))
    rows = rows.withColumn(EVENT_TIME, unmarked)"""

SESSION = """\
    marked = rows.schema[EVENT_TIME].metadata
    end = F.col(EVENT_TIME) + F.expr(f"INTERVAL {GAP}")
    session = F.struct(F.col(EVENT_TIME).alias("start"), end.alias("end"))
    # Spark takes a row's lateness from the one column that is marked as event time:
    # let that be the session, as it was when the old query grouped by it
    rows = rows.select("*", session.alias("session", metadata=marked))
    unmarked = F.timestamp_micros(F.unix_micros(EVENT_TIME))
    rows = rows.withColumn(EVENT_TIME, unmarked)"""

CHECKS = '''

def filled_in() -> None:
    """Required constants must not be empty, and the checkpoint must be the same at every start."""
    empty = [name for name in NEEDED if not globals()[name]]
    if empty:
        raise StartError(f"fill in {', '.join(empty)} in start.py"){inputs}
    if not (os.path.isabs(CHECKPOINT) or ":/" in CHECKPOINT):
        raise StartError(
            f"CHECKPOINT {CHECKPOINT} is relative, so it is a different one in every folder that this "
            "is started from: use an absolute path or URI"
        )
    times = getattr(processor, "TTL_MS", {})
    empty = [name for name, duration in times.items() if duration <= 0]
    if empty:
        raise StartError(f"fill in TTL_MS of {', '.join(empty)} in processor.py")


def committed(spark: SparkSession) -> bool:
    """Whether the new query has committed a batch, and so has loaded the state.

    Until then it must be started with the state, however often it fails: started
    without it, all of it would silently be missing.
    """
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{CHECKPOINT}/commits")
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    found = system.listStatus(path) if system.exists(path) else []
    return any(status.getPath().getName().isdigit() for status in found)


def leaves_old_alone(spark: SparkSession) -> None:
    """The old checkpoint is needed to go back, and no different query may write to it."""
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{CHECKPOINT}/metadata")
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    first = spark.read.text(path.toString()).first() if system.exists(path) else None
    if OLD_QUERY and first is not None and OLD_QUERY in first[0]:
        raise StartError(f"{CHECKPOINT} is the old query's checkpoint: name a new one")


def sink_takes_batches(spark: SparkSession) -> None:
    """A file sink that another query has written to would drop batches of this one silently."""
    jvm: Any = spark.sparkContext._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    offsets = jvm.org.apache.hadoop.fs.Path(f"{CHECKPOINT}/offsets")
    if "path" not in SINK_OPTIONS or offsets.getFileSystem(conf).exists(offsets):
        return
    log = jvm.org.apache.hadoop.fs.Path(f"{SINK_OPTIONS['path']}/_spark_metadata")
    if log.getFileSystem(conf).exists(log):
        raise StartError(
            f"{SINK_OPTIONS['path']} is the output of another query, and its _spark_metadata "
            "would drop the first batches of this one: name a new folder"
        )


def keys_fit(rows: DataFrame) -> None:
    """Spark does not compare the key of rows and state: another type is another key."""
    for name, wanted in KEYS.items():
        if name not in rows.columns:
            raise StartError(f"prepare() gives no column {name}: the key has {wanted}")
        found = rows.schema[name].dataType.simpleString()
        if found != wanted:
            raise StartError(
                f"key column {name} is {found} in prepare() and {wanted} in the state: cast it"
            )


def one_row_a_key(frame: DataFrame) -> None:
    """Spark would use one of two rows of a key and drop the other."""
    counted = frame.groupBy(*KEYS).agg(F.count(F.lit(1)).alias("rows_of_key"))
    twice = counted.where("rows_of_key > 1").first()
    if twice is not None:
        key = {name: twice[name] for name in KEYS}
        raise StartError(f"the initial state has {twice['rows_of_key']} rows for {key}")'''

EVENT_TIME = '''

def has_event_time(rows: DataFrame) -> None:
    """Without it Spark would report a different error."""
    if EVENT_TIME not in rows.columns:
        raise StartError(f"prepare() gives no column {EVENT_TIME}, named by EVENT_TIME")
    found = rows.schema[EVENT_TIME].dataType.simpleString()
    if found != "timestamp":
        raise StartError(f"EVENT_TIME {EVENT_TIME} is {found}, and must be timestamp")'''

NULLS = '''

# Key types whose NULL pandas keeps apart from all other keys. For the others Spark turns
# all keys of the batch into NULL, or NULL into 1970-01-01, or it fails.
NULL_IS_SAFE = {safe}


def unsafe_keys() -> list[str]:
    """Key columns that must not contain NULL."""
    return [name for name, kind in KEYS.items() if not kind.startswith(NULL_IS_SAFE)]


def no_null_keys(frame: DataFrame) -> None:
    """The state must not have NULL in them."""
    for name in unsafe_keys():
        if frame.where(F.col(name).isNull()).first() is not None:
            raise StartError(
                f"the state has NULL in key column {name}, which transformWithStateInPandas "
                "mixes up with other keys: generate it again for the row API"
            )


def fail_at_null_keys(rows: DataFrame) -> DataFrame:
    """Neither must rows: the query fails rather than mix up keys."""
    for name in unsafe_keys():
        refusal = F.raise_error(
            F.lit(
                f"key column {name} is NULL, which transformWithStateInPandas mixes up with "
                "other keys: leave such rows out in prepare(), or generate the query for the row API"
            )
        )
        rows = rows.withColumn(name, F.coalesce(name, refusal.cast(KEYS[name])))
    return rows'''

MAIN = """\
    try:
        filled_in()
    except StartError as error:
        sys.exit(f"start.py: {error}")
    builder = SparkSession.builder.appName("transformWithState")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        start(spark).awaitTermination()
    except StartError as error:
        sys.exit(f"start.py: {error}")


if __name__ == "__main__":
    main()"""
