"""Remedies for Iceberg tables, obeyed: the suite `iceberg-remedies` of `python -m tests.record`.

Beside the rows stands what ckpt was told, so that the remedy of today can be compared with the one that was obeyed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ckpt import Inspection, inspect
from ckpt.advice import Advice, Do, Instruction, Setting
from ckpt.advice.spelling import list_words, quote_line
from ckpt.restart.book import AT_NEW
from tests.live.delta.record import ends
from tests.live.iceberg.cases import Case
from tests.live.iceberg.record import Tables, asked, happened, to_json
from tests.record.answers import Document, OneVersion, break_before
from tests.record.worker import Session
from tests.support.cli import invoke
from tests.support.remedies import remove

READ_LAST, WAITS = range(1020, 1030), range(1030, 1040)
"""The rows of snapshot 2, which batch 2 read or was to read, and those of snapshot 3."""


def of(number: int) -> range:
    """The rows of a snapshot that came in the incident."""
    return range(number * 10, number * 10 + 10)


@dataclass(frozen=True)
class Obeyed:
    """What is read once the remedy was obeyed."""

    rows: tuple[range, ...]
    options: dict[str, str] = field(default_factory=dict)  # that the remedy says the start needs
    new_checkpoint: bool = False
    deletes: str = ""  # a file of the checkpoint that the remedy lets somebody delete
    kept: bool = False  # the options are needed for good

    @property
    def ids(self) -> list[int]:
        return sorted(row for some in self.rows for row in some)


_OVERWRITES = {"streaming-skip-overwrite-snapshots": "true"}
_DELETES = {"streaming-skip-delete-snapshots": "true"}
_FIRST = "sources/0/offsets/0"


def _case(incident: str, committed: bool = True, available_now: bool = False) -> Case:
    return Case("snapshots", incident, committed, available_now=available_now)


OBEYED: dict[Case, Obeyed] = {
    _case("expired-last"): Obeyed((WAITS,)),
    _case("expired-last", False): Obeyed((WAITS,)),
    _case("expired-before", False): Obeyed((READ_LAST, WAITS)),
    _case("expired-unread"): Obeyed((of(4), of(5))),
    _case("expired-unread", False): Obeyed((of(4), of(5))),
    _case("deleted-expired"): Obeyed((of(5),)),
    _case("compacted-expired"): Obeyed((of(5),)),
    _case("rolled-back"): Obeyed(()),
    _case("rolled-back", False): Obeyed(()),
    _case("rolled-back-goes-on"): Obeyed((of(6), of(7))),
    _case("rolled-back-goes-on", False): Obeyed((of(6), of(7))),
    _case("rolled-back-expired"): Obeyed((of(6),)),
    _case("created-again"): Obeyed((of(10), of(11))),
    _case("created-again", False): Obeyed((of(10), of(11))),
    _case("created-again-empty", False): Obeyed((), new_checkpoint=True),
    _case("replaced-then-more"): Obeyed((of(5),)),
    _case("overwritten-then-more"): Obeyed((WAITS, of(5)), _OVERWRITES),
    _case("updated"): Obeyed((WAITS, of(5)), _OVERWRITES),
    _case("deleted-files"): Obeyed((WAITS, of(5)), _DELETES),
    _case("deleted-last"): Obeyed((WAITS,), _DELETES),
    _case("deleted-last", False): Obeyed((READ_LAST, WAITS), _DELETES),
    _case("expired-first", available_now=True): Obeyed((WAITS,), deletes=_FIRST),
    _case("expired-before", available_now=True): Obeyed((WAITS,), deletes=_FIRST),
    _case("deleted-files", available_now=True): Obeyed((WAITS, of(5)), _DELETES, kept=True),
}
"""Every kind of remedy, by what it is printed for."""


def advice_on_a_table(found: Inspection) -> list[Advice]:
    return [rated.advice or Advice() for rated in found.findings if rated.finding.diagnosis.code.startswith("CKPT47")]


def takes(advice: Advice) -> dict[str, Any]:
    steps = list(advice.all_steps())
    parts = [part for step in steps for part in step.what.parts]
    acts = [step.do for step in steps if isinstance(step.do, Instruction)]
    return {
        "calls": [quote_line(step.call) for step in steps if step.call is not None],
        "settings": [part.text for part in parts if isinstance(part, Setting)],
        "deletes": [path for act in acts if act.do is Do.DELETE for path in act.paths],
        "new_checkpoint": AT_NEW in parts,
    }


def ckpt(*words: object) -> Any:
    return invoke(*words)


def obeyed(session: Session, case: Case, folder: Path) -> dict[str, Any]:
    """What was said, what the start after it read, and what the start after that one read of 10 new rows."""
    place, wanted = happened(session, case, folder), OBEYED[case]
    checkpoint = place / "checkpoint"
    answer: dict[str, Any] = {"offsets": ends(checkpoint), "now": to_json(asked(place, case))}
    given = advice_on_a_table(
        inspect(str(checkpoint), sources=True, source_options={0: {"path": str(place / "db" / "t")}})
    )
    answer["remedies"] = [json.loads(json.dumps(takes(one)).replace(str(checkpoint), "CHECKPOINT")) for one in given]
    for number, call in enumerate(step.call for step in given[0].all_steps() if step.call is not None):
        accepted = [] if call.name == "skip" else ["--accept-replay", "--accept-skip"]
        backup = ["--backup", str(place / f"backup-{number}")]
        run = ckpt(*list_words(call)[1:], *accepted, "--apply", "--grace", "0", *backup)
        assert run.exit_code == 0, run.output
    if wanted.deletes:
        assert wanted.deletes in answer["remedies"][-1]["deletes"]
        remove(checkpoint / wanted.deletes)
    assert all(f"{key}={value}" in answer["remedies"][0]["settings"] for key, value in wanted.options.items())
    how: dict[str, Any] = {"do": "start", "place": str(place), "out": True, "available_now": case.available_now}
    if wanted.new_checkpoint:
        assert answer["remedies"][0]["new_checkpoint"]
        how["checkpoint"] = "new"
    answer["read"] = session.ask({**how, "options": wanted.options})
    for number, options in ((50, wanted.options), (51, wanted.options if wanted.kept else {})):
        session.ask({"do": "append", "place": str(place), "number": number})
        answer[f"then {number}"] = session.ask({**how, "options": options})
    return answer


class Remedies(Tables):
    answers = OneVersion(Path(__file__).with_name("remedies_followed.json"), break_before("now", sort_keys=True))

    def cases(self, minor: str) -> Sequence[Case]:
        return [*OBEYED] if minor == "4.0" else ()

    def ask(self, session: Session, case: Case, folder: Path) -> Document:
        return obeyed(session, case, folder.parent)


SUITE = Remedies()
