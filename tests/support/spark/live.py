"""The Spark session of a test run: what asks real Spark takes this one, and starts none of its own.

A JVM costs 10 s of CPU before its first row, and as much again until it is warm. So `spark` is shared by all tests of
a process (as many JVMs as xdist has workers); it has Delta and the Kafka connector where they can be had. A test that
needs other settings sets them in `spark.newSession()`, whose settings nobody else sees. A process of its own is for
what is killed, and for what ckpt or a user's program does in a session that it starts itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ROOT, SAMPLES
from tests.support.services.delta import delta_settings
from tests.support.services.fixtures import or_skip
from tests.support.services.kafka import connector_jars
from tests.support.services.process import Unavailable
from tests.support.spark import classes

EVERY_CASE = os.environ.get("CKPT_TEST_ALL") == "1"
"""Whether cases are run too of which another one shows the same: each place that leaves some out says which and why."""

Trace = dict[str, tuple[int, int, int, bytes]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the first test that starts Spark, see to it that JVMs start quickly."""
    if item.get_closest_marker("spark"):
        classes.use()


def trace(root: Path) -> Trace:
    """Every file and folder below a root: kind and permissions, size, time of the last change in ns, bytes."""
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        inside = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = (info.st_mode, len(inside), info.st_mtime_ns, inside)
    return found


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session; before and after it the samples are compared, which nothing may have touched."""
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    from tests.support.spark.queries import session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    before = trace(SAMPLES)
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    started = session("ckpt-tests", **settings(_kafka()), spark__sql__warehouse__dir=warehouse)
    started.sparkContext.setLogLevel("OFF")
    yield started
    started.stop()
    assert trace(SAMPLES) == before


@pytest.fixture(autouse=True)
def _shared_session_is_active(request: pytest.FixtureRequest) -> None:
    """ckpt works in the active session: `createDataFrame` of a test's own session has made that the active one."""
    if "spark" in request.fixturenames:
        from pyspark.sql import SparkSession

        shared = request.getfixturevalue("spark")
        SparkSession._activeSession = shared
        SparkSession._get_j_spark_session_class(shared._jvm).setActiveSession(shared._jsparkSession)


def settings(jars: str) -> dict[str, str]:
    """What the session has besides those of `queries.session`; with the jars of the Kafka connector."""
    delta = delta_settings()
    both = [some for some in (delta.get("spark__jars"), jars) if some]
    return {
        **delta,
        **({"spark__jars": ",".join(both)} if both else {}),
        "spark__driver__memory": "2g",
        "spark__executorEnv__TZ": "UTC",
        "spark__executorEnv__PYTHONPATH": str(ROOT),
        "spark__databricks__delta__snapshotPartitions": "1",
        "spark__python__authenticate__socketTimeout": "120s",
        "spark__python__daemon__module": "tests.support.spark.daemon",
    }


def _kafka() -> str:
    """The jars of the Kafka connector; a test that needs them asks for `kafka_jars`, and is skipped without."""
    with suppress(Unavailable):
        return ",".join(map(str, connector_jars()))
    return ""


@pytest.fixture(scope="session")
def kafka_jars() -> str:
    """The jars of the Kafka connector, as `spark.jars` wants them; `spark` has them already."""
    with or_skip("Kafka connector"):
        return ",".join(map(str, connector_jars()))


@dataclass(frozen=True)
class Here:
    """Answers the jobs of a role in the session of the test run, where nothing is to be killed."""

    session: Any
    answer_to: Callable[[Any, dict[str, Any], Path], dict[str, Any]]
    folder: Path = Path()

    @property
    def spark(self) -> str:
        return str(self.session.version)

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a job."""
        return self.answer_to(self.session, job, self.folder)
