"""``ckpt offsets show`` on every sample: what the offset files say, no more; and the commands that pages name."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.changes.applying import look_at
from tests.conftest import Ckpt, CopyOf
from tests.support.places import EACH_SAMPLE, ROOT, SAMPLES
from tests.support.remedies import remove


def document(ckpt: Ckpt, checkpoint: object, *words: object) -> Any:
    return ckpt("offsets", "show", checkpoint, "-o", "json", *words).json()


def logged(sample: str, batch: int) -> list[Any]:
    """The offsets of a batch as the file has them, read without ckpt."""
    lines = (SAMPLES / sample / "offsets" / str(batch)).read_text().split("\n")[2:]
    return [None if line == "-" else json.loads(line[line.index("{") :] if "{" in line else line) for line in lines]


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_every_sample_is_told_as_published_and_left_alone(sample: str, ckpt: Ckpt) -> None:
    run = look_at(sample, ckpt, "offsets show")
    told = run.json()

    assert run.exit_code == (3 if told["refused"] else 0)
    assert bool(told["sources"]) == (told["refused"] is None)
    if told["sources"]:
        lines = logged(sample, told["batch"])
        assert sorted(map(json.dumps, lines)) == sorted(json.dumps(one["to"]) for one in told["sources"])
        for one in told["sources"]:
            assert bool(one["reader_option"]) != bool(one["no_option"])


def test_the_option_of_kafka_is_the_offset_itself(ckpt: Ckpt) -> None:
    for batch in range(6):
        told = document(ckpt, "sample_checkpoints/kafka-4.2", "--batch", batch)
        (source,) = told["sources"]
        assert json.loads(source["reader_option"]["startingOffsets"]) == source["to"] == logged("kafka-4.2", batch)[0]
        assert source["from"] == (logged("kafka-4.2", batch - 1)[0] if batch else None)
        assert source["rows"] is None, "offsets are not rows"


@pytest.mark.parametrize("sample", ["stateless-3.5", "two-sources-3.5", "two-sources-offsets-v2-4.2"])
def test_rows_are_known_where_the_source_counts_rows(sample: str, ckpt: Ckpt) -> None:
    for batch in range(4):
        told = document(ckpt, f"sample_checkpoints/{sample}", "--batch", batch)
        rows = sorted(source["rows"] for source in told["sources"])
        assert rows == ([10] if sample.startswith("stateless") else [10, 20])


def test_delta_at_a_boundary_and_inside_a_version(ckpt: Ckpt) -> None:
    inside, boundary = (document(ckpt, "sample_checkpoints/delta-4.2", "--batch", n)["sources"][0] for n in (4, 5))
    assert inside["reader_option"] == {}
    assert "inside version 4" in inside["no_option"]
    assert boundary["reader_option"] == {"startingVersion": "5"}


def test_where_the_log_has_a_gap_the_beginning_is_unknown(ckpt: Ckpt) -> None:
    told = document(ckpt, "sample_checkpoints/async-kafka-4.2")
    assert told["batch"] == 31
    assert told["sources"][0]["from"] is None
    assert "the log does not say where batch 31 begins" in told["warnings"][0]
    assert "from an unknown offset to" in " ".join(
        ckpt("offsets", "show", "sample_checkpoints/async-kafka-4.2").stdout.split()
    )


def test_an_uncommitted_batch_is_run_again_by_the_next_start(ckpt: Ckpt) -> None:
    told = document(ckpt, "sample_checkpoints/stateless-killed-3.5")
    assert told["committed"] is False
    assert "the next start of this query runs it again" in told["warnings"][0]


def test_a_batch_that_is_not_there_or_not_readable(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    remove(checkpoint / "offsets" / "5")
    (checkpoint / "offsets" / "5").write_text("v1\n{")
    run = ckpt("offsets", "show", checkpoint, "--batch", 9, "-o", "json")
    assert (run.exit_code, run.json()["refused"]) == (
        3,
        "there is no offsets/9; the oldest batch there is 0, the newest 5",
    )
    assert ckpt("offsets", "show", checkpoint, "--batch", 5).exit_code == 3
    told = document(ckpt, checkpoint)
    assert told["batch"] == 4
    assert "offsets/5 cannot be read" in told["warnings"][0]


NAMED = re.compile(r"`ckpt ((?:offsets (?:show|set|export|import)|copy|inspect) [^`]*CHECKPOINT[^`]*)`")


def commands() -> Iterator[Any]:
    for page in ("offsets", "copy"):
        for number, found in enumerate(NAMED.finditer((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))):
            yield pytest.param(found[1], id=f"{page} {number}: {found[1]}")


@pytest.mark.parametrize("command", list(commands()))
def test_a_command_that_a_page_names_does_something(command: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, file = copy_of("kafka-4.2"), tmp_path / "offsets.json"
    file.write_text(ckpt("offsets", "export", checkpoint).stdout)
    plain = re.sub(r"[\[\]]|, then.*| > \S+", "", command)
    places = {"CHECKPOINT": checkpoint, "NEW": tmp_path / "copy", "FILE": file, "offsets.json": file, "I": 0, "N": 4}
    places |= {"TOPIC/PARTITION=±N": "orders/0=-3", "OLD=NEW": "orders=moved", "OLD": copy_of("kafka-4.2", to="old")}
    words = [places.get(word, word) for word in plain.split()]
    run = ckpt(*words)
    plans = words[1] in ("set", "import")
    assert run.exit_code == (1 if plans else 0), (words, run.stderr)
    assert ("A PLAN" in run.stdout) == plans


def test_there_are_commands_to_run() -> None:
    assert len(list(commands())) >= 8
