"""``ckpt migrate transform-with-state``: what is generated from every stateful sample, run by real Spark.

All are recorded (`python -m tests.support.spark.recording transform`), and some are run.
"""

from typing import Any

import pytest

from ckpt.migrate.transform import Api
from tests.migrate import transforming
from tests.migrate.transforming import LIVE, RUNS, code_of, run_name
from tests.support.spark import recording
from tests.support.spark.live import EVERY_CASE

_BIG = 2**53 + 1
_ASKED = RUNS if EVERY_CASE else LIVE


@pytest.fixture(scope="module")
def found(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return transforming.found(spark, tmp_path_factory.mktemp("transforming"), _ASKED)


@pytest.mark.spark
@pytest.mark.parametrize("run", [run_name(*one) for one in _ASKED])
def test_batch_0_loads_all_state_of_a_sample_and_registers_its_timers(run: str, found: dict[str, Any]) -> None:
    one = found["samples"].get(run)
    if one is None:
        pytest.skip("this Spark has no transformWithState of rows")
    judge(one)


@pytest.mark.parametrize(("name", "api"), RUNS)
def test_batch_0_loaded_all_state_of_a_sample_and_registered_its_timers(name: str, api: Api) -> None:
    one = recording.read("transform")[run_name(name, api)]
    assert one["code"] == recording.digest([code_of(name, api)]), "other code: record it"
    judge(one)


def judge(one: dict[str, Any]) -> None:
    if "refused" in one:
        assert "Spark can read since" in one["refused"]
        pytest.skip(one["refused"])
    assert one["error"] == ""
    assert one["keys"] > 0
    assert one["loaded"] == one["wanted"]
    assert any(one["loaded"].values())


def test_not_all_samples_are_skipped() -> None:
    refused = [run for run, one in recording.read("transform").items() if "refused" in one]
    assert refused == ["join-v4-changelog-4.3-pandas"]


@pytest.mark.spark
def test_what_is_not_filled_in_is_named(found: dict[str, Any]) -> None:
    assert found["guards"]["empty"] == "fill in CHECKPOINT in start.py"
    assert found["guards"]["ttl"] == "fill in TTL_MS of last in processor.py"


@pytest.mark.spark
def test_a_checkpoint_is_the_same_wherever_it_is_started(found: dict[str, Any]) -> None:
    assert found["guards"]["relative"].startswith("CHECKPOINT new/checkpoint is relative")


@pytest.mark.spark
def test_the_old_checkpoint_is_not_written_to(found: dict[str, Any]) -> None:
    assert found["guards"]["old"].endswith("aggregation-hdfs-4.2 is the old query's checkpoint: name a new one")


@pytest.mark.spark
def test_a_key_of_another_type_does_not_start(found: dict[str, Any]) -> None:
    said = found["guards"]["type"]
    assert said == "key column key is string in prepare() and bigint in the state: cast it"


@pytest.mark.spark
def test_a_key_or_event_time_that_is_missing_does_not_start(found: dict[str, Any]) -> None:
    assert found["guards"]["column"] == "prepare() gives no column key: the key has bigint"
    assert found["guards"]["event-time"] == "prepare() gives no column timestamp, named by EVENT_TIME"


@pytest.mark.spark
def test_two_rows_of_a_key_do_not_start(found: dict[str, Any]) -> None:
    assert found["guards"]["twice"] == "the initial state has 2 rows for {'key': 3}"


@pytest.mark.spark
def test_null_keys_that_pandas_mixes_up_do_not_start(found: dict[str, Any]) -> None:
    assert "the state has NULL in key column key" in found["guards"]["null"]
    assert "row API" in found["guards"]["null"]


@pytest.mark.spark
def test_a_row_with_such_a_key_fails_the_query(found: dict[str, Any]) -> None:
    assert "key column key is NULL, which transformWithStateInPandas mixes up" in found["guards"]["null-row"]


@pytest.mark.spark
def test_numbers_that_no_float_holds_arrive_whole_beside_nulls(found: dict[str, Any]) -> None:
    expected = [[1, _BIG, None], [2, None, _BIG], [_BIG - 1, _BIG, -_BIG], [_BIG, None, None]]
    for rows in found["guards"]["exact"].values():
        assert rows == expected


@pytest.mark.spark
def test_after_a_crash_in_batch_0_the_state_is_loaded_once_and_then_never_again(found: dict[str, Any]) -> None:
    said = found["guards"]["crash"]
    assert "not today" in said["error"]
    assert said["commits"] == 0
    assert said["again"] == ""
    assert said["loaded"] == said["wanted"]
    assert said["later"] == ""  # the initial state was gone by then
    assert said["committed"] > 1
    assert said["kept"] == said["wanted"]


@pytest.mark.spark
def test_rows_of_a_key_make_its_timeout_forgotten_as_in_the_old_query(found: dict[str, Any]) -> None:
    said = found["guards"]["timeout"]
    assert said["error"] == ""
    assert {10, 11, 12, 13} < set(said["had"])
    assert said["have"] == [key for key in said["had"] if key > 13]


@pytest.mark.spark
def test_a_group_state_of_nulls_only_is_none_and_keeps_its_timeout(found: dict[str, Any]) -> None:
    said = found["guards"]["none"]
    assert said["error"] == ""
    assert said["states"] == [key for key in said["had"] if key != 3]
    assert said["timers"] == said["had"]


@pytest.mark.spark
def test_the_durations_of_start_reach_the_processor(found: dict[str, Any]) -> None:
    assert "gap 300000, delay 3600000" in found["guards"]["durations"]


@pytest.mark.spark
def test_a_start_leaves_the_settings_of_the_session_as_they_were(found: dict[str, Any]) -> None:
    said = found["guards"]["settings"]
    assert said["error"] == ""
    assert said["after"] == said["before"]
    assert said["before"][: len(said["during"])] != said["during"]
