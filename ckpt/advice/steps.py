"""Advice: the steps to take, each with its effect on the rows of the query."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain

from ckpt.advice.blanks import Blank, Known
from ckpt.advice.calls import Call
from ckpt.advice.spelling import list_words
from ckpt.advice.words import Code, Words, join, words


class RowCost(StrEnum):
    """The cost of a step in rows of the query."""

    NONE = "none"  # nothing: none is left out, and none is read again
    AGAIN = "again"  # some are read again; a sink that does not remember batch ids gets them twice
    LEFT_OUT = "left-out"  # some are never read, or are dropped by a sink
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RowsEffect:
    """The effect of a step on the rows of the query, and the batches of these rows."""

    cost: RowCost
    batches: tuple[int, int] | None = None  # the first and the last whose rows it is about, where that is known
    dropped_by: tuple[str, ...] = ()  # kinds of sinks that drop rows, where not every sink leaves them out


NO_ROWS, UNKNOWN_ROWS = RowsEffect(RowCost.NONE), RowsEffect(RowCost.UNKNOWN)


def again() -> RowsEffect:
    """Rows are read again."""
    return RowsEffect(RowCost.AGAIN)


def left_out(first: int | None = None, last: int | None = None, *, dropped_by: tuple[str, ...] = ()) -> RowsEffect:
    """Rows of these batches are never read, or are dropped by sinks of these kinds."""
    return RowsEffect(RowCost.LEFT_OUT, None if first is None else (first, first if last is None else last), dropped_by)


_MOST_PATHS = 1000  # that an instruction names: findings have the others


class Do(StrEnum):
    """Kinds of work that a person does because no call does it."""

    PUT_BACK = "put-back"  # files, from a copy of the checkpoint
    DELETE = "delete"  # files
    MOVE = "move"  # files, out of the checkpoint
    START = "start"  # the query, once more or differently
    WAIT = "wait"  # start nothing yet
    CHANGE = "change"  # the query, a setting, a table, or Spark's version
    FIND_OUT = "find-out"  # what only a person can know


@dataclass(frozen=True, slots=True)
class Instruction:
    """Work for a person."""

    do: Do
    paths: tuple[str | Blank, ...] = ()  # relative to the checkpoint
    line: Words = field(default=Words())  # of a shell, where another tool does it

    def fill(self, known: Known) -> "Instruction":
        """Return it for one checkpoint."""
        named = (known.paths[:_MOST_PATHS] if path is Blank.PATH and known.paths else (path,) for path in self.paths)
        return replace(self, paths=tuple(chain.from_iterable(named)), line=self.line.fill(known))


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a call, or what a person does."""

    do: Call | Instruction
    what: Words  # one or more sentences; the call is shown below them
    rows: RowsEffect = UNKNOWN_ROWS
    writes: bool = False  # the call changes a checkpoint, or writes something new
    before: tuple[Words, ...] = ()  # sentences: what a person has to do before it
    alternatives: tuple["Step", ...] = ()  # each instead of this step
    stop: bool = False  # no call helps: only a copy of the checkpoint does

    @property
    def words(self) -> tuple[str, ...] | None:
        """The words of the command line, if a program can run it."""
        return list_words(self.do) if isinstance(self.do, Call) and self.do.complete else None

    @property
    def call(self) -> Call | None:
        """The call, if it is one."""
        return self.do if isinstance(self.do, Call) else None

    @property
    def needs_copy(self) -> bool:
        """True if it puts something back from a copy."""
        return isinstance(self.do, Instruction) and self.do.do is Do.PUT_BACK

    @property
    def line(self) -> "Call | Code | None":
        """The call, or the command of another tool, that a page shows below the text."""
        if isinstance(self.do, Call):
            return self.do
        return Code("".join(text for _, text in self.do.line.segments())) if self.do.line else None

    def fill(self, known: Known) -> "Step":
        """Return the step for one checkpoint."""
        return replace(
            self,
            do=self.do.fill(known),
            what=self.what.fill(known),
            before=tuple(text.fill(known) for text in self.before),
            alternatives=tuple(step.fill(known) for step in self.alternatives),
        )

    @property
    def repairs(self) -> bool:
        """True if it runs or names a repair, which lists fixes of the checkpoint."""
        calls = (part for part in (self.do, *self.what.parts) if isinstance(part, Call))
        return any(call.name in ("repair", "repair_async") for call in calls)

    def or_(self, *others: "Step") -> "Step":
        """Return the step with alternatives to it, the better ones first."""
        return replace(self, alternatives=(*self.alternatives, *others))


