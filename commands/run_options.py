"""Options of commands that work on state, or write it: who does that."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ckpt.errors import UsageError

from . import options
from .watching import bar, interruptible

if TYPE_CHECKING:
    from ckpt.spark.executors import Executors
    from ckpt.spark.installed import Session


class Workers(StrEnum):
    """Who works on state."""

    NATIVE = "native"
    SPARK = "spark"


EngineOption = Annotated[Workers, typer.Option(help="This machine, or Spark's executors.")]


@contextmanager
def session(master: str | None, conf: list[str] | None, *, quiet: bool) -> Iterator["Session"]:
    """The Spark that was asked for, with a bar for people who watch; it is not started by this."""
    from ckpt.spark.installed import Session  # not at the top: a plain look imports nothing of it

    settings = options.pairs("conf", conf)
    with bar(quiet=quiet) as watcher:
        yield Session(master=master, conf=settings, watcher=watcher)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Who works: processes of this machine, or Spark's executors."""

    engine: EngineOption = Workers.NATIVE
    jobs: options.JobsOption = None
    master: options.MasterOption = None
    conf: options.ConfOption = None

    @property
    def words(self) -> dict[str, object]:
        """The options as typed, None where they were not."""
        engine = None if self.engine is Workers.NATIVE else self.engine
        return {"engine": engine, "jobs": self.jobs, "master": self.master, "conf": self.conf}

    @contextmanager
    def executors(self, *, quiet: bool) -> Iterator["Executors | None"]:
        """Spark's executors, if they are to work. Ctrl-C ends the work with one line. Raises UsageError."""
        if self.engine is Workers.NATIVE and (self.master or self.conf):
            raise UsageError.of("{--master} and {--conf} need {--engine=spark}")
        with interruptible():
            if self.engine is Workers.NATIVE:
                yield None
                return
            from ckpt.spark.executors import Executors

            with session(self.master, self.conf, quiet=quiet) as spark, Executors(spark) as by:
                yield by

    @contextmanager
    def reading(self, common: options.CommonOptions) -> Iterator[dict[str, Any]]:
        """The arguments of a call that say where it reads, and who works. Raises UsageError."""
        storage_options = common.storage_options
        with self.executors(quiet=common.quiet) as by:
            yield {"storage_options": storage_options, "jobs": self.jobs, "engine": by}

    @contextmanager
    def writing(self, common: options.NewOptions, *folders: str) -> Iterator[dict[str, Any]]:
        """The arguments of a call that makes these folders, with the bar that shows progress. Raises UsageError."""
        for folder in folders:
            options.check_stays(folder)
        with (
            self.reading(common) as how,
            bar(quiet=common.quiet or how["engine"] is not None, of="partitions") as watcher,
        ):
            yield {**how, "to_storage_options": common.to_storage_options, "watcher": watcher}
