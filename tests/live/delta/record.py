"""What Spark does at Delta tables: the suite `delta` of `python -m tests.record`.

What ckpt read of the table before the start stands beside Spark's
answer, so that the forecast can be compared without a JVM.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from ckpt import open_checkpoint
from ckpt.checkpoint.sources.delta import write_offset
from ckpt.checkpoint.sources.registry import decode
from ckpt.live.asking import ask_sources
from ckpt.live.records import DeltaNow, DeltaOption, FileNow, VersionNow
from tests.live.delta.cases import CASES, OPTIONS, Case
from tests.record.answers import Document, OneFile, break_before
from tests.record.packages import DELTA, PACKAGE
from tests.record.suite import Cases
from tests.record.worker import Installed, Session


def ask(session: Session, case: Case, folder: Path) -> tuple[list[Any], DeltaNow, dict[str, Any]]:
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
    told = dataclasses.asdict(now) | {"before": None if now.before is None else write_offset(now.before)}
    del told["options"], told["most_files"]
    for file in (*(told["snapshot"] or ()), *(file for version in told["versions"] for file in version["files"])):
        del file["path"], file["modified_ms"]
    return told


def from_json(told: dict[str, Any], case: Case) -> DeltaNow:
    """The same read back."""
    files = lambda some: tuple(FileNow(**one) for one in some)  # noqa: E731
    versions = tuple(VersionNow(**{**one, "files": files(one["files"])}) for one in told["versions"])
    snapshot = None if told["snapshot"] is None else files(told["snapshot"])
    given = {f"{key}={value}" if key == "failOnDataLoss" else key for key, value in case.reader.items()}
    options = frozenset(DeltaOption(one) for one in given)
    return DeltaNow(
        **{**told, "versions": versions, "snapshot": snapshot, "before": decode(told["before"]), "options": options}
    )


class Tables(Cases[Case]):
    """Starts at tables. A history is made before the first of its cases."""

    answers = OneFile(Path(__file__).with_name("recorded.json"), break_before("now", sort_keys=True))
    role = "delta"

    def cases(self, minor: str) -> Sequence[Case]:
        return CASES if minor in DELTA else ()

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        offsets, now, said = ask(session, case, folder)
        return {"offsets": offsets, "now": to_json(now), "spark": said}

    def settings(self, spark: Installed, case: Case) -> AbstractContextManager[dict[str, str]]:
        return nullcontext({PACKAGE: DELTA[spark.minor]})


SUITE = Tables()
