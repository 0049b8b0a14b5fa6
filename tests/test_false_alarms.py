"""Statements that were false alarms, each on the kind of checkpoint on which it was seen."""

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.oracle.cases.model import delete, delete_logs, write
from tests.spark.mutations import Mutation


def codes(ckpt: Ckpt, checkpoint: object, *words: object) -> set[str]:
    """The codes of all findings of ``ckpt inspect``."""
    return {found["code"] for found in ckpt("inspect", checkpoint, "-o", "json", *words).json()["findings"]}


ONLY_0_AND_1 = delete_logs(range(2, 6), range(1, 6))


def test_batch_1_begins_at_batch_0(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Offsets 0 and 1, commit 0: the predecessor is batch 0, not none."""
    checkpoint = copy_of("stateless-3.5", *ONLY_0_AND_1)
    assert "CKPT213" not in codes(ckpt, checkpoint)
    assert ckpt("inspect", checkpoint).exit_code == 0
    assert ckpt("repair-async", checkpoint).exit_code == 0


@pytest.mark.parametrize(
    "damage",
    [
        ONLY_0_AND_1,
        [write("offsets/5", ""), *delete("offsets/3")],
        [write("offsets/5", ""), write("offsets/3", "")],
        [write("offsets/5", "")],
        delete_logs([4], [5]),
    ],
    ids=["batch-1", "latest-unreadable-gap-below", "two-unreadable", "latest-unreadable", "gap"],
)
def test_no_page_advises_the_command_that_printed_it(ckpt: Ckpt, copy_of: CopyOf, damage: list[Mutation]) -> None:
    checkpoint = copy_of("stateless-3.5", *damage)
    plan = ckpt("repair-async", checkpoint, "-o", "json").json()
    last = ckpt("repair-async", checkpoint).stdout.split("\nNext ")[-1]
    assert bool(plan["steps"]) == ("ckpt repair-async" in last), last
