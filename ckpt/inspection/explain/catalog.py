"""The known errors, as ``catalog.toml`` declares them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from ckpt.advice import Advice, Call, Words
from ckpt.advice.book import Book
from ckpt.restart.diagnoses import all_diagnoses
from ckpt.restart.findings import Diagnosis, Severity
from ckpt.restart.sinks import CLAUSES
from ckpt.versions import NEWEST

_GAP = "{}"
_KINDS = {"{n}": r"-?\d+", "{names}": r"[\w., -]+"}
_KIND = re.compile(r"(\{n\}|\{names\})")
_END = "{end}"
_VERSIONS = ("since", "first", "last", "of", "but")
_BOOK = Book(__package__, "catalog.toml", CLAUSES)
_SEVERITIES = {Severity.NOTE: "a note", Severity.WARNING: "a warning", Severity.ERROR: "an error"}


class Phrase:
    """``batch {n} doesn't exist``: fixed words, ``{n}`` a number, ``{names}`` names, ``{}`` any, ``{end}`` the end."""

    def __init__(self, text: str) -> None:
        """``text`` has fixed words in front of its first kind and around each ``{}``; ``{end}`` may be its last."""
        self.text = text
        self._ends = text.endswith(_END)
        self._parts = [part for part in text.removesuffix(_END).split(_GAP) if part]

    @cached_property
    def anchor(self) -> str:
        """The longest run of fixed words: a line without it does not match."""
        return max((run for part in self._parts for run in _KIND.split(part) if run not in _KINDS), key=len)

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        patterns = ["".join(_KINDS.get(run, re.escape(run)) for run in _KIND.split(part)) for part in self._parts]
        return [
            re.compile(pattern + r"[\s\"'}\]).]*$" * (self._ends and pattern is patterns[-1])) for pattern in patterns
        ]

    def is_in(self, line: str) -> bool:
        """Tell whether the line has all parts in their order: the first place of each is enough, as gaps are free."""
        at = 0
        for pattern in self._patterns:
            match = pattern.search(line, at)
            if match is None:
                return False
            at = match.end()
        return True


@dataclass(frozen=True, slots=True)
class KnownError:
    """One error that Spark or a source reports, and what it means for a checkpoint."""

    id: str
    title: str  # a sentence without a full stop
    system: str  # who says it: spark, rocksdb, kafka, delta, ...
    says: tuple[str, ...]  # words of its message; ``{}`` is any text in between, ``{n}`` a number
    cause: Words
    cure: Advice
    since: str  # the versions that say it
    codes: tuple[str, ...]  # the findings that show it in a checkpoint
    source: str  # where this is from
    sample: str  # how it looks
    classes: tuple[str, ...] = ()  # error classes that stand for it; a main class for all its parts
    frames: tuple[str, ...] = ()  # one of these is in its line or in the stack, where the text has one
    bare: bool = True  # without a stack it is matched too
    reads: tuple[str, ...] = ()  # the kinds of source that say it; all if empty
    keeps: tuple[str, ...] = ()  # the stateful operators whose files say it; "any" for each of them
    broad: bool = False  # of many causes: a narrower one beside it comes first
    wraps: bool = False  # it only says that other code failed: the innermost cause in the text says why
    twin: str | None = None  # the id of the entry whose text has this cause too
    command: Call | None = None  # which helps

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """The words of its message, as patterns of a line."""
        return tuple(map(Phrase, self.says))


@cache
def catalog() -> tuple[KnownError, ...]:
    """Return all known errors, in the order of the file.

    >>> from ckpt.inspection.explain.catalog import catalog
    >>> catalog()[0].id, catalog()[0].codes
    ('batch-does-not-exist', ('CKPT201', 'CKPT202'))
    """
    entries = {entry["id"]: entry for entry in _BOOK.content["error"]}
    return tuple(_make_error(entry, entries) for entry in entries.values())


@cache
def known_texts() -> tuple[KnownError, ...]:
    """Return all known errors, and the codes of ckpt's own findings, each as what its declaration says."""
    return (*catalog(), *map(_describe_finding, all_diagnoses()))


def _describe_finding(diagnosis: Diagnosis) -> KnownError:
    code = diagnosis.code
    return KnownError(
        id=code,
        title=f"{code} {diagnosis.name}: {_SEVERITIES[diagnosis.severity]}",
        system="ckpt",
        says=(code,),
        cause=diagnosis.meaning,
        cure=diagnosis.advice or Advice(),
        since="ckpt",
        codes=(code,),
        source="docs/findings.md",
        sample=code,
        broad=True,
    )


def _make_error(entry: dict[str, Any], entries: dict[str, Any]) -> KnownError:
    """An entry; a twin has the text of the entry that it names."""
    text = entries[entry["twin"]] if "twin" in entry else {}
    inherited = {key: text[key] for key in ("classes", "says", "sample") if key in text}
    keys: dict[str, Any] = {"says": ()} | {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in (inherited | entry).items()
        if key not in _VERSIONS
    }
    cure = _BOOK.make_advice(entry["cure"], {})
    command = _BOOK.make_call(entry["command"], {}) if "command" in entry else next(list_calls(cure), None)
    keys["since"] = _spell_versions(**{key: entry[key] for key in _VERSIONS if key in entry})
    return KnownError(**keys | {"cause": _BOOK.make_words(entry["cause"], {}), "cure": cure, "command": command})


def _spell_versions(since: str = "", first: str = "", last: str | None = None, of: str = "", but: str = "") -> str:
    """The versions that say something; without a last one the newest that was asked says it too."""
    if since:
        return since
    newest = last or _BOOK.content["newest"].get(of) or NEWEST
    return " ".join(filter(None, (of, first if first == newest else f"{first} to {newest}", but)))


def list_calls(cure: Advice) -> Iterator[Call]:
    """Yield the calls that advice names, as they are read: in a sentence, and below it."""
    for step in cure.all_steps():
        for part in (*step.what.parts, step.do):
            if isinstance(part, Call) and part.arguments:
                yield part
