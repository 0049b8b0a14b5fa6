"""``ckpt migrate changelog`` from the terminal, on real samples; what Spark then does is in test_changelog.py."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.changes.applying import look_at
from tests.conftest import Ckpt, CopyOf
from tests.migrate.runbook import as_switched
from tests.support.places import SAMPLE_NAMES, some_quick

EXIT = {"already": 0, "nothing": 0, "switched": 0, "ready": 1, "partly": 1, "not-yet": 1, "refused": 3}


def document(ckpt: Ckpt, checkpoint: object, *words: str) -> Any:
    return ckpt("migrate", "changelog", checkpoint, "-o", "json", *words).json()


@pytest.mark.parametrize("sample", some_quick(SAMPLE_NAMES, 6))
@pytest.mark.parametrize("words", [("--to", "on"), ("--to", "off", "--verify", "--files-only")], ids=" ".join)
def test_every_sample_is_told_as_published_and_left_alone(sample: str, words: tuple[str, ...], ckpt: Ckpt) -> None:
    run = look_at(sample, ckpt, "migrate changelog", *words)
    assert run.exit_code == EXIT[run.json()["outcome"]]


@pytest.mark.parametrize(
    ("sample", "to", "outcome"),
    [
        ("join-rocksdb-4.0", "on", "ready"),
        ("join-rocksdb-4.0", "off", "already"),
        ("session-window-changelog-4.2", "on", "already"),
        ("session-window-changelog-4.2", "off", "ready"),
        ("tws-changelog-4.0", "off", "refused"),  # moved, so that it does not start at all
        ("aggregation-format2-4.2", "off", "ready"),
        ("stateless-4.2", "on", "nothing"),
        ("aggregation-hdfs-4.2", "on", "refused"),
        ("damaged-missing-sst", "on", "refused"),
        ("damaged-missing-changelog", "off", "refused"),
    ],
)
def test_what_can_be_switched(sample: str, to: str, outcome: str, ckpt: Ckpt) -> None:
    assert document(ckpt, f"sample_checkpoints/{sample}", "--to", to)["outcome"] == outcome


def test_hdfs_backed_state_is_refused_with_the_way_that_is_left(ckpt: Ckpt) -> None:
    told = document(ckpt, "sample_checkpoints/join-hdfs-3.5", "--to", "on")
    assert "HDFS-backed" in told["refused"]
    assert "ckpt rewrite --provider rocksdb" in told["refused"]


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "dedup-hdfs-4.0"])
def test_where_state_can_be_written_for_rocksdb_the_command_is_named(sample: str, ckpt: Ckpt, tmp_path: Path) -> None:
    """It has what `ckpt migrate provider` would say; then the switch can be made."""
    asked = ("migrate", "changelog", f"sample_checkpoints/{sample}", "--to", "on")
    assert (
        "`ckpt rewrite --provider rocksdb` writes one with the same state"
        in ckpt(*asked, "-o", "json").json()["refused"]
    )
    page = ckpt(*asked).stdout
    (command,) = (line.split() for line in page.splitlines() if line.strip().startswith("ckpt "))
    assert command[1:3] == ["rewrite", f"sample_checkpoints/{sample}"]
    command[3] = str(tmp_path / "new")
    assert ckpt(*command[1:]).exit_code == 0
    assert document(ckpt, tmp_path / "new", "--to", "on")["outcome"] == "ready"


def test_a_switch_that_took_in_one_partition_only(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    part = checkpoint / "state/0/1"
    newest = max(int(path.stem) for path in part.glob("*.zip"))
    (part / f"{newest}.zip").rename(part / f"{newest}.changelog")
    run = ckpt("migrate", "changelog", checkpoint, "--to", "on", "--verify")
    assert run.exit_code == 1
    assert "SWITCHED IN PART: 1 of 2" in run.stdout
    assert f"from {newest} on" in run.stdout


def test_files_that_cannot_be_looked_into_are_counted(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-changelog-4.2")
    offsets = checkpoint / "offsets/9"
    offsets.write_text(offsets.read_text().replace('compression.codec":"lz4"', 'compression.codec":"zstd"'))
    for file in checkpoint.glob("state/0/*/*.changelog"):
        file.write_bytes(b"\x28\xb5\x2f\xfd" + b"z" * (file.stat().st_size - 4))  # without the end of LZ4
        file.with_name(f".{file.name}.crc").unlink()
    told = " ".join(ckpt("migrate", "changelog", checkpoint, "--to", "off").stdout.split())
    assert "all loadable (2 files judged by name and size only)" in told


@pytest.mark.slow
def test_a_machine_without_java_sees_the_files_and_is_told_that_state_was_not_compared(
    ckpt_process: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = as_switched(copy_of("aggregation-changelog-4.2"))
    words = ("migrate", "changelog", checkpoint, "--to", "on", "--verify")
    without = {"PATH": "", "JAVA_HOME": ""}
    run = ckpt_process(*words, env=without)
    assert run.exit_code == 3
    assert "SWITCHED: every partition" in run.stdout
    assert "NOT COMPARED" in run.stdout
    assert re.search("not compared: .*Java|not compared: .*pyspark", run.stdout)
    told = ckpt_process(*words, "-o", "json", env=without).json()
    assert told["state_compared"]["verdict"] == "not-compared"
    files_only = ckpt_process(*words, "--files-only", "-o", "json", env=without)
    assert files_only.exit_code == 0
    assert files_only.json()["state_compared"] is None


def test_what_cannot_be_read_in_two_ways_is_unknown_and_no_jvm_is_started_for_it(
    ckpt_process: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = as_switched(copy_of("aggregation-changelog-4.2"))
    for snapshot in ("6.zip", "9.zip"):
        (checkpoint / "state/0/1" / snapshot).unlink()
        (checkpoint / "state/0/0" / snapshot).unlink()
    words = ("migrate", "changelog", checkpoint, "--to", "on", "--verify", "-o", "json")
    run = ckpt_process(*words, env={"PATH": "", "JAVA_HOME": ""})
    assert run.exit_code == 1
    assert run.json()["state_compared"]["verdict"] == "unknown"
    assert {one["why"] for one in run.json()["state_compared"]["one_way"]} == {
        "no snapshot after version 3 was uploaded yet"
    }


@pytest.mark.parametrize("words", [("--files-only",), ("--master", "local[1]"), ("--conf", "a=b")], ids=" ".join)
def test_what_is_for_spark_goes_with_verify(words: tuple[str, ...], ckpt: Ckpt) -> None:
    run = ckpt("migrate", "changelog", "sample_checkpoints/aggregation-changelog-4.2", "--to", "on", *words)
    assert run.exit_code == 2
    assert "--verify" in run.stderr


def test_a_batch_that_is_not_committed_is_to_be_finished_first(ckpt: Ckpt) -> None:
    told = document(ckpt, "sample_checkpoints/aggregation-killed-changelog-4.3", "--to", "off")
    assert any("Batch 4 is not committed" in warning for warning in told["warnings"])
