"""`ckpt inspect --sink` before a start, and what is in the sink after it: with real queries, every row is counted.

All are recorded (`python -m tests.support.spark.recording sink-mismatches`) with what ckpt was asked about, and some
are run.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib.util import find_spec

import pytest

from tests.live.sink import mismatches_repaired
from tests.live.sink.mismatches import CASES, EVERY_ROW, promised
from tests.live.sink.mismatches_repaired import Answer, Said
from tests.live.sink.remedies_followed import BATCHES
from tests.live.sink.stateful import NUMBERS
from tests.support.spark import recording
from tests.support.spark.live import EVERY_CASE

SAID: dict[str, tuple[str, str | None]] = {
    "continued": ("continues", None),
    "rewound by one": ("drops", "CKPT411"),
    "rewound by one, same": ("passes-over", "CKPT416"),
    "rewound by three, same": ("drops", "CKPT411"),
    "restored older": ("drops", "CKPT411"),
    "crashed after the sink": ("passes-over", "CKPT416"),
    "crashed before the sink": ("continues", None),
    "new checkpoint": ("drops", "CKPT411"),
    "rewound by three, log cleaned": ("drops", "CKPT411"),
    "recreated": ("unknown-query", "CKPT414"),
    "older table": ("lacks", "CKPT412"),
    "restored": ("lacks", "CKPT418"),
    "restored, uncommitted": ("drops", "CKPT411"),
    "new id": ("unknown-query", "CKPT414"),
    "forgotten": ("writes-again", "CKPT415"),
    "remembered again": ("passes-over", "CKPT416"),
}
"""The outcome, and the code that explains it."""
TO_DELTA = SAID | {"new checkpoint": ("continues", None)}  # whose query has a new id
LOST: dict[str, range] = {
    "rewound by one": range(60, 70),
    "restored older": range(60, 80),
    "rewound by three, same": range(60, 80),
    "rewound by three, log cleaned": range(60, 80),
}
"""Rows that are in no sink in the end."""
ONCE = Counter(range(EVERY_ROW))

Found = dict[str, tuple[Answer, list[Said]]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What came of all scenarios, and what the ckpt of today says meanwhile."""
    said = mismatches_repaired.asked_again(tmp_path_factory.mktemp("asked"))
    return {name: (answer, said[name]) for name, answer in recording.read("sink-mismatches").items()}


