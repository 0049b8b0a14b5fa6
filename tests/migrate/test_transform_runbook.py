"""``docs/runbooks/transform-with-state.md``: its commands and its code, carried out with real Spark."""

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from tests.migrate.transform_runbook import PAGE
from tests.support.places import ROOT
from tests.support.spark.live import EVERY_CASE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed"),
    pytest.mark.skipif(not EVERY_CASE, reason="test_transform.py shows the same: CKPT_TEST_ALL=1"),
]


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """The page as it is now, and what the new query wrote."""
    command = [sys.executable, "-m", "tests.migrate.transform_runbook", "--show"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_the_page_shows_what_ckpt_prints(told: dict[str, Any]) -> None:
    assert PAGE.read_text(encoding="utf-8") == told["page"], "python -m tests.migrate.transform_runbook"


def test_the_new_query_counts_on_from_what_the_old_one_had(told: dict[str, Any]) -> None:
    assert told["answer"] == [["bob", 2, 11], ["dan", 1, 3]]
