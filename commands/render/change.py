"""What the pages and documents of all plans share: a headline, the steps, warnings, and what to type next."""

from collections.abc import Iterator, Sequence

from ckpt.change.apply import Receipt
from ckpt.change.backup import Content
from ckpt.change.steps import Step
from ckpt.model import Json
from ckpt.restart.forecast import Forecast
from ckpt.shell import quoted_path

from ..arguments import as_options
from .blocks import Block, Command, Heading, Headline, Item, Table, Tone, bullets, more
from .page import forecast_cases
from .text import plural

_STEPS = 12  # how many steps are named


def step_entry(step: Step) -> dict[str, Json]:
    """A step in JSON."""
    before, after = Content.of(step.before), Content.of(step.after)
    moved = after or before
    return {
        "action": step.action,
        "path": step.path,
        "bytes": moved.size if moved else 0,
        "from": step.source,
        "before": _content_entry(before),
        "after": _content_entry(after),
    }


def _content_entry(content: Content | None) -> Json:
    return None if content is None else {"bytes": content.size, "sha256": content.sha256}


def headline(said: str, *, bad: bool, waits: bool) -> Iterator[Block]:
    """What came of it: trouble, a plan that waits, or all is well."""
    yield Headline(said, Tone.ERROR if bad else Tone.WARNING if waits else Tone.GOOD)


def refusal(receipt: Receipt, refused: str | None) -> str | None:
    """Why there is no plan, or why it was not done; None where nothing went wrong."""
    reason = receipt.problem or refused
    return None if reason is None else as_options(reason)


def trouble(receipt: Receipt, refused: str | None) -> str | None:
    """The same as a headline."""
    reason = refusal(receipt, refused)
    if reason is None:
        return None
    state = ", and everything is as it was" if receipt.undone else ""
    return f"{'NO PLAN' if refused else 'NOT DONE'}{state}: {reason}"


def undone(steps: Sequence[Step], what: str) -> str:
    """A headline for a change that was taken back."""
    return f"UNDONE: the checkpoint is as it was before {what}" if steps else "NOTHING TO UNDO: all is as it was"


def before_and_after(before: Sequence[Forecast], after: Sequence[Forecast], receipt: Receipt) -> Iterator[Block]:
    """How it starts without the steps, and with them; once an undo is done, the other way round."""
    first, then = ("Before", "Now") if _done(receipt) else ("Now", "After")
    yield Heading(first)
    yield forecast_cases(before)
    yield Heading(then)
    yield forecast_cases(after)


def _done(receipt: Receipt) -> bool:
    """Whether files were changed, by the plan or by taking it back."""
    return receipt.applied or receipt.undone


def steps_section(steps: Sequence[Step], receipt: Receipt, fact: str = "") -> Iterator[Block]:
    """The steps, in their order; ``fact`` is what is said of all of them."""
    if not steps:
        return
    rows = []
    for step in steps[:_STEPS]:
        size = "" if step.after is None else plural(len(step.after), "byte")
        rows.append((step.action, step.path, size, f"a copy of {step.source}" if step.source else ""))
    yield Heading("Done" if _done(receipt) else "Steps", fact)
    yield Table(tuple(rows))
    yield from more(len(steps) - _STEPS)


def warnings_section(warnings: Sequence[str], receipt: Receipt) -> Iterator[Block]:
    """What to mind; none of it once all is as it was. The first is to stop the query, and too late once it is done."""
    told = warnings[1:] if receipt.applied else warnings
    if told and not receipt.undone:
        yield Heading("Mind")
        yield from bullets(told)


def next_section(said: str, command: str) -> Iterator[Block]:
    """What to do now; a command stands on a line of its own, to be copied."""
    yield Item(said, 10, "Next")
    if command:
        yield Command(command)


def half_done(steps: Sequence[Step], receipt: Receipt) -> bool:
    """Whether a change was begun, and neither finished nor taken back; an undo has steps only where it was done."""
    return bool(receipt.problem and receipt.backup and steps) and not receipt.undone


def undo_command(command: str, receipt: Receipt) -> str:
    """How a change is taken back; ``command`` names the command and the checkpoint."""
    return f"{command} --undo {quoted_path(receipt.backup or '')}"
