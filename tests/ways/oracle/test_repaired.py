"""``ckpt repair`` on real histories that were damaged at their end: it continues like a query that never broke.

The batches that come later have other ranges than those of the abandoned timeline: with equal ranges every mistake
would pass unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ckpt.fixes.repair import repair_checkpoint
from tests.remedies import NOW, remove
from tests.spark.live import EVERY_CASE, Here
from tests.ways.oracle import worker
from tests.ways.oracle.asking import STARTS, asked, copy, job, tell, told
from tests.ways.oracle.cases import LAST, History

pytestmark = pytest.mark.spark

HDFS, CHANGELOG, FORMAT2 = (History("aggregation", store) for store in ("hdfs", "changelog", "format2"))
Damage = Callable[[Path], None]


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
    "logs cut by hand": (_logs_cut_by_hand, "tidy", LAST - 2, False),
}
"""The damage, the fix that is recommended, the last batch that counts then, and whether the next keeps its range."""


SOME = {
    (HDFS, "commit ahead"),
    (HDFS, "empty commit without checksums"),
    (HDFS, "logs cut by hand"),
    (CHANGELOG, "empty offsets"),
    (FORMAT2, "empty commit"),
    (FORMAT2, "newest state lost"),
}
"""Each damage once: it does the same to the logs of all three, and each cure is met by the state that it is about."""


@pytest.fixture(scope="module")
def here(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Here:
    scratch = tmp_path_factory.mktemp("scratch")
    return Here(spark, lambda session, wanted: worker.run(session, wanted, scratch))


@pytest.fixture(scope="module")
def histories(here: Here, tmp_path_factory: pytest.TempPathFactory) -> Callable[[History], Path]:
    """The folder with the checkpoints of a history, which is made once."""

    @cache
    def of(history: History) -> Path:
        folder = tmp_path_factory.mktemp("history")
        tell(here, history, folder)
        return folder

    return of


@pytest.mark.parametrize(
    ("of", "name"),
    [
        pytest.param(of, name, id=f"{of.name}-{name}")
        for of, name in product((HDFS, CHANGELOG, FORMAT2), DAMAGES)
        if EVERY_CASE or (of, name) in SOME
    ],
)
def test_it_continues_as_a_query_that_never_broke(
    of: History, name: str, histories: Callable[[History], Path], here: Here, tmp_path: Path
) -> None:
    folder = histories(of)
    damage, fix, batch, same = DAMAGES[name]
    top = copy(of, folder, LAST, tmp_path / "repaired")
    damage(top)

    plan, receipt = repair_checkpoint(str(top), backup=str(tmp_path / "backup"), **NOW)

    assert receipt.applied, receipt.problem or plan.refused
    assert plan.chosen is not None
    assert plan.chosen.name == fix
    known = copy(of, folder, batch, tmp_path / "known")
    times = [2] * STARTS
    as_known = [1, *times[1:]] if same else times
    expected = asked(here, job(of, folder, "follow", checkpoint=str(known), times=as_known))
    found = asked(here, job(of, folder, "follow", checkpoint=str(top), times=times))
    assert told(found) == told(expected)
