"""Batches of another topic, sockets that count anew, partitions that are new, and offsets of Spark 2.0."""

import os
import shutil
from pathlib import Path

import pytest

import ckpt
from tests.conftest import Ckpt
from tests.support.places import SAMPLES

_CONF = '"conf":{"spark.sql.shuffle.partitions":"200"}'


def _make(folder: Path, offsets: list[str], committed: int | None = None) -> Path:
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"00000000-0000-4000-8000-000000000001"}')
    for batch, offset in enumerate(offsets):
        metadata = f'{{"batchWatermarkMs":0,"batchTimestampMs":{1700000000000 + batch},{_CONF}}}'
        (folder / "offsets" / str(batch)).write_text(f"v1\n{metadata}\n{offset}")
        if batch < (len(offsets) if committed is None else committed):
            (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def _topic(name: str, offset: int) -> str:
    return f'{{"{name}":{{"0":{offset}}}}}'


def test_a_committed_switch_of_topic_says_where_the_old_one_ended(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", [_topic("a", 5), _topic("b", 9), _topic("b", 11)])
    document = ckpt("inspect", checkpoint, "-o", "json").json()
    assert [" ".join(step["command"]) for step in document["next"]] == [f"ckpt handoff {checkpoint} --batch 0"]
    assert "failOnDataLoss" not in str(document["next"])
    page = ckpt("handoff", checkpoint, "--batch", "0").stdout
    assert 'startingOffsets = {"a":{"0":5}}' in page
    assert "CAN CONTINUE exactly after batch 0\n" in page
    back = _make(tmp_path / "b", [_topic("a", 5), _topic("b", 9), _topic("a", 7)])
    assert "MAY READ ROWS AGAIN" in ckpt("handoff", back, "--batch", "0").stdout


def test_a_planned_switch_of_topic_can_be_taken_away(ckpt: Ckpt, tmp_path: Path) -> None:
    """`tests/restart/test_kafka_starts.py` obeys it with a broker."""
    checkpoint = _make(tmp_path / "a", [_topic("a", 5), _topic("a", 7), _topic("b", 9)], committed=2)
    first, *_ = ckpt("inspect", checkpoint, "-o", "json").json()["next"]
    assert first["command"][1:] == ["rewind", str(checkpoint), "--to-batch", "1", "--replay", "new"]
    assert "resumes with new batch 2" in ckpt(*first["command"][1:]).stdout


def test_queries_that_take_turns_are_one_finding(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", [_topic("ab"[batch % 2], batch) for batch in range(6)])
    document = ckpt("inspect", checkpoint, "-o", "json").json()
    (finding,) = (finding for finding in document["findings"] if finding["code"] == "CKPT406")
    assert "the last of 5 switches: several queries seem to share this checkpoint" in finding["detail"]
    wanted = [f"ckpt handoff {checkpoint} --batch 4", f"ckpt handoff {checkpoint}"]
    assert [" ".join(step["command"]) for step in document["next"]] == wanted
    starts = [ckpt(*command.split()[1:]).stdout for command in wanted]
    assert [
        f'startingOffsets = {{"{topic}":{{"0":{end}}}}}' in start
        for topic, end, start in zip("ab", (4, 5), starts, strict=True)
    ] == [True, True]


def test_each_query_that_takes_turns_gets_its_handoff(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", [_topic("abc"[batch % 3], batch) for batch in range(6)])
    steps = ckpt("inspect", checkpoint, "-o", "json").json()["next"]
    pages = [ckpt(*step["command"][1:]).stdout for step in steps]
    assert [page[page.index('{"') :].split("\n")[0] for page in pages] == [
        _topic(*at) for at in zip("bca", (4, 5, 3), strict=True)
    ]


@pytest.mark.parametrize(("numbers", "codes"), [([-1, 3, -1, 1], []), ([3, 5, -1], []), ([5, 3], ["CKPT401"])])
@pytest.mark.parametrize("planned", [0, 1])
def test_a_socket_counts_anew_after_a_restart(
    planned: int, numbers: list[int], codes: list[str], tmp_path: Path
) -> None:
    """Spark 4.2 was seen to run a planned batch from 5 to -1 without a row, and then to read all rows."""
    checkpoint = _make(tmp_path / "a", [str(number) for number in numbers], len(numbers) - planned)
    assert [one.code for one in ckpt.inspect(checkpoint).findings if one.code == "CKPT401"] == codes


@pytest.mark.parametrize(("topic", "code"), [("b", "CKPT406"), ("a", "CKPT401")])
def test_batch_0_is_held_against_where_its_source_began(topic: str, code: str, ckpt: Ckpt, tmp_path: Path) -> None:
    """`tests/restart/test_kafka_starts.py` has a start with a broker."""
    checkpoint = _make(tmp_path / "a", [_topic(topic, 9)], committed=0)
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_bytes(b"\0v1\n" + _topic("a", 1515).encode())
    result = ckpt("inspect", checkpoint)
    page = " ".join(result.stdout.split())
    assert page.startswith("WILL NOT RESTART with failOnDataLoss")
    assert code in page
    assert 'starts where this query did with startingOffsets {"a":{"0":1515}}' in page
    assert ckpt("preflight", checkpoint).stdout.startswith("HOLD")
    assert f"from a/0=1515 to {topic}/0=9" in ckpt("offsets", "show", checkpoint).stdout
    (checkpoint / "sources" / "0" / "0").write_bytes(b"\0v1\n" + _topic(topic, 4).encode())
    assert "RESTARTS by running batch 0 again" in ckpt("inspect", checkpoint).stdout


def test_a_skip_of_a_batch_that_goes_back_names_where_to_begin(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", [_topic("a", 153), _topic("a", 79)], committed=1)
    page = ckpt("skip", checkpoint, "--apply", "--grace", "0").stdout
    assert "to a/0=79: a batch cannot read rows backwards" in page
    begin = ["offsets", "set", str(checkpoint), "--source", "0", "--to", _topic("a", 0)]
    assert f"ckpt {' '.join(begin[:-1])} '{begin[-1]}'" in " ".join(page.split())
    assert ckpt(*begin, "--accept-replay", "--apply", "--grace", "0").exit_code == 0
    assert "continues from a/0=0" in ckpt("inspect", checkpoint).stdout


def test_no_command_is_named_to_count_what_no_batch_has_committed(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = Path(shutil.copytree(SAMPLES / "aggregation-hdfs-4.2", tmp_path / "a"))
    assert "not recorded (ckpt state count)" in ckpt("inspect", checkpoint, "-v").stdout
    shutil.rmtree(checkpoint / "commits")
    assert "number of keys not recorded," in ckpt("inspect", checkpoint, "-v").stdout


def test_new_partitions_are_named_where_offsets_are_counted(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", ['{"t":{"0":5}}', '{"t":{"0":9,"1":100,"2":7}}'])
    assert "4 offsets and 2 new partitions" in " ".join(ckpt("offsets", "show", checkpoint).stdout.split())
    assert "+4 offsets and 2 new partitions" in ckpt("inspect", checkpoint, "-v").stdout
    (source,) = ckpt("offsets", "show", checkpoint, "-o", "json").json()["sources"]
    assert (source["amount"], source["new_partitions"]) == (4, 2)
    shown = ckpt("inspect", checkpoint, "-o", "json").json()["batches"]["shown"]
    assert [batch["advanced"][0]["new_partitions"] for batch in shown if batch["advanced"][0]] == [2]


def test_an_error_of_file_sources_is_none_of_a_socket(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint, error = _make(tmp_path / "a", ["-1", "4"]), "java.lang.IllegalStateException: batch 1 doesn't exist"

    def ids() -> list[str]:
        return [
            match["id"] for match in ckpt("explain", error, "--checkpoint", checkpoint, "-o", "json").json()["matches"]
        ]

    assert ids() == ["batch-does-not-exist"]
    (checkpoint / "sources" / "0").mkdir(parents=True)
    assert set(ids()) == {"batch-does-not-exist", "source-names-on-old-checkpoint"}, "Spark 2.1 numbered files so"


def test_no_repartitioning_is_run_again_that_there_was_not(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", ["3", "4"], committed=1)
    for file in (checkpoint / "offsets").iterdir():
        file.write_text(file.read_text().replace(_CONF, '"conf":{}'))
    (step,) = ckpt("inspect", checkpoint, "-o", "json").json()["next"]
    assert step["what"].startswith("Set spark.sql.streaming.checkUnfinishedRepartitionOnRestart=false.")


def test_a_start_is_of_the_same_kind_of_source(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", ["30", '{"logOffset":3}', '{"logOffset":4}', _topic("a", 1), _topic("b", 2)])
    rows = ckpt("sql", "SELECT batch, start_offset FROM offsets ORDER BY batch", checkpoint, "-o", "csv").stdout
    assert rows.split() == ["batch,start_offset", "0,", "1,", "2,3", "3,", "4,"]
    assert "from a/0=1 to b/0=2: another topic" in ckpt("offsets", "show", checkpoint).stdout


def test_offsets_of_spark_2_0_are_no_damage(ckpt: Ckpt, tmp_path: Path) -> None:
    """Spark 2.0.2 was seen to write them so, without metadata and commits. No id makes a version read them."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_bytes(
        b"\xac\xed\x00\x05sr\x008org.apache.spark.sql.execution.streaming.CompositeOffset"
    )
    page = " ".join(ckpt("inspect", tmp_path).stdout.split())
    assert "Spark 2.0 wrote it" in page
    assert 'fails at start: "Input length = 1"' in page
    for command in (["inspect"], ["repair"], ["repair", "--query-id", "00000000-0000-4000-8000-000000000001"]):
        page = " ".join(ckpt(command[0], tmp_path, *command[1:]).stdout.split())
        assert "a new checkpoint: no version can read this query's position" in page
        assert not {"copy", "--query-id", "repair"} & set(page.split("Next", 1)[1].split())


def test_repair_begins_at_no_end_of_a_topic_that_was_recreated(ckpt: Ckpt, tmp_path: Path) -> None:
    """Rows of the new topic below the old end would never be read: what to do is as inspect says."""
    checkpoint = _make(tmp_path / "a", [_topic("a", 153), _topic("a", 79)], committed=1)
    document = ckpt("repair", checkpoint, "-o", "json").json()
    assert "the offsets of a went back" in document["refused"]
    assert document["next"][0]["command"] == ["ckpt", "skip", str(checkpoint)]


def test_a_prune_says_in_english_that_the_start_is_unknown(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", ["5", "3"], committed=1)
    (checkpoint / "offsets" / ".2.11111111-1111-4111-8111-111111111111.tmp").touch()
    os.utime(checkpoint / "offsets" / ".2.11111111-1111-4111-8111-111111111111.tmp", (0, 1_600_000_000))
    page = ckpt("prune", checkpoint).stdout
    assert "afterwards: unknown outcome" in " ".join(page.split())
