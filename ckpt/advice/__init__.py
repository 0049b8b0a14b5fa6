"""Advice as values: what to do, in which order, and what it does to rows; words come last.

Calls, texts with parts, and steps. Nothing here reads a checkpoint or knows one; ``fill`` takes what is ``Known``.
"""

from ckpt.advice.blanks import BATCH, CHECKPOINT, PATH, Blank, Hole, Known
from ckpt.advice.calls import Call, call
from ckpt.advice.steps import (
    NO_ROWS,
    UNKNOWN_ROWS,
    Advice,
    Do,
    Instruction,
    Needs,
    RowCost,
    RowsEffect,
    Step,
    advise,
    again,
    do,
    left_out,
    run,
)
from ckpt.advice.words import FIELDS, Code, Fields, Name, Option, Part, Setting, Words, join, plain, words

__all__ = [
    "BATCH",
    "CHECKPOINT",
    "FIELDS",
    "NO_ROWS",
    "PATH",
    "UNKNOWN_ROWS",
    "Advice",
    "Blank",
    "Call",
    "Code",
    "Do",
    "Fields",
    "Hole",
    "Instruction",
    "Known",
    "Name",
    "Needs",
    "Option",
    "Part",
    "RowCost",
    "RowsEffect",
    "Setting",
    "Step",
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
