"""Spark for a command: the session that was asked for, with a bar for people who watch."""

from collections.abc import Iterator
from contextlib import contextmanager

from ckpt.spark.installed import Session

from . import options
from .watching import bar


@contextmanager
def session(master: str | None, conf: list[str] | None, *, quiet: bool) -> Iterator[Session]:
    """The Spark that was asked for; it is not started by this."""
    confs = options.pairs("--conf", conf)
    with bar(quiet=quiet) as watcher:
        yield Session(master=master, confs=confs, watcher=watcher)
