"""One Spark session for all exports, with Delta where that is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.places import SAMPLES

Trace = dict[str, tuple[int, int, int, bytes]]


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
    from tests.spark.queries import session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    before = trace(SAMPLES)
    started = session("ckpt-tests", **_delta(), spark__sql__warehouse__dir=str(tmp_path_factory.mktemp("warehouse")))
    started.sparkContext.setLogLevel("OFF")
    yield started
    started.stop()
    assert trace(SAMPLES) == before


def _delta() -> dict[str, str]:
    """Settings that bring Delta: those of delta-spark's own helper."""
    if find_spec("delta") is None:
        return {}
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = configure_spark_with_delta_pip(SparkSession.builder)
    return {
        "spark__jars__packages": builder._options["spark.jars.packages"],
        "spark__sql__extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark__sql__catalog__spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


@pytest.fixture
def untouched() -> Iterator[Callable[[Path], None]]:
    """Watch checkpoints: at the end of the test nothing below them may have changed."""
    watched: dict[Path, Trace] = {}

    def watch(root: Path) -> None:
        watched[root] = trace(root)

    yield watch
    for root, before in watched.items():
        assert trace(root) == before, root
