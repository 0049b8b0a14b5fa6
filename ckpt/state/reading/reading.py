"""One reading of state, planned: the options of Spark's reader. Whoever carries it out adds nothing to it."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from ckpt.advice import Option, Words, join, plain, words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.chains import is_known_provider
from ckpt.checkpoint.times import BatchOrTime, find_batch
from ckpt.errors import CkptError, UsageError
from ckpt.formats.statefiles import JOIN_COUNTS
from ckpt.formats.types import fields_of, struct_of
from ckpt.model import Json, Provider, QueryMetadata, Unreadable
from ckpt.settings import PROVIDER_CLASS
from ckpt.state.book import BOOK
from ckpt.state.reading.choose import RequestedPart, check_operators, choose_batch, choose_units
from ckpt.state.reading.confs import Conf, ReadingFacts, confs_for
from ckpt.state.reading.mount import Mount, mount_for
from ckpt.state.reading.stated_schemas import StatedStore, read_stated_schemas, with_stated_schemas
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.storage import Storage, open_storage
from ckpt.versions import NEWEST, Spark, first_with

OLDEST_SPARK = first_with(lambda rules: rules.state_reader)
"""The oldest version whose state reader reads what is planned here."""


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """Up to where the state accounts for one source: its offset at the end of the batch."""

    index: int
    name: str | None  # offset log v2 names its sources
    offset: Json  # as in the offset log; None if the source had none yet


@dataclass(frozen=True, slots=True)
class Moment:
    """A committed batch: the state after it accounts for exactly the rows up to ``sources``. Times are ms."""

    query_id: str | None
    batch: int
    state_version: int  # of the state stores: the state of batch B is version B + 1
    planned_ms: int | None  # when the batch was planned
    watermark_ms: int | None  # under which the batch ran, and so evicted state
    next_watermark_ms: int | None  # after the batch, for the next one
    sources: tuple[SourceEnd, ...]


@dataclass(frozen=True, slots=True)
class StateRequest:
    """A question: which units of which checkpoint, and the state or the changes of which batches."""

    checkpoint: str
    wanted: RequestedPart = field(default_factory=RequestedPart)
    all_units: bool | None = None  # None: the caller has no such option, so no message names it
    batch: BatchOrTime | None = None  # None: the newest committed
    changes_from: BatchOrTime | None = None  # a change feed from this batch up to ``batch``
    lost: frozenset[tuple[int, int]] | None = None  # of a salvage, whose batch is named: operators and partitions
    only_count: bool = False  # rows are counted, not decoded: HDFS-backed state needs no schema for that


@dataclass(frozen=True, slots=True)
class Reading:
    """One unit at one moment, and how Spark is to read it."""

    checkpoint: str  # as it was given
    unit: StateUnit
    moment: Moment
    changes_from: int | None
    options: Mapping[str, str]  # of Spark's data source ``statestore``
    confs: tuple[Conf, ...]
    mount: Mount | None  # through which Spark reads; None: at the path itself
    other_provider: str | None = None  # that the offsets record, where it is none of Spark's

    @property
    def schema(self) -> Json:
        """The columns that Spark will give, as far as the files say: a StructType in Spark's JSON, or None."""
        fields = fields_of(self.unit.schema)
        if fields is None:
            return None
        extra = struct_of([("batch_id", "long"), ("change_type", "string"), ("partition_id", "integer")])
        *changes, partition = fields_of(extra) or []
        return {"type": "struct", "fields": [*(changes if self.changes_from is not None else ()), *fields, partition]}


