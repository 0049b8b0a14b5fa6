"""ckpt skip."""

import ckpt

from . import change_options, options
from .render.skip import SkipReport


def skip(
    checkpoint: options.CheckpointArg, change: change_options.ChangeOptions, sink: options.SinkOption = None
) -> None:
    """Mark a batch that always fails as done; its rows are dropped.

    For a poison row in the planned batch. Prints a plan; changes nothing without --apply.

    Examples:
    ckpt skip /cp/orders
    ckpt skip /cp/orders --sink /tables/orders --apply
    """
    change.run(ckpt.skip, SkipReport, checkpoint, of_plan=("sink",), sink=sink)
