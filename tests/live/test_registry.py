"""Every answer of a source has a kind that judges it."""

from typing import get_args

from ckpt.live.records import Answer, NotAsked, Unreached
from ckpt.live.registry import KIND_OF_ANSWER, KIND_OF_TYPE


def test_every_answer_has_a_kind() -> None:
    assert set(get_args(Answer)) - {NotAsked, Unreached} == set(KIND_OF_ANSWER)
    assert set(KIND_OF_TYPE.values()) == set(KIND_OF_ANSWER.values())