def plan_readings(
    question: StateRequest, storage_options: Mapping[str, str] | None = None, spark: Spark = NEWEST
) -> tuple[Reading, ...]:
    """Plan what was asked for; reads the checkpoint's small files, and starts no JVM.

    ``spark`` is the version that will read. Raises StateDamaged, UsageError, and what ``open_checkpoint`` raises.
    """
    chosen = choose(question, storage_options)
    uri, first = chosen.checkpoint.uri, find_batch(chosen.checkpoint, chosen.question.changes_from)
    for unit in chosen.units:
        if unit.oldest_spark is not None and not spark.at_least(unit.oldest_spark):
            versions = {"oldest": unit.oldest_spark, "spark": spark}
            raise CkptError(BOOK.text("read_newer_spark", uri=uri, part=unit.label, **versions))
        if first is not None:
            _check_changes(uri, unit, first, chosen.moment.batch)
    return tuple(_plan(chosen, unit, first, spark) for unit in chosen.units)


def _plan(chosen: "ChosenState", unit: StateUnit, first: int | None, spark: Spark) -> Reading:
    mount, provider = mount_for(chosen.checkpoint, unit, chosen.storage.read), chosen.recorded.get(PROVIDER_CLASS)
    return Reading(
        checkpoint=chosen.checkpoint.uri,
        unit=unit,
        moment=chosen.moment,
        changes_from=first,
        options=_options(unit, chosen.moment.batch, first),
        confs=confs_for(ReadingFacts(unit, chosen.recorded, mount is not None, spark)),
        mount=mount,
        other_provider=None if provider is None or is_known_provider(provider) else provider,
    )


@dataclass(frozen=True, slots=True)
class ChosenState:
    """The answer to what a question asks for, found in its checkpoint; independent of who reads it.

    It can be pickled: the process that unpickles it opens the checkpoint itself.
    """

    question: StateRequest
    options: Mapping[str, str]  # for the file system
    checkpoint: Checkpoint
    storage: Storage
    units: tuple[StateUnit, ...]
    moment: Moment

    @property
    def stated(self) -> tuple[StatedStore, ...]:
        """The schemas that were stated for stores that keep none."""
        schema = self.question.wanted.schema
        return schema if isinstance(schema, tuple) else ()

    @property
    def recorded(self) -> Mapping[str, str]:
        """The settings in the offsets of the batch."""
        entry = self.checkpoint.offsets.readable(self.moment.batch)
        return entry.metadata.conf if entry and entry.metadata else {}

    def as_of(self, batch: int) -> "ChosenState":
        """The units as of another batch, whose logs are read. Raises CkptError where its offsets cannot be read."""
        return replace(self, moment=_read_moment(self.checkpoint, batch))

    def __reduce__(self) -> tuple[Any, ...]:
        question = replace(self.question, batch=self.moment.batch)
        return partial(choose, what_is_left=True), (question, dict(self.options))


def choose(
    question: StateRequest,
    storage_options: Mapping[str, str] | None = None,
    *,
    what_is_left: bool = False,
    every_batch: bool = False,
    storage: Storage | None = None,
) -> ChosenState:
    """Find what was asked for; reads the checkpoint's small files. Raises as ``plan_readings`` does.

    ``what_is_left``: also where all units are asked for, and an operator is lost. ``every_batch``: with the logs of
    all batches. ``storage``: the checkpoint, opened already; other processes open it themselves.
    """
    options = storage_options or {}
    if storage is None:
        storage = open_storage(question.checkpoint, options)
        storage.names_only = True  # whoever reads rows meets what is damaged, and each process would look again
    every_batch = every_batch or isinstance(question.changes_from, datetime)
    checkpoint = read_checkpoint(storage, batches=0) if every_batch else _read_at(storage, question.batch)
    batch, first = (find_batch(checkpoint, each) for each in (question.batch, question.changes_from))
    question = replace(question, batch=batch, changes_from=first)
    if question.wanted.schema is not None:
        stated = question.wanted.schema
        stated = read_stated_schemas(stated) if isinstance(stated, str) else stated
        checkpoint = with_stated_schemas(checkpoint, stated)
        question = replace(question, wanted=replace(question.wanted, schema=stated))
    everything = replace(question.wanted, schema=None) == RequestedPart()
    if question.all_units and everything and not what_is_left:
        check_operators(checkpoint)
    units = choose_units(checkpoint, question.wanted, all_of_them=question.all_units)
    how = {"damaged": question.lost is not None, "only_count": question.only_count}
    chosen = choose_batch(checkpoint, units, batch, **how)
    return ChosenState(question, options, checkpoint, storage, units, _read_moment(checkpoint, chosen))


