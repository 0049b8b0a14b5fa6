"""The two tiers of tests, kept apart: a test without the marker for it starts no JVM and no service.

Such a test finds a `java` that refuses to run and records the attempt, and `tests.support.services.process` refuses to
start anything. Either attempt fails the test, even where the test itself takes it for a missing Java and skips.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.services.process import STARTED

_NO_JAVA = Path(__file__).parent / "no-java"
_FIXTURES = {
    "spark": {"spark"},
    "service": {"azure_uri", "cluster", "gcs_uri", "hdfs", "hdfs_uri", "kafka", "s3", "s3_uri"},
}
"""Fixtures that several tests share, so that one test's marker could hide that another has none."""


_FOLDER, _NUMBERS = pytest.StashKey[str](), itertools.count()


def pytest_sessionstart(session: pytest.Session) -> None:
    """One folder for the records of all tests: one for each of them takes as long as a small test."""
    session.stash[_FOLDER] = tempfile.mkdtemp(prefix="ckpt-tiers-")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove it."""
    shutil.rmtree(session.stash[_FOLDER], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that asks for a session or a service and is not marked so."""
    unmarked = [
        f"{item.nodeid} uses {', '.join(sorted(used))} without the marker {marker}"
        for item in items
        if isinstance(item, pytest.Function)
        for marker, fixtures in _FIXTURES.items()
        if (used := fixtures.intersection(item.fixturenames)) and not item.get_closest_marker(marker)
    ]
    if unmarked:
        raise pytest.UsageError("\n".join(unmarked))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Keep Java and services from a test that is marked neither `spark` nor `service`."""
    if any(item.iter_markers("spark")) or any(item.iter_markers("service")):
        return (yield)
    started = f"{item.session.stash[_FOLDER]}/{next(_NUMBERS)}"
    path = f"{_NO_JAVA / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    with _environment({STARTED: started, "JAVA_HOME": str(_NO_JAVA), "PATH": path}):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Fail a test that tried to start what it is not marked for, after its own teardown."""
    yield
    record = Path(os.environ.get(STARTED, os.devnull))
    if record.is_file():
        started = "; ".join(record.read_text().splitlines())
        pytest.fail(f"without the marker spark or service it started: {started}", pytrace=False)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
