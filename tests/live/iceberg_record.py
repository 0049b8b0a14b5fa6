"""Record what Spark does at Iceberg tables.

    python -m tests.live.iceberg_record --spark 4.0=/path/to/python=/path/to/iceberg-spark-runtime-4.0_2.13-1.11.0.jar

To be run with the Python in which ckpt is installed. What ckpt read of the table before the start stands beside Spark's
answer, so that the forecast can be compared without a JVM.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckpt import ask_sources, open_checkpoint
from ckpt.live.records import IcebergNow, IcebergOption, SnapshotNow
from tests.live.delta_record import ends
from tests.live.iceberg_cases import CASES, Case
from tests.live.iceberg_worker import JARS
from tests.live.recording import record
from tests.restart.oracle.record import Worker

if TYPE_CHECKING:
    from tests.support.spark.live import Here

RECORDED = Path(__file__).with_name("iceberg.json")
_OF_READER = {"options", "most_files", "most_rows"}


def happened(session: Worker | Here, case: Case, folder: Path) -> Path:
    """The place of the table and the checkpoint, as a case leaves them before the start."""
    place, made = folder / "now", folder / f"made {case.history}"
    if not made.exists():
        session.ask({"do": "make", "place": str(place), "copy": str(made), "history": case.history})
    session.ask({"do": "happen", "place": str(place), "of": str(made), **dataclasses.asdict(case)})
    return place


def ask(session: Worker | Here, case: Case, folder: Path) -> tuple[list[Any], IcebergNow, dict[str, Any]]:
    """The newest offsets, what the table tells ckpt, and what Spark then does."""
    place = happened(session, case, folder)
    now, offsets = asked(place, case), ends(place / "checkpoint")
    how = {"options": case.reader, "available_now": case.available_now}
    return offsets, now, session.ask({"do": "start", "place": str(place), **how})


def asked(place: Path, case: Case) -> IcebergNow:
    options = {0: {"path": str(place / "db" / "t"), **case.reader}}
    (source,) = ask_sources(open_checkpoint(str(place / "checkpoint")), options)
    assert isinstance(source.answer, IcebergNow)
    return source.answer


def to_json(now: IcebergNow) -> dict[str, Any]:
    """As it is recorded."""
    told = dataclasses.asdict(now)
    told["branched"] = list(now.branched.items())
    return {key: value for key, value in told.items() if key not in _OF_READER}


def from_json(told: dict[str, Any], case: Case) -> IcebergNow:
    """The same read back."""
    chain = tuple(SnapshotNow(**one) for one in told["chain"])
    options = frozenset(one for one in IcebergOption if one.value in case.reader)
    most = {
        key: int(case.reader[f"streaming-max-{name}-per-micro-batch"])
        for key, name in {"most_files": "files", "most_rows": "rows"}.items()
        if f"streaming-max-{name}-per-micro-batch" in case.reader
    }
    return IcebergNow(**{**told, "chain": chain, "branched": dict(told["branched"]), "options": options, **most})


def answer(session: Worker, case: Case, folder: Path) -> dict[str, Any]:
    offsets, now, said = ask(session, case, folder.parent)  # where the table is: its metadata has absolute paths
    return {"offsets": offsets, "now": to_json(now), "spark": said}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="VERSION=PYTHON=JAR")
    for word in parser.parse_args().spark:
        version, python, jar = word.split("=", 2)
        about = {"jar": Path(jar).stem}
        record(RECORDED, version, python, "tests.live.iceberg_worker", {JARS: jar}, CASES, answer, **about)