def _read_at(storage: Storage, batch: BatchOrTime | None) -> Checkpoint:
    """Read a checkpoint so that the log files of a batch are read, however old it is; for a time all."""
    if isinstance(batch, datetime):
        return read_checkpoint(storage, batches=0)
    checkpoint = read_checkpoint(storage)
    ids = checkpoint.offsets.ids
    if batch is None or batch in checkpoint.offsets.entries or batch not in checkpoint.offsets:
        return checkpoint
    return read_checkpoint(storage, batches=len(ids) - bisect_left(ids, batch))


def _read_moment(checkpoint: Checkpoint, batch: int) -> Moment:
    """Read what the logs record of a batch. Raises CkptError where its offsets cannot be read."""
    entry = checkpoint.offsets.entries.get(batch)
    if entry is None or isinstance(entry, Unreadable):
        why = "there are none" if entry is None else entry.reason
        raise CkptError(BOOK.text("read_no_offsets", uri=checkpoint.uri, number=batch, why=why))
    commit = checkpoint.commits.readable(batch)
    metadata = entry.metadata
    return Moment(
        query_id=checkpoint.metadata.query_id if isinstance(checkpoint.metadata, QueryMetadata) else None,
        batch=batch,
        state_version=batch + 1,
        planned_ms=metadata.timestamp_ms if metadata else None,
        watermark_ms=metadata.watermark_ms if metadata else None,
        next_watermark_ms=commit.next_watermark_ms if commit else None,
        sources=tuple(SourceEnd(i, source.name, source.value) for i, source in enumerate(entry.sources)),
    )


def _options(unit: StateUnit, batch: int, changes_from: int | None) -> dict[str, str]:
    """The options of ``statestore`` (Spark class ``StateSourceOptions``)."""
    options = {"operatorId": str(unit.operator)}
    if changes_from is None:
        options["batchId"] = str(batch)
    else:
        span = {"changeStartBatchId": str(changes_from), "changeEndBatchId": str(batch)}
        options |= {"readChangeFeed": "true", **span}
    if unit.row_store is not None:  # also of a join side: Spark's own way (joinSide) writes to HDFS-backed stores
        return options | {"storeName": unit.row_store}
    match unit.kind:
        case UnitKind.SIDE if unit.side is not None:
            options["joinSide"] = unit.side
        case UnitKind.TIMERS:
            options["readRegisteredTimers"] = "true"
        case _ if unit.variable is not None:
            options["stateVarName"] = unit.variable
    return options


def _check_changes(uri: str, unit: StateUnit, first: int, last: int) -> None:
    """Raise UsageError unless the changes of all these batches are there and Spark can read them."""
    if first > last:
        raise UsageError.of("{--changes-from=}: the changes end at batch {last}", changes_from=first, last=last)
    if any(a <= first and last <= b for a, b in unit.change_batches):
        return
    if unit.kind is UnitKind.SIDE:
        stores = [store for store in unit.stores if not store.endswith(JOIN_COUNTS)] or unit.stores
        listed = join((Option("store", store) for store in stores), " or ")
        why: str | Words = words("Spark reads changes of a join store by store: {listed}", listed=listed)
    elif unit.kind is UnitKind.TIMERS:
        why = "Spark reads no changes of timers"
    elif not unit.change_batches and unit.provider is Provider.ROCKSDB:
        why = "RocksDB without changelog checkpointing keeps no changes"
    else:
        spans = ", ".join(f"{a} to {b}" for a, b in unit.change_batches) or "none"
        why = f"changes exist for batches: {spans}"
    raise UsageError(plain(f"{uri}: {unit.label}: the changes of batches {first} to {last} cannot be read: ") + why)
