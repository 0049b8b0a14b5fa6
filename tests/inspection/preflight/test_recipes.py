"""The commands in the recipes of docs/preflight.md, executed as their programs would."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ckpt.versions import RECORDED
from tests.conftest import CopyOf
from tests.support.places import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "preflight.md").read_text(encoding="utf-8")


def block(heading: str) -> str:
    """The first block of code below a heading."""
    found = re.search(rf"^## {heading}$.*?^```\w+\n(.*?)^```", PAGE, re.M | re.S)
    assert found is not None
    return found[1]


def listed(text: str, key: str) -> list[str]:
    """A list of strings in YAML that is JSON too."""
    found = re.search(rf"^ +{key}: (\[.*\])$", text, re.M)
    assert found is not None
    words: list[str] = json.loads(found[1])
    return words


def kubernetes() -> list[str]:
    return listed(block("In Kubernetes"), "command")


def airflow() -> list[str]:
    calls = [node for node in ast.walk(ast.parse(block("In Airflow"))) if isinstance(node, ast.Call)]
    (command,) = (ast.literal_eval(one.value) for one in calls[0].keywords if one.arg == "bash_command")
    return shlex.split(command)


def argo() -> list[str]:
    text = block("In Argo Workflows")
    return [*listed(text, "command"), *listed(text, "args")]


@pytest.mark.parametrize("recipe", [kubernetes, airflow, argo])
@pytest.mark.parametrize(("sample", "code"), [("kafka-4.2", 0), ("damaged-missing-sst", 1), (None, 0)])
def test_the_command_of_a_recipe_lets_start_or_holds(
    recipe: object, sample: str | None, code: int, copy_of: CopyOf, tmp_path: Path
) -> None:
    assert callable(recipe)
    words = recipe()
    assert words[:3] == ["ckpt", "preflight", "/checkpoints/orders"]
    words[0] = str(Path(sys.executable).with_name("ckpt"))
    words[2] = str(_old(copy_of(sample))) if sample else str(tmp_path / "nowhere")

    assert subprocess.run(words, capture_output=True, timeout=60).returncode == code


def _old(checkpoint: Path) -> Path:
    """Without a file that a driver may have written just now, which ckpt would wait for."""
    for path in checkpoint.rglob("*"):
        os.utime(path, (0, 0))
    return checkpoint


def test_the_page_lists_the_settings_that_are_recorded() -> None:
    rows = re.findall(r"^\| `(spark\.[^`]+)` \| (\S+) \| (.+) \|$", PAGE, re.M)

    assert rows == [(one.name, str(one.since), one.absent or "the session's") for one in RECORDED]
