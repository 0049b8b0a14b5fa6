"""Runs every continuity case and records what came of it: `python -m tests.migrate.continuity_all`.

Needs what the test needs: Java, Maven for Kafka and its connector, pyspark and delta-spark. Takes a quarter of an hour.
With arguments only those cases are run, and nothing is recorded. `--keep FOLDER` keeps what was written.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.migrate.continuity import split
from tests.migrate.continuity_cases import EVERY, Outcome, run
from tests.migrate.continuity_sources import SOURCES
from tests.services.kafka import connector_jars, kafka_broker

RECORD = Path(__file__).with_name("continuity.json")


def told(one: Outcome) -> dict[str, Any]:
    """What is recorded of a case."""
    return {
        "case": one.case,
        "rows": one.rows(),
        "answers": {"old": one.old.total(), "new": one.new.total(), "control": one.control.total()},
        "lost": len(one.lost),
        "surplus": len(one.surplus),
        "batches": one.batches,
    }


def main(folder: Path, cases: list[str]) -> list[Outcome]:
    """Run cases, those of a source together."""
    found: list[Outcome] = []
    for source in SOURCES:
        some = [case for case in cases if split(case)[1] == source]
        place = folder / f"by-{source}"
        place.mkdir(parents=True)
        broker = place / "kafka"
        broker.mkdir()
        if some:
            with kafka_broker(broker) as servers:
                found += run(place, servers, connector_jars(), some)
        for one in found[len(found) - len(some) :]:
            sys.stdout.write(f"{one.case}: {one.rows()} rows, lost {one.lost}, surplus {one.surplus}\n")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        outcomes = main(asked.keep or Path(scratch), asked.cases or EVERY)
    if not asked.cases:
        document = {"spark": version("pyspark"), "delta": version("delta-spark"), "cases": [*map(told, outcomes)]}
        RECORD.write_text(json.dumps(document, indent=1) + "\n")
