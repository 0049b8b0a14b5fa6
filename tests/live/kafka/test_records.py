"""The place where a query continues in a copy: no row of the old partition comes twice or never, if there is one."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from ckpt.live.kafka.records import RUN, CopyPosition, HashedRecord, find_position


@dataclass(frozen=True)
class Copied:
    """A record of a copy, and which of the old partition it is."""

    record: HashedRecord
    of: int | None  # None: of another producer


def record(offset: int, value: int, *, appended: bool = False) -> HashedRecord:
    return HashedRecord(offset, f"{value}".encode(), 0 if value < 0 else 1000 * value, appended)


def around(old: Sequence[HashedRecord], end: int) -> tuple[list[HashedRecord], list[HashedRecord]]:
    before, after = ([each for each in old if (each.offset < end) is side] for side in (True, False))
    return before[-RUN:], after[:RUN]


@st.composite
def partitions(draw: st.DrawFn) -> tuple[list[HashedRecord], int, list[Copied]]:
    """An old partition, the end of a query, and a copy: it begins later, lags, lacks records, has some again."""
    count = draw(st.integers(1, 90))
    distinct = draw(st.sampled_from([1, 3, 7, 1000, 1000, 1000]))
    gaps = draw(st.sampled_from([0, 3]))
    old, offset = [], draw(st.integers(0, 5))
    for number in range(count):
        old.append(record(offset, number % distinct))
        offset += 1 + (draw(st.integers(0, gaps)) if gaps else 0)
    end = draw(st.integers(old[0].offset, offset))
    chosen: list[int | None] = list(range(draw(st.integers(0, count // 2)), draw(st.integers(count // 2, count))))
    for _ in range(draw(st.integers(0, 2))):
        index = draw(st.integers(0, len(chosen)))
        match draw(st.sampled_from(["again", "lacks", "foreign", "none"])):
            case "again":
                chosen = [*chosen[:index], *chosen[max(index - draw(st.integers(1, 60)), 0) :]]
            case "lacks":
                del chosen[index : index + draw(st.integers(1, 3))]
            case "foreign":
                chosen.insert(index, None)
    new, at = [], draw(st.integers(0, 50))
    for number, of in enumerate(chosen):
        value = 5000 + number if of is None else of % distinct
        new.append(Copied(record(at, value), of))
        at += 1 + (draw(st.integers(0, gaps)) if gaps else 0)
    return old, end, new


@pytest.mark.slow
@settings(max_examples=600)
@given(partitions())
def test_no_row_comes_twice_or_never_where_a_place_is_exact(case: tuple[list[HashedRecord], int, list[Copied]]) -> None:
    old, end, new = case
    position = find_position(end, around(old, end), [each.record for each in new], begins=True, ends=True)
    if position.refused:
        return
    read = sum(each.offset < end for each in old)
    later = [each for each in new if each.record.offset >= position.offset]
    sooner = [each for each in new if each.record.offset < position.offset]
    same = {each.digest for each in old[:read]} & {each.digest for each in old[read:]}  # of equal rows any will do

    def is_distinct(each: Copied) -> bool:
        return each.of is not None and each.record.digest not in same

    assert not [each for each in later if is_distinct(each) and each.of is not None and each.of < read]
    left = {each.of for each in sooner if is_distinct(each) and each.of is not None and each.of >= read}
    assert left <= {each.of for each in later}


@given(st.integers(1, 80), st.data())
def test_a_whole_copy_has_an_exact_place(count: int, data: st.DataObject) -> None:
    """Whatever the offsets are: the place is after the last record that was read, and before the next one."""
    read = data.draw(st.integers(0, count))
    shift, gap = data.draw(st.integers(0, 1000)), data.draw(st.integers(1, 5))
    old = [record(number * gap, number) for number in range(count)]
    new = [record(shift + number, number) for number in range(count)]
    end = old[read].offset if read < count else old[-1].offset + 1
    position = find_position(end, around(old, end), new, begins=True, ends=True)
    assert position == CopyPosition(shift + read, min(read, RUN) + min(count - read, RUN))


OLD = [record(offset, offset) for offset in range(60)]


def copy(*values: int) -> list[HashedRecord]:
    return [record(100 + number, value) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("end", "new", "why", "rows"),
    [
        (30, copy(*range(23)), "move_lags", 7),
        (30, copy(), "move_lags", 20),
        (30, copy(*range(70, 90)), "move_not_found", 0),
        (30, copy(*range(28), *range(30, 60)), "move_differs", 2),
        (30, copy(*range(30), 99, *range(30, 60)), "move_differs", 1),
        (30, copy(*range(40), *range(25, 60)), "move_repeated", 15),
        (30, copy(*range(55), *range(25, 60)), "move_again", 5),
        (0, copy(99, *range(60)), "move_differs", 1),
    ],
)
def test_why_no_place_is_exact(end: int, new: list[HashedRecord], why: str, rows: int) -> None:
    position = find_position(end, around(OLD, end), new, begins=True, ends=True)
    assert (position.refused, position.rows) == (why, rows)


def test_a_record_that_expired_unread_is_not_passed_over() -> None:
    position = find_position(27, ([], OLD[30:50]), copy(*range(60)), begins=True, ends=True)
    assert (position.refused, position.rows) == ("move_expired", 3)


def test_equal_records_are_not_told_apart() -> None:
    old = [record(offset, -1) for offset in range(50)]
    position = find_position(30, around(old, 30), [record(offset, -1) for offset in range(50)], begins=True, ends=True)
    assert (position.refused, position.rows) == ("move_repeated", 88)


def test_timestamps_of_the_broker_are_not_compared() -> None:
    new = [HashedRecord(each.offset + 3, each.digest, 1, appended=True) for each in OLD]
    assert find_position(30, around(OLD, 30), new, begins=True, ends=True) == CopyPosition(33, 40, timed=False)
    part = find_position(
        30, around(OLD, 30), new[25:], begins=True, ends=True
    )  # too few records prove nothing without them
    assert part.refused == "move_differs"