@pytest.fixture(
    scope="module",
    params=[
        "recorded",
        pytest.param(
            "live",
            marks=[
                pytest.mark.spark,
                pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed"),
            ],
        ),
    ],
)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Those, or some that are run now."""
    if request.param == "recorded":
        return dict(request.getfixturevalue("recorded"))
    names = mismatches_repaired.SCENARIOS if EVERY_CASE else mismatches_repaired.LIVE
    ran = mismatches_repaired.found(request.getfixturevalue("spark"), tmp_path_factory.mktemp("cured"), names)
    return {name: (answer, told.said) for name, (answer, told) in ran.items()}


def times(answer: Answer, key: str = "times") -> Counter[int]:
    return Counter({int(row): count for row, count in answer[key].items()})


def codes(said: Said) -> set[str]:
    return {one["code"] for one in said["findings"]}


def remedy(said: Said, *of: str) -> str:
    """That of the only finding with one of these codes."""
    (text,) = [one["remedy"] for one in said["findings"] if one["code"] in of]
    return str(text)


def of_a_sink(found: Found, name: str) -> list[tuple[str, Answer, list[Said]]]:
    return [(sink, *found[f"{sink}: {name}"]) for sink in ("delta", "parquet") if f"{sink}: {name}" in found]


def test_every_scenario_is_recorded() -> None:
    assert recording.read("sink-mismatches").keys() == mismatches_repaired.SCENARIOS.keys()


def test_what_is_said_before_the_start_is_what_the_start_does(found: Found) -> None:
    names = [(sink, name) for sink, name in CASES if f"{sink}: {name}" in found]
    assert names
    for sink, name in names:
        answer, (said,) = found[f"{sink}: {name}"]
        outcome, code = (TO_DELTA if sink == "delta" else SAID)[name]
        assert said["sink"]["outcome"] == outcome, (sink, name)
        assert code is None or code in codes(said), (sink, name)
        assert answer["error"] == answer["unreadable"] == "", (sink, name)
        assert times(answer) == promised(said, times(answer, "before")), (sink, name)
        assert {row for row in range(EVERY_ROW) if not times(answer)[row]} >= set(LOST.get(name, ())), (sink, name)


def test_a_lost_id_is_that_of_the_only_query_in_the_table(found: Found) -> None:
    answer, (said, then) = found["delta: named again"]
    assert f"--query-id {said['sink']['query_id']} --sink " in remedy(said, "CKPT103")
    assert then["sink"]["outcome"] == "passes-over"
    assert times(answer) == ONCE


def test_a_table_that_is_told_to_remember_gets_no_row_twice(recorded: Found) -> None:
    answer, (said, then) = recorded["delta: told to remember"]
    assert "CKPT415" in codes(said)
    assert then["sink"]["outcome"] == "passes-over"
    assert times(answer) == ONCE


def test_once_its_log_was_cleaned_it_cannot_remember_as_was_said(recorded: Found) -> None:
    answer, (said, _) = recorded["delta: told to remember, log cleaned"]
    assert "CKPT414" in codes(said)
    assert {row for row, count in times(answer).items() if count > 1} == {*range(50, 60)}


def test_a_sink_that_lacks_batches_gets_them_by_a_rewind(found: Found) -> None:
    ran = of_a_sink(found, "made good")
    assert ran
    for sink, answer, (said, then) in ran:
        assert said["sink"]["lacks"] == [BATCHES - 2, BATCHES - 1]
        assert codes(said) >= {"CKPT412" if sink == "delta" else "CKPT413"}
        command = f"--to-batch {said['sink']['last_batch']} --replay new --sink "
        assert command in remedy(said, "CKPT412", "CKPT413")
        assert then["sink"]["outcome"] == "continues"
        assert answer["error"] == ""
        assert times(answer) == ONCE


def test_rows_that_a_restore_took_back_are_written_by_a_copy_with_a_new_id(recorded: Found) -> None:
    answer, (said,) = recorded["delta: copied with a new id"]
    assert said["sink"]["lacks"] == [BATCHES - 2, BATCHES - 1]
    assert answer["error"] == ""
    assert times(answer) == ONCE


def test_a_file_sink_that_lacks_batches_can_no_longer_be_read(recorded: Found) -> None:
    answer, (said, then) = recorded["parquet: holes"]
    assert "CKPT413" in codes(said)
    assert answer["error"] == ""
    assert f"_spark_metadata/{BATCHES - 2} doesn't exist" in answer["unreadable"]
    assert "CKPT405" in codes(then)


def test_a_batch_that_is_skipped_leaves_a_hole_in_a_file_sinks_log_unless_it_is_filled(recorded: Found) -> None:
    newest = BATCHES - 1
    (holed, (said,)), (filled, (then,)) = recorded["parquet: skipped"], recorded["parquet: skipped and filled"]
    assert any(
        re.search(rf"put a file {newest} that (holds v1, and nothing else|contains only the line v1)", text)
        for text in holed["warnings"]
    )
    assert "CKPT413" in codes(said)
    assert f"_spark_metadata/{newest} doesn't exist" in holed["unreadable"]
    assert "CKPT413" not in codes(then)
    assert filled["error"] == filled["unreadable"] == ""
    assert times(filled) == Counter({*range(EVERY_ROW)} - {*range(newest * 10, newest * 10 + 10)})


def test_what_is_taken_out_of_a_file_sinks_log_is_written_again(recorded: Found) -> None:
    answer, (said, then) = recorded["parquet: files forgotten"]
    assert f"move _spark_metadata/{BATCHES - 3} and every entry with a higher number" in remedy(said, "CKPT411")
    assert then["sink"]["outcome"] == "continues"
    assert answer["error"] == ""
    assert times(answer) == ONCE


@pytest.mark.parametrize("sink", ["delta", "parquet"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_crash_between_sink_and_commit_of_a_query_with_state(sink: str, version: int, recorded: Found) -> None:
    answer, (said, *then) = recorded[f"{sink}: stateful {version}"]
    assert said["sink"]["outcome"] == "passes-over"
    assert codes(said) >= {"CKPT417" if version == 2 else "CKPT416"}
    if version == 2:
        assert "CheckpointInfo length: 0" in answer["at once"]
        assert answer["noop"] == ""
        assert then[0]["sink"]["outcome"] == "continues"
    assert answer["error"] == ""
    assert times(answer) == Counter(range(NUMBERS))
