"""The session that a call uses, and what has to be installed before there is one: one line, with the cure.

Nothing of Spark is imported here, and nothing started.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ckpt.advice import Words
from ckpt.errors import CkptError
from ckpt.extras import install_command
from ckpt.state.reading.reading import OLDEST_SPARK
from ckpt.versions import Spark, known_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Watcher: TypeAlias = Callable[[int, int], None]
"""Called with how many of how many are done."""
OLDEST_JAVA = 17
"""The first Java that Spark 4 runs on."""


@dataclass(frozen=True, slots=True)
class Session:
    """The Spark session that a call uses.

    ``spark`` where it is given; otherwise the one that is active; otherwise one that is started for the call, on
    ``master`` (by default all cores of this machine) with the settings ``conf``, and stopped afterwards. ``watcher``
    is called now and then with how many tasks are done, and how many there are.
    """

    spark: "SparkSession | None" = None
    master: str | None = None
    conf: Mapping[str, str] | None = None
    watcher: Watcher | None = None


ANY = Session()


class SparkMissing(CkptError):
    """Spark, or something that it needs, is not installed, or too old."""


class SparkFailed(CkptError):
    """Spark could not do what it was asked; the text has its own words."""


def find_connect_session(session: Session) -> bool:
    """Tell whether the session of a call, or the active one, is one of Spark Connect."""
    if session.spark is not None:
        return not hasattr(session.spark, "_jsparkSession")
    connect = sys.modules.get("pyspark.sql.connect.session")  # nobody has such a session who has not imported it
    nothing_asked = session.master is None and not session.conf
    return connect is not None and nothing_asked and connect.SparkSession.getActiveSession() is not None


def find_pyspark_version(
    why: str | Words = "reading state needs Spark", extra: str = "spark", oldest: Spark = OLDEST_SPARK
) -> Spark:
    """The version of the pyspark that is installed, or the newest known one before it.

    Raises SparkMissing where there is none, with the reason why it is needed and the extra that brings all that is, or
    one too old.
    """
    try:
        text = version("pyspark")
    except PackageNotFoundError:
        text = ""
    if find_spec("pyspark") is None:
        raise SparkMissing.of("{why}, and pyspark is not installed: {command}", why=why, command=install_command(extra))
    if not text:  # pyspark is on the path without having been installed
        return OLDEST_SPARK
    known = known_version(text)
    if known is None or not known.at_least(oldest):
        raise SparkMissing(
            f"pyspark {text} has no state reader that ckpt can use: pip install 'pyspark>={OLDEST_SPARK}.1'"
        )
    return known


def check_delta() -> None:
    """Raise SparkMissing where delta-spark is not installed."""
    if find_spec("delta") is None:
        raise SparkMissing.of(
            "{--format=delta} needs delta-spark, which is not installed: {command}", command=install_command("delta")
        )


def check_java() -> None:
    """Raise SparkMissing unless there is a Java that Spark 4 runs on, where Spark would look for it."""
    cure = f"install Java {OLDEST_JAVA} or later and set JAVA_HOME"
    java = find_java()
    if java is None:
        raise SparkMissing(f"Spark needs Java, but the PATH has none: {cure}")
    try:
        release = ask_java_version(java)
    except (OSError, subprocess.TimeoutExpired) as error:
        where = "JAVA_HOME" if os.environ.get("JAVA_HOME") else "the PATH"
        raise SparkMissing(f"Spark needs Java, but {java}, from {where}, does not run: {cure}") from error
    major = re.match(r"(?:1\.)?(\d+)", release)
    if major and int(major[1]) < OLDEST_JAVA:
        raise SparkMissing(f"Spark 4 needs Java {OLDEST_JAVA} or later, but {java} is Java {major[1]}: {cure}")


def find_java() -> str | None:
    """Find the Java program that Spark would start: below JAVA_HOME, else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def ask_java_version(java: str) -> str:
    """Ask a Java program for its version, ``17.0.12``; "" where it says none. Raises OSError, TimeoutExpired."""
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    version = re.search(r'version "([^"]*)"', answer.stderr + answer.stdout)
    return version[1] if version else ""
