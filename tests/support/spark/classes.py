"""An archive of the classes that Spark loads, which halves the CPU time in which each of its JVMs starts.

Class data sharing of Java 17: the archive is made once for a virtual environment, and lies in it (180 MB). Every JVM
that a test starts takes it by `SPARK_SUBMIT_OPTS`, be it in this process, under `ckpt` or under `spark-submit`; one
that it does not fit ignores it.

    python -m tests.support.spark.classes FILE    makes one, which takes as long as four starts
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.places import ROOT

_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"
"""A test is over before a better compiler or collector pays, and Hadoop starts a process for most small files."""


SETTINGS = ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS", "SPARK_LAUNCHER_OPTS")
"""The environment variables that hand these settings to a process that starts a JVM."""


@cache
def use() -> None:
    """Have each JVM that is started from now on take the archive; does nothing where there is no Spark or no Java."""
    archive = _archive()
    if archive is not None:
        options = f"{_QUICK} -XX:SharedArchiveFile={archive} -Xlog:disable"  # a warning would be in the output
        os.environ |= dict(zip(SETTINGS, (options, options, _QUICK), strict=True))


def _archive() -> Path | None:
    found = find_spec("pyspark")
    if found is None or found.origin is None or not os.access(sys.prefix, os.W_OK):
        return None
    jars = sorted(path.name for path in (Path(found.origin).parent / "jars").glob("*.jar"))
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    try:
        version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    of = hashlib.sha256("\n".join([version, *jars]).encode()).hexdigest()[:12]
    archive = Path(sys.prefix, f"spark-classes-{of}.jsa")
    with open(Path(sys.prefix, "spark-classes.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            for old in archive.parent.glob("spark-classes-*.jsa"):
                old.unlink()
            command = [sys.executable, "-m", __name__, str(archive)]
            subprocess.run(command, cwd=ROOT, capture_output=True, timeout=600, check=False)
    return archive if archive.exists() else None


def _make(archive: Path) -> None:
    """Run what most tests run, and write down which classes that took."""
    fresh = archive.with_suffix(".new")
    os.environ |= {
        "SPARK_SUBMIT_OPTS": f"{_QUICK} -XX:ArchiveClassesAtExit={fresh} -Xlog:disable",
        "PYSPARK_PYTHON": sys.executable,
    }
    from tests.support.spark.queries import QUERIES, session, start

    spark = session(master="local[1]")
    with TemporaryDirectory() as scratch:
        for store in ("hdfs", "changelog"):
            checkpoint = Path(scratch, store)
            start(spark, QUERIES["aggregation"], checkpoint, store=store).awaitTermination()
            state = spark.read.format("statestore").load(str(checkpoint))
            for kind in ("parquet", "json"):
                state.write.format(kind).save(f"{checkpoint}-{kind}")
                spark.read.format(kind).load(f"{checkpoint}-{kind}").collect()
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    fresh.rename(archive)


if __name__ == "__main__":
    _make(Path(sys.argv[1]))
