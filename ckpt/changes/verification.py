"""Whether a checkpoint, once changed, is as its plan promised: what the next start does, asked again."""

from collections.abc import Sequence
from dataclasses import replace

from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import CkptError
from ckpt.inspection.inspection import inspect
from ckpt.restart.forecast import Forecast
from ckpt.storage import Storage


def broken_promise(promised: Sequence[Forecast], storage: Storage) -> str | None:
    """What is not as the plan promised, or None."""
    versions = tuple(dict.fromkeys(f.spark for f in promised))
    try:
        now = inspect(read_checkpoint(storage), versions).forecasts
    except CkptError as error:
        return f"the result cannot be checked: {error}"
    if [replace(f, because=()) for f in now] == [replace(f, because=()) for f in promised]:
        return None
    return "the checkpoint is not what the plan promised: a query or something else wrote to it meanwhile"
