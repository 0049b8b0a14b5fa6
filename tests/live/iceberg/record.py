"""What Spark does at Iceberg tables: the suite `iceberg` of `python -m tests.record`.

What ckpt read of the table before the start stands beside Spark's
answer, so that the forecast can be compared without a JVM.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from ckpt import open_checkpoint
from ckpt.checkpoint.sources.iceberg import write_offset
from ckpt.checkpoint.sources.registry import decode
from ckpt.formats.iceberg import IcebergSnapshot
from ckpt.live.asking import ask_sources
from ckpt.live.records import IcebergNow, IcebergOption
from tests.live.delta.record import ends
from tests.live.iceberg.cases import CASES, Case
from tests.record.answers import Document, OneFile, break_before
from tests.record.packages import ICEBERG, PACKAGE, jar
from tests.record.suite import Cases
from tests.record.worker import Installed, Session

_OF_READER = {"options", "most_files", "most_rows"}
_RECORDED = {"id": "id", "operation": "operation", "files": "added_files", "rows": "added_rows"}
"""Keys of a recorded snapshot, and the fields of ``IcebergSnapshot`` with their values."""


def happened(session: Session, case: Case, folder: Path) -> Path:
    """The place of the table and the checkpoint, as a case leaves them before the start."""
    place, made = folder / "now", folder / f"made {case.history}"
    if not made.exists():
        session.ask({"do": "make", "place": str(place), "copy": str(made), "history": case.history})
    session.ask({"do": "happen", "place": str(place), "of": str(made), **dataclasses.asdict(case)})
    return place


def ask(session: Session, case: Case, folder: Path) -> tuple[list[Any], IcebergNow, dict[str, Any]]:
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
    table = dataclasses.asdict(now)
    table["chain"] = [{key: getattr(snapshot, name) for key, name in _RECORDED.items()} for snapshot in now.chain]
    table["branched"] = list(now.branched.items())
    table["first"] = None if now.first is None else write_offset(now.first)
    return {key: value for key, value in table.items() if key not in _OF_READER}


def from_json(table: dict[str, Any], case: Case) -> IcebergNow:
    """Read a recorded table."""
    not_recorded = {"parent": None, "written_ms": 0}
    chain = tuple(
        IcebergSnapshot(**{_RECORDED.get(key, key): value for key, value in {**not_recorded, **snapshot}.items()})
        for snapshot in table["chain"]
    )
    options = frozenset(one for one in IcebergOption if one.value in case.reader)
    most = {
        key: int(case.reader[f"streaming-max-{name}-per-micro-batch"])
        for key, name in {"most_files": "files", "most_rows": "rows"}.items()
        if f"streaming-max-{name}-per-micro-batch" in case.reader
    }
    fields = table | {"first": decode(table["first"]), "chain": chain, "branched": dict(table["branched"])}
    return IcebergNow(**{**fields, "options": options, **most})


class Tables(Cases[Case]):
    """Starts at tables, which are all at one place: their metadata has absolute paths."""

    answers = OneFile(Path(__file__).with_name("recorded.json"), break_before("now", sort_keys=True))
    role = "iceberg"

    def cases(self, minor: str) -> Sequence[Case]:
        return CASES if minor in ICEBERG else ()

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        offsets, now, said = ask(session, case, folder.parent)
        return {"offsets": offsets, "now": to_json(now), "spark": said}

    def head(self, spark: Installed) -> Document:
        return {**super().head(spark), "jar": jar(ICEBERG[spark.minor])}

    def settings(self, spark: Installed, case: Case) -> AbstractContextManager[dict[str, str]]:
        return nullcontext({PACKAGE: ICEBERG[spark.minor]})


SUITE = Tables()
