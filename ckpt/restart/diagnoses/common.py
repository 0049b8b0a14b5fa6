"""How a diagnosis is declared, and advice that several of them share."""

from functools import partial

from ckpt.advice import CHECKPOINT, PATH, Advice, Blank, Code, Do, Step, Words, advise, call, do, run, words
from ckpt.restart.findings import Asked, Diagnosis, Severity
from ckpt.restart.sinks import Ids, OnSinks

AT_NEW = Code('.writeStream.option("checkpointLocation", "NEW")')
"""How a query is started with a new checkpoint."""
ONLY_THAT = words(
    "Put back nothing else: an older copy of the whole folder repeats batch ids, and {sinks}.",
    sinks=OnSinks(Ids.REUSED),
)
_LOOK_AGAIN = words("Then look again before you start the query.")
_LOOK_AGAIN_DEEP = words("Then look again at every byte before you start the query.")


def put_back(*paths: str | Blank, named: Words | None = None, then: Words = _LOOK_AGAIN) -> Step:
    """Advise to put files back from a copy of the checkpoint; ``named`` is how a sentence names them."""
    what = words(
        "Stop the query and put {paths} back from a copy of the checkpoint (object stores with versioning keep one). "
        "{only_that} {then}",
        paths=named or words("{path}"),
        only_that=ONLY_THAT,
        then=then,
    )
    return do(Do.PUT_BACK, what, *(paths or (PATH,)))


def or_put_back(*paths: str | Blank, named: Words | None = None, then: Words = _LOOK_AGAIN) -> Step:
    """Advise the same as an alternative, for whoever has a copy."""
    what = words(
        "If there is a copy of the checkpoint (object stores with versioning keep one), stop the query and put {paths} "
        "back from it. {only_that} {then}",
        paths=named or words("{path}"),
        only_that=ONLY_THAT,
        then=then,
    )
    return do(Do.PUT_BACK, what, *(paths or (PATH,)))


SHOW_FIXES = words("See the fixes, and what each costs.")
RESTORE = advise(put_back())
RESTORE_DEEP = advise(put_back(then=_LOOK_AGAIN_DEEP))
"""For what shows only where every byte is read."""


def repair(*paths: str | Blank, named: Words | None = None, deep: bool = False) -> Advice:
    """Advise ``ckpt repair``, or to put files back where there is a copy."""
    fixes = call("repair", CHECKPOINT, deep=True) if deep else call("repair", CHECKPOINT)
    then = _LOOK_AGAIN_DEEP if deep else _LOOK_AGAIN
    return advise(run(fixes, SHOW_FIXES).or_(or_put_back(*paths, named=named, then=then)))


REPAIR = repair()
REPAIR_DEEP = repair(deep=True)
"""For errors that show only where every byte is read."""
REPAIR_ASYNC = run(call("repair_async", CHECKPOINT), words("See the plan of a repair, and what is read again."))
"""For offsets that only a synchronous start misses."""

NEW_CHECKPOINT = do(
    Do.START,
    words(
        "Start the query with {at_new}, a new checkpoint: it reads its sources from their beginning, so its state is "
        "right if they still have every row. With a new checkpoint, {sinks}.",
        at_new=AT_NEW,
        sinks=OnSinks(Ids.NEW_QUERY),
    ),
)
"""For what sends somebody to a new checkpoint."""
HAND_OFF = run(
    call("handoff", CHECKPOINT),
    words(
        "Without a copy, see how a new query continues where this one stopped: with empty state, to which the rows "
        "read so far do not count."
    ),
)
NEW_STATE = (HAND_OFF, NEW_CHECKPOINT)
"""Alternatives for state that is lost, with what each costs."""


def _declare(
    severity: Severity,
    title: str,
    meaning: Words,
    advice: Advice | Step | None = None,
    when_asked: tuple[tuple[Asked, Severity], ...] = (),
) -> Diagnosis:
    """Declare a diagnosis; ``title`` is its code and its name, such as ``CKPT101 unreadable-log-file``."""
    code, name = title.split()
    steps = advise(advice) if isinstance(advice, Step) else advice
    return Diagnosis(code, name, severity, meaning, steps, when_asked)


note = partial(_declare, Severity.NOTE)
warning = partial(_declare, Severity.WARNING)
error = partial(_declare, Severity.ERROR)
