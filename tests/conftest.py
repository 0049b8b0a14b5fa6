"""Fixtures for all tests: ckpt as it is installed, in this process and in one of its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import typer.main
from typer.core import TyperGroup

from ckpt.inspection import activity
from commands.report import Output
from tests.support.cli import invoke, load_app
from tests.support.places import HERE, SAMPLES
from tests.support.spark import mutations

pytest_plugins = [
    "tests.support.services.fixtures",
    "tests.support.spark.live",
    "tests.support.parts",
    "tests.laws.tiers",
]

_IN_MEMORY, _ROOM = Path("/dev/shm"), 8 << 30  # bytes


def pytest_configure() -> None:
    """Examples that are the same everywhere; no pause between two looks; folders in memory, where there is room."""
    activity.LOOKS_APART_S = 0
    hypothesis.settings.register_profile(
        "ckpt",
        deadline=None,  # machines that run the tests may be busy
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        derandomize="CKPT_EXAMPLES" not in os.environ,  # what one run finds, each run finds
    )
    hypothesis.settings.load_profile("ckpt")
    os.environ.pop("COLUMNS", None)  # how wide the terminal of whoever runs the tests is
    if os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))


@pytest.hookimpl(tryfirst=True)  # before ``-m`` looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases as slow, so that `make quick` runs three of each test, or one of sixteen if these are more."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for every in cases.values():
        count = max(min(len(every), 3), len(every) // 16)
        quick = {number * len(every) // count for number in range(count)}
        for number, item in enumerate(every):
            if number not in quick:
                item.add_marker(pytest.mark.slow)


@dataclass(frozen=True)
class Run:
    """How a run of ckpt ended."""

    exit_code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """The one document on standard output; NaN and Infinity are not JSON."""
        return json.loads(self.stdout, parse_constant=_no_json)

    def refusal(self) -> str:
        """The one line on standard error of a run that printed nothing else."""
        assert self.stdout == ""
        assert self.stderr.startswith("ckpt: ")
        assert self.stderr.endswith("\n")
        assert self.stderr[:-1].isprintable(), self.stderr
        return self.stderr.strip()

    def unreached(self) -> str:
        """Both outputs of a run with a page that lacks only what could not be reached, which both say."""
        assert self.exit_code == 3
        assert "Restarts" in self.stdout or "RESTARTS" in self.stdout
        assert "not reached: " in " ".join(self.stdout.split())
        assert self.stderr.startswith("ckpt: ")
        assert self.stderr.removesuffix("\n").isprintable(), self.stderr
        return self.stderr + self.stdout


def _no_json(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


OUTPUTS = [str(one) for one in Output]
"""The forms of a report, as ``--output`` takes them."""
Ckpt = Callable[..., Run]
CopyOf = Callable[..., Path]


@pytest.fixture(scope="session")
def app() -> Any:
    return load_app()


@cache
def commands_of(app: Any) -> dict[str, Any]:
    """Each command of the application by its name; those of a group as ``migrate changelog``."""

    def below(group: TyperGroup, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            if isinstance(command, TyperGroup):
                yield from below(command, f"{prefix}{name} ")
            else:
                yield prefix + name, command

    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return dict(below(group, ""))


@pytest.fixture
def ckpt(monkeypatch: pytest.MonkeyPatch) -> Ckpt:
    """Run ckpt in this process, beside all samples; whatever it lets escape fails the test."""
    monkeypatch.chdir(HERE)

    def run(*words: object) -> Run:
        result = invoke(*words)
        return Run(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture(scope="session")
def ckpt_process() -> Ckpt:
    """Run ckpt as a process of its own, beside all samples."""

    def run(*words: object, env: dict[str, str] | None = None, timeout: float = 120) -> Run:
        done = subprocess.run(
            [*command(), *map(str, words)],
            cwd=HERE,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    return run


def command() -> Sequence[str]:
    """The words that start ckpt."""
    return (sys.executable, "-m", "ckpt")


@pytest.fixture
def copy_of(tmp_path: Path) -> CopyOf:
    """Copy a sample to ``tmp_path / to``, and mutate the copy."""

    def copy(sample: str, *damage: mutations.Mutation, to: str = "checkpoint") -> Path:
        return mutations.copy_of(SAMPLES / sample, tmp_path / to, damage)

    return copy


@pytest.fixture
def run_ckpt(ckpt: Ckpt) -> Ckpt:
    """Run ckpt as the fixture `ckpt` does, in a file that imports the library under that name."""
    return ckpt
