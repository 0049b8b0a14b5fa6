"""What ``ckpt inspect`` says of every sample: what it must by understanding, and byte for byte what it said before."""

import pytest

from tests import contract, golden
from tests.conftest import Ckpt
from tests.golden.codes import MUST_SHOW, SHRUGGED_OFF
from tests.places import ANSWERS, ROOT, SAMPLE_NAMES


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_the_answer_is_the_golden_one(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert golden.answer(sample) == golden.recorded(sample), "right? then: python -m tests.golden " + sample


def test_every_sample_has_a_golden_answer_and_every_answer_a_sample() -> None:
    assert sorted(path.stem for path in ANSWERS.iterdir()) == SAMPLE_NAMES


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_warnings_and_errors_are_those_that_the_damage_must_show(sample: str, ckpt: Ckpt) -> None:
    result = ckpt("inspect", f"sample_checkpoints/{sample}", "--output", "json")
    shown = {found["code"] for found in result.json()["findings"] if found["severity"] != "note"}
    must = MUST_SHOW.get(sample, set())

    assert shown == must
    assert result.exit_code == (1 if must else 0)


def test_every_damage_is_judged_by_hand() -> None:
    damaged = {sample for sample in SAMPLE_NAMES if sample.startswith("damaged-")}
    assert not MUST_SHOW.keys() & SHRUGGED_OFF.keys()
    assert damaged <= MUST_SHOW.keys() | SHRUGGED_OFF.keys() <= set(SAMPLE_NAMES)


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_the_answer_does_not_contradict_itself(sample: str, ckpt: Ckpt) -> None:
    document = ckpt("inspect", f"sample_checkpoints/{sample}", "--output", "json").json()
    assert list(contract.contradictions(document)) == []
