"""Whatever a checkpoint holds, a command keeps its promises: on 120 mutants, or as many as asked for.

`CKPT_FUZZ=20000 pytest tests/laws/hostile/test_fuzz.py` runs 20,000; `python -m tests.laws.hostile.fuzz NUMBER 1 DIR`
makes one of them again, and keeps it if it shows a fault. What the first 20,000 found is in `test_limits.py`: commits
of a batch so far ahead that a remedy counted up to it, a sparse checksum that a plan read completely, a folder in
`sources/` that belongs to no source, and operator metadata of an older batch that nests too deep.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.laws.hostile.fuzz import faults_in
from tests.laws.hostile.measure import run_here
from tests.support.places import ROOT

MUTANTS = int(os.environ.get("CKPT_FUZZ", "120"))

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured as on Linux")


@pytest.mark.slow
def test_no_mutant_breaks_a_promise(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.laws.hostile.fuzz", "0", str(MUTANTS)]
    place = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(words, cwd=ROOT, env=place, capture_output=True, text=True, check=False)
    assert [json.loads(line) for line in done.stdout.splitlines()] == []
    assert (done.returncode, done.stderr) == (0, "")


# The test of the test: what it would find.

BROKEN = [
    (Run(70, "", "ckpt: a line\n"), "exit code 70"),
    (Run(0, "", ""), "no document, exit code 0, 0 lines on standard error"),
    (Run(3, "", "ckpt: one\nckpt: two\n"), "no document, exit code 3, 2 lines on standard error"),
    (Run(1, "page", "Traceback\n"), "on standard error: Traceback\n"),
    (Run(3, "", "ckpt: \x1b[2J\n"), "on standard error: ckpt: \x1b[2J\n"),
    (Run(0, "\x1b[2J", ""), "control characters on standard output"),
    (Run(0, "\u202e", ""), "control characters on standard output"),
    (Run(0, "{", ""), "no JSON: "),
    (Run(0, '{"a": NaN}', ""), "no JSON: NaN is no JSON"),
    (Run(0, '{"a": 1, "a": 2}', ""), "no JSON: a key twice"),
    (Run(0, '{"a": 1}', ""), "applied is missing"),
]


@pytest.mark.parametrize(("ended", "fault"), BROKEN)
def test_a_broken_promise_is_found(ended: Run, fault: str) -> None:
    assert any(one.startswith(fault) for one in faults_in(ended, "relocate", "json"))


def test_a_refusal_and_a_page_are_no_faults() -> None:
    assert list(faults_in(Run(3, "", "ckpt: it does not exist\n"), "relocate", "json")) == []
    assert list(faults_in(Run(1, "a page\n\nof lines\n", ""), "relocate", "table")) == []


def test_what_a_run_costs_is_measured() -> None:
    """200 MiB, some CPU, and an exception that nobody catches."""

    def app(words: list[str]) -> Any:
        filled = bytearray(b"x") * (200 << 20)
        sum(range(3_000_000))
        raise ValueError(len(filled))

    run, cost = run_here(app, [])
    assert run.exit_code == 70
    assert "ValueError" in run.stderr
    assert cost.peak_mib > 200
    assert cost.cpu_s > 0.02
