"""`ckpt inspect --sink` before a start, and what is in the sink after it: with real queries, every row is counted."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ckpt.copying import copy_checkpoint
from ckpt.ways.rewind import Replayed, rewind
from ckpt.ways.skip import skip
from tests.conftest import Ckpt
from tests.remedies import NOW, remove
from tests.sinks.asked import (
    CASES,
    EVERY_ROW,
    Asked,
    named_again,
    seen,
    sink_goes_back,
)
from tests.sinks.obeying import BATCHES
from tests.sinks.stateful import NEWEST, NUMBERS, Numbers

pytestmark = [pytest.mark.spark, pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed")]

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


@pytest.fixture(scope="module", params=["delta", "parquet"])
def query(request: Any, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "1")
    one = Asked(own, tmp_path_factory.mktemp("asked"), request.param)
    one.run_old()
    return one


@pytest.fixture
def ask(ckpt: Ckpt) -> Callable[[Path], dict[str, Any]]:
    def asked(place: Path) -> dict[str, Any]:
        run = ckpt(
            "inspect",
            place / "checkpoint",
            "--spark",
            "4.2",
            "--progress",
            "sync",
            "--sink",
            place / "out",
            "-o",
            "json",
        )
        return dict(run.json())

    return asked


def codes(said: dict[str, Any]) -> set[str]:
    return {one["code"] for one in said["findings"]}


@pytest.mark.parametrize(("query", "name"), CASES, indirect=["query"])
def test_what_is_said_before_the_start_is_what_the_start_does(
    name: str, query: Asked, ask: Callable[[Path], dict[str, Any]]
) -> None:
    found = seen(query, name, ask)
    outcome, code = (TO_DELTA if query.sink == "delta" else SAID)[name]
    assert found["said"]["sink"]["outcome"] == outcome
    assert code is None or code in codes(found["said"])
    assert found["error"] == ""
    assert found["times"] == found["promised"]
    assert {row for row in range(EVERY_ROW) if not found["times"][row]} >= set(LOST.get(name, ()))


@pytest.mark.parametrize("query", ["delta"], indirect=True)
def test_rows_that_a_restore_took_back_are_written_by_a_copy_with_a_new_id(
    query: Asked, ask: Callable[[Path], dict[str, Any]]
) -> None:
    place = query.copied("restored-and-copied")
    query.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {BATCHES - 3}", place)
    said = ask(place)
    assert said["sink"]["lacks"] == [BATCHES - 2, BATCHES - 1]
    (remedy,) = [one["remedy"] for one in said["findings"] if one["code"] == "CKPT418"]
    assert f"--batch {BATCHES - 3} --new-id`" in remedy
    copied = copy_checkpoint(str(place / "checkpoint"), str(place / "new"), batch=BATCHES - 3, new_id=True)
    shutil.rmtree(place / "checkpoint")
    Path(copied.to).rename(place / "checkpoint")
    assert query.start(place) == ""
    assert query.times(place) == Counter(range(EVERY_ROW))


@pytest.mark.parametrize("query", ["delta"], indirect=True)
def test_a_lost_id_is_that_of_the_only_query_in_the_table(query: Asked, ask: Callable[[Path], dict[str, Any]]) -> None:
    found = named_again(query, ask)
    (remedy,) = [one["remedy"] for one in found["said"]["findings"] if one["code"] == "CKPT103"]
    assert f"--query-id {found['said']['sink']['query_id']}`" in remedy
    assert found["then"]["sink"]["outcome"] == "passes-over"
    assert found["times"] == Counter(range(EVERY_ROW))


def test_a_sink_that_lacks_batches_gets_them_by_a_rewind(query: Asked, ask: Callable[[Path], dict[str, Any]]) -> None:
    place = query.copied("made-good")
    sink_goes_back(2)(query, place)
    said = ask(place)
    assert said["sink"]["lacks"] == [BATCHES - 2, BATCHES - 1]
    assert ("CKPT412" if query.sink == "delta" else "CKPT413") in codes(said)
    batch = said["sink"]["last_batch"]
    (remedy,) = [one["remedy"] for one in said["findings"] if one["code"] in ("CKPT412", "CKPT413")]
    assert f"--to-batch {batch} --replay new`" in remedy
    rewind(str(place / "checkpoint"), to_batch=batch, replay=Replayed.NEW, **NOW)
    assert ask(place)["sink"]["outcome"] == "continues"
    assert query.start(place) == ""
    assert query.times(place) == Counter(range(EVERY_ROW))


@pytest.mark.parametrize("query", ["parquet"], indirect=True)
def test_a_file_sink_that_lacks_batches_can_no_longer_be_read(
    query: Asked, ask: Callable[[Path], dict[str, Any]]
) -> None:
    place = query.copied("holes")
    sink_goes_back(2)(query, place)
    assert "CKPT413" in codes(ask(place))
    assert query.start(place) == ""
    with pytest.raises(Exception, match=f"_spark_metadata/{BATCHES - 2} doesn't exist"):
        query.times(place)
    assert "CKPT405" in codes(ask(place))


@pytest.mark.parametrize("query", ["parquet"], indirect=True)
@pytest.mark.parametrize("obeyed", [True, False])
def test_a_batch_that_is_skipped_leaves_a_hole_in_a_file_sinks_log_unless_it_is_filled(
    obeyed: bool, query: Asked, ask: Callable[[Path], dict[str, Any]]
) -> None:
    place, newest = query.copied(f"skipped-{obeyed}"), BATCHES - 1
    remove(place / "checkpoint" / "commits" / str(newest))
    remove(place / "out" / "_spark_metadata" / str(newest))
    plan, receipt = skip(str(place / "checkpoint"), **NOW)
    assert receipt.applied, receipt.problem
    assert any(f"put a file {newest} that holds v1" in text for text in plan.warnings)
    if obeyed:
        (place / "out" / "_spark_metadata" / str(newest)).write_text("v1")
    assert ("CKPT413" in codes(ask(place))) is not obeyed
    assert query.start(place) == ""
    if obeyed:
        assert query.times(place) == Counter({*range(EVERY_ROW)} - {*range(newest * 10, newest * 10 + 10)})
    else:
        with pytest.raises(Exception, match=f"_spark_metadata/{newest} doesn't exist"):
            query.times(place)


@pytest.mark.parametrize("query", ["parquet"], indirect=True)
def test_what_is_taken_out_of_a_file_sinks_log_is_written_again(
    query: Asked, ask: Callable[[Path], dict[str, Any]]
) -> None:
    place = query.copied("forgotten-files")
    rewind(str(place / "checkpoint"), to_batch=BATCHES - 4, replay=Replayed.NEW, **NOW)
    (remedy,) = [one["remedy"] for one in ask(place)["findings"] if one["code"] == "CKPT411"]
    assert f"move _spark_metadata/{BATCHES - 3} and everything above it" in remedy
    for batch in range(BATCHES - 3, BATCHES):
        remove(place / "out" / "_spark_metadata" / str(batch))
    assert ask(place)["sink"]["outcome"] == "continues"
    assert query.start(place) == ""
    assert query.times(place) == Counter(range(EVERY_ROW))


_STORE = "spark.sql.streaming.stateStore"
FORMAT_2 = {
    f"{_STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STORE}.checkpointFormatVersion": "2",
}


@pytest.mark.parametrize("sink", ["delta", "parquet"])
@pytest.mark.parametrize("conf", [{}, FORMAT_2], ids=["format-1", "format-2"])
def test_a_crash_between_sink_and_commit_of_a_query_with_state(
    sink: str, conf: dict[str, str], spark: Any, tmp_path: Path, ask: Callable[[Path], dict[str, Any]]
) -> None:
    query, old = Numbers(spark, tmp_path, sink, conf), tmp_path / "old"
    for batch in range(NEWEST + 1):
        query.add(batch)
    assert query.start(old) == ""
    remove(old / "checkpoint" / "commits" / str(NEWEST))
    query.add(NEWEST + 1)

    said = ask(old)

    assert said["sink"]["outcome"] == "passes-over"
    assert ("CKPT417" if conf else "CKPT416") in codes(said)
    if conf:
        assert "CheckpointInfo length: 0" in query.start(query.copy(old, "at-once"))
        assert query.start(old, noop=True) == ""
        assert ask(old)["sink"]["outcome"] == "continues"
    assert query.start(old) == ""
    assert query.times(old) == dict.fromkeys(range(NUMBERS), 1)
