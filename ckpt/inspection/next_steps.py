"""The next steps: a person reads them at the end of a page, and a program finds them in the document."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from ckpt.texts import split_command

_SENTENCE_END = re.compile(r"(?<=[.:])\s+(?=[A-Z`])")
_COMMAND = re.compile(r"`(ckpt [^`]*)`")
_ALTERNATIVE = re.compile(r"(?:Or|Otherwise|If there is|If not|If it (?:was|is) not|Without (?:one|a copy))\b")
_LOOK_AGAIN = re.compile(r"(?:Then run|Run|Inspect)\b")
_NO_REPAIR = ("inspect", "handoff")  # of this checkpoint: one looks at it, the other is about a new query
_TO_FILL_IN = re.compile(r"[A-Z][A-Z_]*")
_FROM_COPY = re.compile(r"\bback from (?:a copy|it)\b|\bfrom a copy\b")


class RowCost(StrEnum):
    """The cost of a step in rows of the query."""

    NONE = "none"  # nothing: none is left out, and none is read again
    AGAIN = "again"  # some are read again; a sink that does not remember batch ids gets them twice
    LEFT_OUT = "left-out"  # some are never read, or are dropped by a sink
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NextStep:
    """One step, in the order of recommendation; without a command a person has to do what it says."""

    what: str  # sentences, in which commands stand in backquotes
    shell: str = ""  # the command as a line of a shell; with a word in capitals it cannot be run as it is
    rows: RowCost = RowCost.UNKNOWN
    writes: bool = False  # the command changes a checkpoint, or writes something new
    before: tuple[str, ...] = ()  # what a person has to do before it
    stop: bool = False  # no command helps: only a copy of the checkpoint does

    @property
    def command(self) -> tuple[str, ...] | None:
        """The words of the command, unquoted; None where there is none that can be run as it is."""
        words = split_command(self.shell)
        names_something = len(words) >= 3 and words[0] == "ckpt"  # as ``ckpt inspect CHECKPOINT`` does
        return words if names_something and not any(map(_TO_FILL_IN.fullmatch, words)) else None


def split_remedy(remedy: str) -> tuple[NextStep, ...]:
    """Split the remedy of a finding into steps: each sentence with a command, or with another possibility, begins one.

    A command only reads or plans: what it costs is said by the plan.
    """
    steps: list[NextStep] = []
    for sentence in _split_sentences(remedy):
        command = next(_find_commands(sentence), "")
        another = command and steps and (steps[-1].shell or sentence.startswith("Then "))
        if not steps or another or _ALTERNATIVE.match(sentence):
            steps.append(NextStep(sentence, command))
        else:
            steps[-1] = NextStep(f"{steps[-1].what} {sentence}", steps[-1].shell or command)
    helps = any(step.shell and split_command(step.shell)[1] not in _NO_REPAIR for step in steps)
    return tuple(
        replace(step, rows=RowCost.NONE) if step.shell else replace(step, stop=not helps and needs_copy(step.what))
        for step in steps
    )


def needs_copy(text: str) -> bool:
    """Tell whether a remedy is to put something back from a copy of the checkpoint, or may be."""
    return bool(_FROM_COPY.search(text))


def drop_repairs(steps: Iterable[NextStep]) -> tuple[NextStep, ...]:
    """Keep the steps that neither repair the checkpoint in place nor need a copy of it."""
    return tuple(step for step in steps if "`ckpt repair" not in step.what and not needs_copy(step.what))


def _find_commands(sentence: str) -> Iterator[str]:
    """Find the commands that can be run as they are, but for one that was run already: ``ckpt inspect``."""
    for command in _COMMAND.findall(sentence):
        words = NextStep("", command).command
        if words and (words[1] != "inspect" or _LOOK_AGAIN.match(sentence)):
            yield command


def _split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences; one never ends inside backquotes."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if text.count("`", start, end.start()) % 2 == 0:
            yield text[start : end.start()]
            start = end.end()
    yield text[start:]
