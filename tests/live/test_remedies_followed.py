"""What `ckpt inspect --sources` advises, obeyed by the letter with a real sink: no row is lost or doubled unsaid.

All of `remedies_followed.py` is recorded; a few are run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.live import remedies_followed
from tests.live.delta import cases as delta_cases, record as delta_record
from tests.live.first_remedy import LATER, Answer, Obeyed, about_source
from tests.live.judging import checkpoint_of, inspected
from tests.live.kafka import cases, record
from tests.live.remedies_followed import STATES
from tests.support.spark import recording
from tests.support.spark.live import EVERY_CASE


def rows(*versions: int) -> set[int]:
    """The numbers that versions of a table added."""
    return {version * 10 + row for version in versions for row in range(10)}


READ, LAST, NEXT = rows(0, 1), rows(2), rows(3)  # before the newest batch, in it, after it
CREATED, REWRITTEN = rows(100, 101), rows(7, 8)
NEW = rows(*LATER)  # which come when all is done

_BEFORE_IT = (
    "Rows before that version that were not read are read by a batch query, or by none|"
    "Only a batch query can read the unread rows before that version"
)
_OF_THE_OLD_TABLE = "the sink has of the old one stays there|rows of the old table stay in the sink"
_FROM_NOW_ON = "reads (everything|what is) written from now on"
_SINCE_THE_CHANGE = {
    "committed": (READ | LAST, _BEFORE_IT),
    "written": (READ | LAST, _BEFORE_IT),
    "unwritten": (READ, _BEFORE_IT),
}


def _gone(which: str) -> str:
    """As it is said of versions that are gone, now and in what was recorded."""
    of_old = f"{which} added (is|are) no longer known, and (is|are) left out"
    return f"added by {which} are (no longer known|unknown now)|{of_old}"


IN_TABLE: dict[str, dict[str, tuple[set[int], str]]] = {
    **dict.fromkeys(
        ("log-from-2", "overwritten", "updated", "deleted-files", "restored"),
        dict.fromkeys(STATES, (READ | LAST | NEXT, "")),
    ),
    "log-from-3": {
        "committed": (READ | LAST | NEXT, "nothing that was not read is missing|no unread row is missing"),
        "written": (READ | LAST | NEXT, _gone("version 2")),
        "unwritten": (READ | NEXT, _gone("version 2")),
    },
    "log-from-5": {
        "committed": (READ | LAST | rows(5), _gone("versions 3 to 4")),
        "written": (READ | LAST | rows(5), _gone("versions 2 to 4")),
        "unwritten": (READ | rows(5), _gone("versions 2 to 4")),
    },
    "created-again": {
        "committed": (READ | LAST | CREATED, _OF_THE_OLD_TABLE),
        "written": (READ | LAST | CREATED, _OF_THE_OLD_TABLE),
        "unwritten": (READ | CREATED, _OF_THE_OLD_TABLE),
    },
    "older-copy": {
        "committed": (READ | LAST, _FROM_NOW_ON),
        "written": (READ | LAST, _FROM_NOW_ON),
        "unwritten": (READ, _FROM_NOW_ON),
    },
    "older-copy-goes-on": {
        "committed": (READ | LAST | rows(6) | REWRITTEN, "to read version 2 as it is now"),
        "written": (READ | LAST | REWRITTEN, "are never read"),
        "unwritten": (READ | rows(6) | REWRITTEN, "are never read"),
    },
    "vacuumed": {
        "committed": (READ | LAST, "leaves out 2 files with 20 rows"),
        "written": (READ | LAST, "leaves out 3 files with 30 rows"),
        "unwritten": (READ, "leaves out 3 files with 30 rows"),
    },
    "file-lost": dict.fromkeys(STATES, (READ | LAST, "leaves out 1 file with 10 rows")),
    "column-renamed": _SINCE_THE_CHANGE,
    "column-dropped": _SINCE_THE_CHANGE,
}
"""What is in the sink in the end besides ``NEW``, and how its advice says why it is no more."""


@pytest.fixture(
    scope="module",
    params=[
        "recorded",
        pytest.param(
            "live",
            marks=[
                pytest.mark.spark,
                pytest.mark.service,
                pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed"),
                pytest.mark.skipif(find_spec("confluent_kafka") is None, reason="confluent-kafka is not installed"),
            ],
        ),
    ],
)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    if request.param == "recorded":
        return recording.read("source-remedies")
    request.getfixturevalue("kafka_jars")
    servers, spark = request.getfixturevalue("kafka"), request.getfixturevalue("spark")
    names = remedies_followed.CASES if EVERY_CASE else remedies_followed.LIVE
    return remedies_followed.found(spark, servers, tmp_path_factory.mktemp("obeyed"), names)


def times(answer: Answer, key: str = "times") -> Counter[int]:
    return Counter({int(number): count for number, count in answer[key].items()})


def of(found: dict[str, Answer], source: str) -> list[tuple[str, str, str, Answer]]:
    """The sink, the incident, the state of the newest batch, and what came of it."""
    some = []
    for name, answer in found.items():
        kind, _, case = name.partition(": ")
        incident, state, *_ = remedies_followed.parts(case)
        if kind.startswith(source):
            some.append((kind.rpartition(" ")[2], incident, state, answer))
    return some


def test_every_case_is_recorded() -> None:
    assert list(recording.read("source-remedies")) == remedies_followed.CASES


def test_rows_of_a_delta_table(found: dict[str, Answer]) -> None:
    some = of(found, "delta")
    assert some
    for sink, incident, state, answer in some:
        wanted, words = IN_TABLE[incident][state]
        assert re.search(words, answer["remedy"], re.IGNORECASE), (incident, state)
        assert answer["errors"] == ["", "", ""], (sink, incident, state)
        assert times(answer) == Counter(wanted | NEW), (sink, incident, state)


def test_rows_of_a_topic(found: dict[str, Answer]) -> None:
    some = of(found, "kafka")
    assert some
    for _, incident, state, answer in some:
        assert answer["errors"] == ["", ""], (incident, state)
        assert times(answer) == times(answer, "before") + Counter(answer["unread"]), (incident, state)
        assert not answer["of the batch"] or said_to_be_lost(answer), (incident, state)


def said_to_be_lost(answer: dict[str, Any]) -> bool:
    """Whether the remedy told that rows of the planned batch, which are gone from the topic, are lost."""
    return (
        re.search(r"gone for good|leaves? out batch 1|\d offsets? (is|are) lost", answer["remedy"], re.IGNORECASE)
        is not None
    )


AS_ASKED = {
    "expired": "expired-25-of-30",
    "created again with 4": "recreated-with-4",
    "created again with 30": "recreated-with-30",
    "partition came late": "partition-added-late",
    "deleted, then created again": "deleted",
}
"""The same incidents, of which it is recorded what a broker tells ckpt."""


@pytest.mark.parametrize("name", remedies_followed.CASES)
def test_what_was_obeyed_is_what_is_said_today(name: str, tmp_path: Path) -> None:
    source, (incident, state, *options) = name.partition(" ")[0], remedies_followed.parts(name.partition(": ")[2])
    if source == "delta":
        today = today_of_a_table(incident, state, tmp_path)
    elif incident in AS_ASKED:
        today = today_of_a_topic(cases.Case(AS_ASKED[incident], state == "committed", not options), tmp_path)
    else:
        pytest.skip("what a broker tells of two topics is not recorded")
    obeyed = recording.read("source-remedies")[name]
    now = {"code": today.code, **today.takes}
    assert comparable(now, tmp_path) == comparable({key: obeyed[key] for key in now}, tmp_path)


def today_of_a_table(incident: str, state: str, folder: Path) -> Obeyed:
    case = delta_cases.Case("versions", incident, state == "committed")
    answer = delta_record.SUITE.recorded("4.2")[case.name]
    checkpoint = checkpoint_of(folder, answer["offsets"], committed=case.committed)
    return about_source(inspected(checkpoint, delta_record.from_json(answer["now"], case), "4.2"))


def today_of_a_topic(case: cases.Case, folder: Path) -> Obeyed:
    answer = record.SUITE.recorded("4.2")[case.name]
    now = record.from_json(answer["now"], fail_on_data_loss=case.fail_on_data_loss)
    return about_source(inspected(cases.written(folder, "t", committed=case.committed), now, "4.2"))


def comparable(takes: Answer, folder: Path) -> Answer:
    """Without what differs from one table, topic and place to the next."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", json.dumps(takes))
    found: Answer = json.loads(text.replace(str(folder), "/place/checkpoint").replace("topic-0", "t"))
    lines = found["advised"]
    ordered = [re.sub(r"'({.*?})'", lambda to: json.dumps(json.loads(to[1]), sort_keys=True), line) for line in lines]
    return {**found, "advised": ordered, "options": {**found["options"], "startingVersion": None}}
