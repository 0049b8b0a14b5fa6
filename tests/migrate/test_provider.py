"""``ckpt migrate provider``: what is said of every sample, and that Spark does with a provider what is said."""

import shlex
from typing import Any

import pytest

from ckpt.advice.spelling import list_words
from ckpt.migrate.switches import rewrite_call
from ckpt.model import ToProvider
from tests.changes.applying import look_at
from tests.conftest import Ckpt
from tests.migrate.recorded import RUNS, samples
from tests.support.places import SAMPLE_NAMES, SAMPLES

EXIT = {"already": 0, "nothing": 0, "possible": 1, "no-way": 3, "refused": 3}


def document(ckpt: Ckpt, sample: str, to: str) -> Any:
    return ckpt("migrate", "provider", f"sample_checkpoints/{sample}", "--to", to, "-o", "json").json()


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLE_NAMES)
@pytest.mark.parametrize("to", ["rocksdb", "hdfs"])
def test_every_sample_is_told_as_published_and_left_alone(sample: str, to: str, ckpt: Ckpt) -> None:
    run = look_at(sample, ckpt, "migrate provider", "--to", to)
    assert run.exit_code == EXIT[run.json()["outcome"]]


@pytest.mark.parametrize(
    ("sample", "to", "outcome", "carries"),
    [
        ("aggregation-hdfs-4.2", "rocksdb", "possible", ["as-it-is"]),
        ("limit-hdfs-4.2", "rocksdb", "possible", ["as-it-is"]),
        ("join-hdfs-3.5", "rocksdb", "possible", ["as-it-is"]),
        ("dedup-aggregation-hdfs-4.2", "rocksdb", "possible", ["as-it-is", "as-it-is"]),
        ("aggregation-rocksdb-4.2", "hdfs", "possible", ["as-it-is"]),
        ("join-rocksdb-4.0", "hdfs", "possible", ["as-it-is"]),
        ("join-v3-changelog-4.2", "hdfs", "no-way", ["none"]),
        ("tws-rocksdb-4.2", "hdfs", "no-way", ["none"]),
        ("aggregation-rocksdb-4.2", "rocksdb", "already", []),
        ("aggregation-hdfs-4.2", "hdfs", "already", []),
        ("stateless-4.2", "rocksdb", "nothing", []),
        ("damaged-no-commits", "rocksdb", "refused", []),
    ],
)
def test_what_can_be_moved(sample: str, to: str, outcome: str, carries: list[str], ckpt: Ckpt) -> None:
    told = document(ckpt, sample, to)
    assert told["outcome"] == outcome
    assert [one["carry"] for one in told["operators"]] == carries
    assert bool(told["steps"]) == (outcome == "possible")
    assert bool(told["remains"]) == (outcome == "no-way")


@pytest.mark.parametrize("sample", [name for name in SAMPLE_NAMES if "hdfs" in name])
def test_the_command_that_is_printed_plans_a_query_on_that_batch(sample: str, ckpt: Ckpt) -> None:
    told = document(ckpt, sample, "rocksdb")
    commands = [one["command"] for one in told["steps"] if one["command"] and one["command"].startswith("ckpt ")]
    if "-killed-" in sample:
        assert commands.pop().startswith("ckpt inspect "), "what its first start does"
    assert len(commands) == (told["outcome"] == "possible")
    for command in commands:
        plan = ckpt(*shlex.split(command)[1:], "--plan", "-o", "json")
        assert plan.exit_code == (0 if told["operators"][0]["carry"] == "as-it-is" else 1)
        assert plan.json()["batch"] == told["handoff"]["batch"]


def test_a_query_that_runs_on_rocksdb_only_is_not_told_to_begin_anew_without_it(ckpt: Ckpt) -> None:
    told = ckpt("migrate", "provider", "sample_checkpoints/tws-rocksdb-4.2", "--to", "hdfs").stdout
    assert "keeps its state only in RocksDB" in " ".join(told.split())
    assert "start over" not in " ".join(told.split())


@pytest.fixture(scope="module")
def found(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return samples(spark, tmp_path_factory.mktemp("provider"))


@pytest.mark.spark
@pytest.mark.parametrize(("name", "ending"), [("hdfs", "delta"), ("rocksdb", "zip")])
def test_spark_goes_on_with_the_recorded_provider_whatever_the_session_says(
    name: str, ending: str, found: dict[str, Any], ckpt: Ckpt
) -> None:
    told = found[name]
    first = told["before"]["batch"]
    assert document(ckpt, RUNS[name][0], RUNS[name][1])["recorded"] == told["before"]["recorded"]
    for number, after in enumerate(told["after"], 1):
        assert after["asked"] != told["before"]["recorded"]
        assert after["recorded"] == told["before"]["recorded"]
        assert after["batch"] == first + number
        assert f"{after['batch'] + 1}.{ending}" in after["newest"]
    assert told["rows"] == 10 * (told["after"][-1]["batch"] + 1)
    assert told["fresh"]["recorded"] == told["fresh"]["asked"]


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "aggregation-killed-hdfs-4.0"])
def test_a_planned_batch_is_asked_about_after_the_command(sample: str, ckpt: Ckpt) -> None:
    page = ckpt("migrate", "provider", SAMPLES / sample, "--to", "rocksdb").stdout
    assert "\nNext      Stop the query. Write its state for the other provider, into a new\n" in page
    assert "\n          checkpoint.\n          ckpt rewrite " in page
    assert ("-on-rocksdb --sink URI" in page) == ("-killed-" in sample)


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("s3a://bucket/checkpoints/orders", "s3a://bucket/checkpoints/orders-on-rocksdb"),
        ("/checkpoints/orders/", "/checkpoints/orders-on-rocksdb"),
        (".", "./../on-rocksdb"),
    ],
)
def test_the_new_checkpoint_is_next_to_the_old_one(path: str, new: str) -> None:
    """In the folder that ckpt happens to run in, the query would find none, and start over."""
    assert [*list_words(rewrite_call(path, ToProvider.ROCKSDB))] == [
        *("ckpt", "rewrite", path, new, "--provider", "rocksdb")
    ]
