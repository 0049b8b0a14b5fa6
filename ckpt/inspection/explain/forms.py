"""The forms in which people have a text, made the one that a log writer gave it: the one place that knows them.

A text may come through a terminal (colours, wrapped lines), a page (HTML), a collector of logs (JSON, a prefix before
every line, line ends as two characters) or a chat (quoted, without indentation, all in one line).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import chain, pairwise

from ckpt.inspection.explain.levels import DATED_HEAD, HEAD, level_of, spell_head

_ANSI = re.compile(r"(?:\x1b|\^\[|#033|\\u001b|\\x1b|\\033)\[[0-9;]{0,20}[A-Za-z]")
_ESCAPES = ("\x1b[", "^[[", "#033[", "\\u001b[", "\\x1b[", "\\033[")
_ENTITY = re.compile(r"&(?:lt|gt|quot|amp|apos|nbsp|#\d{1,5}|#x[0-9a-fA-F]{1,4});")
_TAG = re.compile(r"</?(?:span|div|p|pre|code|td|tr|table|font|b|i|em|strong|li|ul|a|blockquote)(?: [^<>\n]{0,200})?>")
_BREAK = re.compile(r"<br ?/?>")
_MARKDOWN = re.compile(r"\\([\[\]_*])")
_CODE_CLASS = re.compile(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\.[A-Z0-9_]+)?)`")
_TYPED = str.maketrans("\xa0\u2018\u2019\u201c\u201d", " ''\"\"", "\u200b\ufeff")

_CALL = r"[\w$][\w$./@<>-]{1,400}\.[\w$<>-]{1,200}\([^()\n]{0,200}\)"  # of a stack: class, method, file and line
_ESCAPED_END = re.compile(r"(?:\\+r)?\\+n")
_ENDS_ESCAPED = re.compile(r"\\n(?:\\t|[ \t]|\\r)*(?:at |Caused by: |Traceback |File |: |\.\.\. \d)|\\n\S.*\\n")
_LATER = r"Caused by: [\w.$]+|\.\.\. \d+ (?:more|common frames)"
_AT = re.compile(  # what does not begin a line of its own, but should
    rf"(?m)(?<=\S)[ \t]{{1,64}}(?:at (?={_CALL})|(?={_LATER}))"
    rf"|^ {{0,64}}at (?={_CALL})|^at (?=(?:[\w$-]+\.){{2,}}[\w$]*\S*$)"
)
_HEAD_INSIDE = re.compile(rf"(?<=\S)[ \t]{{1,64}}(?={DATED_HEAD})")
_HEAD_LATER = re.compile(rf"(?<![\d\[(]){DATED_HEAD}")
_LONG_LINE = 2000  # characters: longer than lines are in the mean
_SHORT = 1 << 17  # characters of a text that may be records without line ends
_ERROR_CLASS = re.compile(
    r"[\"']?error[_.-]?[cC]lass[\"']?\s{0,3}[:=]\s{0,3}[\"']?([A-Z][A-Z0-9_]{4,99}(?:\.[A-Z0-9_]{2,99})?)\b"
)
_BARE_CLASS = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_.]*")
_BARE_CODE = re.compile(r"ckpt\d{3}", re.I)

_PREFIX = re.compile(  # what others put in front of every line
    r"(?:>[ \t]?)+|[ \t]{0,8}(?:\*|//) "
    r"|\[\d{4}-\d\d-\d\d[^\]\n]{0,40}\] \{[^}\n]{1,80}\} \w{1,10} - "  # Airflow
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?"  # runtimes
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d [\d:.]{8,15} \S{1,80} [\w./-]{1,80}(?:\[\d+\])?: ?"
    r"|[\w.-]{1,80}[ \t]*\| ?"  # docker compose
    r"|\[[\w./:-]{0,80}[a-z][\w./:-]{0,80}\][ \t]{1,3}"  # [spark-driver], [pod/name/container]
)
_LONGEST_PREFIX = 200
_HEAD = re.compile(HEAD)
_FEW = 50  # lines of a chunk, by which it is told that it has prefixes
_MARK = re.compile(rf"(?<=[^\w\n])at {_CALL}|Caused by: [\w.$]+|Traceback \(most recent call last\)|  File \"")
_SPEAKS = re.compile(r"Exception|Error\b|Throwable|failed|\[[A-Z_]{6}")  # of a failure: no prefix

_LISTED = ("msg", "message", "log", "textPayload", "@message", "_raw", "MESSAGE", "LogEntry", "body", "event")
_LEVELS = ("level", "severity", "levelname", "log.level", "loglevel")
_LOGGERS = ("logger", "loggerName", "logger_name", "log.logger")
_MESSAGES = ("msg", "message", "localizedMessage", "error.message")
_DEEPEST = 6
_STACKS = (
    "stacktrace",
    "stackTrace",
    "stack_trace",
    "extendedStackTrace",
    "error.stack_trace",
    "exception.stacktrace",
    "stack",
    "trace",
)
_NAMES = ("class", "name", "type", "className", "exceptionClass", "error.type")
_CLASSES = ("errorClass", "error_class", "errorCondition", "condition")
_WORTH = re.compile(r"Exception|Error|ERROR|WARN|FATAL|Starting \[|CKPT\d|error_?[cC]lass|terminated|\\[nt]")

_BROKEN_FRAME = re.compile(r"(?m)^[ \t]*at [\w$/@<>-]+\.[\w$./@<>-]+(?:\([^()\n]*)?\n(?=[^\n]*\S)")
_OPEN_FRAME = re.compile(r"[ \t]*at [^\s()]*(?:\([^()]*)?$")
_BEGINS = re.compile(
    r"[ \t]*at [\w$/@<>-]+\.|Caused by: |: ?[a-z]+\.|\s*\.\.\. \d+ |Traceback \(|[ \t]*File \""
    rf"|(?:Driver|JVM) stacktrace|[-=*#]{{3}}|{HEAD}"
)
_RAISED = re.compile(r"(?:[a-z][\w$]*\.)+[A-Z]\w*(?:Exception|Error)\b|[A-Z]\w+(?:Exception|Error): ")
_ROOT = re.compile(r"(?:java|javax|scala|org|com|io|net|py4j|pyspark)\.")  # of a name that is not cut
_NARROWEST, _WIDEST = 20, 400  # characters of a line of a screen
_WORD = 6  # characters: what a line that is cut at words usually lacks
_AS_LONG = 2  # lines that are as long as the longest, by chance
_MOST_WRAPPED = 20_000  # lines of a text that may come from a screen


def clean(text: str) -> list[str]:
    """The lines of a text, each as a log writer begins it: a head with a level, a tab before ``at``, ``Caused by``."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _undo_marks(text)
    text = _undo_json(text)
    if text.startswith('"') and text.rstrip().endswith('"') and isinstance(text_of_json := _load(text), str):
        text = text_of_json
    if "\\n" in text and _ENDS_ESCAPED.search(text):
        text = "\n".join(_undo_escapes(text.split("\n")))
    text = _drop_prefixes(text)
    if _BROKEN_FRAME.search(text) or _is_cut_at_one_width(text):
        text = "\n".join(unwrap(text.split("\n")))
    text = _AT.sub(_begin_line, text)
    if len(text) < _SHORT or len(text) > _LONG_LINE * (1 + text.count("\n")):
        text = _HEAD_INSIDE.sub("\n", text)
    if _BARE_CLASS.fullmatch(text.strip()):
        text = f"[{text.strip()}]"
    if _BARE_CODE.fullmatch(text.strip()):
        text = text.upper()
    return text.split("\n")


