"""``ckpt repair-async`` as one call."""

from collections.abc import Mapping, Sequence
from typing import Unpack

from ckpt.changes.apply import Receipt
from ckpt.changes.async_gap.plan import RepairPlan, Strategy
from ckpt.changes.async_gap.planner import plan_repair
from ckpt.changes.run import How, perform
from ckpt.changes.sink import for_sink
from ckpt.live.sink.reader import sink_of
from ckpt.storage import Storage
from ckpt.versions import Spark


def repair_async(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    strategy: Strategy = Strategy.AUTO,
    versions: Sequence[Spark] = (),
    sink: str | None = None,
    **how: Unpack[How],
) -> tuple[RepairPlan, Receipt]:
    """All that ``ckpt repair-async`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        uri: A local path, or any URI that ``open_checkpoint`` opens.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        strategy: Which strategy; ``auto`` picks the one that reads less again.
        versions: The Spark versions that the query may be started with; none named is all.
        sink: The place that the query writes to, as ``read_sink`` takes it: the plan is then for that sink.
        how: ``apply=True`` performs the plan, ``undo`` takes an earlier repair back; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.repair_async("sample_checkpoints/async-kafka-4.2")
    >>> [step.path for step in plan.steps], receipt.applied
    (['offsets/30', 'offsets/.30.crc'], False)

    """

    def plan(storage: Storage) -> RepairPlan:
        log = sink_of(sink, uri, storage_options or {})
        planned = for_sink(plan_repair(storage, strategy, versions), log)
        return planned if planned.skips is None else planned.refusing(f"{planned.skips}: {planned.warnings[-1]}")

    return perform(RepairPlan, plan, uri, storage_options, versions, **how)
