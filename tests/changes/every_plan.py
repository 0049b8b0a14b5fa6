"""A plan of every command that changes a checkpoint, and the checkpoint that it is for."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ckpt.changes.fixes.repair import plan_repairs
from ckpt.changes.fixes.repair_async import Strategy, plan_repair
from ckpt.changes.offsets.plan import offsets_set
from ckpt.changes.plan import ChangePlan
from ckpt.changes.prune.plan import plan_prune
from ckpt.changes.relocate.plan import plan_relocation
from ckpt.changes.rewind.from_points import plan_from_points
from ckpt.changes.rewind.plan import Replayed, plan_rewind
from ckpt.changes.skip.plan import plan_skip
from ckpt.new.copy.copy import copy
from ckpt.new.evolve.plan import EvolveOptions, plan_evolution
from ckpt.query.description import DescribedSource, QueryDescription
from ckpt.storage import Storage, open_storage
from ckpt.versions import Spark
from tests.changes.fixes.async_gap.gaps import Gap
from tests.changes.prune.aged import aged
from tests.support.places import SAMPLES


@dataclass(frozen=True)
class Emptied:
    """A sample of which one file lost its bytes; its hidden checksum file is as it was."""

    sample: str
    path: str

    def build(self, to: Path) -> None:
        """Make it in a new folder."""
        shutil.copytree(SAMPLES / self.sample, to)
        os.truncate(to / self.path, 0)


@dataclass(frozen=True)
class Aged:
    """A sample with the logs of its newest batches only."""

    sample: str
    keep: int

    def build(self, to: Path) -> None:
        """Make it in a new folder."""
        aged(self.sample, to, self.keep)


@dataclass(frozen=True)
class Pointed:
    """A sample with the logs of its newest batches only, beside a folder with a point of an older one."""

    sample: str

    def build(self, to: Path) -> None:
        """Make both in a new folder."""
        aged(self.sample, to, 3)
        (to.parent / "points").mkdir()
        copy(str(SAMPLES / self.sample), str(to.parent / "points" / "2026-11-20T00-00-00Z-batch-3"), batch=3)


Planner = Callable[[Storage], ChangePlan]
FILL, REWIND = (partial(plan_repair, strategy=strategy) for strategy in (Strategy.FILL, Strategy.REWIND))


def _offsets(to: str, storage: Storage) -> ChangePlan:
    return offsets_set(storage.uri, to=to)[0]


def _add_source(storage: Storage) -> ChangePlan:
    """Another source in front of the topic that it reads."""
    sources = (DescribedSource("rate-micro-batch"), DescribedSource("kafka", ("orders",)))
    query = QueryDescription(Spark.V4_2, "append", sources, (), None, None, {})
    return plan_evolution(storage, query, EvolveOptions())


def _go_to_point(storage: Storage) -> ChangePlan:
    folder = open_storage(str(Path(storage.uri).parent / "points"))
    return plan_from_points(storage, folder, datetime(2026, 11, 20, tzinfo=UTC), Replayed.SAME)


CHANGES: dict[str, tuple[Gap | Emptied | Aged | Pointed | str, Planner]] = {
    "a sample": ("async-kafka-4.2", FILL),
    "no checksums": (Gap((0, 7), (0, 7)), FILL),
    "unreadable predecessor": (
        Gap((0, 4, 6, 7), (0, 4), {"offsets/6": "truncated"}, checksums=True, stale=("offsets/6",)),
        FILL,
    ),
    "uncommitted batches between": (Gap((0, 3, 5, 9), (0, 1), checksums=True), FILL),
    "unreadable and ahead": (Gap((0, 4, 6), (0, 4, 6, 8), {"offsets/6": "empty"}, checksums=True), FILL),
    "orphan checksums": (
        Gap((0, 5), (0,), checksums=True, orphans=("offsets/4", "commits/5", "offsets/6")),
        FILL,
    ),
    "rewind": (Gap((0, 1, 5), (0, 1, 5), checksums=True), REWIND),
    "rewind over batches never run": (Gap((0, 1, 4, 5, 9), (0, 1, 2)), REWIND),
    "relocation": ("join-v4-changelog-4.3", plan_relocation),
    "rewind with state": ("aggregation-hdfs-4.3", partial(plan_rewind, to_batch=0, replayed=Replayed.NEW)),
    "repair that tidies and rewinds": ("damaged-missing-sst", plan_repairs),
    "repair that reads again": (Gap((0, 1, 2), (0, 1, 2), {"offsets/2": "empty"}, checksums=True), plan_repairs),
    "repair that writes a commit": (Emptied("aggregation-format2-4.2", "commits/7"), plan_repairs),
    "other sources": (Aged("kafka-4.2", 2), _add_source),
    "skip": ("aggregation-killed-changelog-4.3", plan_skip),
    "rewind to a point": (Pointed("aggregation-changelog-4.2"), _go_to_point),
    "rewind of a file source": ("file-source-4.2", partial(plan_rewind, to_batch=9, replayed=Replayed.NEW)),
    "offsets": ("kafka-4.2", partial(_offsets, '{"orders":{"0":46,"1":49}}')),
    "prune": (Aged("aggregation-rocksdb-4.2", 2), plan_prune),
    "offsets of a batch that left state": (
        "aggregation-killed-hdfs-4.0",
        partial(_offsets, '{"offset":43,"timestamp":1}'),
    ),
}


def built(change: str, to: Path) -> tuple[Path, Planner]:
    """The checkpoint of a change in a new folder, and its planner."""
    of, planner = CHANGES[change]
    if isinstance(of, str):
        shutil.copytree(SAMPLES / of, to)
    else:
        of.build(to)
    return to, planner


def planned(planner: Planner, checkpoint: Path) -> ChangePlan:
    """What it would do; there is something to do."""
    plan = planner(open_storage(str(checkpoint)))
    assert plan.steps, plan.refused or plan.why
    return plan
