"""``ckpt offsets set`` as one call."""

from collections.abc import Mapping, Sequence
from os import fspath
from typing import Unpack

from ckpt.changes.offsets.plan import OffsetsPlan, choose_source, plan_offsets
from ckpt.changes.run import ChangeResult, How, run_change
from ckpt.changes.sink import adapt_to_sink
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.checkpoint.sources.requested import RequestedEnd, parse_json
from ckpt.errors import UsageError, parse_choices
from ckpt.live.sink.reader import ask_sink
from ckpt.model import Json, Location
from ckpt.storage import Storage
from ckpt.versions import Spark


def offsets_set(
    checkpoint: Location,
    storage_options: Mapping[str, str] | None = None,
    *,
    source: int | None = None,
    to: Json = None,
    shift: Sequence[str] = (),
    expect_batch: int | None = None,
    versions: Sequence[Spark | str] = (),
    sink: str | None = None,
    **how: Unpack[How],
) -> ChangeResult[OffsetsPlan]:
    """All that ``ckpt offsets set`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        source: The index of the source; needed where the query has several.
        to: Its new end, in the form in which ``offsets_show`` has it, or as the JSON text of that. A partition of
            Kafka given as null is left out, and read from its beginning.
        shift: For Kafka instead of ``to``: how far partitions move, as ``topic/partition=+n`` or ``-n``.
        expect_batch: The batch whose end changes, as a plan has shown it; refused if that is not the latest.
        versions: The Spark versions that the query may be started with; none named is all.
        sink: The place that the query writes to, as ``inspect`` takes it: the plan is then for that sink.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier change; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI, offset or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.offsets_set("sample_checkpoints/kafka-4.2", shift=["orders/0=-10"])
    >>> plan.batch, plan.moved[0].new.text, plan.repeats, receipt.applied
    (5, '{"orders":{"0":41,"1":49}}', 'rows of finished batches would be read again', False)

    """
    uri, sparks = fspath(checkpoint), parse_choices(Spark, versions, "versions")
    if how.get("undo") is None and (to is None) != bool(shift):
        raise UsageError("say where the next batch begins: give `to` or `shift`, one of the two")
    value = parse_json(to, "`to`") if isinstance(to, str) else to

    def ask(views: Sequence[SourceView]) -> dict[int, RequestedEnd]:
        view = choose_source(views, source)
        new = view.kind.shift_end(view.record, shift) if shift else view.kind.parse_end(value, "`to`")
        return {view.index: new}

    def plan(storage: Storage) -> OffsetsPlan:
        planned = plan_offsets(OffsetsPlan, storage, ask=ask, batch=expect_batch, versions=sparks)
        return adapt_to_sink(planned, ask_sink(sink, uri, storage_options or {}), other_range=not planned.committed)

    return run_change(OffsetsPlan, plan, uri, storage_options, sparks, **how)
