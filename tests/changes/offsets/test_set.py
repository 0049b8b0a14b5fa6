"""``ckpt offsets set``: what holds of every plan on every sample, and what is refused, without Spark."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ckpt import UsageError, skip
from ckpt.advice import call
from ckpt.changes.offsets.plan import offsets_set
from tests.changes.applying import after_next, facts, undo
from tests.changes.offsets.running import moved
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLE_NAMES
from tests.support.remedies import remove

STEP = {"rate-micro-batch": 7, "kafka": 2, "file": 1, "delta": 1}


def shown(ckpt: Ckpt, checkpoint: object) -> Any:
    return ckpt("offsets", "show", checkpoint, "-o", "json").json()


def another(type_: str, offset: Any, by: int) -> Any:
    """The same source a little further, or back."""
    by *= STEP[type_]
    match type_:
        case "rate-micro-batch":
            return {**offset, "offset": max(offset["offset"] + by, 0)}
        case "file":
            return {"logOffset": offset["logOffset"] + by}
        case "delta":
            return {**offset, "reservoirVersion": offset["reservoirVersion"] + by}
    return {topic: {p: max(at + by, 0) for p, at in parts.items()} for topic, parts in offset.items()}


@pytest.mark.slow
@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_every_sample_is_planned_set_and_restored(sample: str, by: int, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    before, was = facts(checkpoint), shown(ckpt, checkpoint)
    source = (was["sources"] or [None])[0]
    known = source is not None and source["type"] in STEP
    to = another(source["type"], source["to"], by) if known else {}
    words = ("offsets", "set", checkpoint, "--source", 0, "--to", json.dumps(to))

    run = ckpt(*words, "-o", "json")
    if run.exit_code == 2:
        assert "--to is not" in run.refusal()
        return
    plan = run.json()
    assert facts(checkpoint) == before, "a plan changes nothing"
    assert contract.disagreements(plan, "offsets set") == []
    assert bool(plan["steps"]) != bool(plan["refused"])
    assert run.exit_code == (3 if plan["refused"] else 1)
    if plan["refused"]:
        assert ckpt(*words, "--apply", "--grace", 0, "--accept-skip", "--accept-replay").exit_code == 3
        assert facts(checkpoint) == before
        return
    assert plan["sources"] == [{"index": 0, "from": source["to"], "to": to}]

    done = ckpt(*after_next(ckpt(*words).stdout), "--grace", 0, "-o", "json").json()
    assert done["applied"]
    assert (done["after"], done["refused"]) == (plan["after"], None)
    assert shown(ckpt, checkpoint)["sources"][0]["to"] == to
    assert ckpt("offsets", "set", *words[2:], "-o", "json").json()["needed"] is False
    changed = {path for path, of in facts(checkpoint).items() if before.get(path) != of}
    assert {path for path in changed if not path.startswith("state/")} <= {
        f"offsets/{was['batch']}",
        f"offsets/.{was['batch']}.crc",
        "offsets",
    }
    assert undo(checkpoint, Path(done["backup"])).undone
    assert facts(checkpoint) == before


def test_every_kind_of_source_is_set_in_some_sample(ckpt: Ckpt) -> None:
    """So that the law above holds of more than refusals."""
    for sample, by in (("kafka-4.2", 1), ("file-source-4.2", -1), ("delta-4.2", 1), ("aggregation-hdfs-4.2", -1)):
        (source,) = shown(ckpt, f"sample_checkpoints/{sample}")["sources"]
        to = json.dumps(another(source["type"], source["to"], by))
        plan = ckpt("offsets", "set", f"sample_checkpoints/{sample}", "--to", to, "-o", "json").json()
        assert plan["steps"], plan["refused"]


# What is skipped and what is read again.


def kafka(ckpt: Ckpt, to: Any, *words: object) -> Any:
    return ckpt("offsets", "set", "sample_checkpoints/kafka-4.2", "--to", json.dumps(to), "-o", "json", *words).json()


def test_ahead_and_back_are_told_apart_by_partition(ckpt: Ckpt) -> None:
    plan = kafka(ckpt, {"orders": {"0": 60, "1": 40}})
    (skipped,), (again,) = plan["skipped"][0]["sources"], plan["replay"][0]["sources"]
    assert (skipped["from"], skipped["to"], skipped["amount"]) == ({"orders": {"0": 51}}, {"orders": {"0": 60}}, 9)
    assert (again["from"], again["to"], again["amount"]) == ({"orders": {"1": 40}}, {"orders": {"1": 49}}, 9)
    assert plan["skipped"][0]["batch"] == plan["replay"][0]["batch"] == 6
    assert plan["replay"][0]["finished"]


@pytest.mark.parametrize(
    ("to", "missing"),
    [
        ({"orders": {"0": 60, "1": 49}}, ["--accept-skip"]),
        ({"orders": {"0": 40, "1": 49}}, ["--accept-replay"]),
        ({"orders": {"0": 60, "1": 40}}, ["--accept-skip", "--accept-replay"]),
        ({"orders": {"0": 51, "1": None}}, ["--accept-replay"]),
        ({"orders": {"0": 51, "1": 49, "2": 5}}, ["--accept-skip"]),
        ({"orders": {"0": 51, "1": 49, "2": 0}}, []),
    ],
)
def test_what_it_costs_has_to_be_accepted(to: Any, missing: list[str], ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    before = facts(checkpoint)
    words = ("offsets", "set", checkpoint, "--to", json.dumps(to), "--apply", "--grace", 0)
    for given in range(len(missing)):
        run = ckpt(*words, *missing[:given])
        assert run.exit_code == 3
        assert f"add {' and '.join(missing[given:])}" in " ".join(run.stdout.split())
        assert facts(checkpoint) == before
    assert ckpt(*words, *missing).exit_code == 0


def test_the_first_batch_again_is_the_range_that_was_said(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    remove(checkpoint / "commits" / "9")
    to = json.dumps({"offset": 95, "timestamp": 1})
    plan = ckpt("offsets", "set", checkpoint, "--to", to, "-o", "json").json()
    (again,) = plan["replay"]
    assert (again["batch"], again["finished"], again["sources"][0]["from"]["offset"]) == (9, False, 90)
    assert again["sources"][0]["to"]["offset"] == 95
    assert {step["path"].rpartition("/")[2].partition(".")[0] for step in plan["steps"] if "state" in step["path"]} >= {
        "10"
    }
    assert all(step["action"] == "remove" for step in plan["steps"] if "state/" in step["path"])
    assert plan["warnings"][0].startswith("Stop the driver first"), "which keeps state of the batch in memory"


# What is refused, with its reason.


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ({"orders": {"0": 51}}, "orders/1 is left out, and Spark silently reads a partition without an offset again"),
        ({"oders": {"0": 51, "1": 49}}, "orders/0, orders/1 is left out"),
        ({"orders": {"0": None, "1": None}}, "no partition is left"),
        ({"orders": {"0": 51, "1": 49, "7": None}}, "orders/7 cannot be left out"),
    ],
)
def test_partitions_of_kafka_must_all_be_named(to: Any, said: str, ckpt: Ckpt) -> None:
    assert said in kafka(ckpt, to)["refused"]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ('{"orders":{"0":-1,"1":2}}', "that means the end (latest) only in reader options"),
        ('{"orders":{"0":-2,"1":2}}', "that means the beginning (earliest) only in reader options"),
        ('{"orders":{"0":-3,"1":2}}', "which no partition has"),
        ('{"orders":{"0":1.5,"1":2}}', "which is not an integer"),
        ('{"orders":{"0":true,"1":2}}', "which is not an integer"),
        ('{"orders":{"0":"7","1":2}}', "which is not an integer"),
        ('{"orders":{"0":7,"0":8}}', "names 0 twice"),
        ('{"orders":{"00":7}}', "which is not a number"),
        ('{"orders":{"0":9223372036854775808}}', "which no partition has"),
        ('{"orders":{"0":NaN}}', "NaN, which is not JSON"),
        ('{"orders":{"0":7', "is not JSON at character"),
        ('{"orders":{"0":7}} x', "is not JSON at character"),
        ('{"orders":{}}', "has no partitions for topic"),
        ('{"logOffset":7}', "has no partitions for topic"),
        ("7", "is not a set of Kafka offsets"),
        ("[" * 100_000, "is not JSON"),
        ("@/nowhere", "cannot be read"),
    ],
)
def test_offsets_are_read_strictly(to: str, said: str, ckpt: Ckpt) -> None:
    run = ckpt("offsets", "set", "sample_checkpoints/kafka-4.2", "--to", to)
    assert run.exit_code == 2
    assert said in run.refusal()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "with --to or --shift, not both"),
        (("--to", "{}", "--shift", "orders/0=+1"), "with --to or --shift, not both"),
        (("--shift", "orders/0=5"), "must be TOPIC/PARTITION=+N or TOPIC/PARTITION=-N"),
        (("--shift", "orders/9=+5"), "the source has no such partition; it has orders/0, orders/1"),
        (("--shift", "orders/0=+5", "--shift", "orders/0=+5"), "names orders/0 twice"),
        (("--shift", "orders/0=-52"), "leads to -1: the partition is at 51"),
        (("--source", 1, "--shift", "orders/0=-1"), "there is no source 1; the query has 0"),
        (("--undo", "x", "--expect-batch", 5), "--undo restores everything"),
        (("--undo", "x", "--to", "{}"), "--undo restores everything"),
    ],
)
def test_options_that_make_no_sense(words: tuple[object, ...], said: str, ckpt: Ckpt) -> None:
    run = ckpt("offsets", "set", "sample_checkpoints/kafka-4.2", *words)
    assert run.exit_code == 2
    assert said in run.refusal()


def test_with_several_sources_one_must_be_named(ckpt: Ckpt) -> None:
    run = ckpt("offsets", "set", "sample_checkpoints/two-sources-3.5", "--to", '{"offset":1,"timestamp":1}')
    assert "the query has 2 sources: name one with --source" in run.refusal()
    assert (
        "not Kafka: give its offset with --to"
        in ckpt("offsets", "set", "sample_checkpoints/stateless-4.2", "--shift", "a/0=+1").refusal()
    )


@pytest.mark.parametrize(
    ("sample", "gone", "to", "said"),
    [
        ("stateless-killed-3.5", (), {"offset": 39, "timestamp": 1}, "begins at row 40"),
        (
            "file-source-4.2",
            (),
            {"logOffset": 9},
            'a start fails if a file source ends before that ("assertion failed")',
        ),
        ("file-source-4.2", (), {"logOffset": 12}, "the source's log ends at entry 11"),
        ("kafka-4.2", ("commits/5",), {"orders": {"0": 49, "1": 49}}, "orders/0 would end before its start"),
        ("kafka-4.2", ("commits/5",), {"orders": {"0": 51, "1": None}}, "its partitions would change"),
        (
            "kafka-4.2",
            ("commits/5", "offsets/4"),
            {"orders": {"0": 60, "1": 60}},
            "the log does not say where batch 5 begins",
        ),
        ("kafka-4.2", ("offsets/5",), {"orders": {"0": 60, "1": 60}}, "commits/ is ahead of offsets/"),
        ("continuous-4.2", (), {}, "continuous processing"),
    ],
)
def test_what_spark_would_take_silently_is_refused(
    sample: str, gone: tuple[str, ...], to: Any, said: str, copy_of: CopyOf
) -> None:
    checkpoint = copy_of(sample)
    for path in gone:
        remove(checkpoint / path)
    plan, _ = offsets_set(str(checkpoint), to=json.dumps(to))
    assert said in str(plan.refused)
    assert not plan.steps


def test_inside_the_first_snapshot_of_a_delta_table_nothing_is_set(copy_of: CopyOf) -> None:
    """Spark 4.2.0 with Delta 4.4.0 lost the rest of the snapshot without an error."""
    checkpoint = copy_of("delta-4.2")
    for log in ("offsets", "commits"):
        remove(checkpoint / log / "5")
    offset = json.loads((checkpoint / "offsets" / "4").read_text().splitlines()[2])
    to = {**offset, "reservoirVersion": offset["reservoirVersion"] + 3, "index": -1, "isStartingVersion": False}
    plan, _ = offsets_set(str(checkpoint), to=json.dumps(to))
    assert "the rest of that table would be silently lost" in str(plan.refused)


ICEBERG = {"version": 1, "snapshot_id": 7, "position": 1, "scan_all_files": False}


@pytest.fixture
def of_iceberg(copy_of: CopyOf) -> Path:
    """A checkpoint whose source is an Iceberg table."""
    checkpoint = copy_of("stateless-4.2")
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        lines = file.read_text().splitlines()
        remove(file)
        file.write_text("\n".join([*lines[:2], json.dumps(ICEBERG)]))
    return checkpoint


@pytest.mark.parametrize(
    ("to", "skips", "repeats"),
    [({"snapshot_id": 9, "position": 0}, True, True), ({"position": 4}, True, False), ({"position": 0}, False, True)],
)
def test_of_two_snapshots_of_iceberg_none_is_known_to_be_later(
    to: dict[str, int], skips: bool, repeats: bool, of_iceberg: Path
) -> None:
    plan, _ = offsets_set(str(of_iceberg), to=json.dumps({**ICEBERG, **to}))
    assert plan.refused is None
    assert (plan.skips is not None, plan.repeats is not None) == (skips, repeats)


def test_the_end_of_a_batch_of_iceberg_that_is_not_committed_stays(of_iceberg: Path) -> None:
    newest = max(int(file.name) for file in (of_iceberg / "commits").glob("[0-9]*"))
    remove(of_iceberg / "commits" / str(newest))
    plan, _ = offsets_set(str(of_iceberg), to=json.dumps({**ICEBERG, "position": 4}))
    assert "let it run first, or skip it" in str(plan.refused)
    assert plan.instead is not None
    (start,) = plan.instead.steps
    (other,) = start.alternatives
    assert other.call == call("skip", str(of_iceberg))
    assert skip(str(of_iceberg))[0].refused is None


@pytest.mark.parametrize(
    "to",
    [{"position": -1}, {"snapshot_id": -1}, {"scan_all_files": True}, {"more": 1}, {"version": 2}, {"position": 2**31}],
)
def test_what_is_no_place_in_an_iceberg_table_is_refused(to: dict[str, Any], of_iceberg: Path) -> None:
    with pytest.raises(UsageError, match="is not an offset of an Iceberg source"):
        offsets_set(str(of_iceberg), to=json.dumps({**ICEBERG, **to}))


def test_a_reader_that_is_used_twice_has_one_end(copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    for number in count():
        file = checkpoint / "offsets" / str(number)
        if not file.exists():
            break
        lines = file.read_text().splitlines()
        remove(file)
        file.write_text("\n".join([*lines, lines[2]]))
    plan, _ = offsets_set(str(checkpoint), source=0, to='{"orders":{"0":60,"1":60}}')
    assert "sources 0 and 1 have the same offsets" in str(plan.refused)


def test_every_other_byte_of_the_file_stays(copy_of: CopyOf) -> None:
    for sample in ("two-sources-3.5", "two-sources-offsets-v2-4.2", "named-sources-4.2"):
        checkpoint = copy_of(sample, to=sample)
        file = checkpoint / "offsets" / "3"
        before = file.read_text().splitlines()
        moved(checkpoint, source=1, to='{"offset":7,"timestamp":8}')
        after = file.read_text().splitlines()
        differing = [new for old, new in zip(before, after, strict=True) if old != new]
        assert len(differing) == 1
        assert differing[0].endswith('{"offset":7,"timestamp":8}')


def test_offsets_can_be_read_from_a_file(ckpt: Ckpt, tmp_path: Path) -> None:
    file = tmp_path / "to.json"
    file.write_text('{"orders": {"0": 60, "1": 49}}\n')
    plan = ckpt("offsets", "set", "sample_checkpoints/kafka-4.2", "--to", f"@{file}", "-o", "json").json()
    assert plan["sources"][0]["to"] == {"orders": {"0": 60, "1": 49}}


def test_a_plan_that_was_seen_is_not_applied_to_another_batch(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-killed-3.5")
    words = after_next(ckpt("offsets", "set", checkpoint, "--to", '{"offset":60,"timestamp":1}').stdout)
    assert "--expect-batch 4" in " ".join(words)
    remove(checkpoint / "offsets" / "4")
    run = ckpt(*words, "--grace", 0)
    assert run.exit_code == 3
    assert "the latest batch is 3, not 4" in run.stdout


def test_what_inspect_will_say_of_it_is_said_before(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    plan = moved(checkpoint, shift=["orders/0=-20"])
    assert "will report this change as CKPT401 offsets-went-backwards" in str(plan.warnings[-1])
    found = {one["code"] for one in ckpt("inspect", checkpoint, "-o", "json").json()["findings"]}
    assert "CKPT401" in found
    assert not any("CKPT" in str(text) for text in moved(copy_of("kafka-4.2", to="b"), shift=["orders/0=+20"]).warnings)