def _undo_marks(text: str) -> str:
    """Colours, HTML, and characters that a word processor put in the place of others."""
    if any(mark in text for mark in _ESCAPES):
        text = _ANSI.sub("", text)
    if "</" in text or "<br" in text:
        text = _TAG.sub("", _BREAK.sub("\n", text))
    for _ in range(2):  # escaped twice, by two pages
        if "&" in text and _ENTITY.search(text):
            text = _ENTITY.sub(lambda match: unescape(match[0]), text)
    if "`" in text:
        text = _CODE_CLASS.sub(r"[\1]", text)
    if "\\[" in text or "\\_" in text:
        text = _MARKDOWN.sub(r"\1", text)
    if any(mark in text for mark in ("rrorClass", "rror_class", "rror-class", "rror.class")):
        text = _ERROR_CLASS.sub(r"[\1]", text)
    if "#011" in text:
        text = text.replace("#011", "\t")
    return text if text.isascii() else text.translate(_TYPED)


def _undo_escapes(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if "\\n" in line and _ENDS_ESCAPED.search(line):
            line = _ESCAPED_END.sub("\n", line).replace("\\t", "\t").replace('\\"', '"')
        yield line


def _begin_line(match: re.Match[str]) -> str:
    within = match.start() > 0 and match.string[match.start() - 1] != "\n"
    return "\n" * within + "\tat " * match[0].endswith("at ")


# A prefix before every line


def _drop_prefixes(text: str) -> str:
    """Drop what stands before every line: of a known form, or learned from what stands before the lines of a stack."""
    lines = text.split("\n")
    sampled = lines[:: max(1, len(lines) // _FEW)]
    if any(_PREFIX.match(line) for line in sampled):
        lines = [_drop_known(line) for line in lines]
        text = "\n".join(lines)
    shapes = Counter(_find_shapes(text, sampled)).most_common(20)
    patterns = [r"\d+".join(map(re.escape, shape.split("0"))) + " ?" for shape, _ in shapes]
    if not patterns:
        return text
    prefixes = re.compile("|".join(patterns))
    if sum(prefixes.match(line) is not None for line in lines) < 2:
        return text
    return "\n".join(line[match.end() :] if (match := prefixes.match(line)) else line for line in lines)


def _drop_known(line: str) -> str:
    for _ in range(3):  # one in another
        match = _PREFIX.match(line)
        if match is None or _HEAD.match(line):
            break
        line = line[match.end() :]
    return line


def _find_shapes(text: str, sampled: Iterable[str]) -> Iterator[str]:
    """Yield what stands before lines of a stack, and before heads of records, with 0 for each number."""
    marks = ((text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]) for mark in _MARK.finditer(text))
    heads = (line[: head.start()] for line in sampled if (head := _HEAD_LATER.search(line, 1, _LONGEST_PREFIX)))
    for prefix in chain(marks, heads):
        if prefix.strip() and len(prefix) <= _LONGEST_PREFIX and not _SPEAKS.search(prefix):
            yield re.sub(r"\d+", "0", prefix.rstrip())


# JSON


def _undo_json(text: str) -> str:
    """Records of structured logs, or a text that is JSON as a whole, as the lines that a log would have had."""
    if "{" not in text:
        return text
    stripped = text.strip()
    if (stripped.startswith("[{") or (stripped.startswith("{") and "\n" in stripped)) and (
        whole := _load(stripped)
    ) is not None:
        return "\n".join(_spell(whole))
    return "\n".join(part for line in text.split("\n") for part in _unpack(line))


def _unpack(line: str) -> Iterable[str]:
    at = line.find('{"', 0, _LONGEST_PREFIX)
    at = 0 if at < 0 and line.startswith("{ ") else at
    if at < 0 or not line.rstrip().endswith("}") or not _WORTH.search(line) or _SPEAKS.search(line, 0, at):
        return (line,)
    record = _load(line[at:])
    lines = [*_spell(record)] if isinstance(record, dict) else []
    return lines or (line,)


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _first(record: dict[str, object], keys: Iterable[str]) -> str | None:
    return next((value for key in keys if isinstance(value := record.get(key), str) and value), None)


def _spell(value: object, depth: int = 0) -> Iterator[str]:
    """A record, and what was thrown in it, as lines; of a document of another kind, its texts."""
    if isinstance(value, str) and (" " in value or _SPEAKS.search(value)):
        yield from value.split("\n")
    if isinstance(value, list) and depth < _DEEPEST:
        for each in value:
            yield from _spell(each, depth + 1)
    if not isinstance(value, dict) or depth == _DEEPEST:
        return
    name = _first(value, _NAMES) or ""
    if depth and (not value.keys().isdisjoint(_STACKS) or _RAISED.match(f"{name}: ")):
        yield from f"{name}: {_first(value, _MESSAGES)}".split("\n")
        known: set[str] = {*_NAMES, *_MESSAGES}
    else:
        message = _first(value, _LISTED)
        level = _first(value, _LEVELS)
        head = spell_head(level, _first(value, _LOGGERS)) if level and not (message and level_of(message)) else ""
        error_class = _first(value, _CLASSES)
        head += f"[{error_class}] " if error_class and error_class.upper() == error_class else ""
        if message or head:
            yield from f"{head}{message or ''}".split("\n")
        known = {key for key in _LISTED if isinstance(value.get(key), str)} | {*_LEVELS, *_LOGGERS, *_CLASSES}
    yield from _spell_stack(value)
    for key, inner in value.items():
        if key not in known and key not in _STACKS:
            lines = _spell(inner, depth + 1)
            yield from ("Caused by: " * (key == "cause" and not number) + line for number, line in enumerate(lines))


def _spell_stack(record: dict[str, object]) -> Iterator[str]:
    for stack in (record.get(key) for key in _STACKS):
        if isinstance(stack, str):
            yield from stack.split("\n")
        elif isinstance(stack, list):
            for frame in stack:
                if isinstance(frame, dict):
                    of = _first(frame, ("class", "className", "declaringClass"))
                    yield f"\tat {of}.{_first(frame, ('method', 'methodName'))}({_first(frame, ('file', 'fileName'))})"
                elif isinstance(frame, str):
                    yield frame if frame.startswith("Caused by") else "\tat " + frame.strip().removeprefix("at ")


# Wrapped lines


def _is_cut_at_one_width(text: str) -> bool:
    lengths = Counter(map(len, text.split("\n")))
    width = max(lengths)
    return _NARROWEST <= width <= _WIDEST and lengths[width] > _AS_LONG


def unwrap(lines: list[str], *, spaces: bool = False) -> list[str]:
    """Join the lines that a screen or a page has wrapped; ``spaces``: always at spaces, also where a line is full."""
    lines = [line for line in lines if line.strip()]
    width = max(map(len, lines), default=0)
    lengths = Counter(map(len, lines[:-1]))
    if not _NARROWEST <= width <= _WIDEST or len(lines) > _MOST_WRAPPED:
        return lines
    nearly = sum(lengths[width - less] for less in range(1, _WORD))
    hard = lengths[width] > 2 * nearly and not spaces
    joined = lines[:1]
    for before, line in pairwise(lines):
        room = width - len(before)
        whole = room or _ROOT.match(line) or re.search(r"[^\w.$(]$", before)  # the line begins a word
        raised = whole and not before.rstrip().endswith(":") and _RAISED.match(line)
        if raised or _BEGINS.match(line) or (hard and room > 1):
            joined.append(line)
            continue
        in_frame = _OPEN_FRAME.match(joined[-1]) is not None
        word = before.split(" ")[-1] + line.split(" ")[0]
        inside = not room and (hard or in_frame or len(word) > width)
        joined[-1] += line if inside else " " + line.lstrip()
    return joined
