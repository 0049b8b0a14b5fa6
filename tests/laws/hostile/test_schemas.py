"""Odd schemas, logs, names and documents: no report breaks, and no command that changes a checkpoint."""

import struct
from pathlib import Path

import pytest

from tests.changes.applying import facts
from tests.checkpoint.state.building import java_utf
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases.model import replace

KEY = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


def nested(depth: int) -> str:
    """A struct in a struct in a struct ..."""
    kind = '"long"'
    for _ in range(depth):
        kind = KEY.replace('"long"', kind)
    return kind


VALUES = {
    "depth 100": nested(100),
    "depth 200": nested(200),
    "depth 300": nested(300),
    "depth 5,000": nested(5_000),
    "NaN": KEY.replace("{}", '{"x":NaN}'),
    "infinity": KEY.replace("{}", '{"x":-1e999}'),
    "wide": KEY.replace('{"name":"a",', '{"name":"a","type":"long"},' * 5_000 + '{"name":"a",'),
}


def with_schema(checkpoint: Path, value: str) -> Path:
    """Write a state schema file of version 2, in chunks."""
    chunks = [[text[at : at + 60_000] for at in range(0, len(text), 60_000)] for text in (KEY, value)]
    parts = b"".join(struct.pack(">i", len(these)) + b"".join(map(java_utf, these)) for these in chunks)
    (checkpoint / "state/0/0/_metadata/schema").write_bytes(java_utf("v2") + parts)
    (checkpoint / "state/0/0/_metadata/.schema.crc").unlink(missing_ok=True)
    return checkpoint


@pytest.mark.slow
@pytest.mark.parametrize("what", VALUES)
def test_a_schema_that_is_odd_breaks_no_report(what: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = with_schema(copy_of("aggregation-hdfs-4.2"), VALUES[what])
    table, document = ckpt("inspect", checkpoint), ckpt("inspect", checkpoint, "-o", "json")
    assert contract.disagreements(document.json()) == []
    assert table.exit_code == document.exit_code in (0, 1)
    assert len(table.stdout) < 20_000
    for words in (
        ["export-state", checkpoint, "--plan", "--to", tmp_path / "x"],
        ["migrate", "provider", checkpoint, "--to", "rocksdb"],
        ["migrate", "transform-with-state", checkpoint, "--plan", "--to", tmp_path / "x"],
    ):
        ckpt(*words)
        done = ckpt(*words, "-o", "json")
        assert done.exit_code in (1, 2, 3) or done.json()


NOW = ("--apply", "--accept-skip", "--accept-replay", "--grace", 0)


@pytest.mark.parametrize("offset", ["NaN", "9" * 5000, "[" * 400])
@pytest.mark.parametrize(
    "words", [["handoff"], ["offsets", "show"], ["offsets", "export"], ["offsets", "set", "--shift", "orders/0=+1"]]
)
def test_an_offset_that_cannot_be_read_is_not_the_beginning(
    words: list[str], offset: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    run = ckpt(*words, copy_of("kafka-4.2", replace("offsets/5", '"0":51', f'"0":{offset}')))
    assert run.exit_code == 3
    assert "had read nothing" not in run.stdout + run.stderr
    assert "cannot be read" in " ".join((run.stdout + run.stderr).split())


def test_a_query_id_that_was_written_can_be_taken_back(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, backup = copy_of("damaged-missing-metadata"), tmp_path / "backup"
    before = facts(checkpoint)
    words = ("repair", checkpoint, "--query-id", "91b2eccd-2e7c-4a4f-b6a5-1a5b2d6f4f6e", "--backup", backup)
    assert ckpt(*words, *NOW).exit_code == 0
    assert ckpt("repair", checkpoint, "--undo", backup, "--grace", 0).exit_code == 0
    assert facts(checkpoint) == before


@pytest.mark.parametrize("name", ["state/0/0/s p;rm -rf x/12.delta", "commits/٩", "state/0/0/new\nline/12.delta"])
def test_whatever_a_file_is_called_it_comes_back(name: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, backup = copy_of("aggregation-hdfs-4.2"), tmp_path / "backup"
    odd = checkpoint / name
    odd.parent.mkdir(exist_ok=True)
    odd.write_bytes(b"odd")
    before = facts(checkpoint)
    done = ckpt("rewind", checkpoint, "--to-batch", 6, "--backup", backup, *NOW)
    assert done.exit_code == 0, done.stdout
    assert ckpt("rewind", checkpoint, "--undo", backup, "--grace", 0).exit_code == 0
    assert facts(checkpoint) == before


@pytest.mark.parametrize(
    "document", ['{"orders":{"0":' + "9" * 5000 + ',"1":49}}', '{"orders":{"0":52,"1":49},"x\\ud800":{"0":1}}']
)
def test_a_number_too_long_or_half_a_character_is_one_line(document: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    run = ckpt("offsets", "set", copy_of("kafka-4.2"), "--to", document)
    assert run.exit_code == 2
    assert "not JSON" in run.refusal()