@dataclass(frozen=True, slots=True)
class Advice:
    """Steps in their order, each with its alternatives."""

    steps: tuple[Step, ...] = ()

    def fill(self, known: Known) -> "Advice":
        """Return the advice for one checkpoint."""
        return Advice(tuple(step.fill(known) for step in self.steps))

    def lead(self, text: Words) -> "Advice":
        """Return the advice with sentences before the first step, such as the condition for all of it."""
        return Advice(tuple(replace(step, what=text + " " + step.what) for step in self.steps[:1]) + self.steps[1:])

    def all_steps(self) -> Iterator[Step]:
        """Yield the steps, after each its alternatives."""
        return flatten(self.steps)

    def without_repairs(self) -> "Advice":
        """Return what is left where ``repair`` has no fix and there is no copy; alternatives move up."""
        return self._keep(lambda step: not (step.repairs or step.needs_copy))

    def without(self, calls: Collection[Call]) -> "Advice":
        """Return the advice without some calls; alternatives move up."""
        return self._keep(lambda step: step.call not in calls)

    def _keep(self, wanted: Callable[[Step], bool]) -> "Advice":
        left = ([*filter(wanted, flatten((each,)))] for each in self.steps)
        return Advice(tuple(replace(first, alternatives=tuple(others)) for first, *others in filter(None, left)))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of its steps."""
        return tuple(step.call for step in self.all_steps() if step.call is not None)

    def mark_stop(self, *, only_copy: bool = True) -> "Advice":
        """Return the advice with a mark on each step of a copy, if no call of it helps the checkpoint."""
        calls = (step.call for step in self.all_steps())
        helps = any(call is not None and call.complete and call.name not in _NO_REPAIR for call in calls)
        return Advice(tuple(_mark(step, stops=only_copy and not helps) for step in self.steps))

    @property
    def repairs(self) -> bool:
        """True if one of the steps runs or names a repair."""
        return any(step.repairs for step in self.all_steps())

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __add__(self, other: "Advice") -> "Advice":
        """Put other steps after these."""
        return Advice((*self.steps, *other.steps))

    def __str__(self) -> str:
        """Return the advice as the sentences of a document."""
        return " ".join(map(str, self.sentences()))

    def sentences(self) -> Iterator[Words]:
        """Yield the sentences of each step."""
        for step in self.steps:
            yield sentence(step)
            yield from (words("Or: {other}", other=sentence(other)) for other in step.alternatives)


def flatten(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps, after each its alternatives."""
    for step in steps:
        yield from (step, *step.alternatives)


_NO_REPAIR = ("inspect", "handoff")  # of this checkpoint: one looks at it, the other is about a new query


def _mark(step: Step, *, stops: bool) -> Step:
    others = tuple(_mark(other, stops=stops) for other in step.alternatives)
    return replace(step, stop=stops and step.needs_copy, alternatives=others)


def advise(*steps: Step) -> Advice:
    """Advise steps, in their order.

    >>> from ckpt.advice import CHECKPOINT, advise, call, run, words
    >>> str(advise(run(call("repair", CHECKPOINT), words("See the fixes, and what each costs."))))
    'See the fixes, and what each costs: `ckpt repair CHECKPOINT`.'
    """
    return Advice(steps)


def run(
    call: Call,
    what: Words,
    *,
    rows: RowsEffect = NO_ROWS,
    writes: bool = False,
    before: Iterable[Words] = (),
) -> Step:
    """Advise a call; one that only reads or plans costs no row, for its plan says what the change costs."""
    return Step(call, what, rows, writes, tuple(before))


def do(
    kind: Do,
    what: Words,
    *paths: str | Blank,
    rows: RowsEffect = UNKNOWN_ROWS,
    before: Iterable[Words] = (),
) -> Step:
    """Advise what a person does."""
    return Step(Instruction(kind, paths), what, rows, before=tuple(before))


def sentence(step: Step) -> Words:
    """Return a step as a sentence, which ends with its command."""
    text = join((*step.before, step.what))
    if step.line is None or step.line in text.parts:
        return text
    *parts, last = text.parts or ("",)
    if isinstance(last, str):
        last = last.rstrip().rstrip(".:")
    return Words((*parts, last)) + Words((": ", step.line, "."))
