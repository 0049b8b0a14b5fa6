"""ckpt state verify."""

from ckpt.state.verify.verify import verify_state

from . import options
from .render.verification import VerificationReport
from .report import Output, emit
from .watching import interruptible, reading


def verify(
    checkpoint: options.CheckpointArg,
    jobs: options.JobsOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Read every byte of the state of CHECKPOINT that a batch needs, and say which files are damaged.

    Only reads; starts no JVM. Exit status: 0 nothing is damaged, 1 something is, 2 bad usage, 3 could not do it.
    """
    given = options.pairs("--storage-option", storage_option)
    with interruptible(), reading(quiet=quiet) as (told, watcher):
        found = verify_state(checkpoint, given, jobs=jobs, told=told, watcher=watcher)
    emit(VerificationReport(found), output)
