"""The guard between the tiers, on tests that break the rule."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.services.process import STARTED

TESTS = """
import subprocess
import pytest
from tests.support.services.process import Unavailable, running

def test_of_java():
    subprocess.run(["java", "-version"])

def test_that_takes_it_for_missing():
    if subprocess.run(["java", "-version"]).returncode:
        pytest.skip("no java")

def test_of_a_service(tmp_path):
    with pytest.raises(RuntimeError), running(["sleep", "1"], tmp_path, lambda: True):
        pass

def test_of_neither():
    pass

@pytest.mark.service
def test_with_the_marker(tmp_path):
    with running(["sleep", "1"], tmp_path, lambda: True):
        pass
"""
SHARED = """
def test_of_a_shared_service(s3):
    pass
"""


def run(tests: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(tests)
    words = ["-c", ROOT / "pyproject.toml", "--rootdir", folder, "-p", "tests.laws.tiers", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *map(str, words), str(folder / "test_it.py")],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != STARTED},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_what_a_test_without_the_marker_starts_fails_it(tmp_path: Path) -> None:
    found = run(TESTS, tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    failed = {line.split()[1].rpartition("::")[2] for line in found.stdout.splitlines() if line.startswith("ERROR ")}
    assert failed == {"test_of_java", "test_that_takes_it_for_missing", "test_of_a_service"}
    assert "it started: java -version" in found.stdout
    assert "4 passed, 1 skipped, 3 errors" in found.stdout


def test_a_fixture_that_is_shared_wants_the_marker(tmp_path: Path) -> None:
    found = run(SHARED, tmp_path)
    assert found.returncode == 4, found.stdout + found.stderr
    assert "test_it.py::test_of_a_shared_service uses s3 without the marker service" in found.stderr
