"""Blocks of a page: they say what a text is, without width, colour or escapes; a layout knows those.

A page is parts with a blank line between them, a part is blocks one below the other. Text is as it was found: the
layout escapes what its reader would obey (a terminal, a browser).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum, auto
from typing import Any, NamedTuple

from ckpt import advice
from ckpt.advice import Advice, Call, Do, RowCost, Setting, Step, Words, join, plain, run, words
from ckpt.advice.words import is_quoted
from ckpt.restart.findings import Severity
from ckpt.storage.locations import is_same_kind, local_path


class Tone(Enum):
    """How bad a headline is."""

    GOOD = auto()
    NOTE = auto()
    WARNING = auto()  # also a plan that was not applied yet
    ERROR = auto()
    PLAIN = auto()


TONES = {Severity.NOTE: Tone.NOTE, Severity.WARNING: Tone.WARNING, Severity.ERROR: Tone.ERROR}


@dataclass(frozen=True, slots=True)
class Title:
    """Subject of a page: a name, and facts that each stay on one line."""

    name: str
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Headline:
    """Sentence that a tired reader has to know, before anything else."""

    text: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Heading:
    """The first line of a section: its name, and what is said of all of it."""

    name: str
    fact: str = ""


class TextSegment(NamedTuple):
    """A segment of a paragraph."""

    text: str
    copied: bool = False  # a call, code or a setting: it is never folded, so that it can be copied
    alone: bool = False  # a whole command, which a terminal shows on a line of its own


def segments(text: str | Words) -> Iterator[TextSegment]:
    """Yield the segments of a text; names stand in backquotes."""
    for part, shown in plain(text).segments():
        copied = isinstance(part, Call | advice.Code | Setting)
        alone = isinstance(part, Call) and bool(part.arguments)
        yield TextSegment(f"`{shown}`" if not copied and is_quoted(part) else shown, copied, alone)


def spell(line: str | Call | advice.Code) -> str:
    """Write a line that is to be copied."""
    return line if isinstance(line, str) else "".join(shown for _, shown in Words((line,)).segments())


@dataclass(frozen=True, slots=True)
class Item:
    """A paragraph. A terminal indents it by ``indent`` columns, with ``label`` in front of its first line."""

    text: str | Words
    indent: int = 2
    label: str = ""  # a name, a number or a bullet


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is never folded, because it is short or because it is copied: a setting, a path."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A call, or a line of another tool, to be copied."""

    text: str | Call | advice.Code
    indent: int = 10


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A file to be copied, as it is."""

    text: str


class TooWide(Enum):
    """Treatment of a table that is wider than the page."""

    RUN_OVER = auto()
    DROP = auto()  # its last columns are left out, down to the one that is kept, which is folded
    STACK = auto()  # the columns of a row are shown one below the other


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table with what only a browser shows of it."""

    text: str
    more: str = ""  # said after the text
    tone: Tone = Tone.PLAIN
    section: str = ""  # the id of the section of the document that it leads to

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in aligned columns."""

    rows: tuple[tuple[str | Cell, ...], ...]
    heads: tuple[str, ...] = ()
    too_wide: TooWide = TooWide.RUN_OVER
    kept: str = ""  # for DROP: the head of the last column that is kept; by default the third
    closed: str | Words = ""  # shown instead of the rows; a browser opens them
    opened_by: str | Words = ""  # what shows the rows where nothing opens them


@dataclass(frozen=True, slots=True)
class Cases:
    """Rows whose last cell is a sentence, which is folded: what holds in which case."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class FindingHead:
    """The first line of a finding."""

    severity: Severity
    name: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class TypedStorage:
    """Storage options of a command line, ``KEY=VALUE`` each: the commands that its page advises repeat them."""

    checkpoint: str
    new: tuple[str, ...] = ()  # the places of new checkpoints
    options: tuple[str, ...] = ()
    own: tuple[str, ...] = ()  # of NEW

    def repeat(self, step: Step) -> Step:
        """Return a step whose commands reach the same storages; whoever prints it masks secrets."""
        step = replace(step, alternatives=tuple(map(self.repeat, step.alternatives)))
        named = step.do.arguments if isinstance(step.do, Call) else ()
        remote = [str(uri) for uri in named if isinstance(uri, str) and local_path(uri) is None]
        if not isinstance(step.do, Call) or not remote:
            return step
        is_new = bool(self.new) and remote[-1].startswith(self.new)
        options, own = self.options or None, self.own if is_new else ()
        if is_new and len(named) == 1:  # a command for the new checkpoint alone
            near = local_path(self.checkpoint) is not None or is_same_kind(self.checkpoint, remote[0])
            options, own = self.own or (options if near else None), ()
        return replace(step, do=step.do.but(storage_options=options, to_storage_options=own or None))


TYPED: ContextVar[TypedStorage | None] = ContextVar("typed", default=None)
"""Storage options of the running command."""


@dataclass(frozen=True, slots=True)
class Next:
    """The end of a page: what is to be done next, which is ``next`` of the document too."""

    steps: tuple[Step, ...]
    otherwise: str | Words | Advice = ""  # said where nothing is to be done
    numbered: bool = False  # all of them, one after the other
    shown: bool = True  # False: in the document only, where the page is code to be copied

    def __post_init__(self) -> None:
        if (typed := TYPED.get()) is not None:
            object.__setattr__(self, "steps", tuple(map(typed.repeat, self.steps)))


Plain = Title | Headline | Heading | Item | Line | Command | CodeBlock | Table | Cases | FindingHead
Block = Plain | Next
Part = tuple[Block, ...]
Page = tuple[Part, ...]


