"""What somebody has to know before a repair, in words."""

from collections.abc import Iterator, Sequence

from ckpt.changes.plan import STOP_FIRST
from ckpt.changes.rewind.warnings import named_sinks
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import Pattern, pattern
from ckpt.inspection.verdict import spell
from ckpt.restart.forecast import Forecast
from ckpt.restart.sinks import DROPS_OR_REPEATS, AboutSinks

_SINKS = f"What the sink does with batches that run again: {DROPS_OR_REPEATS}; upserts by key are safe."


def warnings(checkpoint: Checkpoint, logged: int, failing: Sequence[Forecast], *, finished: bool) -> Iterator[str]:
    """What to say of a plan.

    Args:
        checkpoint: As it is.
        logged: The newest batch whose offsets can be read now.
        failing: Forecasts of starts that still fail after the plan.
        finished: Whether the plan reads rows of finished batches again.

    """
    yield STOP_FIRST
    if not checkpoint.stateful:
        yield _unlogged(checkpoint, logged)
    if finished:
        yield AboutSinks(_SINKS + named_sinks(checkpoint))
    for error in dict.fromkeys(f.error for f in failing):
        versions = spell([f.spark for f in failing if f.error == error])
        yield f'Spark {versions} still will not start: "{error}".'


def _unlogged(checkpoint: Checkpoint, logged: int) -> str:
    by_design = pattern(checkpoint) is Pattern.ASYNC_PROGRESS
    when = "" if by_design else "If the query ran with asynchronous progress tracking: "
    return (
        f"{when}{'r' if when else 'R'}ows after the end of batch {logged} may be in the sink already, written by "
        "batches that asynchronous tracking had not logged. Any start reads and writes them again, under batch ids "
        "that were used before, and no log says how far they go."
    )
