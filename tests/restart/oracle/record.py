"""Record what Spark does with every case: `python -m tests.restart.oracle.record --spark 4.2=/path/to/python ...`.

Answers already recorded for the same sample, damage and query are kept, so an interrupted run goes on where
it stopped; `--fresh` records again.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from typing import Any, Self

from tests.restart.oracle import answers, cases
from tests.support.services.kafka import connector_jars, kafka_broker
from tests.support.spark import topics

ROOT = Path(__file__).parents[3]
CASES_PER_JVM = 400
SAVE_EVERY = 20
START_S, CASE_S = 180.0, 150.0


class Worker:
    """A Spark session in another process that answers one job at a time; `module` is run there."""

    def __init__(
        self,
        python: str,
        log: Path,
        module: str = "tests.restart.oracle.worker",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        environment = os.environ | {"PYSPARK_PYTHON": python, "PYTHONPATH": str(ROOT)} | dict(settings or {})
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [python, "-m", module],
            cwd=ROOT,
            env=environment,
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

    def ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a job. Raises TimeoutError when none comes."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._answer(CASE_S)

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


def record(minor: str, python: str, wanted: list[tuple[cases.Case, str]], log: Path) -> None:
    """Record the answers to `wanted` (case, mode) pairs for one Spark version, saving every few of them."""
    document = answers.read(minor)
    todo = list(wanted)
    try:
        while todo:
            share = _share(todo)
            with _services(minor, share[0][0].needs) as settings, Worker(python, log, settings=settings) as worker:
                if not worker.spark.startswith(minor + "."):
                    raise SystemExit(f"{python} has Spark {worker.spark}, not {minor}")
                today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
                document |= {"spark": worker.spark, "recorded": today, "script": answers.script()}
                _ask_all(worker, share, todo, document["answers"], partial(answers.write, minor, document))
            print(f"{minor} {len(todo):4} left", flush=True)
    finally:
        answers.write(minor, document)


def _ask_all(
    worker: Worker,
    share: list[tuple[cases.Case, str]],
    todo: list[tuple[cases.Case, str]],
    recorded: dict[str, Any],
    save: Callable[[], None],
) -> None:
    """Ask for a share of what is `todo`, taking it off the list, until the worker hangs."""
    for case, mode in share:
        name = f"{case.name}/{mode}"
        try:
            answer = worker.ask({"case": case.name, "mode": mode})
        except TimeoutError:
            answer = {"outcome": "timeout"}
        recorded[name] = {"of": answers.fingerprint(case), **answer}
        todo.remove((case, mode))
        print(f"{worker.spark} {len(todo):4} left  {answer['outcome']:15} {name}", flush=True)
        if len(todo) % SAVE_EVERY == 0:
            save()
        if answer == {"outcome": "timeout"}:
            return


def _share(todo: list[tuple[cases.Case, str]]) -> list[tuple[cases.Case, str]]:
    """What the next worker is asked: one case that wants a JVM of its own, or others that need the same service."""
    first, _ = todo[0]
    together = [one for one in todo if not one[0].alone and one[0].needs == first.needs]
    return todo[:1] if first.alone else together[:CASES_PER_JVM]


@contextmanager
def _services(minor: str, needs: str) -> Iterator[dict[str, str]]:
    """Run the service that some cases need, while the block lasts: the environment of a worker that uses it."""
    if not needs:
        yield {}
        return
    with TemporaryDirectory(prefix="ckpt-broker-") as folder, kafka_broker(Path(folder)) as broker:
        yield {topics.JARS: ",".join(map(str, connector_jars(minor))), topics.BROKER: broker}


def _wanted(minor: str, pattern: str, fresh: bool) -> Iterator[tuple[cases.Case, str]]:
    known = answers.read(minor)["answers"]
    for case in cases.CASES:
        for mode in case.modes(minor):
            name = f"{case.name}/{mode}"
            same = known.get(name, {}).get("of") == answers.fingerprint(case)
            if fnmatch.fnmatch(name, pattern) and (fresh or not same or known[name]["outcome"] == "timeout"):
                yield case, mode


def _forget_removed(minor: str) -> None:
    """Drop answers to cases that no longer exist."""
    document = answers.read(minor)
    names = {f"{case.name}/{mode}" for case in cases.CASES for mode in case.modes(minor)}
    kept = {name: answer for name, answer in document["answers"].items() if name in names}
    if len(kept) < len(document["answers"]):
        answers.write(minor, document | {"answers": kept})


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="MINOR=PYTHON")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="<case>/<mode>, with * and ?")
    parser.add_argument("--fresh", action="store_true", help="record again what is recorded already")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where the workers' messages go")
    options = parser.parse_args()
    for pair in options.spark:
        minor, _, python = pair.partition("=")
        if minor not in answers.VERSIONS or not python:
            parser.error(f"--spark wants MINOR=PYTHON with MINOR one of {', '.join(answers.VERSIONS)}")
        _forget_removed(minor)
        record(minor, python, list(_wanted(minor, options.only, options.fresh)), options.log)


if __name__ == "__main__":
    main()
