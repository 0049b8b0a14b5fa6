"""The session of ``docs/python.md``, as a newcomer types it: real samples, no command line and no JVM."""

import doctest
from pathlib import Path

import pytest

from tests.support.places import ROOT


def test_the_session_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample_checkpoints").symlink_to(ROOT / "sample_checkpoints")
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").replace("```", "")
    session = doctest.DocTestParser().get_doctest(page, {}, "docs/python.md", None, 0)
    report: list[str] = []

    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=report.append)

    assert not results.failed, "".join(report)
    assert results.attempted > 20
