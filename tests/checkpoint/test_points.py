"""Points: their names, the rule by which they stay, and which folders are points."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ckpt.checkpoint.points import Point, choose_removed, list_points, parse_point, parse_rule
from ckpt.errors import UsageError
from ckpt.formats.offsets import UNFINISHED
from ckpt.storage import open_storage

START = datetime(2026, 11, 27, 14, 5, tzinfo=UTC)
PERIODS = {  # as the names of points show them
    "last": 28,
    "hourly": len("2026-11-27T14"),
    "daily": len("2026-11-27"),
    "monthly": len("2026-11"),
    "yearly": len("2026"),
}
TIMES = st.sampled_from([START, START + timedelta(hours=1)]) | st.datetimes(
    datetime(2024, 12, 25), datetime(2026, 1, 7)
).map(lambda time: time.replace(microsecond=0, tzinfo=UTC))
POINTS = st.lists(st.builds(Point, TIMES, st.integers(0, 5)), max_size=40, unique=True)
RULES = st.dictionaries(st.sampled_from([*PERIODS, "weekly"]), st.integers(0, 9), min_size=1)


@given(st.builds(Point, TIMES, st.integers(0, 10**18 - 1)))
def test_a_name_is_parsed_and_sorts_by_time(point: Point) -> None:
    assert parse_point(point.name) == point
    later = Point(point.time + timedelta(seconds=1), 0)
    assert point.name < later.name
    assert point < later


@pytest.mark.parametrize(
    "name",
    [
        "",
        "orders",
        "2026-11-27T14-05-00Z",
        "2026-02-30T14-05-00Z-batch-1",
        "2026-11-27T14-05-00Z-batch-01",
        "2026-11-27T14-05-00Z-batch-1.old",
        ".2026-11-27T14-05-00Z-batch-1.ckpt.tmp",
        "2026-11-27T14:05:00Z-batch-1",
    ],
)
def test_other_names_are_no_points(name: str) -> None:
    assert parse_point(name) is None


@pytest.mark.slow
@given(POINTS, RULES)
@settings(max_examples=300)
def test_the_newest_of_each_of_the_last_periods_stay(points: list[Point], rule: dict[str, int]) -> None:
    """By another count: a point stays if it is the newest of all, or the newest of one of the last N periods."""
    gone = choose_removed(points, rule)
    stay = set(points) - set(gone)
    assert set(gone) <= set(points)
    assert not points or max(points) in stay
    wanted = set[Point]([max(points)] if points else [])
    for period, count in rule.items():
        groups = defaultdict[str, list[Point]](list)
        for point in points:
            week = f"{point.time:%G %V}"
            groups[week if period == "weekly" else point.name[: PERIODS[period]]].append(point)
        newest = sorted((max(group) for group in groups.values()), reverse=True)
        wanted |= set(newest[:count])
    assert stay == wanted


@given(POINTS, RULES)
def test_a_second_run_removes_nothing_more(points: list[Point], rule: dict[str, int]) -> None:
    left = set(points) - set(choose_removed(points, rule))
    assert choose_removed(left, rule) == []


def test_a_rule_is_parsed() -> None:
    assert parse_rule("hourly=24, daily=7") == {"hourly": 24, "daily": 7}
    for text in (
        "",
        "hourly",
        "hourly=",
        "hourly=-1",
        "hourly=x",
        "daily=0",
        "hours=3",
        "hourly=1,hourly=2",
        "daily=7,",
    ):
        with pytest.raises(UsageError, match="write hourly=24,daily=7"):
            parse_rule(text)


def make(folder: Path, point: Point, query: str, *, offsets: bytes = b"v1\n{}\n{}", planned: int = 0) -> Path:
    """Make what a point shows of itself."""
    kept = folder / point.name
    for log in ("offsets", "commits"):
        (kept / log).mkdir(parents=True)
        (kept / log / str(point.batch)).write_bytes(b"v1\n{}")
    (kept / "offsets" / str(point.batch + planned)).write_bytes(offsets)
    (kept / "metadata").write_text(f'{{"id":"{query}"}}')
    return kept


def test_a_thousand_points_of_a_hundred_queries(tmp_path: Path) -> None:
    """Only those of one query are looked at by its rule; what is no point stays whatever its name is."""
    rule, all_points = parse_rule("hourly=3,daily=2"), defaultdict[str, list[Point]](list)
    for number in range(1000):
        query, point = f"query-{number % 100}", Point(START + timedelta(minutes=37 * number), number // 100)
        make(tmp_path, point, query, planned=number % 2)
        all_points[query].append(point)
    left = make(tmp_path, Point(START, 7), "query-1", offsets=UNFINISHED)
    ran = make(tmp_path, Point(START, 8), "query-1")
    (ran / "commits" / "9").write_text("v1\n{}")
    damaged = make(tmp_path, Point(START, 9), "query-1")
    (damaged / "metadata").write_text("")
    (tmp_path / "other" / "offsets").mkdir(parents=True)
    (tmp_path / Point(START, 10).name).symlink_to(tmp_path / all_points["query-2"][0].name)
    (tmp_path / Point(START, 11).name / "offsets").mkdir(parents=True)
    (tmp_path / f".{Point(START, 12).name}.ckpt.tmp").mkdir()
    kept, unfinished = list_points(open_storage(str(tmp_path)))
    assert {query: list(points) for query, points in kept.items()} == all_points
    assert set(unfinished) == {left.name, Point(START, 11).name, f".{Point(START, 12).name}.ckpt.tmp"}
    for points in kept.values():
        gone = choose_removed(points, rule)
        assert len(points) - len(gone) in (3, 4)
        assert set(gone) < set(points)
