"""Warnings before a checkpoint is relocated."""

from collections.abc import Iterator, Sequence

from ckpt.changes.plan import STOP_FIRST
from ckpt.changes.relocate.outside import OutsidePaths


def warn_of_relocation(
    target: str, recorded: Sequence[str], held: Sequence[OutsidePaths], *, away: bool
) -> Iterator[str]:
    """Return the warnings of a plan.

    Args:
        target: The root under which Spark will open the checkpoint, as Spark spells it.
        recorded: The roots under which it looks for its schemas now.
        held: Absolute paths that stay unchanged.
        away: That is not its current location.

    """
    yield STOP_FIRST
    if away:
        yield (
            f"Afterwards it opens as {target} and nowhere else: move all of it there before anything starts it or "
            "reads its state."
        )
    if "%" in target or " " in target:
        yield (
            f"Spark takes {target} literally, and runs the query there. But its state reader finds nothing below a "
            "path with a space or a percent sign; locally a symbolic link without them helps."
        )
    if any(root != target for root in recorded):
        yield (
            f"A checkpoint that was copied is one query in two places: never start it again at {recorded[0]} as well, "
            "or both write the same batch ids to the same sink."
        )
    for place_held in held:
        yield place_held.meaning
