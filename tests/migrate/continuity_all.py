"""Runs every continuity case and records what came of it: `python -m tests.migrate.continuity_all [CASE ...]`.

Needs what the test needs: Java, Maven for Kafka and its connector, pyspark and delta-spark. All of them take a quarter
of an hour. With arguments only those cases are run; what is recorded of the others stays.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.migrate.continuity import session, split
from tests.migrate.continuity_cases import EVERY, Outcome, run
from tests.migrate.continuity_sources import SOURCES
from tests.support.services.kafka import connector_jars, kafka_broker

RECORD = Path(__file__).with_name("continuity.json")


def told(one: Outcome) -> dict[str, Any]:
    return {
        "versions": {name: version(name) for name in ("pyspark", "delta-spark")},
        "rows": one.rows(),
        "answers": {"old": one.old.total(), "new": one.new.total(), "control": one.control.total()},
        "lost": one.lost,
        "surplus": one.surplus,
        "batches": one.batches,
    }


def document(recorded: dict[str, Any]) -> str:
    """A line for each case, in their order."""
    lines = [f" {json.dumps(case)}: {json.dumps(recorded[case])}" for case in EVERY if case in recorded]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(folder: Path, cases: list[str]) -> None:
    """Run cases, those of a source together, and record them."""
    for source in SOURCES:
        some = [case for case in cases if split(case)[1] == source]
        if not some:
            continue
        broker = folder / source / "broker"
        broker.mkdir(parents=True)
        jars = ",".join(map(str, connector_jars()))
        with kafka_broker(broker) as servers:
            os.environ |= {"CKPT_KAFKA": servers, "CKPT_SPARK_JARS": jars}
            spark = session(jars)
            found = run(spark, folder / source, some)
            spark.stop()
        recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        recorded |= {one.case: told(one) for one in found}
        RECORD.write_text(document(recorded))
        for one in found:
            sys.stdout.write(f"{one.case}: {one.rows()} rows, lost {one.lost}, surplus {one.surplus}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[*EVERY, []], help="kind-source-stop")
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch), parser.parse_args().cases or EVERY)
