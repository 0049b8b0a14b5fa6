"""A rewind, a skip and a repair, and the way back, on remote storage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ckpt.change.apply import Receipt
from ckpt.change.plan import ChangePlan
from ckpt.fixes.repair import repair_checkpoint
from ckpt.ways.rewind import rewind
from ckpt.ways.skip import skip
from tests.conftest import CopyOf
from tests.repair.test_remote import tree
from tests.services.fixtures import Upload

KINDS = [
    "memory_uri",
    pytest.param("s3_uri", marks=pytest.mark.service),
    pytest.param("hdfs_uri", marks=pytest.mark.service),
]
Way = Callable[..., tuple[ChangePlan, Receipt]]


def back_to_6(uri: str, options: dict[str, str], **how: Any) -> tuple[ChangePlan, Receipt]:
    return rewind(uri, options, to_batch=6, accept_skip=True, accept_replay=True, **how)


def cheapest(uri: str, options: dict[str, str], **how: Any) -> tuple[ChangePlan, Receipt]:
    return repair_checkpoint(uri, options, accept_skip=True, accept_replay=True, **how)


@pytest.fixture(params=KINDS)
def upload(request: pytest.FixtureRequest) -> Upload:
    """Each kind of remote storage in turn."""
    found: Upload = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    ("sample", "way"),
    [
        ("aggregation-changelog-4.2", back_to_6),
        ("aggregation-killed-changelog-4.3", skip),
        ("damaged-missing-sst", cheapest),
        ("damaged-empty-offset", cheapest),
    ],
    ids=["rewind", "skip", "repair of state", "repair of logs"],
)
def test_planned_applied_and_taken_back(sample: str, way: Way, upload: Upload, copy_of: CopyOf) -> None:
    top: Path = copy_of(sample)
    uri, options = upload(top)
    before = tree(uri, options)
    plan, receipt = way(uri, options)
    assert tree(uri, options) == before
    assert plan.steps
    assert receipt == Receipt()

    _, receipt = way(uri, options, apply=True, grace_s=0)
    assert receipt.applied, receipt.problem
    expected = dict(before[1])
    for step in plan.steps:
        expected.pop(step.path, None)
        if isinstance(step.after, bytes):
            expected[step.path] = step.after
    assert tree(uri, options)[1] == expected
    again, _ = way(uri, options)
    assert not again.needed

    _, undone = way(uri, options, undo=receipt.backup, grace_s=0)
    assert undone.undone, undone.problem
    assert tree(uri, options)[1] == before[1]
