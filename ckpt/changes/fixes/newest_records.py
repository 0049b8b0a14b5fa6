"""Fixes that write the newest records otherwise, after which another mode, or Spark's own provider, continues.

Real-time mode of Spark 4.3 asks for a commit of version 2, also without state, and writes then what is written here:
``nextBatchWatermarkMs`` and no ids of state files. Shown by real starts with Kafka (``tests/restart/realtime``).

A restart takes the provider from the newest offsets, and from those alone (``OffsetSeqMetadata.setSessionConf``;
measured on 3.5 to 4.3 with state that Spark's own provider wrote). No files of another class were ever seen.

Micro-batches after continuous processing were measured with Kafka on 3.5.9, 4.2.0 and 4.3.0: both modes read and write
the same positions. Micro-batches need the metadata (``OffsetSeqMetadata``) in the newest offsets only. A start with a
continuous trigger deletes the offsets of epochs that are not committed, and so does this fix. The number of shuffle
partitions is recorded because Spark 4.2 looks for it when the next batch is not committed; a query that ran with a
continuous trigger has no shuffle.
"""

from collections.abc import Iterator
from dataclasses import replace

from ckpt import settings
from ckpt.advice import advise, call, run, words
from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import Cost, Draft, Rule, warn_of_failing
from ckpt.changes.plan import STOP_FIRST, NoWay
from ckpt.changes.steps import FileStep, plan_unread_removals, plan_writing
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.checkpoint.state.chains import is_known_provider
from ckpt.formats.commits import format_commit_log
from ckpt.formats.offsets import format_offset_log, record_settings
from ckpt.formats.text import quoted
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Kind, OffsetMetadata, Provider
from ckpt.restart.findings import Asked
from ckpt.storage import Storage
from ckpt.versions import NEWEST

_VERSION = 2
_CLASSES = {Provider.HDFS: settings.HDFS_PROVIDER, Provider.ROCKSDB: settings.ROCKSDB_PROVIDER}
_CONF = {settings.SHUFFLE_PARTITIONS: "200"}  # Spark's default


def draft_real_time(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write the newest commit as one of version 2. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    committed, commit = checkpoint.commits.latest, checkpoint.commits.newest
    if commit is None:
        raise NoWay("no commit can be read")
    if checkpoint.state is not None or checkpoint.stateful is not False:
        see = run(call("migrate_real_time", checkpoint.uri), words("See how to switch the query to real-time mode."))
        raise NoWay("the query is stateful, or may be", advise(see))
    if commit.version >= _VERSION:
        raise NoWay(f"{COMMITS}/{committed} already has version {commit.version}")
    path = f"{COMMITS}/{committed}"
    data = format_commit_log(replace(commit, version=_VERSION, next_watermark_ms=commit.next_watermark_ms or 0))
    steps = tuple(plan_writing(storage, checkpoint.listing, path, data))
    does = f"{path} gets version {_VERSION}, from which real-time mode of Spark 4.3 continues"
    yield Draft(does, Cost.NOTHING, steps, warnings=(STOP_FIRST,))


def _refuse_without_start(_: Inspection, after: Inspection) -> str | None:
    start = inspect(after.checkpoint, (NEWEST,), Asked.REALTIME)
    if start.forecasts[0].outcome.runs:
        return None
    return f"without changes, the query {start.verdict[:1].lower()}{start.verdict[1:]}"


STARTS_IN_REAL_TIME = Rule(_refuse_without_start, warn_of_failing)
"""The newest Spark version starts it in real-time mode."""


def draft_provider(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write Spark's class into the newest two files of offsets. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    recorded = checkpoint.conf.get(settings.PROVIDER_CLASS)
    if recorded is None or is_known_provider(recorded):
        raise NoWay("the newest offsets record Spark's own provider")
    shown = _CLASSES.get(checkpoint.state.provider) if checkpoint.state is not None else None
    if shown is None:
        raise NoWay("no state file has the layout of one of Spark's providers")
    steps: list[FileStep] = []
    for batch in checkpoint.offsets.ids[-2:]:
        log = checkpoint.offsets.readable(batch)
        if log is None or log.metadata is None or is_known_provider(log.metadata.conf.get(settings.PROVIDER_CLASS, "")):
            continue
        data = format_offset_log(record_settings(log, {settings.PROVIDER_CLASS: shown}))
        steps += plan_writing(storage, checkpoint.listing, f"{OFFSETS}/{batch}", data)
    name = shown.rpartition(".")[2]
    warnings = (
        STOP_FIRST,
        BOOK.text("only_by_names", recorded=quoted(recorded, 80), name=name),
        words("Older offsets keep the other class: a rewind to them needs this fix again."),
    )
    does = f"the newest offsets record Spark's {name}, which matches the layout of the state files"
    yield Draft(does, Cost.NOTHING, tuple(steps), warnings=warnings)


def draft_micro_batches(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write the metadata of the newest committed epoch, and remove later offsets. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    if checkpoint.kind is not Kind.CONTINUOUS:
        return
    committed = checkpoint.commits.latest
    log = checkpoint.offsets.readable(committed)
    if committed is None or log is None:
        raise NoWay("no epoch is committed and has readable offsets")
    if not isinstance(offset_of(log, 0), KafkaOffset):
        raise NoWay("only a Kafka source has the same offsets in micro-batches, and this source is not Kafka")
    path = f"{OFFSETS}/{committed}"
    info = checkpoint.listing.info(path)
    written_ms = info.mtime_ms if info is not None else None
    data = format_offset_log(replace(log, metadata=OffsetMetadata(0, written_ms or 0, _CONF)))
    later = [f"{OFFSETS}/{batch}" for batch in checkpoint.offsets.ids if batch > committed]
    steps = (*plan_unread_removals(checkpoint.listing, later), *plan_writing(storage, checkpoint.listing, path, data))
    does = f"{path} gets the metadata that micro-batches need; batch {committed + 1} continues from its end"
    warnings = (STOP_FIRST, BOOK.text("after_epoch", epoch=committed), BOOK.text("epochs_again"))
    yield Draft(does, Cost.UNFINISHED_AGAIN, steps, warnings=warnings)
