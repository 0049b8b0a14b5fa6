"""Every error message that a real Spark answered in the tests of ckpt, as a short sign of what it is.

The suite `messages` of `python -m tests.record`, the last, adds to `declared.json` the messages that are new, with
the entry that explains them now: look at each, and change what is wrong; null says that it is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ckpt.inspection.explain.explain import explain
from tests.record.suite import Suite, say
from tests.record.worker import Installed

TESTS = Path(__file__).parents[2]
DECLARED = Path(__file__).parent / "declared.json"
"""Sign of a message -> id of the entry that explains it first; null: unknown, without a stack it may be anything."""
RECORDED = (
    *("restart/oracle/answers", "changes/offsets/oracle/answers", "changes/fixes/async_gap/oracle/answers"),
    *("changes/oracle/answers", "live", "live/delta", "live/files", "live/iceberg", "live/kafka", "live/sink"),
)
_UUID = "5d1ed5a6-0c0e-4b6a-9e0f-3e1f5d2a7b11"  # where a recorder has left one out
_KEYS = ("error", "failed", "without the cure")
_SPOKEN = re.compile(r"Exception|Error|\[[A-Z_.]{6,}\]")
_CLASS = re.compile(r"\[([A-Z][A-Z0-9_]{4,}(?:\.[A-Z0-9_]+)?)\]")


def messages() -> Iterator[tuple[str, str]]:
    """Every message once, with its causes, as a log shows it; before it its sign."""
    seen = set()
    for folder in RECORDED:
        for file in sorted((TESTS / folder).glob("*.json")):
            for chain in _chains(json.loads(file.read_text(encoding="utf-8"))):
                text = "\nCaused by: ".join(chain)
                if text not in seen:
                    seen.add(text)
                    yield sign(chain), text.replace("<uuid>", _UUID)


def sign(chain: list[str]) -> str:
    """The error classes of an exception and its causes, then the words of the last of them, without what varies."""
    classes = dict.fromkeys(name for text in chain for name in _CLASS.findall(text) if name != "STREAM_FAILED")
    last = chain[-1].partition("terminated with exception: ")[2] or chain[-1]
    last = last.partition("): ")[2] if "Lost task" in last else last
    last = last.partition("Reason: ")[2] or last
    last = " ".join([*re.findall("No usable value for [a-z]+", str(chain))[:1], last])
    words = re.sub(r"\[[A-Z][A-Z0-9_.]+\]|SQLSTATE.*|<[a-z]+>|\d+|(?<=type ){.*|(?<=got ){.*", "", last, flags=re.S)
    return " ".join([*classes, *re.findall(r"[A-Za-z.]{2,}", words)[:13]])


def _chains(value: Any) -> Iterator[list[str]]:
    match value:
        case dict():
            for key, inner in value.items():
                if key in _KEYS and inner:
                    chain = [inner] if isinstance(inner, str) else inner
                    if all(isinstance(one, str) for one in chain) and _SPOKEN.search(str(chain)):
                        yield list(chain)
                        continue
                yield from _chains(inner)
        case list():
            for inner in value:
                yield from _chains(inner)


def explained(text: str) -> str | None:
    """The entry that explains a message first; None where no more is known of it than that a task failed."""
    names = [match.error.id for match in explain(text).matches]
    return next((name for name in names if name != "task-failed"), None)


class Messages(Suite):
    """Declares what is new in the answers of the other suites."""

    def wanted(self, minor: str) -> list[str]:
        return []

    recorded = wanted

    def record(self, spark: Installed, only: str, *, fresh: bool) -> None:
        declared = json.loads(DECLARED.read_text())
        for name, text in messages():
            if name not in declared:
                declared[name] = explained(text)
                say(f"{declared[name]}: {text[:500]}\n")
        DECLARED.write_text(json.dumps(declared, indent=1, sort_keys=True) + "\n")


SUITE = Messages()
