"""Batches of another topic, sockets that count anew, partitions that are new, and offsets of Spark 2.0."""

from pathlib import Path

import pytest

import ckpt
from tests.conftest import Ckpt

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


@pytest.mark.parametrize(("numbers", "codes"), [([-1, 3, -1, 1], []), ([5, 3], ["CKPT401"])])
def test_a_socket_counts_anew_after_a_restart(numbers: list[int], codes: list[str], tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", [str(number) for number in numbers])
    assert [one.code for one in ckpt.inspect(checkpoint).findings if one.code == "CKPT401"] == codes


def test_new_partitions_are_named_where_offsets_are_counted(ckpt: Ckpt, tmp_path: Path) -> None:
    checkpoint = _make(tmp_path / "a", ['{"t":{"0":5}}', '{"t":{"0":9,"1":100,"2":7}}'])
    assert "4 offsets and 2 new partitions" in " ".join(ckpt("offsets", "show", checkpoint).stdout.split())
    assert "+4 offsets and 2 new partitions" in ckpt("inspect", checkpoint, "-v").stdout


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
        assert "a new checkpoint: no version reads how far this query came" in page
        assert not {"copy", "--query-id", "repair"} & set(page.split("Next", 1)[1].split())


def test_repair_begins_at_no_end_of_a_topic_that_was_recreated(ckpt: Ckpt, tmp_path: Path) -> None:
    """Rows of the new topic below the old end would never be read: what to do is as inspect says."""
    checkpoint = _make(tmp_path / "a", [_topic("a", 153), _topic("a", 79)], committed=1)
    document = ckpt("repair", checkpoint, "-o", "json").json()
    assert "the offsets of a went back" in document["refused"]
    assert document["next"][0]["command"] == ["ckpt", "skip", str(checkpoint)]
