"""Record what Spark does: `python -m tests.record --spark 4.4=/path/to/python [SUITE ...]`.

Each Python has a pyspark of its minor version (for pandas queries also pandas < 3, pyarrow and protobuf; for the suite
`pipelines` what `pyspark[pipelines]` installs). What is recorded already is kept, so an interrupted run continues where
it stopped. Without a Spark: the suites, with how many of their cases are recorded. Two versions may be recorded at
once, in two processes, but not one version twice.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tests.record.suite import say
from tests.record.suites import MODULES, load
from tests.record.worker import Installed


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", choices=[*MODULES, []], help="all, if none is named")
    parser.add_argument("--spark", action="append", default=[], metavar="MINOR=PYTHON")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of cases, with * and ?")
    parser.add_argument("--fresh", action="store_true", help="record again what is recorded already")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where the messages of Spark go")
    options = parser.parse_args()
    names = options.suites or [*MODULES]
    if not options.spark:
        _list(names)
    for pair in options.spark:
        minor, _, python = pair.partition("=")
        if not python:
            parser.error("--spark wants MINOR=PYTHON")
        for name in names:
            say(f"{minor} {name}")
            load(name).record(Installed(minor, python, options.log), options.only, fresh=options.fresh)


def _list(names: list[str]) -> None:
    """Print how many cases of each suite are recorded."""
    from ckpt.versions import Spark

    for name in names:
        counts = {spark: (len([*load(name).recorded(spark)]), len([*load(name).wanted(spark)])) for spark in Spark}
        told = (f"{spark}: {have}{f' of {want}' * (have != want)}" for spark, (have, want) in counts.items() if want)
        say(f"{name:17} {', '.join(told)}")


if __name__ == "__main__":
    main()
