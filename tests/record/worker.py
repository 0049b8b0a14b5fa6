"""The Python of one Spark version, and a session of it in another process. Nothing here imports ckpt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Protocol, Self

ROOT = Path(__file__).parents[2]
START_S, CASE_S, RUN_S = 180.0, 150.0, 3000.0


@dataclass(frozen=True)
class Installed:
    """A Python in which pyspark of a minor version, or one release of it, is installed."""

    minor: str
    python: str
    log: Path = Path(os.devnull)

    @cached_property
    def version(self) -> str:
        """Its release. Raises SystemExit if that is of another minor version."""
        version = self._ask("__version__")
        if not f"{version}.".startswith(f"{self.minor}."):
            raise SystemExit(f"{self.python} has Spark {version}, not {self.minor}")
        return version

    @property
    def jars(self) -> Path:
        return Path(self._ask("__path__[0]"), "jars")

    def _ask(self, attribute: str) -> str:
        code = f"import pyspark; print(pyspark.{attribute})"
        return subprocess.check_output([self.python, "-c", code], text=True).strip()

    def ask(self, role: str, job: Mapping[str, Any], settings: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the answer to one long job, of a worker of its own that is killed afterwards."""
        with Worker(self.python, self.log, role, settings) as worker:
            answer = worker.ask(job, RUN_S)
            worker.kill()
            return answer


class Session(Protocol):
    """What answers jobs about a Spark session: a `Worker`, or the session of the test run."""

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a job."""


class Worker:
    """A Spark session in another process that answers the jobs of a role (`process.py`), one at a time."""

    def __init__(self, python: str, log: Path, role: str, settings: Mapping[str, str] | None = None) -> None:
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [python, "-m", "tests.record.process", role],
            cwd=ROOT,
            env=os.environ | {"PYSPARK_PYTHON": python, "PYTHONPATH": str(ROOT)} | dict(settings or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self._lines: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.spark: str = self._answer(START_S)["spark"]

    def ask(self, job: Mapping[str, Any], seconds: float = CASE_S) -> dict[str, Any]:
        """Return the answer to a job. Raises TimeoutError when none comes."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._answer(seconds)

    def kill(self) -> None:
        """SIGKILL for the Python process and its JVM, as at any moment."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(10)
        self._process.stdout.close()
        self._log.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            raise TimeoutError from None
        if not line:
            raise TimeoutError("the worker has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer
