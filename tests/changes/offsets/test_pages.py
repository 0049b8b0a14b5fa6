"""Every command that the pages on offsets and copies name is run, with the places and numbers of a sample."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.support.places import ROOT

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
    places |= {"TOPIC/PARTITION=±N": "orders/0=-3", "OLD=NEW": "orders=moved"}
    words = [places.get(word, word) for word in plain.split()]
    run = ckpt(*words)
    plans = words[1] in ("set", "import")
    assert run.exit_code == (1 if plans else 0), (words, run.stderr)
    assert ("A PLAN" in run.stdout) == plans


def test_there_are_commands_to_run() -> None:
    assert len(list(commands())) >= 8
