"""``action.yml`` and the hook of pre-commit on a pull request: it fits, it does not fit, ckpt cannot look."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Ckpt
from tests.inspection.preflight.test_document import print_document
from tests.inspection.preflight.test_recorded import answers
from tests.support.places import ROOT

pytestmark = pytest.mark.slow

BASE, FITS, CHANGED = "aggregation", "aggregation: nothing", "aggregation: key type"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


def git(repository: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    run = subprocess.run(["git", *identity, *words], cwd=repository, capture_output=True, text=True, check=True)
    return run.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, made: Any) -> Path:
    """A repository with a query, what ``ckpt inspect`` said of its checkpoint, and a branch that changes the query."""
    folder = tmp_path_factory.mktemp("runner") / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    print_document(made("4.2", BASE), folder)
    for branch, name in (("main", FITS), ("change", CHANGED)):
        (folder / "query.json").write_text(json.dumps(answers("4.2")[name]["query"]))
        git(folder, "checkout", "--quiet", "-B", branch)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", name)
    return folder


@dataclass(frozen=True)
class Step:
    code: int
    log: str
    output: str
    summary: str


def run_step(repository: Path, name: str, inputs: Mapping[str, str]) -> Step:
    """Run the shell of a step as the runner of GitHub does."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == name)
    values = {key: inputs.get(key, about.get("default", "")) for key, about in ACTION["inputs"].items()}
    environment = {
        key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: values[match[1]], value)
        for key, value in step["env"].items()
    }
    files = {key: repository.parent / key for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.write_text("")
    run = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=repository,
        env={
            **os.environ,
            **environment,
            **{key: str(path) for key, path in files.items()},
            "RUNNER_TEMP": str(repository.parent),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
    )
    assert run.stderr == ""
    output, summary = (path.read_text() for path in files.values())
    return Step(run.returncode, run.stdout, output, summary)


INPUTS = {"checkpoint": "inspected.json", "expect": "query.json"}


def test_a_query_that_fits(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "main")
    step = run_step(repository, "preflight", {**INPUTS, "conf": "spark.sql.shuffle.partitions=200\na=b c\n"})

    assert step.code == 0, step.log
    assert step.output == "status=0\n"
    assert re.fullmatch(r"::notice title=aggregation::START: Restarts with new batch \d+\n", step.log)
    assert "> [!TIP]\n> START" in step.summary
    assert r"partitions\=200\: IGNORED" in step.summary
    assert r"a\: takes effect" in step.summary


def test_a_query_that_does_not_fit(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "change")
    step = run_step(repository, "preflight", INPUTS)
    headline, finding = step.log.splitlines()

    assert step.code == 1
    assert step.output == "status=1\n"
    assert headline.startswith("::error title=aggregation::HOLD: ")
    assert headline.endswith("see CKPT435")
    assert finding.startswith("::error title=CKPT435 ")
    assert "%0AHere: " in finding
    assert "> [!CAUTION]\n> HOLD" in step.summary


def test_the_query_of_the_last_release(repository: Path) -> None:
    """With it a reason names the command that carries the state over, with both files."""
    git(repository, "checkout", "--quiet", "change")
    (repository / "released.json").write_text(git(repository, "show", "main:query.json"))
    step = run_step(repository, "preflight", {**INPUTS, "from": "released.json"})

    assert step.code == 1
    assert "CKPT435" in step.log
    assert "--to query.json --from-query released.json" in step.summary.replace("\\", "")


@pytest.mark.parametrize(
    ("inputs", "code", "words"),
    [
        ({"checkpoint": "missing.json"}, 3, "missing.json cannot be read: No such file"),
        ({"checkpoint": "inspected.json", "expect": "100%.json"}, 2, "100%25.json cannot be read"),
    ],
)
def test_what_cannot_be_looked_at(inputs: Mapping[str, str], code: int, words: str, repository: Path) -> None:
    step = run_step(repository, "preflight", inputs)

    assert (step.code, step.output) == (code, f"status={code}\n")
    assert words in step.log
    assert step.log.startswith("::error title=ckpt preflight::ckpt: ")
    assert step.summary == ""


def test_an_input_is_no_option(repository: Path) -> None:
    step = run_step(repository, "preflight", {"checkpoint": "--help", "spark": "4.2"})
    assert step.log.startswith("::notice title=--help::START: nothing is there yet")


def test_the_hook_of_pre_commit(repository: Path, ckpt: Ckpt) -> None:
    changed = git(repository, "diff", "--name-only", "main", "change").split()
    assert [name for name in changed if re.search(HOOK["files"], name)] == ["query.json"]
    program, *words = HOOK["entry"].split()
    assert program == "ckpt"
    arguments = [repository / "inspected.json", "--expect", repository / "query.json"]
    for branch, code in (("change", 1), ("main", 0)):
        git(repository, "checkout", "--quiet", branch)
        assert ckpt(*words, *arguments).exit_code == code
