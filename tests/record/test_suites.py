"""Every suite is recorded for every Spark version that ckpt knows, and answers the cases as they stand now."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ckpt.versions import Spark
from tests.record.answers import Folder, OneFile
from tests.record.suite import Cases
from tests.record.suites import MODULES, load

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("minor", Spark)
@pytest.mark.parametrize("name", MODULES)
def test_every_case_is_recorded_and_nothing_else(name: str, minor: Spark) -> None:
    suite = load(name)
    run = f"python -m tests.record --spark {minor}=PYTHON {name}"
    recorded, wanted = {*suite.recorded(minor)}, {*suite.wanted(minor)}
    assert recorded == wanted or (suite.partly and recorded < wanted), run
    if isinstance(suite, Cases) and recorded:
        answers = suite.recorded(minor)
        asked = {case.name: suite.fingerprint(case) for case in suite.cases(minor) if case.name in recorded}
        assert {name: answer.get("of") for name, answer in answers.items()} == asked, run
        assert suite.answers.read(minor)["spark"].startswith(f"{minor}.")


@pytest.mark.parametrize("name", MODULES)
def test_an_answer_that_is_recorded_again_is_written_in_the_same_bytes(name: str, tmp_path: Path) -> None:
    answers = getattr(load(name), "answers", None)
    if not isinstance(answers, Folder | OneFile):
        pytest.skip("its answers are no JSON")
    kept, copy = answers.path, replace(answers, path=tmp_path / answers.path.name)
    (shutil.copytree if kept.is_dir() else shutil.copy)(kept, copy.path)
    for minor in copy.minors:
        copy.write(minor, copy.read_all()[minor])
    for file in kept.rglob("*.json") if kept.is_dir() else [kept]:
        assert (tmp_path / file.relative_to(kept.parent)).read_bytes() == file.read_bytes(), file
