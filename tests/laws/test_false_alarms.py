"""Statements that were false alarms, each on the kind of checkpoint on which it was seen."""

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases.model import delete, delete_logs, replace, truncate, write
from tests.support.files import edit_metadata
from tests.support.places import SAMPLES
from tests.support.remedies import remove
from tests.support.spark.mutations import Mutation


def codes(ckpt: Ckpt, checkpoint: object, *words: object) -> set[str]:
    return {found["code"] for found in ckpt("inspect", checkpoint, "-o", "json", *words).json()["findings"]}


ONLY_0_AND_1 = delete_logs(range(2, 6), range(1, 6))


def test_batch_1_begins_at_batch_0(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Offsets 0 and 1, commit 0: the predecessor is batch 0, not none."""
    checkpoint = copy_of("stateless-3.5", *ONLY_0_AND_1)
    assert "CKPT213" not in codes(ckpt, checkpoint)
    assert ckpt("inspect", checkpoint).exit_code == 0
    assert ckpt("repair-async", checkpoint).exit_code == 0


@pytest.mark.parametrize(
    "damage",
    [
        ONLY_0_AND_1,
        [write("offsets/5", ""), *delete("offsets/3")],
        [write("offsets/5", ""), write("offsets/3", "")],
        [write("offsets/5", "")],
        delete_logs([4], [5]),
    ],
    ids=["batch-1", "latest-unreadable-gap-below", "two-unreadable", "latest-unreadable", "gap"],
)
def test_no_page_advises_the_command_that_printed_it(ckpt: Ckpt, copy_of: CopyOf, damage: list[Mutation]) -> None:
    checkpoint = copy_of("stateless-3.5", *damage)
    plan = ckpt("repair-async", checkpoint, "-o", "json").json()
    last = ckpt("repair-async", checkpoint).stdout.split("\nNext ")[-1]
    assert bool(plan["steps"]) == ("ckpt repair-async" in last), last


def test_a_repaired_gap_further_back_does_not_make_the_next_one_a_loss(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """The filler of the first gap is not among the newest files, and still shows to be one."""
    checkpoint = copy_of("stateless-3.5")
    log = (checkpoint / "offsets" / "5").read_text()
    for batch in range(6, 30):  # 8 is a filler: the offsets of 7 and no commit; 28 is missing
        rows = 60 + 10 * (batch - 5 - (batch >= 8))
        if batch != 28:
            (checkpoint / "offsets" / str(batch)).write_text(log.replace('"offset":60', f'"offset":{rows}'))
        if batch not in (8, 28):
            (checkpoint / "commits" / str(batch)).write_bytes((checkpoint / "commits" / "5").read_bytes())
    told = ckpt("inspect", checkpoint, "-o", "json").json()
    assert told["batches"]["pattern"] == "async-progress"
    assert {found["code"] for found in told["findings"]} >= {"CKPT201"}
    assert "CKPT202" not in codes(ckpt, checkpoint)
    assert codes(ckpt, checkpoint) == codes(ckpt, checkpoint, "--batches", 0)


def test_a_kafka_source_that_had_no_topic_yet(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2", replace("offsets/4", '{"orders":{"0":50,"1":48}}', "{}"))
    assert codes(ckpt, checkpoint) == codes(ckpt, "sample_checkpoints/kafka-4.2")
    remove(checkpoint / "commits" / "5")
    told = ckpt("inspect", checkpoint, "-o", "json").json()
    assert {restart["outcome"] for restart in told["restart"]} == {"resumes"}
    assert "CKPT106" not in codes(ckpt, checkpoint)


BEGAN_LATER = write("sources/0/0", b'\0v1\n{"orders":{"0":4,"1":0}}')


def test_batch_0_of_kafka_is_read_from_where_the_source_began(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2", *delete_logs(range(1, 6), range(6)), BEGAN_LATER)
    for restart in ckpt("inspect", checkpoint, "-o", "json").json()["restart"]:
        (source,) = restart["sources"]
        assert source["from"] == {"orders": {"0": 4, "1": 0}}
    refused = ckpt("handoff", checkpoint, "-o", "json").json()["refused"]
    assert 'started reading source 0 at {"orders": {"0": 4, "1": 0}}' in refused
    assert "orders/0=4 orders/1=0 to orders/0=10 orders/1=9" in " ".join(ckpt("inspect", checkpoint).stdout.split())


def test_batch_0_of_kafka_without_its_beginning_is_read_from_where_nobody_knows(ckpt: Ckpt, copy_of: CopyOf) -> None:
    damages = {
        "empty": write("sources/0/0", ""),
        "cut": write("sources/0/0", "\0v1\n{"),
        "gone": delete("sources/0/0")[0],
    }
    for name, damage in damages.items():
        checkpoint = copy_of("kafka-4.2", *delete_logs(range(1, 6), range(6)), damage, to=name)
        for restart in ckpt("inspect", checkpoint, "-o", "json").json()["restart"]:
            assert [source["from"] for source in restart["sources"]] == [None]


def test_a_recorded_join_format_shows_which_spark_wrote_it(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Every query records the setting, stateless ones too, and Spark 4.0 accepts at most 2."""
    for recorded, writer in (("3", "4.1"), ("4", "4.2")):
        setting = '"spark.sql.streaming.join.stateFormatVersion":'
        damage = replace("offsets/[0-9]*", f'{setting}"2"', f'{setting}"{recorded}"')
        checkpoint = copy_of("stateless-3.5", damage, to=recorded)
        told = ckpt("inspect", checkpoint, "-o", "json").json()
        assert told["checkpoint"]["written_by"]["at_least"] == writer
        assert ckpt("inspect", checkpoint).exit_code == 0


def test_checksum_files_of_state_show_spark_4_1(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-3.5", write("state/0/0/6.delta.crc", "{}"))
    assert ckpt("inspect", checkpoint, "-o", "json").json()["checkpoint"]["written_by"]["at_least"] == "4.1"


def test_snapshots_of_different_versions_are_a_range(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", to="different")
    newest = sorted(int(path.stem) for path in (checkpoint / "state/0/0").glob("[0-9]*.snapshot"))
    for version in newest:
        (checkpoint / f"state/0/0/{version}.snapshot").rename(checkpoint / f"state/0/0/{version - 1}.snapshot")
    page = " ".join(ckpt("inspect", checkpoint, "-v").stdout.split())
    assert f"newest snapshots version {newest[-1] - 1} to {newest[-1]}, by partition" in page
    for version in newest:
        (checkpoint / f"state/0/0/{version - 1}.snapshot").unlink()
    page = " ".join(ckpt("inspect", checkpoint, "-v").stdout.split())
    assert f"newest snapshots up to version {newest[-1]}, none yet in some partitions" in page


@pytest.mark.parametrize("sample", ["stateless-3.5", "file-source-3.5"])
def test_a_file_cut_in_the_json_of_a_source_is_named_in_sparks_words(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    latest = max(int(path.name) for path in (SAMPLES / sample / "offsets").glob("[0-9]*"))
    checkpoint = copy_of(sample, truncate(f"offsets/{latest}", -4), to=sample)
    told = ckpt("inspect", checkpoint, "-o", "json").json()
    assert {restart["error"] for restart in told["restart"]} == {"Unexpected end-of-input"}


def test_a_page_with_many_operators_is_read_at_a_glance(ckpt: Ckpt, copy_of: CopyOf) -> None:
    more = [{"op": "copy", "path": "state/0", "to": f"state/{operator}"} for operator in range(1, 7)]
    page = ckpt("inspect", copy_of("join-rocksdb-4.0", *more), "-v").stdout
    assert len(page.splitlines()) < 70
    for operator in range(7):
        assert f"  operator {operator}   stream-stream join (symmetricHashJoin): 4 stores, 2 partitions,\n" in page


def test_sources_that_a_narrow_page_has_no_room_for_are_said_to_be_missing(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines, *lines[2:] * 5]))
    page = ckpt("inspect", checkpoint, "-v").stdout
    assert "  not shown: source 3, source 4, source 5; see -o json" in page


def test_one_is_not_many(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5", replace("offsets/5", '"offset":60', '"offset":51'))
    assert "+1 row\n" in ckpt("inspect", checkpoint, "-v").stdout
    five = '{"orders":{"0":51,"1":49,"2":1,"3":1,"4":1}}'
    checkpoint = copy_of("kafka-4.2", replace("offsets/5", '{"orders":{"0":51,"1":49}}', five), to="kafka")
    assert "and 1 more partition\n" in ckpt("inspect", checkpoint).stdout


def test_how_much_is_read_again_is_said_for_each_source(ckpt: Ckpt, copy_of: CopyOf) -> None:
    page = ckpt("inspect", copy_of("two-sources-3.5", *delete("commits/3"))).stdout
    assert "reads again from row 30 to row 40: 10 rows" in page
    assert "reads again from row 60 to row 80: 20 rows" in page


def test_a_checkpoint_inside_the_checkpoint_is_mentioned(ckpt: Ckpt, copy_of: CopyOf) -> None:
    inner = [{"op": "copy", "path": part, "to": f"backup/old/{part}"} for part in ("offsets", "commits", "metadata")]
    found = ckpt("inspect", copy_of("stateless-3.5", *inner), "-o", "json").json()["findings"]
    assert [(one["path"], one["severity"]) for one in found if one["code"] == "CKPT508"] == [("backup/old", "note")]


def test_snapshots_of_spark_4_0_in_format_2_are_no_damage_to_it(ckpt: Ckpt, copy_of: CopyOf) -> None:
    as_4_0 = {"op": "zip_entry", "path": "state/0/*/*.zip", "entry": "metadata", "old": "v1\n", "new": "v2\n"}
    checkpoint = copy_of("aggregation-format2-4.2", as_4_0, *delete("state/0/*/*.zip.crc"))
    told = ckpt("inspect", checkpoint, "--progress", "sync", "-o", "json").json()
    runs = {restart["spark"]: restart["outcome"] == "resumes" for restart in told["restart"]}
    assert runs.items() >= {"3.5": False, "4.0": True, "4.1": False, "4.2": True, "4.3": True}.items()
    assert "CKPT302" not in codes(ckpt, checkpoint)


@pytest.mark.parametrize(
    "damage",
    [
        replace("offsets/3", '"offset":40', '"offset":10'),
        replace("offsets/3", '"batchWatermarkMs":0', '"batchWatermarkMs":5'),
        replace("offsets/4", '{"offset":50,"timestamp":1700000005000}', '{"offset":50,"timestamp":1700000005000}\n-'),
    ],
    ids=["went-back", "two-writers", "number-of-sources"],
)
def test_one_verdict_for_one_checkpoint(ckpt: Ckpt, copy_of: CopyOf, damage: Mutation) -> None:
    """Whoever reads how many of the batches: what happened long ago is a note, what happened just now is a warning."""
    checkpoint = copy_of("stateless-3.5", damage)
    assert ckpt("inspect", checkpoint, "--batches", 1).exit_code == 1
    log = (checkpoint / "offsets" / "5").read_text()
    for batch in range(6, 30):
        later = log.replace('"offset":60', f'"offset":{10 * batch + 10}').replace(
            '"batchWatermarkMs":0', '"batchWatermarkMs":5'
        )
        (checkpoint / "offsets" / str(batch)).write_text(later)
        (checkpoint / "commits" / str(batch)).write_bytes((checkpoint / "commits" / "5").read_bytes())
    ways = (["inspect"], ["inspect", "--batches", 0], ["inspect", "--batches", 1])
    documents = [ckpt(*words, checkpoint, "-o", "json").json() for words in ways]
    codes = [{one["code"] for one in told["findings"] if one["severity"] != "note"} for told in documents]
    assert codes == [{"CKPT328"}] * 3, "the watermark may be of a state that is lost"


def test_a_topic_that_was_switched_is_named_and_did_not_go_back(ckpt: Ckpt, copy_of: CopyOf) -> None:
    switched = replace("offsets/5", '{"orders":{"0":51,"1":49}}', '{"renamed":{"0":7,"1":5}}')
    checkpoint = copy_of("kafka-4.2", switched, *delete("commits/5"))
    told = ckpt("inspect", checkpoint, "-o", "json").json()
    assert [one["code"] for one in told["findings"] if one["severity"] != "note"] == ["CKPT406"]
    page = " ".join(ckpt("inspect", checkpoint).stdout.split())
    assert "topic renamed, but orders there" in page
    assert "WENT BACK" not in page
    assert " another topic " in page


def test_event_hubs_may_be_what_looks_like_kafka(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Its connector ends with Spark 3.5, so that what Spark 4 wrote is Kafka's."""
    event_hubs = replace("offsets/5", '{"offset":60,"timestamp":1700000006000}', '{"hub":{"0":12,"1":7}}')
    checkpoint = copy_of("stateless-3.5", event_hubs, *delete_logs(range(5), range(5)))
    assert ckpt("inspect", checkpoint).stdout.count("kafka or Event Hubs") == 2
    for words in ([], ["--snippet", "python"], ["--snippet", "scala"]):
        told = " ".join(ckpt("handoff", checkpoint, *words).stdout.split())
        assert "Azure Event Hubs look the same" in told
        assert "Event Hubs" not in ckpt("handoff", "sample_checkpoints/kafka-4.2", *words).stdout
    assert "Event Hubs" not in ckpt("inspect", "sample_checkpoints/kafka-4.2").stdout


def test_a_file_reader_that_is_joined_with_itself_has_one_log(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("file-source-3.5")
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        path.write_text(path.read_text() + "\n" + path.read_text().splitlines()[-1])
    assert ckpt("inspect", checkpoint).exit_code == 0
    told = ckpt("handoff", checkpoint, "-o", "json").json()
    assert told["refused"] is None
    first, second = told["sources"]
    assert first["seen"] == second["seen"]
    assert len(first["seen"]) == 12


def test_a_commit_of_spark_2_3_was_not_truncated(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Spark 2.1 to 2.3 wrote `{}`; the policy of watermarks is recorded since 2.4."""
    written = write("commits/5", "v1\n{}")
    assert "CKPT110" in codes(ckpt, copy_of("stateless-3.5", written))
    old = copy_of("stateless-3.5", written, to="old")
    kept = ("spark.sql.shuffle.partitions", "spark.sql.streaming.stateStore.providerClass")
    for path in (old / "offsets").glob("[0-9]*"):
        edit_metadata(path, lambda recorded: recorded.update(conf={name: recorded["conf"][name] for name in kept}))
    assert "CKPT110" not in codes(ckpt, old)
