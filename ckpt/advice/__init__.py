"""Advice as values: what to do, in which order, and what it does to rows; words come last.

Calls, texts with parts, and steps. Nothing here reads a checkpoint or knows one; ``fill`` takes what is ``Known``.
"""

from ckpt.advice.blanks import (
    CHECKPOINT as CHECKPOINT,
    Blank as Blank,
    Hole as Hole,
    Known as Known,
)
from ckpt.advice.calls import Call as Call, call as call
from ckpt.advice.steps import (
    NO_ROWS as NO_ROWS,
    UNKNOWN_ROWS as UNKNOWN_ROWS,
    Advice as Advice,
    Do as Do,
    Instruction as Instruction,
    RowCost as RowCost,
    RowsEffect as RowsEffect,
    Step as Step,
    advise as advise,
    again as again,
    do as do,
    left_out as left_out,
    run as run,
)
from ckpt.advice.words import (
    FIELDS as FIELDS,
    Code as Code,
    Name as Name,
    Option as Option,
    Setting as Setting,
    Words as Words,
    join as join,
    plain as plain,
    words as words,
)
