"""Words come last: with each of them replaced by ``x``, documents, plans and exit codes are the same but for texts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.laws.advice.documents import differences, read_lines, without_texts
from tests.laws.next_obeyed import deep_cases, oracle_cases
from tests.support.places import ROOT, SAMPLE_NAMES, SAMPLES
from tests.support.spark import mutations
from tests.support.spark.live import EVERY_CASE

_PLANS = (("inspect",), ("preflight",), ("repair",), ("repair-async",), ("handoff",))
_OF_SAMPLES = (
    *_PLANS,
    ("inspect", "--deep"),
    ("inspect", "--sink", "append"),
    ("rewind", "--to-batch", "1"),
    ("rewind", "--to-batch", "1", "--sink", "upsert"),
    ("skip",),
    ("prune",),
    ("relocate", "--to", "s3a://bucket/moved"),
    ("offsets", "show"),
    ("state", "verify"),
    ("migrate", "changelog", "on"),
    ("migrate", "provider", "rocksdb"),
    ("migrate", "real-time"),
)


def compare(lines: list[list[str]], folder: Path) -> list[str]:
    """Run command lines with the words of ckpt and without them: what differs is listed."""
    file = folder / "lines.json"
    file.write_text(json.dumps(lines))
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.laws.advice.documents", str(file), *option],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for option in ((), ("--without-words",))
    ]
    with_words, without = (list(read_lines(run.communicate()[0])) for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert len(with_words) == len(without) == len(lines)
    assert any(one != other for one, other in zip(with_words, without, strict=True)), "no word was replaced"
    return [
        f"{' '.join(line)}: {difference}"
        for line, one, other in zip(lines, with_words, without, strict=True)
        for difference in differences(without_texts(one), without_texts(other))
    ]


@pytest.mark.slow
def test_words_decide_nothing_on_samples(tmp_path: Path) -> None:
    """All samples, and with them the damages of ``docs/incidents.md``."""
    some = SAMPLE_NAMES if EVERY_CASE else SAMPLE_NAMES[3::15]
    checkpoints = [_old_copy_of(SAMPLES / sample, tmp_path / sample) for sample in some]
    lines = [[*words, str(checkpoint)] for checkpoint in checkpoints for words in _OF_SAMPLES]
    assert compare([_order(line) for line in lines], tmp_path) == []


def _old_copy_of(folder: Path, target: Path, damage: Iterable[mutations.Mutation] = ()) -> Path:
    """A copy that is old: a fresh one could be too young for one process, and old enough for the other."""
    mutations.copy_of(folder, target, damage)
    for path in target.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000), follow_symlinks=False)
    return target


def _order(line: list[str]) -> list[str]:
    """A command line with the checkpoint before the arguments that follow it."""
    *words, checkpoint = line
    if words[0] == "migrate" and len(words) == 3:
        return [*words[:2], checkpoint, words[2]]
    return [*words, checkpoint]


@pytest.mark.slow
def test_words_decide_nothing_on_damage(tmp_path: Path) -> None:
    """The damages of the oracle, with those that only every byte shows."""
    cases = [*oracle_cases(), *deep_cases()]
    some = cases if EVERY_CASE else cases[::240]
    lines = []
    for number, case in enumerate(some):
        checkpoint = _old_copy_of(case.folder, tmp_path / str(number) / "checkpoint", case.mutations)
        lines += [[*words, str(checkpoint)] for words in _PLANS]
    assert compare(lines, tmp_path) == []


@pytest.mark.slow
def test_words_decide_nothing_in_explanations(tmp_path: Path) -> None:
    from ckpt.inspection.explain.catalog import known_texts

    samples = [error.sample for error in known_texts()][:: 1 if EVERY_CASE else 8]
    checkpoint = ["--checkpoint", str(SAMPLES / "async-kafka-4.2")]
    assert compare([["explain", sample, *more] for sample in samples for more in ([], checkpoint)], tmp_path) == []
