"""Text that a terminal would obey, in every string of every record that is read: no page and no document has it raw.

The records are walked, so a field that is added is tested; what they are read from is damaged in `test_terminal.py`.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pytest

from ckpt.checkpoint import reader
from ckpt.formats import operators
from ckpt.storage import Listing
from tests.conftest import Ckpt, Run
from tests.support.places import SAMPLES
from tests.support.spark.live import EVERY_CASE

NASTY = "\x1b]0;owned\x07\x1b[2J\r\x08\x00\x7f\x9b31m\x85\u202e\u2066\u200b\u2028\nINJECTED"
RECORDS = ["tws-rocksdb-4.2", "join-v4-changelog-4.3", "kafka-4.2", "named-sink-4.3", "damaged-missing-predecessor"]
Field = tuple[str, str]


def strings(value: Any, field: Field | None = None) -> Iterator[Field]:
    """The fields of records in which there is text, in a record and all that it holds."""
    if isinstance(value, Listing):  # names of files: `test_terminal.py` and the mutants have odd ones
        return
    if is_dataclass(value):
        for one in fields(value):
            if (type(value).__name__, one.name) != ("Log", "folder"):  # the word is ckpt's own
                yield from strings(getattr(value, one.name), (type(value).__name__, one.name))
    elif isinstance(value, str) and not isinstance(value, Enum):
        yield from [field] if field else []
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (*strings(key, field), *strings(inner, field))
    elif isinstance(value, tuple | list | set | frozenset):
        for inner in value:
            yield from strings(inner, field)


def spoiled(value: Any, target: Field, *, here: bool = False) -> Any:
    """The same with something nasty at the end of every text in one field of records."""
    if is_dataclass(value) and not isinstance(value, type):
        kept = [one.name for one in fields(value) if one.init]
        name = type(value).__name__
        return replace(value, **{at: spoiled(getattr(value, at), target, here=(name, at) == target) for at in kept})
    if isinstance(value, str) and not isinstance(value, Enum):
        nasty = NASTY.replace("\0", "") if target == ("Checkpoint", "uri") else NASTY  # no path has it
        return value + nasty if here else value
    if isinstance(value, Mapping):
        return {spoiled(key, target, here=here): spoiled(inner, target, here=here) for key, inner in value.items()}
    if isinstance(value, list | set | frozenset) or type(value) is tuple:
        return type(value)(spoiled(inner, target, here=here) for inner in value)
    return value


def instead(patch: pytest.MonkeyPatch, function: Callable[..., Any], target: Field) -> None:
    """Spoil what a function returns, wherever it was imported."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return spoiled(function(*args, **kwargs), target)

    for module in [one for name, one in sys.modules.items() if name.startswith("ckpt")]:
        if getattr(module, function.__name__, None) is function:
            patch.setattr(module, function.__name__, wrapped)


COMMANDS = [
    ["inspect", "{checkpoint}", "--batches", "0"],
    ["repair-async", "{checkpoint}"],
    ["relocate", "{checkpoint}", "--to", "s3a://bucket/x"],
    ["handoff", "{checkpoint}"],
    ["handoff", "{checkpoint}", "--snippet", "python"],
    ["handoff", "{checkpoint}", "--snippet", "scala"],
    ["offsets", "show", "{checkpoint}"],
    ["migrate", "changelog", "{checkpoint}", "--to", "off"],
    ["migrate", "provider", "{checkpoint}", "--to", "hdfs"],
    ["migrate", "real-time", "{checkpoint}"],
    ["migrate", "transform-with-state", "{checkpoint}", "--plan", "--to", "x"],
    ["export-state", "{checkpoint}", "--plan", "--all-units", "--to", "x"],
]


@pytest.mark.slow
@pytest.mark.parametrize("sample", RECORDS)
def test_no_text_of_a_record_reaches_a_page_raw(sample: str, ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(SAMPLES / sample)
    every = [[word.format(checkpoint=path) for word in command] for command in COMMANDS]
    for words in every:
        ckpt(*words)  # so that all modules are loaded
    targets = sorted(set(strings(reader.open_checkpoint(path, batches=0))))
    assert len(targets) > 5
    shown = set()
    for number, target in enumerate(targets):
        with monkeypatch.context() as patch:
            for function in (reader.read_checkpoint, reader.open_checkpoint, operators.parse_operator_metadata):
                instead(patch, function, target)
            for place, words in enumerate(every):
                runs = ([], ["-o", "json"]) if EVERY_CASE else ([["-o", "json"] if (number + place) % 2 else []])
                for run in (ckpt(*words, *more) for more in runs):
                    assert obeyed(run) == [], (target, words)
                    shown |= {target} if "INJECTED" in run.stdout + run.stderr else set()
    assert len(shown) > len(targets) / 4, "what is spoiled is shown"


def obeyed(run: Run) -> list[str]:
    """Lines with something that a terminal obeys, and those that a text began on its own."""
    if run.stdout.startswith("{"):
        json.loads(run.stdout)
    lines = [*run.stdout.split("\n"), *run.stderr.split("\n")]
    return [line for line in lines if not line.isprintable() or line.startswith("INJECTED")]
