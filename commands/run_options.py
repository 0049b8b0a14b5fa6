"""Options of commands that work on state partition by partition: who does that."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

import ckpt
from ckpt.errors import UsageError

from . import options
from .progress import session
from .watching import interruptible

if TYPE_CHECKING:
    from ckpt.spark.executors import Executors


class Workers(StrEnum):
    """Who works on state."""

    NATIVE = "native"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Who works: processes of this machine, or Spark's executors."""

    engine: Annotated[Workers, typer.Option("--engine", help="ckpt here, or Spark's executors.")] = Workers.NATIVE
    jobs: options.JobsOption = None
    master: options.MasterOption = None
    conf: options.ConfOption = None

    @contextmanager
    def executors(self, *, quiet: bool) -> Iterator["Executors | None"]:
        """Spark's executors, if they are to work. Ctrl-C ends the work with one line. Raises UsageError."""
        if self.engine is Workers.NATIVE and (self.master or self.conf):
            raise UsageError("--master and --conf are for --engine spark")
        with interruptible():
            if self.engine is Workers.NATIVE:
                yield None
                return
            with session(self.master, self.conf, quiet=quiet) as spark, ckpt.on_spark(spark) as by:
                yield by
