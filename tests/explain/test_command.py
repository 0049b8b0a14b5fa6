"""``ckpt explain`` from the terminal."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from tests import contract
from tests.conftest import Ckpt
from tests.explain.drivers import read
from tests.places import ROOT

GAPPED = "sample_checkpoints/async-kafka-4.2"
TEXT = "java.lang.IllegalStateException: batch 34 doesn't exist"


def test_a_message_is_explained(ckpt: Ckpt) -> None:
    run = ckpt("explain", TEXT)

    assert run.exit_code == 0
    assert run.stdout.startswith("The offsets of an earlier batch are missing\n")
    assert "CKPT201 missing-predecessor" in run.stdout
    assert "ckpt repair-async CHECKPOINT" in run.stdout


@pytest.mark.parametrize(
    "words", [[TEXT], ["it does not work"], [TEXT, "--checkpoint", GAPPED], ["x", "--checkpoint", GAPPED]]
)
def test_it_is_told_as_published(words: list[str], ckpt: Ckpt) -> None:
    assert contract.disagreements(ckpt("explain", *words, "-o", "json").json(), "explain") == []


def test_every_published_key_is_used(ckpt: Ckpt) -> None:
    seen = contract.keys_in(ckpt("explain", TEXT, "--checkpoint", GAPPED, "-o", "json").json())
    seen |= contract.keys_in(ckpt("explain", "it does not work", "-o", "json").json())
    assert contract.shapes("explain").keys() - seen == set()


def test_a_checkpoint_says_whether_it_shows_it(ckpt: Ckpt) -> None:
    document = ckpt("explain", TEXT, "--checkpoint", GAPPED, "-o", "json").json()
    (match,) = document["matches"]
    assert [one["code"] for one in match["shown"]] == ["CKPT201"]
    assert match["command"] == f"ckpt inspect {GAPPED}"

    other = ckpt("explain", "Checksum error: file:/ck/state/0/0/9.zip ChecksumException", "--checkpoint", GAPPED)
    assert other.exit_code == 1
    sound = ckpt("explain", TEXT, "--checkpoint", "sample_checkpoints/aggregation-hdfs-4.2")
    assert "this checkpoint does not show CKPT201 or CKPT202" in " ".join(sound.stdout.split())


def test_what_is_unknown_says_so_and_shows_the_nearest(ckpt: Ckpt) -> None:
    run = ckpt("explain", "org.apache.spark.SparkException: no snapshot of the state store")

    assert run.exit_code == 1
    assert "not in the catalog" in run.stdout
    assert "Nearest" in run.stdout
    assert "no answer" in run.stdout


def test_a_log_is_read_from_a_file_and_from_standard_input(ckpt: Ckpt, tmp_path: Path) -> None:
    log = read()["4.3-damaged-expired-deltas"]
    plain, packed = tmp_path / "driver.log", tmp_path / "driver.log.gz"
    plain.write_text(log)
    packed.write_bytes(gzip.compress(log.encode()))

    told = ckpt("explain", plain).stdout
    assert told.startswith("A state delta file is missing\n")
    assert ckpt("explain", packed).stdout == told
    program = "from importlib.metadata import entry_points as e; e(group='console_scripts')['ckpt'].load()()"
    for words in (["explain"], ["explain", "-"]):
        piped = subprocess.run(
            [sys.executable, "-c", program, *words], input=log.encode(), capture_output=True, cwd=ROOT
        )
        assert (piped.stdout.decode(), piped.returncode) == (told, 0)


@pytest.mark.parametrize(
    ("words", "exit_code", "says"),
    [
        (["/nowhere/driver.log"], 2, "there is no file /nowhere/driver.log"),
        (["  "], 2, "the text is empty"),
        ([TEXT, "--storage-option", "a=b"], 2, "--storage-option is for --checkpoint"),
        ([TEXT, "--checkpoint", "/nowhere"], 3, "/nowhere"),
        (["."], 3, "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_one_line(words: list[str], exit_code: int, says: str, ckpt: Ckpt) -> None:
    run = ckpt("explain", *words)
    assert run.exit_code == exit_code
    (line,) = run.stderr.splitlines()
    assert says in line


def test_a_gzip_file_that_ends_early_is_not_taken_for_a_whole_log(ckpt: Ckpt, tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"INFO fine\n" * 1000 + b"Caused by: batch 30 doesn't exist")[:-20])
    run = ckpt("explain", path)
    assert (run.exit_code, run.stdout, run.stderr.count("\n")) == (3, "", 1)
    assert "ends early" in run.stderr


def test_a_damaged_gzip_file_is_one_line(ckpt: Ckpt, tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"a" * 100_000)[:20] + b"\xff" * 50)
    run = ckpt("explain", path)
    assert run.exit_code == 3
    assert run.stderr == f"ckpt: {path} cannot be read: its compressed data is damaged\n"


def test_secrets_and_control_characters_of_a_text_are_not_shown(ckpt: Ckpt) -> None:
    text = f"\x1b[31m{'x' * 470} s3://KEY:SECRET@bucket/ck batch 4 doesn't exist password=hunter2"
    for output in ("table", "json"):
        told = ckpt("explain", text, "-o", output).stdout
        assert "SECRET" not in told
        assert "hunter2" not in told
        assert "\x1b" not in told
