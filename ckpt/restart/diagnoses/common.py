"""How a diagnosis is declared, and words that several of them share."""

from functools import partial

from ckpt.advice import Advice, Words
from ckpt.restart.findings import Asked, Diagnosis, Severity
from ckpt.restart.legacy import to_advice, to_words
from ckpt.restart.sinks import AT_NEW, DROP_IDS, REMEMBERING

_ONLY_THAT = (
    f"Put back nothing else: an older copy of the whole folder repeats batch ids, and {REMEMBERING} silently drops "
    "rows under ids that it has seen."
)
RESTORE = (
    "Stop the query and put {path} back from a copy of the checkpoint (object stores with versioning keep one). "
    f"{_ONLY_THAT} Then look again before you start the query."
)
RESTORE_DEEP = RESTORE.replace("look again", "look again at every byte (`--deep`)")
"""For what shows only where every byte is read."""

REPAIR = (
    "`ckpt repair {checkpoint}` shows the fixes, and what each costs. If there is a copy of the checkpoint (object "
    f"stores with versioning keep one), you can instead stop the query and put {{path}} back from it. {_ONLY_THAT}"
)
REPAIR_DEEP = REPAIR.replace("`ckpt repair {checkpoint}`", "`ckpt repair {checkpoint} --deep`")
"""For errors that show only where every byte is read."""

NEW_STATE = (
    "Without a copy, `ckpt handoff {checkpoint}` says how a new query continues where this one stopped: with empty "
    f"state, to which the rows read so far do not count. Or start the query with {AT_NEW}, a new checkpoint: it reads "
    f"its sources from their beginning, so its state is right if they still have every row. Of sinks, {DROP_IDS}; any "
    "other sink gets rows again."
)
"""For state that is lost, with what each way without a copy costs."""


def _declare(
    severity: Severity,
    title: str,
    meaning: Words | str,
    remedy: Advice | str | None = None,
    when_asked: tuple[tuple[Asked, Severity], ...] = (),
) -> Diagnosis:
    """Declare a diagnosis; ``title`` is its code and its name, such as ``CKPT101 unreadable-log-file``."""
    code, name = title.split()
    return Diagnosis(code, name, severity, to_words(meaning), to_advice(remedy), when_asked)


note = partial(_declare, Severity.NOTE)
warning = partial(_declare, Severity.WARNING)
error = partial(_declare, Severity.ERROR)
