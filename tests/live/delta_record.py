"""Record what Spark does at Delta tables: `python -m tests.live.delta_record --spark 4.2=/path/to/python`.

To be run with the Python in which ckpt is installed. What ckpt read of the table before the start stands beside Spark's
answer, so that the forecast can be compared without a JVM.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckpt import ask_sources, open_checkpoint
from ckpt.live.records import DeltaNow, DeltaOption, FileNow, VersionNow
from tests.live.delta_cases import CASES, OPTIONS, Case
from tests.live.delta_worker import PACKAGE
from tests.live.recording import record
from tests.live.sink.record import DELTA
from tests.restart.oracle.record import Worker

if TYPE_CHECKING:
    from tests.support.spark.live import Here

RECORDED = Path(__file__).with_name("delta.json")


def ask(session: Worker | Here, case: Case, folder: Path) -> tuple[list[Any], DeltaNow, dict[str, Any]]:
    """The newest offsets, what the table tells ckpt, and what Spark then does; `folder` is there afterwards."""
    made = folder.parent / f"made {case.history}"
    if not made.exists():
        session.ask({"do": "make", "place": str(made), "history": case.history})
    session.ask({"do": "happen", "place": str(folder), "of": str(made), **dataclasses.asdict(case)})
    now = asked(folder, case)
    offsets = ends(folder / "checkpoint")
    return offsets, now, session.ask({"do": "start", "place": str(folder), **OPTIONS[case.options]})


def asked(folder: Path, case: Case) -> DeltaNow:
    options = {0: {"path": str(folder / "table"), **case.reader}}
    (source,) = ask_sources(open_checkpoint(str(folder / "checkpoint")), options)
    assert isinstance(source.answer, DeltaNow)
    return source.answer


def ends(checkpoint: Path) -> list[Any]:
    """What the offset files say of the source."""
    numbers = sorted(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))
    return [json.loads((checkpoint / "offsets" / str(one)).read_text().splitlines()[2]) for one in numbers]


def to_json(now: DeltaNow) -> dict[str, Any]:
    """As it is recorded."""
    told = dataclasses.asdict(now)
    del told["options"], told["most_files"]
    return told


def from_json(told: dict[str, Any], case: Case) -> DeltaNow:
    """The same read back."""
    files = lambda some: tuple(FileNow(**one) for one in some)  # noqa: E731
    versions = tuple(VersionNow(**{**one, "files": files(one["files"])}) for one in told["versions"])
    snapshot = None if told["snapshot"] is None else files(told["snapshot"])
    given = {f"{key}={value}" if key == "failOnDataLoss" else key for key, value in case.reader.items()}
    options = frozenset(DeltaOption(one) for one in given)
    return DeltaNow(**{**told, "versions": versions, "snapshot": snapshot, "options": options})


def answer(session: Worker, case: Case, folder: Path) -> dict[str, Any]:
    offsets, now, said = ask(session, case, folder)
    return {"offsets": offsets, "now": to_json(now), "spark": said}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="VERSION=PYTHON")
    for word in parser.parse_args().spark:
        version, python = word.split("=", 1)
        settings = {PACKAGE: DELTA[version]}
        record(RECORDED, version, python, "tests.live.delta_worker", settings, CASES, answer)
