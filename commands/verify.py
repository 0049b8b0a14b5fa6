"""ckpt state verify."""

from ckpt.state.verify.verify import state_verify

from . import options
from .render.verification import VerificationReport
from .report import emit
from .run_options import RunOptions
from .watching import reading


def verify(checkpoint: options.CheckpointArg, common: options.CommonOptions, run: RunOptions) -> None:
    """Read every byte of the state, and list damaged files.

    Covers the state that the newest committed batch needs. Only reads; starts no JVM except with --engine spark.

    Examples:
    ckpt state verify /cp/orders
    ckpt state verify s3://bucket/orders --jobs 8

    Exit status: 0 nothing is damaged, 1 something is, 2 bad usage, 3 could not do it.
    """
    with run.reading(common) as how, reading(quiet=common.quiet) as (tell, watcher):
        verification = state_verify(checkpoint, announce=tell, watcher=watcher, **how)
    emit(VerificationReport(verification), common.output)
