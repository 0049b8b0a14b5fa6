"""An explanation and an inspection agree: the finding that an error names is found in the checkpoint that caused it."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import ckpt
from ckpt.inspection.explain.catalog import catalog
from ckpt.inspection.explain.explain import explain
from ckpt.restart.findings import Asked
from ckpt.versions import Spark
from tests.restart.oracle import answers, cases
from tests.restart.oracle.test_forecast import NOT_IN_THE_FILES
from tests.support.spark import mutations

_QUICK = 4

Asking = tuple[cases.Case, str, str]


@cache
def failures() -> dict[str, list[Asking]]:
    """Entry -> what Spark answered with its error: the case, the version and the mode."""
    known: dict[tuple[str, ...], str | None] = {}
    found = defaultdict(list)
    recorded = {minor: answers.read(minor)["answers"] for minor in answers.VERSIONS}
    for case in cases.CASES:
        if any(part in case.name for part in NOT_IN_THE_FILES) or not case.folder.exists():
            continue
        for minor, given in recorded.items():
            for mode in ("sync", "async"):
                error = tuple(given.get(f"{case.name}/{mode}", {}).get("error") or ())
                if error not in known:
                    matches = explain("\nCaused by: ".join(error)).matches
                    known[error] = matches[0].error.id if matches else None
                if entry := known[error]:
                    found[entry].append((case, minor, mode))
    return dict(sorted(found.items()))


def disagreeing(entry: str, asked: list[Asking], folder: Path) -> Iterator[str]:
    for number, (case, minor, mode) in enumerate(asked):
        place = mutations.copy_of(case.folder, folder / str(number), case.mutations)
        found = ckpt.inspect(ckpt.open_checkpoint(str(place)), spark=(Spark(minor),), progress=Asked(mode))
        codes = {one.finding.diagnosis.code for one in found.findings}
        (error,) = (one for one in catalog() if one.id == entry)
        if not codes & set(error.codes):
            yield f"{case.name}/{mode} on {minor} shows {sorted(codes)}"


@pytest.mark.parametrize("entry", failures())
def test_the_finding_of_an_error_is_in_its_checkpoint(entry: str, tmp_path: Path) -> None:
    asked = failures()[entry]
    assert [*disagreeing(entry, asked[:: max(1, len(asked) // _QUICK)], tmp_path)] == []


@pytest.mark.slow
@pytest.mark.parametrize("entry", failures())
def test_the_finding_of_an_error_is_in_every_checkpoint_of_it(entry: str, tmp_path: Path) -> None:
    assert [*disagreeing(entry, failures()[entry], tmp_path)] == []
