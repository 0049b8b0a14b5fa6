"""A session of Spark Connect, of a real server: state comes to it without Spark; one line says what it cannot do."""

import json
import subprocess
import sys
from typing import Any

import pytest

import ckpt
from tests.state.export.connect_client import AGGREGATION, UNITS, describe_frame
from tests.support.places import ROOT, SAMPLES
from tests.support.services.connect import client_packages, connect_server
from tests.support.services.fixtures import or_skip

pytestmark = [pytest.mark.spark, pytest.mark.service]
ONE_LINE = {
    "changes": "`ckpt state diff`",
    "preflight, sources": "--source-options",
    "describe": "build it in a classic session",
    "rehearse": "build it in a classic session",
    "evolve": "build it in a classic session",
    "transform": "classic session",
    "transform, active": "classic session",
    "table": "ckpt.read_state(CHECKPOINT, session=spark)",
    "delta, active": "ckpt.read_state(CHECKPOINT, session=spark)",
    "by Spark": "ckpt.read_state(CHECKPOINT, session=spark)",
    "executors": "classic session",
}
"""Calls that need a classic session, and what is to be used instead."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the calls gave in a session of Spark Connect."""
    folder = tmp_path_factory.mktemp("connect")
    with or_skip("Spark Connect"), connect_server(folder) as url:
        client_packages()
        command = [sys.executable, "-m", "tests.state.export.connect_client", url, str(folder)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-3000:]
    answers: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answers


@pytest.mark.parametrize("sample", UNITS)
def test_state_is_that_of_a_classic_session(sample: str, told: dict[str, Any], spark: Any) -> None:
    frame = ckpt.read_state(str(SAMPLES / sample), session=spark, **UNITS[sample])
    assert told["units"][sample] == describe_frame(frame)


def test_other_shapes_are_those_of_a_classic_session(told: dict[str, Any], spark: Any) -> None:
    sample = str(SAMPLES / AGGREGATION)
    assert told["answers"]["raw"] == describe_frame(ckpt.read_state(sample, session=spark, shape="raw"))
    assert told["answers"]["initial state"] == describe_frame(ckpt.read_initial_state(sample, session=spark))


def test_the_start_is_judged_without_the_query(told: dict[str, Any]) -> None:
    answers = told["answers"]
    assert answers["preflight"] == [True, ["CKPT270"], ["sources", "sink", "query"], []]
    go, _, _, (held,) = answers["preflight, another format"]
    assert (go, "checkpoint format 1" in held) == (False, True)
    assert answers["preflight, not streaming"].startswith("UsageError: `frame` is not streaming")


def test_exports_are_made_without_spark(told: dict[str, Any]) -> None:
    answers = told["answers"]
    assert {answers[name] for name in ("export", "export, active", "save")} == {7}
    assert answers["write"] == [7]


@pytest.mark.parametrize("call", ONE_LINE)
def test_what_needs_a_classic_session_says_so_in_one_line(call: str, told: dict[str, Any]) -> None:
    error = told["answers"][call]
    assert error.startswith("ConnectSession: ")
    assert ONE_LINE[call] in error
    assert "\n" not in error
