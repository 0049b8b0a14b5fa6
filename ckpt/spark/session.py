"""The session that reads and writes: the one that is active, or one that is built for the occasion."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from ckpt.errors import UsageError
from ckpt.spark.installed import SparkMissing, check_delta, check_java
from ckpt.spark.jobs import SparkFailed, translate_failures
from ckpt.spark.packages import DELTA_CATALOG, SPARK_CATALOG, add_delta, load_packages

_QUIET = Path(__file__).parent / "log4j2.properties"
_LOCAL = {
    "spark.app.name": "ckpt",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def open_session(
    master: str | None,
    confs: Mapping[str, str],
    *,
    delta: bool,
    table: str | None = None,
    existing: SparkSession | None = None,
) -> Iterator[SparkSession]:
    """The session that is ``existing``, or is active; otherwise one for the occasion, stopped afterwards.

    Under ``spark-submit``, whose settings hold, and elsewhere a session of all cores of this machine, or on ``master``.
    Raises SparkMissing where Java or delta-spark is missing, PackagesMissing where Maven cannot load a package,
    UsageError for settings that come too late, and for a ``table`` that nobody would find once the session has ended.
    """
    active = existing or SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        active = SparkSession.builder.getOrCreate()  # there is one, active in another thread: it is not ours to stop
    if active is not None:
        if master is not None:
            raise UsageError("`master` comes too late: a Spark session is active already")
        yield active
        return
    if delta:
        check_delta()
    started = _start(master, confs, delta=delta)
    try:
        if table is not None:
            _check_lasting(started, table)
        yield started
    finally:
        started.stop()


def _check_lasting(spark: SparkSession, table: str) -> None:
    """Raise UsageError where the catalog of a table ends with the session, as Spark's own does by default."""

    def read_setting(name: str, default: str) -> str:
        return str(spark.conf.get(name, default))

    catalog = table.partition(".")[0].strip("`")
    named = read_setting(f"spark.sql.catalog.{catalog}", "") and catalog != SPARK_CATALOG
    other = read_setting(f"spark.sql.catalog.{SPARK_CATALOG}", DELTA_CATALOG) != DELTA_CATALOG
    elsewhere = read_setting("spark.sql.defaultCatalog", SPARK_CATALOG) != SPARK_CATALOG
    if (
        not (named or other or elsewhere)
        and read_setting("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    ):
        raise UsageError(
            f"`table` {table}: the catalog of this session ends with it, and nobody would find the table; use `to`, or "
            "a catalog that lasts: `confs` spark.sql.catalogImplementation=hive, or spark-submit with yours"
        )


def _start(master: str | None, confs: Mapping[str, str], *, delta: bool) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Python workers would otherwise be the system's
    builder = SparkSession.builder
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started the JVM already
    if not submitted:
        check_java()
        builder = builder.master(master or os.environ.get("MASTER") or "local[*]")
        quiet = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"}
        for name, value in {**_LOCAL, **quiet}.items():
            builder = builder.config(name, value)
    elif master is not None:
        raise UsageError("`master` comes too late: give it to spark-submit")
    for name, value in confs.items():
        builder = builder.config(name, value)
    if delta and not submitted:
        builder = add_delta(builder, confs)
    try:
        with translate_failures("starting a session"):
            if not submitted:
                load_packages(builder._options)
            return builder.getOrCreate()
    except SparkFailed as error:
        if "JAVA_GATEWAY_EXITED" in str(error):
            raise SparkMissing(
                "Spark could not start its JVM; what it said stands above. Check `master`, `confs` and JAVA_HOME"
            ) from error
        raise


def require_classic(spark: SparkSession) -> SparkSession:
    """The session, if it has a JVM of its own. Raises UsageError for one of Spark Connect."""
    if not hasattr(spark, "_jsparkSession"):
        raise UsageError(
            "this is a session of Spark Connect; state is read with a classic one (`master`, spark-submit)"
        )
    return spark


def clone_session(spark: SparkSession) -> SparkSession:
    """A session with the same settings and catalog, whose settings can be changed without anybody noticing."""
    return SparkSession(spark.sparkContext, require_classic(spark)._jsparkSession.cloneSession())


def hand_over(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """Return the frame as one of ``spark``: its views and writes belong there.

    What was settled when the frame was loaded (the settings of state stores, file systems) stays: Spark's
    ``StateTable`` keeps the session that it was loaded in.
    """
    plan = frame._jdf.queryExecution().analyzed()
    dataset = spark.sparkContext._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)
