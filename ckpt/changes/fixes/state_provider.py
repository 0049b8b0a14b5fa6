"""Name the provider of Spark whose layout the state files have, where the newest offsets record another class.

A restart takes the class from the newest offsets, and from those alone (``OffsetSeqMetadata.setSessionConf``; measured
on 3.5 to 4.3 with state that Spark's own provider wrote). No files of another class were ever seen.
"""

from collections.abc import Iterator

from ckpt import settings
from ckpt.advice import words
from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import Cost, Draft
from ckpt.changes.plan import STOP_FIRST, NoWay
from ckpt.changes.steps import FileStep, plan_writing
from ckpt.checkpoint.checkpoint import OFFSETS
from ckpt.checkpoint.state.chains import is_known_provider
from ckpt.formats.offsets import format_offset_log, record_setting
from ckpt.formats.text import quoted
from ckpt.inspection.inspection import Inspection
from ckpt.model import Provider
from ckpt.storage import Storage

_CLASSES = {Provider.HDFS: settings.HDFS_PROVIDER, Provider.ROCKSDB: settings.ROCKSDB_PROVIDER}


def draft_provider(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write Spark's class into the newest two files of offsets. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    recorded = checkpoint.conf.get(settings.PROVIDER_CLASS)
    if recorded is None or is_known_provider(recorded):
        raise NoWay("the newest offsets record no provider but Spark's own")
    shown = _CLASSES.get(checkpoint.state.provider) if checkpoint.state is not None else None
    if shown is None:
        raise NoWay("no state file has the layout of one of Spark's providers")
    steps: list[FileStep] = []
    for batch in checkpoint.offsets.ids[-2:]:
        log = checkpoint.offsets.readable(batch)
        if log is None or log.metadata is None or is_known_provider(log.metadata.conf.get(settings.PROVIDER_CLASS, "")):
            continue
        data = format_offset_log(record_setting(log, settings.PROVIDER_CLASS, shown))
        steps += plan_writing(storage, checkpoint.listing, f"{OFFSETS}/{batch}", data)
    name = shown.rpartition(".")[2]
    warnings = (
        STOP_FIRST,
        BOOK.text("only_by_names", recorded=quoted(recorded, 80), name=name),
        words("Older offsets keep the other class: a rewind to them needs this fix again."),
    )
    does = f"the newest offsets record Spark's {name}, whose layout the state files have"
    yield Draft(does, Cost.NOTHING, tuple(steps), warnings=warnings)
