"""The session of ``docs/python.md``, as a newcomer types it: real samples, no command line and no PySpark."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

_SESSION = """
import doctest, sys
sys.modules |= dict.fromkeys(("pyspark", "py4j", "delta"))
session = doctest.DocTestParser().get_doctest(sys.stdin.read().replace("```", ""), {}, "docs/python.md", None, 0)
results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session)
print(results.attempted)
sys.exit(results.failed)
"""


@pytest.mark.slow
def test_the_session_of_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "sample_checkpoints").symlink_to(ROOT / "sample_checkpoints")
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    words = [sys.executable, "-c", _SESSION]
    done = subprocess.run(words, input=page, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert int(done.stdout) > 20
