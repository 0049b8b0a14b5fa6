"""What is asked decides what is shown, what counts, and so the exit code."""

import re
from pathlib import Path
from typing import Any

import pytest

from ckpt.versions import Spark
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases.model import delete, write

ALL = [str(version) for version in Spark]


def restart_of(ckpt: Ckpt, sample: str, *words: str) -> list[tuple[str, str]]:
    document = ckpt("inspect", f"sample_checkpoints/{sample}", "-o", "json", *words).json()
    return [(entry["spark"], entry["progress"]) for entry in document["restart"]]


def found(ckpt: Ckpt, path: str | Path, *words: str) -> tuple[int, dict[str, str]]:
    """Exit code, and the worst severity of each code."""
    result = ckpt("inspect", path, "-o", "json", *words)
    return result.exit_code, {one["code"]: one["severity"] for one in reversed(result.json()["findings"])}


def test_all_versions_and_both_modes_are_the_default(ckpt: Ckpt) -> None:
    assert restart_of(ckpt, "stateless-4.2") == [(spark, mode) for mode in ("sync", "async") for spark in ALL]


def test_versions_and_modes_can_be_chosen(ckpt: Ckpt) -> None:
    chosen = restart_of(ckpt, "stateless-4.2", "--spark", "4.3", "--spark", "3.5", "--progress", "sync")
    assert chosen == [("3.5", "sync"), ("4.3", "sync")]
    assert restart_of(ckpt, "stateless-4.2", "--spark", "4.1", "--spark", "4.1") == [("4.1", "sync"), ("4.1", "async")]
    assert restart_of(ckpt, "stateless-4.2", "--progress", "async") == [(spark, "async") for spark in ALL]


@pytest.mark.parametrize(
    ("batches", "shown"),
    [("0", [*range(12)]), ("1", [11]), ("3", [9, 10, 11]), ("10", [*range(2, 12)]), ("99", [*range(12)])],
)
def test_batches_shown(batches: str, shown: list[int], ckpt: Ckpt) -> None:
    words = ["inspect", "sample_checkpoints/file-source-4.2", "--batches", batches]
    document = ckpt(*words, "-o", "json").json()
    assert [one["batch_id"] for one in document["batches"]["shown"]] == shown
    page = ckpt(*words, "-v").stdout
    rows = re.findall(r"^  +\d+ +\d{4}-\d{2}-\d{2}T", page, flags=re.MULTILINE)
    assert len(rows) == len(shown)


@pytest.mark.parametrize("batches", ["0", "1", "2", "10"])
def test_the_number_of_batches_shown_changes_no_forecast(batches: str, ckpt: Ckpt) -> None:
    path = "sample_checkpoints/damaged-empty-predecessor"
    usual, other = (ckpt("inspect", path, "-o", "json", *words).json() for words in ([], ["--batches", batches]))
    assert usual["restart"] == other["restart"]
    assert usual["verdict"] == other["verdict"]


