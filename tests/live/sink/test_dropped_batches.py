"""What sinks that remember batches did on every Spark when a batch number went back, and when offsets did."""

import pytest

from ckpt.restart.sinks import SINKS
from tests.live.sink.dropped_batches import CASES
from tests.live.sink.record import DROPPED

OLD, NEW, NOTHING = range(60), range(60, 80), range(0)
WAS: dict[str, tuple[range, range]] = {
    "untouched": (NOTHING, NOTHING),
    "offsets-moved-away": (NEW, NOTHING),
    "offsets-copied": (NOTHING, range(50, 60)),
    "commits-moved-away": (NEW, NOTHING),
    "commits-kept-offsets-copied": (NOTHING, range(40, 60)),
    "planned-batches-moved-away": (NEW, NOTHING),
    "planned-batches-emptied": (NOTHING, range(30, 60)),
    "logs-deleted": (NEW, NOTHING),
    "logs-and-id-deleted": (NEW, NOTHING),
}
"""Rows that are missing in the sink, and rows that are there twice."""
IN_DELTA = WAS | {"logs-and-id-deleted": (NOTHING, OLD)}  # which does not know the new id
ANSWERS = DROPPED.answers.read_all()
SINK_AND_SPARK = [(sink, minor) for minor, answers in sorted(ANSWERS.items()) for sink in sorted(answers)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("sink", "minor"), SINK_AND_SPARK)
def test_a_lower_batch_number_loses_rows_and_lower_offsets_do_not(sink: str, minor: str, case: str) -> None:
    answer = ANSWERS[minor][sink]["sink"][case]
    missing, twice = (IN_DELTA if sink == "delta" else WAS)[case]
    assert (answer["missing"], answer["twice"]) == (list(missing), list(twice))


@pytest.mark.parametrize(("kind", "by_id"), [("file", False), ("delta", True)])
def test_the_table_says_which_sinks_drop(kind: str, by_id: bool) -> None:
    (sink,) = [one for one in SINKS if one.kind == kind]
    assert sink.drops_same_query
    assert sink.drops_new_query is not by_id
