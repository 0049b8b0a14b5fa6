"""What odd logs, names and documents do to the commands that change a checkpoint, and to those that say where it is."""

from pathlib import Path

import pytest

from tests.changes.applying import facts
from tests.conftest import Ckpt, CopyOf

NOW = ("--apply", "--accept-skip", "--accept-replay", "--grace", 0)


@pytest.mark.parametrize("offset", ["NaN", "9" * 5000, "[" * 400])
@pytest.mark.parametrize(
    "words", [["handoff"], ["offsets", "show"], ["offsets", "export"], ["offsets", "set", "--shift", "orders/0=+1"]]
)
def test_an_offset_that_cannot_be_read_is_not_the_beginning(
    words: list[str], offset: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = copy_of("kafka-4.2")
    file = checkpoint / "offsets" / "5"
    file.write_text(file.read_text().replace('"0":51', f'"0":{offset}'))
    (checkpoint / "offsets" / ".5.crc").unlink()
    run = ckpt(*words, checkpoint)
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
