"""A distribution of somebody else teaches ckpt a sink; a faulty one is one line on standard error."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CopyOf
from tests.support.plugins import install, run_with

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent / "plugin"
Inspect = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def inspect(copy_of: CopyOf, tmp_path: Path) -> Inspect:
    """Install a module and run `ckpt inspect` with a sink."""

    def run(sink: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
        site = install(SOURCE, tmp_path, code)
        return run_with([site], "inspect", copy_of("kafka-4.2"), "--sink", sink, "-o", "json")

    return run


@pytest.mark.parametrize(("last", "outcome", "dropped"), [(5, "continues", None), (8, "drops", [6, 8])])
def test_a_sink_of_a_plugin(
    last: int, outcome: str, dropped: list[int] | None, inspect: Inspect, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    ledger.write_text(str(last))
    run = inspect(f"ledger:{ledger}")
    document = json.loads(run.stdout)
    sink = document["sink"]
    assert (sink["kind"], sink["last_batch"], sink["outcome"], sink["dropped"]) == ("ledger", last, outcome, dropped)
    assert run.stderr == ""
    remedies = [finding["remedy"] for finding in document["findings"] if finding["code"] == "CKPT411"]
    assert ["Write 5 into the ledger" in remedy for remedy in remedies] == [True] * (dropped is not None)


def test_an_error_of_ckpt_is_the_answer(inspect: Inspect) -> None:
    run = inspect("ledger:/nowhere/at/all")
    assert run.returncode == 3
    assert json.loads(run.stdout)["sink"]["outcome"] == "unreached"
    assert "the ledger cannot be read: No such file or directory" in run.stderr


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("raise RuntimeError('broken\\nin two')", r"RuntimeError: broken\nin two"),
        ("", "AttributeError: module 'ckpt_ledger' has no attribute 'read_ledger'"),
        ("def read_ledger(uri, options): return 5", "TypeError: it must return None, or a SinkLog"),
    ],
)
def test_a_faulty_plugin_is_one_line(code: str, line: str, inspect: Inspect, tmp_path: Path) -> None:
    run = inspect(str(tmp_path), code)
    assert json.loads(run.stdout)["sink"]["outcome"] == "unknown"
    (said,) = run.stderr.splitlines()
    assert said.startswith(f"ckpt: plugin ledger of ckpt.sinks: {line}")


def test_a_sink_that_ckpt_knows_loads_no_plugin(inspect: Inspect, tmp_path: Path) -> None:
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    run = inspect(str(tmp_path / "out"), "raise RuntimeError")
    assert (json.loads(run.stdout)["sink"]["kind"], run.stderr) == ("file", "")
