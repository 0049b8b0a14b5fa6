"""The known errors, as ``catalog.toml`` declares them."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from ckpt.advice import CHECKPOINT, PATH, Advice, Call, Code, Do, Hole, Step, Words, call, do, run, words
from ckpt.advice.calls import Value
from ckpt.restart.diagnoses import all_diagnoses
from ckpt.restart.findings import Diagnosis, Severity
from ckpt.restart.sinks import Ids, OnSinks

_GAP = "{}"
_NUMBER = "{n}"
_END = "{end}"
_SEVERITIES = {Severity.NOTE: "a note", Severity.WARNING: "a warning", Severity.ERROR: "an error"}


class Phrase:
    """``batch {n} doesn't exist``: fixed words, ``{n}`` a number, ``{}`` any text in between, ``{end}`` the end."""

    def __init__(self, text: str) -> None:
        """``text`` has fixed words in front of its first ``{n}`` and around each ``{}``; ``{end}`` may be its last."""
        self.text = text
        self._ends = text.endswith(_END)
        self._parts = [part for part in text.removesuffix(_END).split(_GAP) if part]

    @cached_property
    def anchor(self) -> str:
        """The longest run of fixed words: a line without it does not match."""
        return max((run for part in self._parts for run in part.split(_NUMBER)), key=len)

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        patterns = [r"-?\d+".join(map(re.escape, part.split(_NUMBER))) for part in self._parts]
        return [re.compile(pattern + r"\s*$" * (self._ends and pattern is patterns[-1])) for pattern in patterns]

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
    document = tomllib.loads(files(__package__).joinpath("catalog.toml").read_text(encoding="utf-8"))
    reader = _Reader(document)
    entries = {entry["id"]: entry for entry in document["error"]}
    return tuple(_make_error(entry, reader, entries) for entry in entries.values())


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


def _make_error(entry: dict[str, Any], reader: "_Reader", entries: dict[str, Any]) -> KnownError:
    """An entry; a twin has the text of the entry that it names."""
    text = entries[entry["twin"]] if "twin" in entry else {}
    inherited = {key: text[key] for key in ("classes", "says", "sample") if key in text}
    keys: dict[str, Any] = {"says": ()} | {
        key: tuple(value) if isinstance(value, list) else value for key, value in (inherited | entry).items()
    }
    cure = Advice(reader.read_steps(entry["cure"]))
    command = _read_call(entry["command"]) if "command" in entry else next(list_calls(cure), None)
    return KnownError(**keys | {"cause": reader.read_words(entry["cause"]), "cure": cure, "command": command})


def list_calls(cure: Advice) -> Iterator[Call]:
    """Yield the calls that advice names, as they are read: in a sentence, and below it."""
    for step in cure.all_steps():
        for part in (*step.what.parts, step.do):
            if isinstance(part, Call) and part.arguments:
                yield part


class _Reader:
    """Reads texts and steps with the parts and steps that entries share."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._parts: dict[str, Any] = {ids.value.replace("-", "_"): OnSinks(ids) for ids in Ids}
        self._parts |= {name: Code(code) for name, code in document["code"].items()}
        self._parts |= {name: _read_call(named) for name, named in document["calls"].items()}
        self._parts |= {name: self.read_words(text) for name, text in document["words"].items()}
        self._steps = document["steps"]

    def read_words(self, text: str) -> Words:
        return words(text, **self._parts)

    def read_steps(self, entries: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
        steps: list[Step] = []
        for entry in entries:
            first, *others = self._read_step(entry)
            if entry.get("or"):
                steps[-1] = steps[-1].or_(replace(first, alternatives=()), *first.alternatives)
            else:
                steps.append(first)
            steps += others
        return tuple(steps)

    def _read_step(self, entry: Mapping[str, Any]) -> tuple[Step, ...]:
        if "steps" in entry:
            first, *others = self._steps[entry["steps"]]
            what = next(key for key in first if key not in ("run", "or", "paths"))
            return self.read_steps(({**first, what: _join(entry.get("if", ""), first[what])}, *others))
        if "run" in entry:
            return (run(_read_call(entry["run"]), self.read_words(entry["why"])),)
        kind = next(kind for kind in Do if kind in entry)
        paths = entry.get("paths", [PATH] if kind in (Do.PUT_BACK, Do.DELETE, Do.MOVE) else [])
        return (do(kind, self.read_words(entry[kind]), *paths),)


def _join(condition: str, text: str) -> str:
    """Put a condition, or a sentence, before a sentence."""
    if not condition or condition.endswith("."):
        return f"{condition} {text}".strip()
    return f"{condition}, {text[0].lower()}{text[1:]}"


_BLANKS: Mapping[str, Value] = {hole.value: hole for hole in Hole} | {CHECKPOINT.value: CHECKPOINT}


def _read_call(entry: list[Any]) -> Call:
    """A call: its name, its arguments, and in a table its options; a word such as NEW is a hole."""
    name, *arguments = entry
    options = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    return call(name, *map(_read_value, arguments), **{option: _read_value(value) for option, value in options.items()})


def _read_value(value: Any) -> Value:
    if isinstance(value, dict):
        return {int(name) if name.isdigit() else name: _read_value(each) for name, each in value.items()}
    return _BLANKS.get(value, value) if isinstance(value, str) else value
