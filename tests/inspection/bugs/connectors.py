"""Records the known bugs of connectors: the rows or the error of each case of `connector_cases.py`.

`python -m tests.inspection.bugs.connectors BUG,BUG PYTHON RELEASE` asks the release of Spark that this Python has, with
a release of the connector. `PYTHON RELEASE` continues on the same checkpoint with a later release, and `avoided`
with the same one, in the way that avoids the bug.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ckpt.inspection.bugs import known_bugs
from tests.inspection.bugs.record import AVOIDED_FILE, CONTINUED_FILE, keep
from tests.record.packages import ICEBERG, KAFKA, PACKAGE
from tests.record.suite import say
from tests.record.worker import Installed, Worker
from tests.support.services.kafka import kafka_broker
from tests.support.services.maven import jars
from tests.support.spark.topics import BROKER, JARS

FILE = Path(__file__).with_name("connectors.json")


Run = tuple[Installed, str, str]
"""A release of Spark, one of the connector, and which cases they run: "", "continued" or "avoided"."""


def ask(run: Run, bugs: Iterable[str], folder: str, servers: str) -> dict[str, dict[str, Any]]:
    """The answers of cases of one connector, by bug."""
    spark, release, how = run
    answers = {}
    with Worker(spark.python, spark.log, "connector-bugs", _environment(spark.minor, release, servers)) as session:
        for bug in bugs:
            place = f"{folder}/{bug.replace('/', '-').replace('#', '-')}"
            answers[bug] = session.ask({"bug": bug, "folder": place, "how": how})
            say(f"{bug} {spark.version} with {release} {how} {answers[bug]}")
    return answers


def _environment(minor: str, release: str, servers: str) -> Mapping[str, str]:
    if not servers:
        return {PACKAGE: f"{ICEBERG[minor].rpartition(':')[0]}:{release}"}
    paths = jars("kafka-connector", **KAFKA[minor] | {"spark": release}).glob("*.jar")
    return {JARS: ",".join(map(str, sorted(paths))), BROKER: servers}


@contextmanager
def _broker(folder: Path, *, needed: bool) -> Iterator[str]:
    if not needed:
        yield ""
        return
    folder.mkdir()
    with kafka_broker(folder) as servers:
        yield servers


def record(names: str, python: str, release: str, *then: str) -> None:
    """Write the answers of cases, and how they go on."""
    bugs, spark = names.split(","), _installed(python)
    (with_broker,) = {not bug.spark for bug in known_bugs() if bug.id in bugs}
    with (
        TemporaryDirectory(prefix="ckpt-bugs-") as folder,
        _broker(Path(folder, "broker"), needed=with_broker) as servers,
    ):
        keep(FILE, f"{spark.version} with {release}", ask((spark, release, ""), bugs, folder, servers))
        if then == ("avoided",):
            keep(AVOIDED_FILE, release, ask((spark, release, "avoided"), bugs, folder, servers))
        elif then:
            later, fixed = then
            answers = ask((_installed(later), fixed, "continued"), bugs, folder, servers)
            keep(CONTINUED_FILE, f"{release}, then {fixed}", answers)


def _installed(python: str) -> Installed:
    return Installed(".".join(Installed("", python)._ask("__version__").split(".")[:2]), python)


if __name__ == "__main__":
    record(*sys.argv[1:])
