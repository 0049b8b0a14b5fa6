"""The session that reads and writes: the one that is active, or one that is built for the occasion, with its packages.

Packages are jars that Spark loads through Maven when its JVM starts: Delta's, and those in ``spark.jars.packages``.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from threading import Event, Thread
from urllib.parse import unquote

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

from ckpt.advice import Words, words
from ckpt.errors import CkptError, UsageError, one_line
from ckpt.spark.connect import require_classic
from ckpt.spark.installed import Session, SparkFailed, SparkMissing, check_delta, check_java
from ckpt.spark.jobs import translate_failures

_QUIET = Path(__file__).parent / "log4j2.properties"
_LOCAL = {
    "spark.app.name": "ckpt",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET.as_uri()}",
}
_SPARK_CATALOG = "spark_catalog"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_PACKAGES = "spark.jars.packages"
_FAILED = re.compile(r"RuntimeException: \[((?:download failed|unresolved dependency): .*)\]")
"""Words of the error of ``org.apache.spark.util.MavenUtils``; in brackets each package or jar that is missing."""


class PackagesMissing(CkptError):
    """Spark could not load a package, or one that it depends on, through Maven."""


@contextmanager
def open_session(session: Session, *, delta: bool = False, table: str | None = None) -> Iterator[SparkSession]:
    """The session that is given, or is active; otherwise one for the occasion, stopped afterwards.

    Under ``spark-submit``, whose settings hold, and elsewhere a session of all cores of this machine, or on ``master``.
    Raises SparkMissing where Java or delta-spark is missing, PackagesMissing where Maven cannot load a package,
    ConnectSession, and UsageError for settings that come too late, and for a ``table`` that nobody would find once the
    session has ended.
    """
    active = session.spark or SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        active = SparkSession.builder.getOrCreate()  # there is one, active in another thread: it is not ours to stop
    if active is not None:
        if session.master is not None:
            raise UsageError.of("{--master} has no effect: a Spark session is already active")
        yield require_classic(active)
        return
    if delta:
        check_delta()
    started = _start(session.master, session.conf or {}, delta=delta)
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
    named = read_setting(f"spark.sql.catalog.{catalog}", "") and catalog != _SPARK_CATALOG
    other = read_setting(f"spark.sql.catalog.{_SPARK_CATALOG}", _DELTA_CATALOG) != _DELTA_CATALOG
    elsewhere = read_setting("spark.sql.defaultCatalog", _SPARK_CATALOG) != _SPARK_CATALOG
    if (
        not (named or other or elsewhere)
        and read_setting("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    ):
        raise UsageError.of(
            "{--table} {table}: this session's catalog ends with the session, and nobody would find the "
            "table; use {--to}, or a permanent catalog: {--conf} spark.sql.catalogImplementation=hive, "
            "or spark-submit with yours",
            table=table,
        )


def _start(master: str | None, conf: Mapping[str, str], *, delta: bool) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Python workers would otherwise be the system's
    builder = SparkSession.builder
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started the JVM already
    if not submitted:
        check_java()
        builder = builder.master(master or os.environ.get("MASTER") or "local[*]")
        builder = builder.config(map=_LOCAL)
    elif master is not None:
        raise UsageError.of("{--master} has no effect here: pass it to spark-submit")
    builder = builder.config(map=dict(conf))
    if delta and not submitted:
        builder = _add_delta(builder, conf)
    try:
        with translate_failures("starting a session"):
            if not submitted:
                _load_packages(builder._options)
            return builder.getOrCreate()
    except SparkFailed as error:
        if "JAVA_GATEWAY_EXITED" in str(error):
            raise SparkMissing.of(
                "Spark could not start its JVM; see its output above. Check {--master}, {--conf} and JAVA_HOME"
            ) from error
        raise


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


def _add_delta(builder: SparkSession.Builder, conf: Mapping[str, str]) -> SparkSession.Builder:
    """Have the session know Delta, and load Delta's jars unless ``conf`` names them in ``spark.jars``.

    Raises SparkMissing where delta-spark cannot be used.
    """
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config(f"spark.sql.catalog.{_SPARK_CATALOG}", _DELTA_CATALOG)
    if any(PurePath(jar).name.startswith("delta-spark_") for jar in conf.get("spark.jars", "").split(",")):
        return builder
    try:
        from delta import configure_spark_with_delta_pip
    except ImportError as error:
        raise SparkMissing(f"delta-spark cannot be used: {error}") from error
    more = [name for name in conf.get(_PACKAGES, "").split(",") if name]
    return configure_spark_with_delta_pip(builder, more)


def _load_packages(settings: Mapping[str, str]) -> None:
    """Start the JVM of a session with these settings, which loads the packages among them; does nothing without any.

    Raises PackagesMissing where that fails. What Maven says on the way is not shown; after any other failure all that
    the JVM said is on standard error.
    """
    if not settings.get(_PACKAGES) or SparkContext._gateway is not None:
        return
    conf = SparkConf().setAll([*settings.items()])
    ours, its = os.pipe()
    output: list[str] = []
    started = Event()
    listener = Thread(target=_listen, args=(ours, output, started), daemon=True)
    listener.start()
    try:
        SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stdout": its, "stderr": its}), conf=conf)
        started.set()
    except PySparkRuntimeError as error:
        os.close(its)
        its = -1
        listener.join(timeout=10)
        if failed := _FAILED.search("".join(output)):
            raise PackagesMissing(_explain_failures(settings[_PACKAGES], "".join(output), failed[1])) from error
        sys.stderr.writelines(output)
        raise
    finally:
        if its >= 0:
            os.close(its)


def _listen(pipe: int, output: list[str], started: Event) -> None:
    """Keep what the JVM says until it has started, and pass on what it says later, as it would itself."""
    with open(pipe, errors="replace") as lines:
        for line in lines:
            if started.is_set():
                sys.stderr.write(line)
            else:
                output.append(line)


def _explain_failures(packages: str, output: str, failures: str) -> Words:
    """One line: what could not be loaded, and the cure."""
    each = re.split(r", (?=download failed: |unresolved dependency: )", failures)
    more = f" (and {len(each) - 1} more)" if len(each) > 1 else ""
    folders = _find_folders_without_jars(output)
    if folders:
        cure = f"a local repository has the POM but not the jar: delete {', '.join(folders)} and try again"
    else:
        cure = "check the name, and that Maven Central or the repositories in spark.jars.repositories can be reached"
    failed = one_line(f"Spark could not load {packages} through Maven: {each[0]}{more}; {cure}")
    return words("{failed}; or give the jars themselves: {--conf} spark.jars=a.jar,b.jar", failed=failed)


def _find_folders_without_jars(output: str) -> list[str]:
    """The folders of packages whose jars ``~/.m2`` lacks: there, and in Ivy's cache, which remembers the place."""
    folders = {unquote(str(PurePath(path).parent)) for path in re.findall(r"^\s*file:(/\S+\.jar)$", output, re.M)}
    cache = re.search(r"^Ivy Default Cache set to: (.+)$", output, re.M)
    if folders and cache:
        folders |= {
            f"{cache[1]}/{of}/{name}" for of, name in re.findall(r"download failed: ([^#\s]+)#([^;\s]+);", output)
        }
    return sorted(folders)
