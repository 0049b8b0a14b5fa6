"""Advice as values: what to do, in which order, and what it does to rows; words come last.

Calls, texts with parts, and steps. Nothing here reads a checkpoint or knows one; ``fill`` takes what is ``Known``.
"""

from ckpt.advice.blanks import BATCH, CHECKPOINT, PATH, Blank, Hole, Known
from ckpt.advice.calls import Call, TextPart, call
from ckpt.advice.steps import (
    NO_ROWS,
    UNKNOWN_ROWS,
    Advice,
    Do,
    Instruction,
    RowCost,
    RowsEffect,
    Step,
    advise,
    again,
    do,
    left_out,
    run,
)
from ckpt.advice.words import FIELDS, Code, Fields, Name, Option, Setting, Words, join, plain, words

__all__ = [  # noqa: RUF022
    "Advice",
    "BATCH",
    "Blank",
    "CHECKPOINT",
    "Call",
    "Code",
    "Do",
    "FIELDS",
    "Fields",
    "Hole",
    "Instruction",
    "Known",
    "NO_ROWS",
    "Name",
    "Option",
    "PATH",
    "RowCost",
    "RowsEffect",
    "Setting",
    "Step",
    "TextPart",
    "UNKNOWN_ROWS",
    "Words",
    "advise",
    "again",
    "call",
    "do",
    "join",
    "left_out",
    "plain",
    "run",
    "words",
]
