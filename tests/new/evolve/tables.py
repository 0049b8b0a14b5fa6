"""Changes of sources that are tables of Delta or Iceberg: the suite `evolve-tables` of `python -m tests.record`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from tests.new.evolve.cases import Case, find_refusal, list_bases
from tests.new.evolve.columns import ColumnCase
from tests.new.evolve.record import Evolved
from tests.record.answers import Folder
from tests.record.packages import DELTA, ICEBERG, PACKAGE
from tests.record.worker import Installed

PACKAGES = {"delta": {"4.2": DELTA["4.2"]}, "iceberg": {minor: ICEBERG[minor] for minor in ("4.0", "4.1")}}
"""Versions that are asked: there is no Iceberg for later ones yet."""
_AMBIGUOUS = "no file says which"


def _list_cases(kind: str) -> Iterator[Case]:
    """Yield changes beside a folder of files (`a`), and of two tables."""
    one, two = f"{kind[0]}1", f"{kind[0]}2"
    for base in list_bases((one, "a"), f"{kind} and file"):
        more = replace(base, waiting=("c", "c", two, two))
        for label, words, mapped in (
            ("add table first", (two, one, "a"), ("0=1", "-=0")),
            ("add table last", (one, "a", two), ("0=0", "-=2")),
            ("add a table that is not said", (one, "a", two), ()),
            ("reorder", ("a", one), ()),
            ("remove table", ("a",), ()),
            ("other table", (two, "a"), ("-=0",)),
            ("other kind", ("r", "a"), ()),
            ("add file", ("c", one, "a"), ()),
        ):
            refused = _AMBIGUOUS if "not said" in label else find_refusal(more, words)
            in_place = more.shape == "rows" and label.startswith("add table")
            yield Case(f"{more.name}: {label}", more, words, in_place, mapped, refused=refused, needs=kind)
    for base in list_bases((one, two), f"two {kind} tables"):
        for label, words, mapped in (
            ("reorder", (two, one), ("0=1", "1=0")),
            ("remove first", (two,), ("1=0",)),
            ("add file between", (one, "c", two), ("0=0", "1=2")),
        ):
            refused = find_refusal(base, words)
            yield Case(f"{base.name}: {label}", base, words, False, mapped, refused=refused, needs=kind)


TABLE_CASES = tuple(case for kind in PACKAGES for case in _list_cases(kind))


class EvolvedTables(Evolved):
    """Changed queries over tables; each format has a session of its own."""

    answers = Folder(Path(__file__).with_name("recorded_tables"))

    def cases(self, minor: str) -> Iterator[Case | ColumnCase]:
        yield from (case for case in TABLE_CASES if minor in PACKAGES[case.needs])

    def session_of(self, case: Case | ColumnCase) -> Hashable:
        return case.needs

    def settings(self, spark: Installed, case: Case | ColumnCase) -> AbstractContextManager[dict[str, str]]:
        self._minor = spark.minor
        return nullcontext({PACKAGE: PACKAGES[case.needs][spark.minor]})


SUITE = EvolvedTables()
