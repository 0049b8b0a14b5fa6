"""The search for known errors in a text, cause first.

A log is records, each with a level; a record may hold an exception, then what caused it, each with its stack. Of all
errors found, the one comes first that belongs to the last query that failed, is the narrowest, and is deepest in the
chain of causes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from ckpt.inspection.explain.catalog import KnownError, Phrase, catalog, known_texts
from ckpt.inspection.explain.levels import Level, level_of

_STARTED = "Execution: Starting [id = "  # of a query, by Spark; what comes after it is of another attempt
_ENDED = ("terminated with error", "terminated with exception", "StreamingQueryException")
_TRACEBACK = "Traceback (most recent call last)"
_OUTSIDE = (_TRACEBACK, "Exception in thread", "py4j.", "pyspark.errors.")  # of no log record
_CAUSED = "Caused by: "
_FRAME = re.compile(r"\s+at [^\[]")  # Jackson says ``at [Source: ...`` of its input
_LIBRARY = re.compile(  # code that any program uses, whose frames do not say which program it was
    r"at (?:[\w.@-]*/{1,2}){0,3}(?:javax?|jdk|sun|com\.sun|scala|kotlin|py4j|org\.rocksdb|com\.google\.cloud|com\.azure"
    r"|com\.microsoft\.azure|com\.amazonaws|software\.amazon|com\.fasterxml|org\.json4s|io\.netty|org\.apache\.http"
    r"|okhttp3|org\.wildfly|org\.apache\.kafka\.(?:clients|common)|net\.jpountz|com\.github\.luben|org\.xerial|io\.opentelemetry"
    r"|org\.apache\.hadoop\.(?:fs|hdfs|ipc|security|conf|util|io|net|metrics2|thirdparty|shaded))\."
)
_THROWN = re.compile(r"(?:\.|^)[A-Z]\w{0,99}(?:Exception|Error)\b|\[[A-Z][A-Z0-9_]{5,99}[\].]")
_CLASS = re.compile(r"\[([A-Z][A-Z0-9_]{5,99})(?:\.[A-Z0-9_]{2,99})?\]")
_QUERY = re.compile(r"\[id = ([0-9a-f-]{36})\b")
_QUERIES = 100  # whose ids are kept
_NOTED = re.compile(  # a line without any of these, and without words of an error, is passed over
    r"^(?:[^\S\n]*Caused by: |[^\S\n]+at |[\[(]?\d|Traceback |py4j\.|pyspark\.errors\.)"
    r"|Exception|Error|\[|terminated with",
    re.M,
)

_RAISED = re.compile(r"(?:Caused by: |: )?(?:[A-Za-z_][\w$]*\.)*[A-Z]\w*(?:Exception|Error)\b(?::|\s*$)")

_Key = tuple[bool, int, int, bool, bool, int, int]
_Mark = tuple[KnownError, Phrase]


@dataclass(slots=True)
class Hit:
    """A known error, at the line of the text that is nearest to the cause."""

    error: KnownError
    key: _Key  # the lower, the nearer to the cause
    line: str
    times: int = 1
    innermost: str = ""  # the last line of its record that says what was thrown
    other: bool = False  # only records that tell the end of another query than was asked about have it
    sure: bool = False  # no frame of its stack is needed
    foreign: bool = False  # its stack has code of Spark or of another program; none of it was named

    @property
    def breadth(self) -> int:
        """0 for an error with one cause, 1 for one with several, 2 for one whose cause is in the text below it."""
        return self.error.broad + self.error.wraps


@dataclass(slots=True)
class Search:
    """Takes a text a chunk of lines at a time and keeps what is known in it; its memory does not grow with the text.

    Where the text says how ``query`` ended, what it says of the ends of other queries does not count.
    """

    query: str | None = None  # the id of the query that is asked about
    hits: dict[str, Hit] = field(default_factory=dict)
    thrown: tuple[_Key, str] | None = None  # what was thrown last, known or not
    first: str = ""  # the first line that is not blank
    queries: set[str] = field(default_factory=set)  # the ids of those that ended
    _level: Level = Level.ERROR
    _attempt: int = 0
    _record: int = 0
    _depth: int = 0
    _ended: bool = False
    _ends: set[str] = field(default_factory=set)  # the queries whose end the record tells
    _pending: list[Hit] = field(default_factory=list)  # their stacks are still to come
    _innermost: str = ""  # of the record
    _kept: list[Hit] = field(default_factory=list)  # whose nearest line to the cause is in the record
    _traceback: bool = False  # the next line that is not indented ends a traceback of Python

    def add(self, lines: list[str]) -> None:
        """The next lines of the text."""
        text = "\n".join(lines)
        anchored = _list_anchors(findings="CKPT" in text)
        outside = "\n".join(line for line in lines if not line.startswith("\tat "))  # of stacks
        wanted = [mark for anchor, marks in anchored.items() if anchor in outside for mark in marks]
        classes = _errors_by_class().keys() & _find_classes(text)
        parts = sorted({*(re.escape(mark[1].anchor) for mark in wanted), *(rf"\[{name}\b" for name in classes)})
        anchors = re.compile("|".join(parts)) if parts else None
        self.first = self.first or next((text for line in lines if (text := line.lstrip())), "")
        if anchors is None and _NOTED.search(text) is None:
            return
        for line in lines:
            if line.startswith("\tat ") and not self._pending:
                continue
            self._search_line(line, anchors, wanted)

    def found(self) -> list[Hit]:
        """Find the known errors in a text, the cause first; in one line a broad error gives way to a narrower one."""
        self._end_record()
        narrowest: dict[str, int] = {}
        for hit in self.hits.values():
            narrowest[hit.line] = min(hit.breadth, narrowest.get(hit.line, hit.breadth))
        in_order = (self.hits[error.id] for error in known_texts() if error.id in self.hits)
        hits = (hit for hit in in_order if hit.breadth == narrowest[hit.line])
        if self.query in self.queries:
            hits = (hit for hit in hits if not hit.other)
        return sorted(hits, key=lambda hit: hit.key)

    def _search_line(self, line: str, anchors: re.Pattern[str] | None, wanted: Iterable[_Mark]) -> None:
        stripped = line.lstrip()
        if _FRAME.match(line):
            self._traceback = False
            self._add_frame(stripped)
            return
        if (level := level_of(line)) is not None:
            self._begin(level)
            self._attempt += _STARTED in line
        elif line.startswith(_OUTSIDE) and not self._traceback:
            self._begin(Level.ERROR)
            self._ended = True
        elif stripped.startswith(_CAUSED):
            self._close()
            self._depth += 1
        named = "Exception" in line or "Error" in line
        if named or self._traceback or _TRACEBACK in line:
            if (self._traceback and line == stripped and line) or _RAISED.match(line):
                self._innermost, self._traceback = line, False  # in Python the line after the frames of a traceback
            self._traceback = self._traceback or _TRACEBACK in line
        if any(word in line for word in _ENDED):
            self._ended = True
            ids = _QUERY.findall(line)
            if self.query in ids or len(self.queries) < _QUERIES:
                self.queries.update(ids)
                self._ends.update(ids)
        if (named or "[" in line) and _THROWN.search(line):
            self.thrown = min(filter(None, (self.thrown, (self._make_key(broad=False), line))))
        if anchors is not None and anchors.search(line):
            self._note_errors(line, wanted)

    def _note_errors(self, line: str, wanted: Iterable[_Mark]) -> None:
        """Note the errors that a line names; for a class, or words with a frame beside them, no stack is needed."""
        errors = dict.fromkeys(
            (error for name in _find_classes(line) for error in _errors_by_class().get(name, ())), True
        )
        for error, phrase in wanted:
            if phrase.is_in(line):
                errors.setdefault(error, any(map(line.__contains__, error.frames)))
        for error, sure in errors.items():
            other = bool(self._ends) and self.query not in self._ends
            self._pending.append(Hit(error, self._make_key(broad=error.broad), line, other=other, sure=sure))

    def _make_key(self, *, broad: bool) -> _Key:
        return (
            self.query not in self._ends,
            self._level,
            -self._attempt,
            broad,
            not self._ended,
            -self._record,
            -self._depth,
        )

    def _begin(self, level: Level) -> None:
        self._end_record()
        self._record += 1
        self._level, self._depth, self._ended, self._ends = level, 0, False, set()

    def _end_record(self) -> None:
        self._close()
        for hit in self._kept:
            hit.innermost = self._innermost
        self._innermost, self._traceback, self._kept = "", False, []

    def _add_frame(self, line: str) -> None:
        for pending in list(self._pending):
            pending.foreign = pending.foreign or _LIBRARY.match(line) is None
            if pending.sure or not pending.error.frames or _is_in(line, pending.error.frames):
                self._keep(pending)
                self._pending.remove(pending)

    def _close(self) -> None:
        """No more of the stack comes: what needs a frame of it has it by now, or the stack has only libraries."""
        for pending in self._pending:
            if pending.sure or not pending.error.frames or (pending.error.bare and not pending.foreign):
                self._keep(pending)
        self._pending.clear()

    def _keep(self, pending: Hit) -> None:
        known = self.hits.setdefault(pending.error.id, pending)
        if known is not pending:
            known.times += 1
            known.other = known.other and pending.other
            if pending.key >= known.key:
                return
            known.key, known.line = pending.key, pending.line
        self._kept.append(known)


def _is_in(line: str, frames: tuple[str, ...]) -> bool:
    """Tell whether a line of a stack has one of these; a name alone is that of a class of Spark."""
    return any(frame in line and ("." in frame or "/" in frame or "org.apache.spark." in line) for frame in frames)


@cache
def _list_anchors(*, findings: bool) -> dict[str, list[_Mark]]:
    anchored: dict[str, list[_Mark]] = {}
    for error in known_texts() if findings else catalog():
        for phrase in error.phrases:
            anchored.setdefault(phrase.anchor, []).append((error, phrase))
    return anchored


@cache
def _errors_by_class() -> dict[str, list[KnownError]]:
    errors: dict[str, list[KnownError]] = {}
    for error in known_texts():
        for name in error.classes:
            errors.setdefault(name, []).append(error)
    return errors


def _find_classes(text: str) -> set[str]:
    """The error classes that stand in brackets in front of a message; of one with parts, the main class too."""
    return {part for match in _CLASS.finditer(text) for part in (match[0][1:-1], match[1])}
