"""Every change, and the way back, on remote storage: planned, applied and taken back as on a local path."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.changes.apply import Receipt
from ckpt.changes.fixes.repair import repair
from ckpt.changes.fixes.repair_async import repair_async
from ckpt.changes.plan import ChangePlan
from ckpt.changes.rewind.rewind import rewind
from ckpt.changes.skip.plan import skip
from ckpt.query.description import QueryDescription
from ckpt.versions import Spark
from tests.changes.applying import changed_by, tree
from tests.changes.fixes.async_gap.gaps import Gap
from tests.conftest import Ckpt
from tests.new.evolve.test_command import FILES, MORE, OLD
from tests.support.places import SAMPLES
from tests.support.services.fixtures import REMOTE, USUAL, Upload, storage_words
from tests.support.spark.live import EVERY_CASE

MEMORY, S3, HDFS, GCS, AZURE = REMOTE
FILL, REWIND = (partial(repair_async, strategy=strategy, accept_replay=True) for strategy in ("fill", "rewind"))
_QUERY = QueryDescription(Spark.V4_2, "append", (MORE, OLD), (), None, None, {})
"""A folder of files before the one that there was: lines of the logs and folders of sources move."""
Do = Callable[..., tuple[ChangePlan, Receipt]]
WAYS: dict[str, tuple[str | Gap, Do, Any]] = {
    "rewind": (
        "aggregation-changelog-4.2",
        partial(rewind, to_batch=6, accept_skip=True, accept_replay=True),
        HDFS,
    ),
    "skip": ("aggregation-killed-changelog-4.3", partial(skip, accept_skip=True, accept_replay=True), GCS),
    "repair of state": ("damaged-missing-sst", partial(repair, accept_skip=True, accept_replay=True), AZURE),
    "repair of logs": ("damaged-empty-offset", partial(repair, accept_skip=True, accept_replay=True), MEMORY),
    "fill": (Gap((0, 5, 9), (0, 5, 9)), FILL, S3),
    "replace and remove": (Gap((0, 3, 8, 9), (0,), {"offsets/8": "empty"}), FILL, MEMORY),
    "evolve": (FILES, partial(ckpt.evolve, to=_QUERY), MEMORY),
    "rewind over a gap": (Gap((0, 1, 5), (0, 1, 5), checksums=True), REWIND, MEMORY),
}
"""The checkpoint, the change, and the service on which `make test` makes it besides memory: each service once."""
CASES = [
    pytest.param(kind if isinstance(kind, str) else kind.values[0], way, marks=getattr(kind, "marks", ()))
    for way, (_, _, service) in WAYS.items()
    for kind in REMOTE
    if EVERY_CASE or kind in (MEMORY, service)
]


@pytest.mark.slow
@pytest.mark.parametrize(("upload", "way"), CASES, indirect=["upload"])
def test_planned_applied_and_taken_back(upload: Upload, way: str, tmp_path: Path) -> None:
    of, do, _ = WAYS[way]
    top = tmp_path / "local"
    if isinstance(of, Gap):
        of.build(top)
    else:
        shutil.copytree(SAMPLES / of, top)
    uri, options = upload(top)
    do = partial(do, uri, storage_options=options, grace=0)
    before = tree(uri, options)
    plan, receipt = do()
    assert tree(uri, options) == before
    assert plan.steps
    assert receipt == Receipt()

    _, receipt = do(apply=True)
    assert receipt.applied, receipt.problem
    assert receipt.backup is not None
    assert receipt.backup.startswith(f"{uri}.ckpt-backup-")
    assert tree(uri, options)[1] == changed_by(plan, before[1])
    again, _ = do()
    assert not again.needed
    assert again.before == plan.after

    for _ in range(2):
        _, undone = do(undo=receipt.backup)
        assert undone.undone, undone.problem
        now = tree(uri, options)
        assert now[1] == before[1]
        assert now[0] == before[0] or way == "evolve"  # which leaves an empty folder of a source


@pytest.mark.parametrize("upload", USUAL, indirect=True)
def test_offsets_are_set_and_restored(upload: Upload, ckpt: Ckpt, tmp_path: Path) -> None:
    uri, options = upload(SAMPLES / "kafka-4.2")
    given = storage_words(options)

    def shown() -> Any:
        return ckpt("offsets", "show", uri, *given, "-o", "json").json()["sources"][0]["to"]

    before = shown()
    file = tmp_path / "offsets.json"
    file.write_text(ckpt("offsets", "export", uri, *given).stdout)
    now = ("--apply", "--grace", 0, "--accept-skip", "--accept-replay", "-o", "json", *given)
    backup = f"{uri}-backup"
    done = ckpt("offsets", "set", uri, "--shift", "orders/0=-5", "--backup", backup, *now)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert shown() == {"orders": {**before["orders"], "0": before["orders"]["0"] - 5}}
    imported = ckpt("offsets", "import", uri, file, "--backup", f"{uri}-second", *now)
    assert imported.json()["applied"], imported.stdout
    assert shown() == before
    for name in ("second", "backup"):
        undone = ckpt("offsets", "set", uri, "--undo", f"{uri}-{name}", "--grace", 0, "-o", "json", *given)
        assert undone.json()["undone"], undone.stdout
    assert json.dumps(shown()) == json.dumps(before)


@pytest.mark.service
@pytest.mark.parametrize(("upload", "scheme"), [("s3_uri", "s3a"), ("hdfs_uri", "hdfs")], indirect=["upload"])
def test_a_checkpoint_is_relocated_and_put_back(upload: Upload, scheme: str, ckpt: Ckpt) -> None:
    uri, options = upload(SAMPLES / "tws-changelog-4.0")
    words = storage_words(options)
    to = f"{scheme}://{uri.partition('://')[2]}"
    before = ckpt("inspect", uri, *words, "-o", "json").json()
    assert "CKPT305" in {finding["code"] for finding in before["findings"]}

    done = ckpt("relocate", uri, "--to", to, "--apply", "--grace", 0, *words, "-o", "json")
    assert done.exit_code == 0, done.stdout
    inspected = ckpt("inspect", uri, *words, "-o", "json")
    assert inspected.exit_code == 0
    assert "CKPT305" not in {finding["code"] for finding in inspected.json()["findings"]}
    assert ckpt("relocate", uri, *words).exit_code == 0

    undone = ckpt("relocate", uri, "--undo", done.json()["backup"], "--grace", 0, *words)
    assert undone.exit_code == 0
    assert ckpt("inspect", uri, *words, "-o", "json").json()["findings"] == before["findings"]
