"""Jars that Spark loads through Maven when its JVM starts: Delta's, and those in ``spark.jars.packages``."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import PurePath
from threading import Event, Thread
from urllib.parse import unquote

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ckpt.errors import CkptError
from ckpt.spark.installed import SparkMissing
from ckpt.storage.base import one_line

SPARK_CATALOG = "spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
PACKAGES = "spark.jars.packages"
_FAILED = re.compile(r"RuntimeException: \[((?:download failed|unresolved dependency): .*)\]")
"""What ``org.apache.spark.util.MavenUtils`` throws; in brackets each package or jar that it could not have."""
_OWN_JARS = "or give the jars themselves: `confs` spark.jars=a.jar,b.jar"


class PackagesMissing(CkptError):
    """Spark could not load a package, or one that it depends on, through Maven."""


def add_delta(builder: SparkSession.Builder, confs: Mapping[str, str]) -> SparkSession.Builder:
    """Have the session know Delta, and load Delta's jars unless ``confs`` names them in ``spark.jars``.

    Raises SparkMissing where delta-spark cannot be used.
    """
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config(f"spark.sql.catalog.{SPARK_CATALOG}", DELTA_CATALOG)
    if any(PurePath(jar).name.startswith("delta-spark_") for jar in confs.get("spark.jars", "").split(",")):
        return builder
    try:
        from delta import configure_spark_with_delta_pip
    except ImportError as error:
        raise SparkMissing(f"delta-spark cannot be used: {error}") from error
    more = [name for name in confs.get(PACKAGES, "").split(",") if name]
    return configure_spark_with_delta_pip(builder, more)


def load_packages(settings: Mapping[str, str]) -> None:
    """Start the JVM of a session with these settings, which loads the packages among them; does nothing without any.

    Raises PackagesMissing where that fails. What Maven says on the way is not shown; after any other failure all that
    the JVM said is on standard error.
    """
    if not settings.get(PACKAGES) or SparkContext._gateway is not None:
        return
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
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
            raise PackagesMissing(_explain_failures(settings[PACKAGES], "".join(output), failed[1])) from error
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


def _explain_failures(packages: str, output: str, failures: str) -> str:
    """One line: what could not be loaded, and the cure."""
    each = re.split(r", (?=download failed: |unresolved dependency: )", failures)
    more = f" (and {len(each) - 1} more)" if len(each) > 1 else ""
    folders = _find_folders_without_jars(output)
    if folders:
        cure = f"a local repository has the POM without the jar: delete {', '.join(folders)} and try again"
    else:
        cure = "check the name, and that Maven Central or the repositories in spark.jars.repositories can be reached"
    return one_line(f"Spark could not load {packages} through Maven: {each[0]}{more}; {cure}; {_OWN_JARS}")


def _find_folders_without_jars(output: str) -> list[str]:
    """The folders of packages whose jars ``~/.m2`` lacks: there, and in Ivy's cache, which remembers the place."""
    folders = {unquote(str(PurePath(path).parent)) for path in re.findall(r"^\s*file:(/\S+\.jar)$", output, re.M)}
    cache = re.search(r"^Ivy Default Cache set to: (.+)$", output, re.M)
    if folders and cache:
        folders |= {
            f"{cache[1]}/{of}/{name}" for of, name in re.findall(r"download failed: ([^#\s]+)#([^;\s]+);", output)
        }
    return sorted(folders)
