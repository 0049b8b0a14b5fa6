"""``ckpt repair-async`` from the terminal: what it prints, exits with, and leaves behind, on real samples."""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.changes.applying import GAP, NOW, after_next, facts, look_at, obey, take_back
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import EACH_SAMPLE, SAMPLES


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_a_plan_changes_nothing_and_is_told_as_published(sample: str, ckpt: Ckpt) -> None:
    run = look_at(sample, ckpt, "repair-async")
    document = run.json()

    assert document["applied"] is document["undone"] is False
    expected = 3 if document["refused"] else 1 if document["steps"] else None
    assert run.exit_code == (ckpt("inspect", SAMPLES / sample).exit_code if expected is None else expected)
    assert bool(document["steps"]) == (document["strategy"] is not None)
    assert document["needed"] or not document["steps"]


def test_every_published_key_is_used(ckpt: Ckpt, copy_of: CopyOf) -> None:
    seen: set[str] = set()
    for strategy in ("fill", "rewind"):
        run = ckpt("repair-async", copy_of(GAP, to=strategy), "--strategy", strategy, "-o", "json")
        seen |= contract.keys_in(run.json())
    unseen = {key.rpartition(".")[2] for key in contract.shapes("repair-async").keys() - seen}
    assert unseen - contract.FORECAST_LISTS == {"newer[]"}, "of a checkpoint that a newer Spark wrote"


def test_from_the_plan_to_the_repair_and_back_by_the_commands_that_are_printed(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP)
    before = facts(checkpoint)

    done = obey(ckpt, checkpoint, "repair-async", checkpoint)
    assert "REPAIRED" in done
    assert facts(checkpoint).keys() - before.keys() == {"offsets/30", "offsets/.30.crc"}
    assert (checkpoint / "offsets/30").read_bytes() == (checkpoint / "offsets/28").read_bytes()
    inspected = ckpt("inspect", checkpoint, "--progress", "sync", "-o", "json")
    assert inspected.exit_code == 0
    assert {one["outcome"] for one in inspected.json()["restart"]} == {"resumes"}
    take_back(ckpt, checkpoint, done, before)


def test_rows_of_finished_batches_are_read_again_only_when_accepted(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP)
    before = facts(checkpoint)
    words = ("repair-async", checkpoint, "--strategy", "rewind", "--apply", "--grace", 0)

    refused = ckpt(*words, "-o", "json")
    assert refused.exit_code == 3
    assert "--accept-replay" in refused.json()["refused"]
    assert facts(checkpoint) == before

    done = ckpt(*words, "--accept-replay", "-o", "json")
    assert done.exit_code == 0
    assert done.json()["applied"] is True
    assert sorted(path for path in facts(checkpoint) if path.startswith("offsets/")) == [
        "offsets/.0.crc",
        "offsets/.1.crc",
        "offsets/0",
        "offsets/1",
    ]
    assert ckpt("repair-async", checkpoint, "--undo", done.json()["backup"], "--grace", 0).exit_code == 0
    assert facts(checkpoint) == before


def test_a_checkpoint_written_a_moment_ago_is_left_alone(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP)
    (checkpoint / "offsets/31").touch()
    run = ckpt("repair-async", checkpoint, "--apply", "-o", "json")

    assert run.exit_code == 3
    assert "offsets/31 was written" in run.json()["refused"]
    assert "try again in" in run.json()["refused"]
    assert [path.name for path in checkpoint.parent.iterdir() if "backup" in path.name] == []


def test_undo_is_refused_once_the_query_has_gone_on(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP)
    done = ckpt("repair-async", checkpoint, "--apply", "--grace", 0, "-o", "json").json()
    (checkpoint / "offsets/32").write_bytes((checkpoint / "offsets/31").read_bytes())
    run = ckpt("repair-async", checkpoint, "--undo", done["backup"], "--grace", 0, "-o", "json")

    assert run.exit_code == 3
    assert "offsets/32" in run.json()["refused"]
    assert (checkpoint / "offsets/30").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--undo", "b", "--apply"), "--undo restores everything"),
        (("--apply", "--backup", "{checkpoint}/offsets/b"), "is inside the checkpoint"),
        (("--grace", "-1"), "--grace"),
        (("--apply", "--grace", "inf"), "--grace inf is not a number of seconds"),
        (("--undo", "b", "--grace", "nan"), "--grace"),
        (("--backup", ""), "an empty path: name a folder that does not exist yet with --backup"),
        (("--apply", "--backup", ""), "an empty path"),
        (
            ("--backup", "memory://b"),
            "memory://b exists only while ckpt runs: name a permanent folder with --backup",
        ),
    ],
)
def test_bad_usage_is_one_line(words: tuple[str, ...], told: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP)
    run = ckpt("repair-async", checkpoint, *(word.format(checkpoint=checkpoint) for word in words), "--quiet")

    assert run.exit_code == 2
    assert told in run.stderr
    assert run.stdout == ""


def test_what_was_refused_is_asked_again_with_the_same_backup(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, backup = copy_of(GAP), tmp_path / "kept here"
    words = ("repair-async", checkpoint, "--strategy", "rewind", "--backup", backup)
    refused = ckpt(*words, "--apply", "--grace", 0)
    assert refused.exit_code == 3
    assert after_next(refused.stdout) == after_next(ckpt(*words).stdout)
    backup.mkdir()
    taken = ckpt(*words, *NOW)
    assert taken.exit_code == 3
    assert after_next(taken.stdout)[-3:] == ["--backup", "DIR", "--apply"], "the same folder would be refused again"
    backup.rmdir()
    assert ckpt(*after_next(refused.stdout), "--grace", 0).exit_code == 0
    assert (backup / "manifest.json").is_file()


def test_an_undo_names_the_command_whose_change_it_took_back(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    assert ckpt("repair-async", checkpoint, "--backup", tmp_path / "b", *NOW).exit_code == 0
    undone = ckpt("rewind", checkpoint, "--undo", tmp_path / "b", "--grace", 0)
    assert "UNDONE: the checkpoint is as it was before ckpt repair-async" in undone.stdout


def test_a_backup_is_what_the_manifest_says(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint, backup = copy_of(GAP), tmp_path / "kept here"
    words = ("repair-async", checkpoint, "--strategy", "rewind", "--accept-replay", "--apply", "--grace", 0)
    before = facts(checkpoint)
    assert ckpt(*words, "--backup", backup).exit_code == 0

    manifest = json.loads((backup / "manifest.json").read_bytes())
    saved = {step["path"]: (backup / step["before"]["file"]).read_bytes() for step in manifest["steps"]}
    assert saved == {path: data for path, (*_, data) in before.items() if path not in facts(checkpoint)}


def test_a_plan_names_every_file_before_and_after_by_its_hash(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(GAP, {"op": "write", "path": "offsets/30", "text": ""})
    words = ("repair-async", checkpoint, "--strategy", "fill", "-o", "json")

    def contents(paths: Iterable[str]) -> dict[str, dict[str, object] | None]:
        files = facts(checkpoint)
        return {path: told_of(files[path][-1]) if path in files else None for path in paths}

    steps = ckpt(*words).json()["steps"]
    before = {step["path"]: step["before"] for step in reversed(steps)}  # of several steps, what the first one finds
    after = {step["path"]: step["after"] for step in steps}
    assert before == contents(before)
    assert ckpt(*words, *NOW).json()["steps"] == steps
    assert after == contents(after)
    assert before != after


def told_of(data: bytes) -> dict[str, object]:
    """What a document says of a file."""
    return {"bytes": len(data), "sha256": sha256(data).hexdigest()}
