"""``ckpt offsets set --to`` a place in an Iceberg table: the suite `iceberg-places` of `python -m tests.record`.

Beside what the query then reads stands what a new query reads that begins at the same time with Iceberg's own option.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ckpt.changes.offsets.plan import offsets_set
from ckpt.errors import SourceError
from ckpt.live.records import IcebergNow
from tests.live.delta.record import ends
from tests.live.iceberg.cases import OPTIONS, Case
from tests.live.iceberg.record import Tables, asked, happened, to_json
from tests.live.iceberg.remedies_followed import of
from tests.record.answers import Document, OneVersion, break_before
from tests.record.worker import Session

FIRST, SECOND, READ_LAST, WAITS = of(0), of(1), of(102), of(103)
"""The rows of snapshots 0 to 3; a query has read all but the last."""
LATER = range(40, 60)  # of four files


@dataclass(frozen=True)
class Place:
    """Where somebody wants the query to go on, and what it then reads; one whose start fails reads nothing."""

    incident: str
    to: str | int  # earliest, latest, or the number of a snapshot: its time
    rows: tuple[range, ...] = ()
    between: str = ""  # as the plan counts it
    after_ms: int = 0  # later than the snapshot
    options: str = ""
    history: str = "snapshots"
    refused: str = ""
    says: str = ""  # besides
    fails: bool = False
    same: bool = False  # it ends there already

    @property
    def case(self) -> Case:
        return Case(self.history, self.incident, committed=True, options=self.options)

    @property
    def name(self) -> str:
        after = f"{self.after_ms:+} ms" if self.after_ms else ""
        parts = (self.history, self.incident, self.options, f"to {self.to}{after}")
        return ", ".join(part for part in parts if part)

    @property
    def ids(self) -> list[int]:
        return sorted(row for some in self.rows for row in some)


_LEFT_OUT = "Rows added by snapshots that also change other rows (1 file with 1 row) are skipped"
PLACES = [
    Place("nothing", "earliest", (FIRST, SECOND, READ_LAST, WAITS), "3 files with 30 rows"),
    Place("nothing", "latest", (), "1 file with 10 rows"),
    Place("nothing", 1, (SECOND, READ_LAST, WAITS), "2 files with 20 rows"),
    Place("nothing", 1, (READ_LAST, WAITS), "1 file with 10 rows", after_ms=1),
    Place("nothing", 2, (WAITS,), after_ms=1, same=True),
    Place("nothing", 3, (), "1 file with 10 rows", after_ms=60_000, says="No snapshot is from"),
    Place("nothing", 0, (FIRST, SECOND, READ_LAST, WAITS), "3 files with 30 rows", after_ms=-60_000),
    Place("more-rows", 4, (LATER, of(6)), "1 file with 10 rows"),
    Place("more-rows", 4, (LATER, of(6)), "1 file with 10 rows", options="one file"),
    Place("more-rows", "latest", (), "6 files with 40 rows"),
    Place("compacted", 5, (of(5),), "2 files with 20 rows"),
    Place("compacted", "latest", (), "3 files with 30 rows"),
    Place("compacted-last", "latest", (), "1 file with 10 rows"),
    Place("compacted-expired", "earliest", (of(5),), "an unknown number of files", says="Older snapshots have expired"),
    Place("overwritten-then-more", "latest", (), "2 files with 20 rows", says=_LEFT_OUT),
    Place("overwritten-then-more", 4, (of(5),), "1 file with 10 rows", says=_LEFT_OUT),
    Place("overwritten-then-more", "earliest", (), "3 files with 30 rows", says="(overwrite)", fails=True),
    Place(
        "overwritten-then-more",
        1,
        (SECOND, READ_LAST, WAITS, of(5)),
        "2 files with 20 rows",
        options="skip-overwrites",
    ),
    Place("overwritten", "latest", refused="and nothing was appended after it"),
    Place("overwritten", "latest", (), "1 file with 10 rows", options="skip-overwrites"),
    Place("deleted-last", "latest", refused="and nothing was appended after it"),
    Place("deleted-files", "latest", (), "2 files with 20 rows"),
    Place("expired-last", "earliest", (WAITS,), "an unknown number of files", says="no longer part of the table"),
    Place("expired-last", "latest", (), "an unknown number of files"),
    Place("rolled-back-goes-on", "earliest", (FIRST, SECOND, of(6), of(7)), "an unknown number of files"),
    Place("rolled-back-goes-on", "latest", (), "an unknown number of files"),
    Place("created-again", "earliest", (of(10), of(11)), says="the table was recreated"),
    Place("created-again-empty", "earliest", refused="the table has no snapshot"),
    Place("more-rows", "latest", (), "8 files with 60 rows", history="first batch"),
    Place("nothing", "latest", (), "4 files.", history="inside a snapshot"),
    Place("nothing", "earliest", (FIRST, range(10, 30), READ_LAST, WAITS), "3 files.", history="inside a snapshot"),
]


def find_time(place: Place, now: IcebergNow) -> str | datetime:
    """A snapshot's time, by its number since the table was created, of those that are there."""
    if isinstance(place.to, str):
        return place.to
    ms = now.chain[place.to].written_ms + place.after_ms
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def obeyed(session: Session, place: Place, folder: Path) -> dict[str, Any]:
    at = happened(session, place.case, folder)
    options = {"path": str(at / "db" / "t"), **OPTIONS[place.options]}
    how: Any = {"accept_skip": True, "accept_replay": True, "apply": True, "backup": str(at / "backup"), "grace": 0}
    now = asked(at, place.case)
    to = find_time(place, now)
    told = to_json(now)
    for one, snapshot in zip(told["chain"], now.chain, strict=True):
        one["written_ms"] = snapshot.written_ms
    answer: dict[str, Any] = {"offsets": ends(at / "checkpoint"), "now": told}
    with suppress(SourceError):
        plan, receipt = offsets_set(str(at / "checkpoint"), to=to, source_options={0: options}, **how)
        assert receipt.applied is plan.needed, (receipt.problem, plan.refused)
        answer["ends"] = ends(at / "checkpoint")[-1]
    if place.refused:
        return answer
    started: dict[str, Any] = {"do": "start", "place": str(at), "out": True, "options": OPTIONS[place.options]}
    answer["read"] = session.ask(started)
    if isinstance(to, datetime):
        ms = (to - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
        own = {**OPTIONS[place.options], "stream-from-timestamp": str(ms)}
        answer["own"] = session.ask({**started, "options": own, "checkpoint": "own"})
    session.ask({"do": "append", "place": str(at), "number": 50})
    answer["then"] = session.ask(started)
    return answer


class Places(Tables):
    answers = OneVersion(Path(__file__).with_name("places.json"), break_before("now", sort_keys=True))

    def cases(self, minor: str) -> Sequence[Any]:
        return PLACES if minor == "4.1" else ()

    def ask(self, session: Session, case: Any, folder: Path) -> Document:
        return obeyed(session, case, folder.parent)


SUITE = Places()
