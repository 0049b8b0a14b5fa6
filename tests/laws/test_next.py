"""Who does literally what ``next`` of a document says, step by step, does what a person would do with the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ckpt.texts import quote_word, split_command
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLE_NAMES

pytestmark = pytest.mark.slow

_MOST_STEPS = 6  # inspect, plan, apply, and the same for a second damage


def obey(ckpt: Ckpt, checkpoint: Path) -> Iterator[dict[str, Any]]:
    """Run the first step of each document, as its words are, until there is none; yield what each run leaves to do."""
    words: tuple[str, ...] = ("ckpt", "inspect", str(checkpoint))
    while words:
        now = ("--grace", "0") if {"--apply", "--undo"} & {*words} else ()
        document = ckpt(*words[1:], *now, "-o", "json").json()
        steps = document["next"]
        yield document
        words = tuple(steps[0]["command"] or ()) if steps else ()


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_the_steps_come_to_an_end(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    documents = []
    for document in obey(ckpt, checkpoint):
        documents.append(document)
        assert len(documents) <= _MOST_STEPS, [one["next"][0] for one in documents]
    applied = [document for document in documents if document.get("applied")]
    if applied:
        (planned,) = [
            step for one in documents for step in one["next"] if step["writes"] and "--apply" in step["command"]
        ]
        assert planned["before"]
        assert (planned["rows"] == "none") == (not applied[-1]["replay"] and "--accept-skip" not in planned["command"])
        inspected = ckpt("inspect", checkpoint, "-o", "json").json()
        assert any(entry["outcome"] == "resumes" for entry in inspected["restart"]), inspected["verdict"]
    else:
        assert not any(step["writes"] for step in documents[-1]["next"])


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_a_step_says_what_the_page_says(sample: str, ckpt: Ckpt) -> None:
    path = f"sample_checkpoints/{sample}"
    page = " ".join(ckpt("inspect", path).stdout.split())
    for step in ckpt("inspect", path, "-o", "json").json()["next"]:
        assert " ".join(step["what"].replace("`", "").split()) in page.replace("`", "")
        if step["command"]:
            assert " ".join(step["command"]) in page


@pytest.mark.parametrize("name", ["plain", "with space", "it's", "a`b", "$HOME;x", "-rf", "CAPITALS", "tab\there"])
def test_the_words_of_a_command_are_unquoted(name: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("async-kafka-4.2", to=name)
    (step, *_) = ckpt("inspect", checkpoint, "-o", "json").json()["next"]
    assert step["command"] == ["ckpt", "repair-async", str(checkpoint)]
    (step,) = ckpt(*step["command"][1:], "-o", "json").json()["next"]
    assert step["command"] == ["ckpt", "repair-async", str(checkpoint), "--apply"]
    assert ckpt(*step["command"][1:], "--grace", 0).exit_code == 0
    assert ckpt("inspect", checkpoint, "-o", "json").json()["next"] == []


def test_only_a_copy_helps(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    for file in (checkpoint / "state" / "0" / "_metadata").rglob("*"):
        if file.is_file():
            file.write_bytes(b"?")
    (step, again) = ckpt("inspect", checkpoint, "-o", "json").json()["next"]
    assert (step["command"], step["stop"], step["rows"]) == (None, True, "unknown")
    assert again["command"] == ["ckpt", "inspect", str(checkpoint)]


@pytest.mark.parametrize("words", [(), ("x",), ("a b", "it's"), ("", "\n", "é`\x00", "a\\b`")])
def test_a_quoted_command_is_split_into_its_words(words: tuple[str, ...]) -> None:
    assert split_command(" ".join(map(quote_word, words))) == words
