"""``spark_answers.json``: what each Spark version said to each case, with equal answers written once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.formats.spark_cases import COMPACTIBLE, KINDS, NAMES
from tests.record.suite import Whole
from tests.record.worker import Installed

FILE = Path(__file__).parent / "spark_answers.json"

Answers = dict[str, dict[str, dict[str, dict[str, Any]]]]  # version, kind of question, case, outcome


def load() -> Answers:
    """Every recorded answer; an outcome is ``{"read": ...}`` or ``{"error": class, "says": message}``."""
    if not FILE.exists():
        return {}
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    outcomes, cases = recorded["outcomes"], recorded["cases"]
    return {
        version: {
            kind: {case: outcomes[place] for case, place in zip(cases[kind], places, strict=True)}
            for kind, places in kinds.items()
        }
        for version, kinds in recorded["answers"].items()
    }


def save(answers: Answers) -> None:
    """Write all answers; every version has to have answered the same cases."""
    places: dict[str, int] = {}
    cases = {kind: list(found) for kind, found in next(iter(answers.values())).items()}
    packed = {
        version: {
            kind: [places.setdefault(json.dumps(kinds[kind][case]), len(places)) for case in cases[kind]]
            for kind in cases
        }
        for version, kinds in sorted(answers.items())
    }
    outcomes = ",\n".join(places)
    body = ",\n".join(f"{json.dumps(version)}: {json.dumps(found)}" for version, found in packed.items())
    FILE.write_text(
        f'{{"outcomes": [\n{outcomes}\n],\n"cases": {json.dumps(cases)},\n"answers": {{\n{body}\n}}}}\n',
        encoding="utf-8",
    )


class Logs(Whole):
    """Log files, intact and damaged, that Spark's own classes read: the suite `logs` of `python -m tests.record`."""

    def wanted(self, minor: str) -> Iterator[str]:
        for kind, names in {**KINDS, "names": NAMES, "compactible": COMPACTIBLE}.items():
            yield from (f"{kind}/{name}" for name in names)

    def recorded(self, minor: str) -> Iterator[str]:
        for version, kinds in load().items():
            if version.startswith(f"{minor}."):
                yield from (f"{kind}/{name}" for kind, answers in kinds.items() for name in answers)

    def ask_all(self, spark: Installed) -> None:
        kept = {version: kinds for version, kinds in load().items() if not version.startswith(f"{spark.minor}.")}
        save({**kept, spark.version: spark.ask("logs", {})})


SUITE = Logs()
