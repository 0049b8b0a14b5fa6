"""What the file sink of every Spark version did when a batch number went back, and when offsets did."""

import pytest

from ckpt.sinks import SINKS
from tests.sinks.dropping import CASES
from tests.sinks.record import read

NEW, NOTHING = range(60, 80), range(0)
WAS: dict[str, tuple[range, range]] = {
    "untouched": (NOTHING, NOTHING),
    "offsets-moved-away": (NEW, NOTHING),
    "offsets-copied": (NOTHING, range(50, 60)),
    "commits-moved-away": (NEW, NOTHING),
    "commits-kept-offsets-copied": (NOTHING, range(40, 60)),
    "planned-batches-moved-away": (NEW, NOTHING),
    "planned-batches-emptied": (NOTHING, range(30, 60)),
    "logs-deleted": (NEW, NOTHING),
}
"""Rows that are missing in the sink, and rows that are there twice."""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("minor", sorted(read()))
def test_a_lower_batch_number_loses_rows_and_lower_offsets_do_not(minor: str, case: str) -> None:
    answer = read()[minor]["sink"][case]
    missing, twice = WAS[case]
    assert (answer["missing"], answer["twice"]) == (list(missing), list(twice))


def test_the_table_says_that_a_file_sink_drops() -> None:
    (sink,) = [one for one in SINKS if one.kind == "file"]
    assert sink.drops_same_query
