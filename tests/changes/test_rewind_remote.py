"""A rewind, a skip and a repair, and the way back, on remote storage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.apply import Receipt
from ckpt.changes.fixes.repair import repair
from ckpt.changes.plan import ChangePlan
from ckpt.changes.rewind.rewind import rewind
from ckpt.changes.skip.plan import skip
from tests.changes.applying import changed_by
from tests.changes.fixes.async_gap.test_remote import tree
from tests.conftest import CopyOf
from tests.support.services.fixtures import Upload
from tests.support.spark.live import EVERY_CASE

Way = Callable[..., tuple[ChangePlan, Receipt]]


def back_to_6(uri: str, options: dict[str, str], **how: Any) -> tuple[ChangePlan, Receipt]:
    return rewind(uri, storage_options=options, to_batch=6, accept_skip=True, accept_replay=True, **how)


def cheapest(uri: str, options: dict[str, str], **how: Any) -> tuple[ChangePlan, Receipt]:
    return repair(uri, storage_options=options, accept_skip=True, accept_replay=True, **how)


WAYS: dict[str, tuple[str, Way]] = {
    "rewind": ("aggregation-changelog-4.2", back_to_6),
    "skip": ("aggregation-killed-changelog-4.3", skip),
    "repair of state": ("damaged-missing-sst", cheapest),
    "repair of logs": ("damaged-empty-offset", cheapest),
}
CASES = [
    *(("memory_uri", way) for way in WAYS),
    *(pytest.param("s3_uri", way, marks=pytest.mark.service) for way in WAYS if EVERY_CASE or way == "repair of logs"),
    *(pytest.param("hdfs_uri", way, marks=pytest.mark.service) for way in WAYS if EVERY_CASE or way == "rewind"),
]
"""Each way on one storage that is not local; files are written, replaced and removed by the same code for all ways."""


@pytest.mark.parametrize(("kind", "way"), CASES)
def test_planned_applied_and_taken_back(kind: str, way: str, request: pytest.FixtureRequest, copy_of: CopyOf) -> None:
    upload: Upload = request.getfixturevalue(kind)
    sample, do = WAYS[way]
    top: Path = copy_of(sample)
    uri, options = upload(top)
    before = tree(uri, options)
    plan, receipt = do(uri, options)
    assert tree(uri, options) == before
    assert plan.steps
    assert receipt == Receipt()

    _, receipt = do(uri, options, apply=True, grace=0)
    assert receipt.applied, receipt.problem
    assert tree(uri, options)[1] == changed_by(plan, before[1])
    again, _ = do(uri, options)
    assert not again.needed

    _, undone = do(uri, options, undo=receipt.backup, grace=0)
    assert undone.undone, undone.problem
    assert tree(uri, options)[1] == before[1]