def test_batches_0_reads_files_that_a_start_does_not(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("file-source-4.2", write("offsets/0", "hello"))

    def unreadable(*words: str) -> Any:
        return ckpt("inspect", checkpoint, "-o", "json", *words).json()["batches"]["offsets"]["unreadable"]

    assert unreadable() == []
    assert unreadable("--batches", "0") == [0]


def test_every_empty_file_is_told_unread(ckpt: Ckpt, copy_of: CopyOf) -> None:
    code, codes = found(ckpt, copy_of("file-source-4.2", write("offsets/0", "")))
    assert codes["CKPT102"] == "note"
    assert code == 0


@pytest.mark.parametrize("release", ["4.2.7", "4.2.0-preview1"])
def test_a_release_is_taken_for_its_minor_version(release: str, ckpt: Ckpt) -> None:
    path = "sample_checkpoints/damaged-missing-metadata"
    named = [ckpt("inspect", path, "--spark", word, "-o", "json").json() for word in (release, "4.2")]
    unknown = [found for found in named[0]["findings"] if found["code"] == "CKPT487"]
    assert len(unknown) == 1, "and its bugs are unknown"
    named[0]["findings"].remove(unknown[0])
    assert named[0] == named[1]
    assert {told["spark"] for told in named[0]["restart"]} == {"4.2"}


# What counts.


@pytest.mark.parametrize("sample", ["async-3.5", "async-4.2", "async-kafka-4.2", "damaged-async-uncommitted"])
@pytest.mark.parametrize(
    ("progress", "severity", "code"), [("async", "note", 0), ("both", "warning", 1), ("sync", "error", 1)]
)
def test_gaps_of_asynchronous_tracking(sample: str, progress: str, severity: str, code: int, ckpt: Ckpt) -> None:
    exit_code, codes = found(ckpt, f"sample_checkpoints/{sample}", "--progress", progress)
    assert codes.get("CKPT201", "note") == severity
    assert exit_code == code


@pytest.mark.parametrize(
    "sample", ["named-sources-4.2", "named-sink-4.3", "two-sources-offsets-v2-4.2", "aggregation-format2-4.2"]
)
def test_versions_older_than_the_writer_count_only_when_named(sample: str, ckpt: Ckpt) -> None:
    path = f"sample_checkpoints/{sample}"
    at_least = ckpt("inspect", path, "-o", "json").json()["checkpoint"]["written_by"]["at_least"]
    assert at_least in ("4.0", "4.2", "4.3")

    exit_code, codes = found(ckpt, path)
    assert (exit_code, codes["CKPT105"]) == (0, "note")
    exit_code, codes = found(ckpt, path, "--spark", "3.5")
    assert (exit_code, codes["CKPT105"]) == (1, "error")
    assert found(ckpt, path, "--spark", "4.3")[0] == 0


def test_asynchronous_tracking_of_a_stateful_query_counts_only_when_named(ckpt: Ckpt) -> None:
    path = "sample_checkpoints/aggregation-hdfs-4.2"
    assert found(ckpt, path)[0] == found(ckpt, path, "--progress", "sync")[0] == 0
    exit_code, codes = found(ckpt, path, "--progress", "async")
    assert (exit_code, codes["CKPT208"]) == (1, "error")


@pytest.mark.parametrize(
    "sample", ["stateless-killed-3.5", "aggregation-killed-hdfs-4.0", "aggregation-killed-changelog-4.3"]
)
def test_an_uncommitted_latest_batch_is_a_note(sample: str, ckpt: Ckpt) -> None:
    exit_code, codes = found(ckpt, f"sample_checkpoints/{sample}")
    assert (exit_code, codes["CKPT203"]) == (0, "note")


def test_one_version_that_fails_is_enough_unless_it_was_not_asked_about(ckpt: Ckpt) -> None:
    path = "sample_checkpoints/damaged-missing-metadata"
    assert found(ckpt, path, "--spark", "4.2") == (1, {"CKPT103": "error", "CKPT312": "note"})
    assert found(ckpt, path, "--spark", "3.5") == (1, {"CKPT108": "warning", "CKPT312": "note"})


def test_notes_alone_never_change_the_exit_code(ckpt: Ckpt, copy_of: CopyOf) -> None:
    # the checksum of offsets/1 stays
    damage = (write("offsets/.7.crc.tmp", ""), *delete("offsets/1", keep_crc=True), *delete("commits/5"))
    exit_code, codes = found(ckpt, copy_of("stateless-3.5", *damage))
    assert len(codes) >= 3
    assert set(codes.values()) == {"note"}
    assert exit_code == 0


def test_quiet_changes_nothing_on_stdout(ckpt: Ckpt) -> None:
    path = "sample_checkpoints/stateless-4.2"
    assert ckpt("inspect", path, "--quiet").stdout == ckpt("inspect", path).stdout


def test_help_names_the_exit_codes_and_starts_no_look(ckpt: Ckpt) -> None:
    for words in (["--help"], ["inspect", "--help"], ["inspect", "-h"]):
        result = ckpt(*words)
        assert result.exit_code == 0
        assert "2 bad usage" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--nope",), "ckpt: No such option: --nope; see "),
        (("inspectt",), "No such command 'inspectt'"),
        (("inspect", "x", "--nope"), "ckpt: No such option: --nope; see "),
        (("migrate", "provider", "x"), "Missing option '--to'"),
        (("migrate", "elsewhere", "x"), "No such command 'elsewhere'"),
    ],
)
def test_words_that_are_wrong_are_answered_in_one_line(words: tuple[str, ...], told: str, ckpt: Ckpt) -> None:
    run = ckpt(*words)
    assert run.exit_code == 2
    assert run.stdout == ""
    assert told in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [(), ("migrate",)])
def test_no_words_are_answered_by_help(words: tuple[str, ...], ckpt: Ckpt) -> None:
    run = ckpt(*words)
    assert run.exit_code == 2
    assert "Usage:" in run.stdout + run.stderr
    assert "ckpt: " not in run.stdout + run.stderr
