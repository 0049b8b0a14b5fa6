"""What docs/export.md says of exports is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt.state.reading.confs import RULES
from tests.conftest import Ckpt
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")


def test_every_setting_is_explained() -> None:
    rows = re.findall(r"^\| `(spark\.[\w.]+)` \| [^|]+ \| ([^|]+) \|$", PAGE, flags=re.MULTILINE)
    assert rows == [(rule.name, rule.why) for rule in RULES]


def section() -> str:
    """The examples at the top of the page."""
    _, _, below = PAGE.partition("\n## In short\n")
    return below.partition("\n## ")[0]


@pytest.mark.spark
def test_the_commands_of_the_page_do_what_it_says(
    ckpt: Ckpt, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample_checkpoints").symlink_to(ROOT / "sample_checkpoints")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```sh\n(.*?)```", section(), flags=re.DOTALL)
    for line in block.splitlines():
        words = shlex.split(line)
        assert words[0] == "ckpt"
        result = ckpt(*words[1:])
        assert result.exit_code == 0, result.stderr
    assert {path.name for path in (tmp_path / "exported").iterdir()} == {"counts", "left", "variables"}


@pytest.mark.spark
def test_the_python_of_the_page_runs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(r"```python\n(.*?)```", section(), flags=re.DOTALL)
    names: dict[str, Any] = {"spark": spark}
    exec(block, names)  # the page's own text
    assert "operator 0, variable rows" in capsys.readouterr().out
    assert names["ckpt"] is library
    assert names["state"].count() == 5
    assert names["changes"].count() == 21
