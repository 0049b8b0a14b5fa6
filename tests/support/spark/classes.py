"""What makes the JVMs of tests cheap: an archive of Spark's classes, and a local file system that starts no process.

Class data sharing of Java 17 halves the CPU time in which a JVM starts: the archive is made once for a virtual
environment, and lies in it (180 MB). `LocalFiles.java` is compiled beside it, and takes a third of the CPU time from a
micro-batch. Every JVM that a test starts takes both by `SPARK_SUBMIT_OPTS` and `SPARK_DIST_CLASSPATH`, be it in this
process, under `ckpt` or under `spark-submit`; one that the archive does not fit ignores it.

    python -m tests.support.spark.classes FILE    makes an archive, which takes as long as four starts
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.places import ROOT

_QUICK = " ".join(
    [
        # A test is over before a better compiler or collector pays.
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # Of the 48 MB that this compiler has by default, a session of many tests throws code away, and makes it again.
        "-XX:ReservedCodeCacheSize=256m",
        # Java collects all garbage each time its classes need more than before.
        "-XX:MetaspaceSize=256m",
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
        "-Djdk.lang.Process.launchMechanism=VFORK",
    ]
)
_LOCAL_FILES = (
    "-Dspark.hadoop.fs.file.impl=LocalFiles$Local -Dspark.hadoop.fs.AbstractFileSystem.file.impl=LocalFiles$Context"
)


SETTINGS = ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DIST_CLASSPATH")
"""The environment variables that hand these settings to a process that starts a JVM."""


@cache
def use() -> None:
    """Have each JVM that is started from now on start and run cheaply; does nothing without Spark or a JDK."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None or not os.access(sys.prefix, os.W_OK):
        return
    jars = Path(spark.origin).parent / "jars"
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    try:
        version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return
    with open(Path(sys.prefix, "spark-classes.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = _QUICK
        if files := _compile_local_files(jars, version):
            options += f" {_LOCAL_FILES}"
            os.environ["SPARK_DIST_CLASSPATH"] = str(files)
        os.environ |= dict.fromkeys(SETTINGS[:2], options) | {"SPARK_LAUNCHER_OPTS": _QUICK}
        if archive := _make_archive(jars, version, options):
            shared = f"{options} -XX:SharedArchiveFile={archive} -Xlog:disable"  # a warning would be in the output
            os.environ |= dict.fromkeys(SETTINGS[:2], shared)


def for_executors() -> str:
    """The options of Java for executors of a cluster, which take settings of Spark from their driver alone."""
    options = os.environ.get("SPARK_SUBMIT_OPTS", "").split()
    return " ".join(option for option in options if not option.startswith("-Dspark."))


def _compile_local_files(jars: Path, java: str) -> Path | None:
    """Compile `LocalFiles.java`; None if there is no compiler."""
    source = Path(__file__).with_name("LocalFiles.java")
    digest = hashlib.sha256("\n".join([java, str(jars), source.read_text()]).encode()).hexdigest()[:12]
    compiled = Path(sys.prefix, f"spark-local-files-{digest}.jar")
    if not compiled.exists():
        with TemporaryDirectory() as classes:
            command = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", classes, str(source)]
            try:
                subprocess.run(command, capture_output=True, check=True)
            except (OSError, subprocess.CalledProcessError):
                return None
            Path(shutil.make_archive(str(compiled), "zip", classes)).rename(compiled)
    return compiled


def _make_archive(jars: Path, java: str, options: str) -> Path | None:
    """Make the archive where there is none for these jars, this Java and these options; None if it cannot be made."""
    names = sorted(path.name for path in jars.glob("*.jar"))
    digest = hashlib.sha256("\n".join([java, options, str(jars), *names]).encode()).hexdigest()[:12]
    archive = Path(sys.prefix, f"spark-classes-{digest}.jsa")
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
        "SPARK_SUBMIT_OPTS": f"{os.environ['SPARK_SUBMIT_OPTS']} -XX:ArchiveClassesAtExit={fresh} -Xlog:disable",
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