def page_of(*parts: Iterable[Block]) -> Page:
    """The parts that hold something, in their order."""
    return tuple(part for part in map(tuple, parts) if part)


def lay_out_next(block: Next) -> Iterator[Item | Command]:
    """The steps of a page as paragraphs, each with its command on a line of its own if the sentence has it not."""
    if not block.shown:
        return
    steps, otherwise = block.steps, block.otherwise
    if isinstance(otherwise, Advice):
        steps = steps or otherwise.steps
    elif not steps and otherwise:
        yield Item(otherwise, _MARGIN, NEXT)
    for number, step in enumerate(steps, 1):
        label = NEXT if number == 1 else "" if block.numbered else THEN
        label = f"{label:{_MARGIN - 3}}{number}." if block.numbered else label
        yield from _lay_out_step(step, _MARGIN, label)
        for other in step.alternatives:
            yield from _lay_out_step(other, _MARGIN, OR)


_TO_DO = {
    Do.PUT_BACK: "Restore from a copy",
    Do.DELETE: "Delete, but only if the condition under Next holds",
    Do.MOVE: "Move out of the checkpoint",
    Do.START: "Start the query as described under Next",
    Do.WAIT: "Do not start the query yet",
    Do.CHANGE: "Change what is described under Next",
    Do.FIND_OUT: "Answer the question under Next before you start the query",
}


_ROWS = {
    RowCost.NONE: "",
    RowCost.AGAIN: "Rows are read again: first read about sinks on this page.",
    RowCost.LEFT_OUT: "Rows are skipped: first read about skipped rows on this page.",
    RowCost.UNKNOWN: "",
}


def show_outcome(text: str, tone: Tone, steps: Iterable[Step] = (), cause: str = "") -> Iterator[Block]:
    """The first lines of a page: the outcome with its cause, and the command of the first step, or what to do."""
    yield Headline(text, tone)
    if cause:
        yield Item(cause)
    for step in [*steps][:1]:
        if before := join((*step.before, *([_ROWS[step.rows.cost]] if step.writes else []))):
            yield Item(before)
        if step.line is not None:
            yield Command(step.line, 2)
        elif not isinstance(step.do, Call):
            first, *others = [path for path in step.do.paths if isinstance(path, str)] or [""]
            paths = f": {first}" + (f" and {len(others)} more" if others else "")
            yield Item(_TO_DO[step.do.do] + (paths if first else ""))


def show_advice(about: Advice, indent: int, label: str) -> Iterator[Block]:
    """Advice on a page, as paragraphs with the calls below them."""
    for number, step in enumerate(about.steps):
        yield from _lay_out_step(step, indent, label if number == 0 else "")
        for other in step.alternatives:
            yield from _lay_out_step(replace(other, what=words("Or: {what}", what=other.what)), indent, "")


def _lay_out_step(step: Step, indent: int, label: str) -> Iterator[Item | Command]:
    yield Item(join((*step.before, step.what)), indent, label)
    if step.line is not None and step.line not in step.what.parts:
        yield Command(step.line, indent)


NEXT, OR, THEN, _MARGIN = "Next", "Or", "Then", 10  # headings in the margin of a terminal, and how wide that is


def flatten_page(page: Page) -> Iterator[Plain]:
    """The blocks of all parts, with the next steps laid out; a document begins with its title."""
    if len(page) > 1 and isinstance(page[1][0], Title):
        page = (page[1], page[0], *page[2:])
    for block in (block for part in page for block in part):
        yield from lay_out_next(block) if isinstance(block, Next) else (block,)


def bullets(texts: Iterable[str | Words], most: int | None = None) -> Iterator[Item | Line]:
    """A list of sentences, ``most`` of them, and how many are left out."""
    shown = [*texts]
    yield from (Item(text, 4, "  - ") for text in shown[:most])
    yield from more(len(shown) - most) if most is not None else ()


def show_warnings(warnings: Iterable[str | Words]) -> Iterator[Block]:
    """The section of warnings, if there are any."""
    if items := list(bullets(warnings)):
        yield Heading("Warnings")
        yield from items


def show_call(call: Call, what: Words, *, writes: bool = False) -> Iterator[Block]:
    """The end of a page: advice to make a call, which costs no row."""
    yield Next((run(call, what, writes=writes),))


def more(left: int) -> Iterable[Line]:
    """How many entries of a list are left out, if any; ``left`` may be negative."""
    return (Line(str(words("  and {left} more: see {fields}", left=f"{left:,}"))),) if left > 0 else ()


def _change_pair(key: str | int, value: Any, change: Callable[[str], str]) -> tuple[str | int, Any]:
    """A key and its value, which both may tell a secret: they are changed together."""
    if not isinstance(value, str) or isinstance(value, Enum):
        return change_texts(key, change), change_texts(value, change)
    changed, _, rest = change(f"{key}={value}").partition("=")
    return changed, rest


def change_texts(part: Any, change: Callable[[str], str]) -> Any:
    """A page, or what it consists of, with every text changed: a layout may fold a text, or escape a part of it."""
    match part:
        case Enum():  # some are texts too
            return part
        case str():
            return change(part)
        case tuple():
            return tuple(change_texts(each, change) for each in part)
        case Mapping():
            return dict(_change_pair(key, value, change) for key, value in part.items())
        case _ if is_dataclass(part) and not isinstance(part, type):
            return replace(part, **{each.name: change_texts(getattr(part, each.name), change) for each in fields(part)})
    return part
