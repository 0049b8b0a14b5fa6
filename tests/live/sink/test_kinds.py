"""A sink that keeps no batch ids, named by what it does: each page says one thing about rows, and nothing of others."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.live.sink.reader import read_sink
from ckpt.restart.sinks import NAMED_SINKS, SINKS
from tests.conftest import Ckpt, CopyOf

KINDS = [sink.kind for sink in NAMED_SINKS]
TWICE = re.compile("twice|again", re.IGNORECASE)
OF_OTHERS = re.compile(
    "remembers batch ids|[Oo]ther sinks?\\b|file sink|_spark_metadata|txnAppId|upserts by key are safe|[Oo]f sinks",
)
"""Words of pages that speak of sinks of every kind."""
SAMPLES = ("kafka-4.2", "aggregation-hdfs-4.2", "async-kafka-4.2", "delta-4.2", "file-source-4.2", "join-hdfs-3.5")


def lose_commits(checkpoint: Path) -> None:
    for path in (checkpoint / "commits").iterdir():
        path.unlink()


def lose_offsets(checkpoint: Path) -> None:
    for path in (checkpoint / "offsets").iterdir():
        path.unlink()


def tear_offsets(checkpoint: Path) -> None:
    newest = max((path for path in (checkpoint / "offsets").glob("[0-9]*")), key=lambda path: int(path.name))
    newest.write_bytes(b"")
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def uncommit(checkpoint: Path) -> None:
    newest = max((path for path in (checkpoint / "commits").glob("[0-9]*")), key=lambda path: int(path.name))
    newest.unlink()


def lose_state(checkpoint: Path) -> None:
    for path in checkpoint.glob("state/0/0/*.*"):
        path.unlink()


DAMAGES = (lose_commits, lose_offsets, tear_offsets, uncommit, lose_state)
COMMANDS = (
    ("inspect",),
    ("preflight",),
    ("repair",),
    ("repair-async",),
    ("skip",),
    ("rewind", "--to-batch", "2"),
    ("rewind", "--to-batch", "2", "--replay", "new"),
    ("handoff",),
)


CASES = [(sample, damage) for sample in SAMPLES for damage in DAMAGES]


@pytest.mark.parametrize(
    ("sample", "damage"),
    [case if i % 7 == 2 else pytest.param(*case, marks=pytest.mark.slow) for i, case in enumerate(CASES)],
)
def test_a_page_says_nothing_of_other_sinks(sample: str, damage: Any, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    damage(checkpoint)
    for number, (command, *words) in enumerate(COMMANDS):
        kind = KINDS[number % len(KINDS)]
        page = " ".join(ckpt(command, checkpoint, *words, "--sink", kind).stdout.split())
        assert not OF_OTHERS.search(page), (command, kind, page)


@pytest.mark.parametrize(
    ("sample", "damage"),
    [case if i % 7 == 3 else pytest.param(*case, marks=pytest.mark.slow) for i, case in enumerate(CASES)],
)
def test_where_the_sink_is_not_known_three_lines_say_what_becomes_of_rows(
    sample: str, damage: Any, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = copy_of(sample)
    damage(checkpoint)
    for command, *words in COMMANDS:
        if command in ("inspect", "preflight", "handoff"):
            continue
        page = ckpt(command, checkpoint, *words).stdout
        warnings = page.partition("\nWarnings\n")[2].partition("\n\n")[0].split("\n  - ")
        shown = [text.splitlines() for text in warnings if "--sink URI" in text]
        assert sum(map(len, shown)) <= 3, (command, page)
        document = ckpt(command, checkpoint, *words, "-o", "json").json()
        says = {sink["kind"]: sink["rows"] for sink in document["in_sinks"]}
        assert len(says) == (9 if shown else 0) or command == "skip", (command, says)
        assert says.get("noop", "none") == "none"


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_come_again_are_named_by_kind(kind: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    run = ckpt("rewind", checkpoint, "--to-batch", "2", "--replay", "new", "--sink", kind, "-o", "json")
    *_, said = run.json()["warnings"]
    assert said.startswith(f"The sink ({kind}): ")
    assert ("twice" in said) == (kind != "noop")
    assert ("under the same keys, with the query's current values, so no key is in it twice" in said) == (
        kind == "upsert"
    )
    (step, *_) = run.json()["next"]
    assert ("--accept-replay" in step["command"]) == (kind in ("append", "kafka"))
    assert "--accept-skip" not in step["command"]
    assert step["command"][-1] == "--apply"


def test_values_that_count_rows_twice_are_not_called_safe(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """The end of a committed batch moves back, and the state stays: a key is written again with a value too high."""
    words = ("offsets", "set", "--source", "0", "--to", '{"offset":50,"timestamp":0}', "--sink", "upsert")
    page = " ".join(ckpt(*words, copy_of("aggregation-hdfs-4.2")).stdout.split())
    assert "values that come from the query's state count these rows twice" in page
    assert "in it twice" not in page
    moved = ("offsets", "set", "--shift", "orders/0=-10", "--sink", "upsert")
    assert "so no key is in it twice" in " ".join(ckpt(*moved, copy_of("kafka-4.2", to="kafka")).stdout.split())


@pytest.mark.parametrize("kind", KINDS)
def test_one_start_into_noop_spares_only_rows_that_would_be_twice(kind: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    doubles = kind in ("append", "kafka")
    accepted = ["--accept-replay"] if doubles else []
    done = ckpt("rewind", checkpoint, "--to-batch", "8", "--sink", kind, *accepted, "--apply", "--grace", 0)
    assert done.exit_code == 0
    assert (checkpoint / "ckpt-first-start.json").exists() is doubles
    document = ckpt("inspect", checkpoint, "--sink", kind, "-o", "json").json()
    assert any(finding["code"] == "CKPT419" for finding in document["findings"]) is doubles


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_command_names_the_kind_too(kind: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-4.2")
    tear_offsets(checkpoint)
    (step, *_) = ckpt("inspect", checkpoint, "--sink", kind, "-o", "json").json()["next"]
    assert step["command"][-2:] == ["--sink", kind]


def test_a_folder_with_the_name_of_a_kind_is_named_by_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "upsert" / "_spark_metadata"
    log.mkdir(parents=True)
    (log / "0").write_text("v1")
    monkeypatch.chdir(tmp_path)
    assert (read_sink("upsert").kind, read_sink("./upsert").kind) == ("upsert", "file")


@pytest.mark.parametrize("kind", KINDS)
def test_handoff_and_copy_speak_of_one_sink(kind: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("kafka-4.2")
    runs = [
        ckpt("handoff", checkpoint, "--sink", kind, "-o", "json"),
        ckpt("copy", checkpoint, tmp_path / "new", "--plan", "--sink", kind, "-o", "json"),
    ]
    assert [[sink["kind"] for sink in json.loads(run.stdout)["sinks"]] for run in runs] == [[kind], [kind]]
    assert len(ckpt("handoff", checkpoint, "-o", "json").json()["sinks"]) == len(SINKS)


def test_a_new_checkpoint_replaces_counts_by_key(copy_of: CopyOf) -> None:
    counts = copy_of("aggregation-hdfs-4.2")
    lose_offsets(counts)
    inspections = {kind: ckpt.inspect(str(counts), sink=kind) for kind in ("upsert", "append")}
    by_kind = {kind: " ".join(str(rated.remedy) for rated in one.findings) for kind, one in inspections.items()}
    lower = "a new count replaces the old one and covers only rows that the sources still have"
    assert {kind: lower in steps for kind, steps in by_kind.items()} == {"upsert": True, "append": False}
