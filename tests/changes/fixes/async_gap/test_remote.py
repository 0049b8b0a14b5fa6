"""The same repair, the same way back, on every kind of remote storage."""

from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.apply import Receipt
from ckpt.changes.fixes.repair_async import RepairPlan, Strategy, plan_repair, repair_async
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.storage import open_storage
from ckpt.versions import Progress
from tests.changes.applying import changed_by
from tests.changes.fixes.async_gap.gaps import Gap
from tests.support.services.fixtures import REMOTE, Upload

PATTERNS = {
    "fill": Gap((0, 5, 9), (0, 5, 9)),
    "replace and remove": Gap((0, 3, 8, 9), (0,), {"offsets/8": "empty"}),
    "rewind": Gap((0, 1, 5), (0, 1, 5), checksums=True),
}


@pytest.fixture(params=REMOTE)
def upload(request: pytest.FixtureRequest) -> Upload:
    """Each kind of remote storage in turn."""
    found: Upload = request.getfixturevalue(request.param)
    return found


def tree(uri: str, options: dict[str, str]) -> tuple[set[str], dict[str, bytes]]:
    """Folders and files, listed anew."""
    storage = open_storage(uri, options)
    listing = storage.list_tree()
    return {*listing.folders}, {path: storage.read(path) for path, _ in listing.walk()}


def mend(uri: str, options: dict[str, str], **how: Any) -> tuple[RepairPlan, Receipt]:
    return repair_async(uri, storage_options=options, grace=0, accept_replay=True, **how)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_planned_applied_and_taken_back(pattern: str, upload: Upload, tmp_path: Path) -> None:
    gap = PATTERNS[pattern]
    uri, options = upload(gap.build(tmp_path / "local"))
    before = tree(uri, options)
    strategy = Strategy.REWIND if pattern == "rewind" else Strategy.FILL
    plan, receipt = mend(uri, options, strategy=strategy)
    assert tree(uri, options) == before
    assert receipt == Receipt()

    _, receipt = mend(uri, options, strategy=strategy, apply=True)
    assert receipt.applied, receipt.problem
    assert receipt.backup is not None
    assert receipt.backup.startswith(f"{uri}.ckpt-backup-")
    assert tree(uri, options)[1] == changed_by(plan, before[1])
    again = plan_repair(open_storage(uri, options), strategy)
    assert not again.needed
    assert all(f.outcome.runs for f in again.before if f.progress is Progress.SYNC and f in plan.after)

    for _ in range(2):
        _, undone = mend(uri, options, undo=receipt.backup)
        assert undone.undone, undone.problem
        assert tree(uri, options) == before
    assert read_checkpoint(open_storage(uri, options)).offsets.ids == gap.offsets
