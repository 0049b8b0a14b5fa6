"""Let micro-batches continue after continuous processing: write the metadata line that its offsets lack.

Measured with Kafka on 3.5.9, 4.2.0 and 4.3.0: both modes read and write the same positions. Micro-batches need the
metadata (``OffsetSeqMetadata``) in the newest offsets only. A start with a continuous trigger deletes the offsets of
epochs that are not committed, and so does this fix. The number of shuffle partitions is recorded because Spark 4.2
looks for it when the next batch is not committed; a query that ran with a continuous trigger has no shuffle.
"""

from collections.abc import Iterator
from dataclasses import replace

from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import Cost, Draft
from ckpt.changes.plan import STOP_FIRST, NoWay
from ckpt.changes.steps import plan_unread_removals, plan_writing
from ckpt.checkpoint.checkpoint import OFFSETS
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.formats.offsets import format_offset_log
from ckpt.inspection.inspection import Inspection
from ckpt.model import Kind, OffsetMetadata
from ckpt.settings import SHUFFLE_PARTITIONS
from ckpt.storage import Storage

_CONF = {SHUFFLE_PARTITIONS: "200"}  # Spark's default


def draft_micro_batches(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write the metadata of the newest committed epoch, and remove later offsets. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    if checkpoint.kind is not Kind.CONTINUOUS:
        return
    committed = checkpoint.commits.latest
    log = checkpoint.offsets.readable(committed)
    if committed is None or log is None:
        raise NoWay("no epoch is committed and has offsets that can be read")
    if not isinstance(offset_of(log, 0), KafkaOffset):
        raise NoWay("only a Kafka source has the same offsets in micro-batches: this one is another")
    path = f"{OFFSETS}/{committed}"
    info = checkpoint.listing.info(path)
    written_ms = info.mtime_ms if info is not None else None
    data = format_offset_log(replace(log, metadata=OffsetMetadata(0, written_ms or 0, _CONF)))
    later = [f"{OFFSETS}/{batch}" for batch in checkpoint.offsets.ids if batch > committed]
    steps = (*plan_unread_removals(checkpoint.listing, later), *plan_writing(storage, checkpoint.listing, path, data))
    does = f"{path} gets the metadata that micro-batches need; batch {committed + 1} continues from its end"
    warnings = (STOP_FIRST, BOOK.text("after_epoch", epoch=committed), BOOK.text("epochs_again"))
    yield Draft(does, Cost.UNFINISHED_AGAIN, steps, warnings=warnings)
