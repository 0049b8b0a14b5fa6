"""Makes the samples: real ones by subprocesses with Spark, damaged ones and the README from what is there.

Each `--spark` names a version and a Python interpreter with that pyspark, pandas, pyarrow and protobuf.
Samples of versions not given stay as they are; those of 3.5, which has no state reader, need 4.2 for their
answers. Kafka and Delta come through Maven. Without `--spark` only the damaged samples that are in the repository
and README.md are made again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.services import kafka

from . import answers, page
from .damage import BUNDLED, DAMAGED
from .made import derive
from .queries import QUERIES
from .samples import FOLDER, ORIGIN, SAMPLES, Sample

_ROOT = FOLDER.parent


def main() -> int:
    """Make what the command line asks for; return 1 if Spark failed anywhere."""
    parser = argparse.ArgumentParser(prog="sample_checkpoints/make.py", description=__doc__)
    parser.add_argument("--spark", action="append", default=[], metavar="VERSION=PYTHON")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="make this sample only")
    arguments = parser.parse_args()
    pythons = dict(pair.split("=", 1) for pair in arguments.spark)
    chosen = [
        sample
        for sample in SAMPLES
        if sample.spark in pythons and (not arguments.only or sample.name in arguments.only)
    ]
    failed = [group for group in _groups(chosen) if not _make(pythons, group)]
    _derive_bundled()
    (FOLDER / "README.md").write_text(page.readme())
    return 1 if failed else 0


def _derive_bundled() -> None:
    """Make the damaged samples of the repository again from their bases."""
    for damaged in DAMAGED:
        if damaged.name in BUNDLED:
            shutil.rmtree(FOLDER / damaged.name, ignore_errors=True)
            derive(damaged, FOLDER)


def _groups(chosen: Iterable[Sample]) -> Iterator[list[Sample]]:
    """Samples that one JVM can make: the same version and jars; a killed JVM makes one only."""
    shared: dict[tuple[str, str], list[Sample]] = {}
    for sample in chosen:
        if sample.run == "killed":
            yield [sample]
        else:
            shared.setdefault((sample.spark, QUERIES[sample.query].needs), []).append(sample)
    yield from shared.values()


def _make(pythons: dict[str, str], group: list[Sample]) -> bool:
    version, needs = group[0].spark, QUERIES[group[0].query].needs
    names = [sample.name for sample in group]
    with _services(needs) as environment:
        making = [pythons[version], "-m", "tests.support.spark.making", *names]
        made = subprocess.run(making, cwd=_ROOT, env=os.environ | environment, check=False)
    stateful = [sample.name for sample in group if QUERIES[sample.query].stateful]
    if stateful:
        reader = pythons[answers.reader_of(version)]
        reading = [reader, "-m", "tests.support.spark.answers", str(FOLDER / "answers.json"), *stateful]
        made.returncode += subprocess.run(reading, cwd=_ROOT, check=False).returncode
    for name in names:
        if (ORIGIN / name).is_dir():
            # Moved, not copied: what names its origin is read there without a word while the origin exists.
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            shutil.move(ORIGIN / name, FOLDER / name)
    shutil.rmtree(ORIGIN / "local", ignore_errors=True)
    return made.returncode == 0


@contextlib.contextmanager
def _services(needs: str) -> Iterator[dict[str, str]]:
    if needs != "kafka":
        yield {}
        return
    jars = ",".join(map(str, kafka.connector_jars()))
    with tempfile.TemporaryDirectory() as data, kafka.kafka_broker(Path(data)) as servers:
        yield {"CKPT_SPARK_JARS": jars, "CKPT_KAFKA": servers}


if __name__ == "__main__":
    sys.exit(main())
