"""Texts that are not values yet."""

import re
import shlex
from collections.abc import Iterator

from ckpt.advice import NO_ROWS, Advice, Blank, Call, Code, Do, Instruction, Name, Needs, Step, Words
from ckpt.advice.words import AnyPart

_SENTENCE_END = re.compile(r"(?<=[.:])\s+(?=[A-Z`])")
_ALTERNATIVE = re.compile(r"(?:Or|Otherwise|If there is|If not|If it (?:was|is) not|Without (?:one|a copy))\b")
_LOOK_AGAIN = re.compile(r"(?:Then run|Run|Inspect)\b")
_FROM_COPY = re.compile(r"\bback from (?:a copy|it)\b|\bfrom a copy\b")
_TO_FILL_IN = re.compile(r"[A-Z][A-Z_]*")
_PIECE = re.compile(r"`([^`]*)`|(\{(?:path|batch|checkpoint)\})|\{\{")
_BLANKS = {"{checkpoint}": Blank.CHECKPOINT, "{path}": Blank.PATH, "{batch}": Blank.BATCH}
_COPIED = re.compile(r"(?:ckpt |mkdir |grep |[.])")
_FLAGS = frozenset(
    [
        "accept-fewer-versions",
        "accept-from-now-on",
        "accept-loss",
        "accept-replay",
        "accept-skip",
        "all",
        "all-versions",
        "apply",
        "combine",
        "count",
        "deep",
        "files-only",
        "in-place",
        "leftovers",
        "must-exist",
        "new-id",
        "partition-id",
        "plan",
        "quiet",
        "restore-sink",
        "salvage",
        "skew",
        "superseded",
        "sources",
        "timers",
        "verify",
    ]
)


def to_words(text: "str | Words") -> Words:
    if isinstance(text, Words):
        return text
    parts: list[AnyPart] = []
    end = 0
    for piece in _PIECE.finditer(text):
        parts.append(text[end : piece.start()])
        end = piece.end()
        if piece[1] is not None:
            parts.append(_quoted(piece[1]))
        elif piece[2] is not None:
            parts.append(_BLANKS[piece[2]])
        else:
            parts.append("{")
    parts.append(text[end:])
    return Words(tuple(part for part in parts if part != ""))


def _quoted(text: str) -> AnyPart:
    if text.startswith("ckpt "):
        return to_call(text)
    if _COPIED.match(text):
        return Code(text.replace("{{", "{"))
    return Name(text)


def to_call(line: str) -> AnyPart:
    try:
        words = shlex.split(line)
    except ValueError:
        return Code(line)
    length = 3 if words[1:2] and words[1] in ("state", "offsets", "migrate") else 2
    name = "_".join(words[1:length]).replace("-", "_")
    places, options = [], []
    rest = iter(words[length:])
    for word in rest:
        if not word.startswith("--"):
            places.append(_BLANKS.get(word, word))
        else:
            option = word[2:].replace("-", "_")
            options.append((option, True if word[2:] in _FLAGS else _BLANKS.get(value := next(rest, ""), value)))
    return Call(name, tuple(places), tuple(options))


def to_advice(text: "str | Advice | None") -> Advice | None:
    if text is None or isinstance(text, Advice):
        return text
    steps: list[Step] = []
    for sentence in _split_sentences(text):
        call = next(_find_calls(sentence), None)
        another = call and steps and (steps[-1].call or sentence.startswith("Then "))
        what = to_words(sentence)
        if not steps or another or _ALTERNATIVE.match(sentence):
            steps.append(_step(what, call))
        else:
            last = steps[-1]
            steps[-1] = _step(last.what + " " + what, last.call or call)
    return Advice(tuple(steps))


def _step(what: Words, call: Call | None) -> Step:
    if call is not None:
        return Step(call, what, NO_ROWS)
    copy = bool(_FROM_COPY.search(str(what)))
    if copy:
        return Step(Instruction(Do.PUT_BACK, (Blank.PATH,)), what, needs=Needs.COPY)
    return Step(Instruction(Do.CHANGE), what)


def _find_calls(sentence: str) -> Iterator[Call]:
    for part in to_words(sentence).parts:
        if isinstance(part, Call) and part.arguments:
            values = (*part.arguments, *(value for _, value in part.options))
            open_ = any(isinstance(value, str) and _TO_FILL_IN.fullmatch(value) for value in values)
            if not open_ and (part.name != "inspect" or _LOOK_AGAIN.match(sentence)):
                yield part


def _split_sentences(text: str) -> Iterator[str]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if text.count("`", start, end.start()) % 2 == 0:
            yield text[start : end.start()]
            start = end.end()
    yield text[start:]
