"""Record what Spark reads of a folder: `python -m tests.live.files_record --spark 4.2=/path/to/python`.

To be run with the Python in which ckpt is installed. What ckpt saw of the folder before the start stands beside Spark's
answer, so that the forecast can be compared without a JVM.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ckpt import ask_sources, open_checkpoint
from ckpt.live.records import Answer, FilesNow
from tests.live.files import EVERY, INCIDENTS, LAST, Query
from tests.restart.oracle.record import Worker

RECORDED = Path(__file__).with_name("files.json")


def record(minor: str, python: str) -> dict[str, Any]:
    """The answers of one Spark version, and which that was."""
    answers = {}
    with TemporaryDirectory() as scratch, Worker(python, Path(os.devnull), "tests.live.files_worker") as session:
        if not session.spark.startswith(f"{minor}."):
            raise SystemExit(f"{python} has Spark {session.spark}, not {minor}")
        place = Path(scratch, "query")
        session.ask({"do": "make", "place": str(place)})
        here = Query(None, place)  # the same folders
        for name in EVERY:
            for last in LAST[:2] if name in INCIDENTS else LAST:
                checkpoint = Path(scratch, f"{name} {last}")
                options = here.happen(name, checkpoint, last)
                (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: options})
                said = session.ask(
                    {"do": "start", "place": str(place), "checkpoint": str(checkpoint), "options": options}
                )
                error = said["error"] and said["error"].splitlines()[0].partition("exception: ")[2]
                said["error"] = error and error.replace(scratch, "")
                answers[f"{name}, {last}"] = {"now": _now(source.answer), "spark": said}
    return {"spark": session.spark, "answers": answers}


def _now(answer: Answer) -> dict[str, Any] | None:
    """What ckpt saw; None: it does not ask. The files without the place where they were recorded."""
    if not isinstance(answer, FilesNow):
        return None
    return asdict(answer) | {
        "gone": [Path(one).name for one in answer.gone],
        "refused": answer.refused and f"file:///{Path(answer.refused).name}",
        "place": Path(answer.place).name,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="VERSION=PYTHON")
    for word in parser.parse_args().spark:
        version, python = word.split("=", 1)
        found = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        found[version] = record(version, python)
        RECORDED.write_text(json.dumps(found, sort_keys=True).replace('{"now"', '\n{"now"') + "\n")
