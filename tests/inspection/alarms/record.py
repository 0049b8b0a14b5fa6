"""Damages of which a look has to say whether they do harm: the suite `alarms` of `python -m tests.record`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from tests.inspection.alarms.damages import STARTED, WITH_VARIABLES, Damage, damages
from tests.record.answers import Document, Folder
from tests.record.suite import Cases, dated
from tests.record.worker import Installed, Session

ALL, NEWEST = "4.2", "4.3"
"""The version that is asked everything, and one that is asked of transformWithState too."""


class Alarms(Cases[Damage]):
    """Starts of damaged samples, and the rows that they bring."""

    answers = Folder(Path(__file__).parent / "answers", compact=True)
    role = "alarms"
    hanging = {"rows": {}, "error": "hangs"}  # noqa: RUF012
    partly = True

    def cases(self, minor: str) -> Iterator[Damage]:
        for damage in damages():
            sample = STARTED[damage.sample]
            asked = minor in (ALL, NEWEST) if sample.name in WITH_VARIABLES else minor == ALL or damage.everywhere
            if asked and sample.spark <= minor:
                yield damage

    def ask(self, session: Session, case: Damage, folder: Path) -> Document:
        return session.ask({"damage": case.name})

    def fingerprint(self, case: Damage) -> str:
        told = json.dumps([case.sample, case.mutations], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def head(self, spark: Installed) -> Document:
        return dated(spark)


SUITE = Alarms()
