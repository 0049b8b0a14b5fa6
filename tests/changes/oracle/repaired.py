"""Real histories that are damaged at their end, repaired, and continued beside a query that never broke."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from ckpt.changes.fixes.repair import repair
from tests.changes.oracle.cases import LAST, History
from tests.changes.oracle.histories import answer
from tests.changes.oracle.plans_followed import STARTS, asked, copy, job, tell, told
from tests.support.remedies import NOW, remove
from tests.support.spark import mutations
from tests.support.spark.live import Here

HDFS, CHANGELOG, FORMAT2 = (History("aggregation", store) for store in ("hdfs", "changelog", "format2"))
Damage = Callable[[Path], None]
_STATE_FILES = (".delta", ".snapshot", ".changelog", ".zip")
_CHECKSUM_AT = 17  # where the header of the first block has its checksum


def _empty_offsets(top: Path) -> None:
    (top / "offsets" / str(LAST)).write_text("")


def _empty_commit(top: Path) -> None:
    (top / "commits" / str(LAST)).write_text("")


def _empty_commit_alone(top: Path) -> None:
    remove(top / "commits" / str(LAST))
    _empty_commit(top)


def _commit_ahead(top: Path) -> None:
    remove(top / "offsets" / str(LAST))


def _newest_state_lost(top: Path) -> None:
    for file in (top / "state" / "0" / "0").glob(f"{LAST + 1}[._]*"):
        remove(file)


def _newest_state_flipped(top: Path) -> None:
    """Change a byte of each newest state file of a partition, where no name, size or end of it shows that."""
    for file in (top / "state" / "0" / "0").glob(f"{LAST + 1}[._]*"):
        if file.suffix in _STATE_FILES:
            data = bytearray(file.read_bytes())
            data[_CHECKSUM_AT if file.suffix != ".zip" else len(data) // 2] ^= 1
            file.write_bytes(data)
            mutations.crc_of(file).unlink(missing_ok=True)


def _log_before_lost(top: Path) -> None:
    """Lose the offsets before the newest and the newest commit, of a log that keeps two batches."""
    for batch in range(LAST - 2):
        remove(top / "offsets" / str(batch))
        remove(top / "commits" / str(batch))
    remove(top / "offsets" / str(LAST - 1))
    remove(top / "commits" / str(LAST))


def _logs_cut_by_hand(top: Path) -> None:
    for batch in (LAST - 1, LAST):
        remove(top / "offsets" / str(batch))
        remove(top / "commits" / str(batch))


DAMAGES: dict[str, tuple[Damage, str, int, bool]] = {
    "empty offsets": (_empty_offsets, "plan-again", LAST - 1, False),
    "empty commit": (_empty_commit, "write-commit", LAST, False),
    "empty commit without checksums": (_empty_commit_alone, "run-again", LAST - 1, True),
    "commit ahead": (_commit_ahead, "plan-again", LAST - 1, False),
    "newest state lost": (_newest_state_lost, "run-again", LAST - 1, True),
    "newest state flipped": (_newest_state_flipped, "run-again", LAST - 1, True),
    "log before lost": (_log_before_lost, "plan-again", LAST - 2, False),
    "logs cut by hand": (_logs_cut_by_hand, "tidy", LAST - 2, False),
}
"""The damage, the fix that is recommended, the last batch that counts then, and whether the next keeps its range."""


CASES = {f"{of.name}-{name}": (of, name) for of, name in product((HDFS, CHANGELOG, FORMAT2), DAMAGES)}


def recorded(spark: Any, folder: Path) -> dict[str, Any]:
    """What the repair of each case chose, and what the query did then and what it would have done."""
    here = Here(spark, answer)
    histories: dict[History, Path] = {}
    answers = {}
    for case, (of, name) in CASES.items():
        if of not in histories:
            histories[of] = folder / of.name
            histories[of].mkdir()
            tell(here, of, histories[of])
        answers[case] = _repaired(here, of, name, histories[of], folder / case.replace(" ", "-"))
    return answers


def _repaired(here: Here, of: History, name: str, folder: Path, place: Path) -> dict[str, Any]:
    damage, _, batch, same = DAMAGES[name]
    top = copy(of, folder, LAST, place / "repaired")
    damage(top)
    deep = damage is _newest_state_flipped
    assert not deep or not repair(str(top), names_only=True)[0].needed
    plan, receipt = repair(str(top), backup=str(place / "backup"), deep=deep, **NOW)
    assert receipt.applied, receipt.problem or plan.refused
    known = copy(of, folder, batch, place / "known")
    times = [2] * STARTS
    as_known = [1, *times[1:]] if same else times
    return {
        "fix": str(plan.chosen and plan.chosen.name),
        "expected": told(asked(here, job(of, folder, "follow", checkpoint=str(known), times=as_known))),
        "found": told(asked(here, job(of, folder, "follow", checkpoint=str(top), times=times))),
    }
