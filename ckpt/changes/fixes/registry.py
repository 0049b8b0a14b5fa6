"""The fixes of a checkpoint that will not restart, which ``ckpt repair`` compares by what they cost."""

from dataclasses import dataclass
from enum import StrEnum

from ckpt.changes.check_fix import MORE_STARTS, NO_LOST_BATCH, Rule
from ckpt.changes.draft import Drafter
from ckpt.changes.fixes.async_gap import draft_fill
from ckpt.changes.fixes.read_again import draft_read_again
from ckpt.changes.fixes.run_again import draft_plan_again, draft_run_again
from ckpt.changes.fixes.write_commit import draft_commit
from ckpt.changes.fixes.write_offsets import draft_offsets


class WayName(StrEnum):
    """The fixes, those first that cost less where they cost alike."""

    TIDY = "tidy"  # remove or write again what blocks a start; no batch runs again
    FILL = "fill"  # write the offsets that asynchronous progress tracking left out, as `repair-async` does
    WRITE_COMMIT = "write-commit"  # write the newest commit as it was, where its checksums prove that
    WRITE_OFFSETS = "write-offsets"  # write the newest offsets as they were, where the log of a file source tells them
    RUN_AGAIN = "run-again"  # go back, and run the next batch again over its range
    READ_AGAIN = "read-again"  # a stateless query reads the rows of its newest batches again, in a new batch
    PLAN_AGAIN = "plan-again"  # go back, and plan the next batch anew


@dataclass(frozen=True, slots=True)
class Fix:
    """One fix; its drafts say what they cost."""

    name: WayName
    draft: Drafter
    rule: Rule = MORE_STARTS  # that its plan must keep


FIXES = (
    Fix(WayName.FILL, draft_fill, NO_LOST_BATCH & MORE_STARTS),
    Fix(WayName.WRITE_COMMIT, draft_commit),
    Fix(WayName.WRITE_OFFSETS, draft_offsets),
    Fix(WayName.RUN_AGAIN, draft_run_again),
    Fix(WayName.READ_AGAIN, draft_read_again),
    Fix(WayName.PLAN_AGAIN, draft_plan_again),
)
"""Every fix but to tidy up, which comes before them."""
