"""Describes an unstarted streaming query for ``ckpt.describe_query``, and plans its start for ``ckpt.preflight``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from ckpt import settings
from ckpt.advice import CHECKPOINT, Hole, call, words
from ckpt.checkpoint import history
from ckpt.checkpoint.checkpoint import OFFSETS, STATE, Checkpoint
from ckpt.checkpoint.reader import as_checkpoint, open_checkpoint
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.inspection.preflight import PlannedStart
from ckpt.live.asking import ask_sources, live_kind_of
from ckpt.live.records import LiveSource
from ckpt.model import Location, Operator
from ckpt.query.compare_checkpoint import SparkAnswer, list_families
from ckpt.query.description import (
    DescribedAggregate,
    DescribedOperator,
    DescribedSource,
    DescribedStore,
    QueryDescription,
)
from ckpt.query.reader_options import keep_options
from ckpt.restart.recorded_settings import recorded_settings_of
from ckpt.spark.connect import ConnectSession, is_connect
from ckpt.spark.installed import SparkMissing
from ckpt.spark.planning import Planner, Refusal, check_streaming
from ckpt.spark.signature import Signature, read_own_conditions, read_signature
from ckpt.state.reading.mount import move_schema_paths
from ckpt.storage import open_storage
from ckpt.versions import Spark, known_version

_DESCRIPTION = frozenset({"_metadata", "_stateSchema"})
"""Folders below ``state/`` that planning reads: of the state only its description."""

_NO_PLAN = "its session is a Spark Connect session, which does not show ckpt how Spark plans it"
_NO_OPTIONS = words(
    "{--sources}: a Spark Connect session does not show reader options; use {preflight}",
    preflight=call("preflight", CHECKPOINT, sources=True, source_options={"I.KEY": Hole.VALUE}),
)
_FILES = frozenset({"avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml", "libsvm"})
_STARTS = frozenset(
    {
        "readchangefeed",
        "startingoffsets",
        "startingoffsetsbytimestamp",
        "startingoffsetsbytimestampstrategy",
        "startingtimestamp",
        "startingversion",
        "startoffset",
        "starttimestamp",
        "stream-from-timestamp",
    }
)
"""Options of readers that say where a new query begins."""
_LIMITS = frozenset({"maxoffsetspertrigger", "minpartitions"})
_RATES = {"ratestream": SourceType.RATE, "rate": SourceType.RATE, "rate-micro-batch": SourceType.RATE_MICRO_BATCH}


def describe(
    frame: DataFrame, output_mode: str, checkpoint: Location | None, storage_options: Mapping[str, str] | None
) -> QueryDescription:
    """Describe an unstarted query, as ``ckpt.describe_query`` does. Raises as that."""
    opened = as_checkpoint(checkpoint, storage_options) if checkpoint is not None else None
    recorded = recorded_settings_of(opened) if opened else None
    return _describe(Planner(frame, output_mode, recorded), _find_version(frame))


def plan_start(
    frame: DataFrame, checkpoint: Checkpoint, output_mode: str, storage_options: Mapping[str, str] | None
) -> PlannedStart:
    """Plan the next batch of an unstarted query, for ``ckpt.preflight``, which describes what this does.

    Raises UsageError where it is not a streaming data frame, or there is no such mode, and SparkMissing.
    """
    spark, recorded = _find_version(frame), recorded_settings_of(checkpoint)
    start = PlannedStart(spark, _read_settings(frame, recorded or {}), all_settings=True)
    if is_connect(frame.sparkSession):
        check_streaming(frame, output_mode)
        return replace(start, hidden=_NO_PLAN)
    planner = Planner(frame, output_mode, recorded)
    query = _describe(planner, spark)
    answer = _ask_spark(planner, checkpoint, storage_options) if query.unsupported is None else None
    return replace(start, query=query, answer=answer)


def ask_readers(frame: DataFrame, output_mode: str, checkpoint: Checkpoint) -> tuple[LiveSource, ...] | None:
    """Ask the sources with the options of the frame's readers, as far as the query reads what the checkpoint did.

    None where nothing can be asked.
    Raises SourceError, and UsageError where its session is one of Spark Connect, which shows no options.
    """
    if is_connect(frame.sparkSession):
        raise ConnectSession(_NO_OPTIONS)
    planner = Planner(frame, output_mode, recorded_settings_of(checkpoint))
    kinds = map(live_kind_of, history.sources(checkpoint))
    readers = {
        index: (planner.read_options(leaf), kind.option.lower())
        for index, (leaf, kind) in enumerate(zip(planner.leaves, kinds, strict=False))
        if kind is not None and kind.asked_for_query
    }
    named = {index: options for index, (options, option) in readers.items() if option in options}
    return ask_sources(checkpoint, named) if named or not readers else None


def _describe(planner: Planner, spark: Spark) -> QueryDescription:
    """Describe what Spark would write of a new query with these settings."""
    sources, mode = tuple(_describe_sources(planner)), planner.output_mode.lower()
    described = QueryDescription(spark, mode, sources, None, None, None, planner.settings, None, planner.session)
    try:
        planner.check()
    except Refusal as refusal:
        return replace(described, unsupported=refusal.answer.words)
    with _make_scratch_folder(0) as folder:
        try:
            signature = read_signature(planner.plan(folder, 0), len(sources), planner)
            if signature.infers:
                with _make_scratch_folder(0) as other:
                    plan = planner.plan(other, 0, inferring=False)
                    signature = read_own_conditions(signature, plan, len(sources), planner)
        except Refusal as refusal:
            return replace(described, unplanned=refusal.answer.words)
        operators = tuple(_describe_operators(folder, signature))
    return replace(described, operators=operators, watermarks=signature.watermarks)


def _describe_operators(folder: Path, signature: Signature) -> Iterator[DescribedOperator]:
    (folder / STATE).mkdir(exist_ok=True)
    state = open_checkpoint(str(folder)).state
    written = {operator.id: operator for operator in state.operators} if state else {}
    for number, planned in sorted(signature.operators.items()):
        yield _add_stores(planned, written[number], folder) if number in written else planned


def _add_stores(planned: DescribedOperator, written: Operator, folder: Path) -> DescribedOperator:
    """Add to an operator of a plan what Spark wrote of it into a folder."""
    properties = written.properties if isinstance(written.properties, dict) else {}
    modes = (properties.get(name) for name in ("timeMode", "outputMode"))
    time_mode, output_mode = (mode if isinstance(mode, str) else None for mode in modes)
    own = folder / STATE / str(written.id)
    stores = tuple(
        DescribedStore(store.name, list_families(store), store.prefix_columns, _find_schema_version(own))
        for store in written.stores
    )
    return replace(
        planned,
        name=written.name or planned.name,
        stores=stores,
        variables={variable.name: variable.kind for variable in written.variables},
        time_mode=time_mode,
        output_mode=output_mode,
        properties=written.properties,
        metadata_version=2 if (own / "_metadata" / "v2").is_dir() else 1,
        aggregates=_take_nullability(planned.aggregates, stores),
    )


def _find_schema_version(operator: Path) -> int | None:
    """The version in the first line of the schema files of an operator, which is the same for all its stores."""
    for path in sorted(operator.rglob("*")):
        if path.is_file() and (path.name == "schema" or "_stateSchema" in path.parts) and path.name[0] != ".":
            return int(path.read_bytes()[3:4])  # two bytes of its length, and ``v``
    return None


def _take_nullability(
    aggregates: tuple[DescribedAggregate, ...] | None, stores: Sequence[DescribedStore]
) -> tuple[DescribedAggregate, ...] | None:
    """Give the columns of aggregates the nullability that they have in the state: its last columns are theirs."""
    value: Any = stores[0].families[0].value if stores and stores[0].families else None
    fields = value.get("fields") if isinstance(value, dict) else None
    if not aggregates or not isinstance(fields, list):
        return aggregates
    count = sum(len(aggregate.buffers) for aggregate in aggregates)
    nullable = iter(column["nullable"] is not False for column in fields[len(fields) - count :])
    lists = (tuple(replace(each, nullable=next(nullable, True)) for each in own.buffers) for own in aggregates)
    return tuple(replace(own, buffers=buffers) for own, buffers in zip(aggregates, lists, strict=True))


def _describe_sources(planner: Planner) -> Iterator[DescribedSource]:
    for leaf in planner.leaves:
        options, kind = planner.read_options(leaf), _kind(leaf)
        schema = _drop_metadata(json.loads(leaf.schema().json()))
        source = DescribedSource(
            str(kind),
            fail_on_data_loss=options.get("failondataloss", "true").lower() != "false",
            name=_find_name(leaf),
            schema=schema,
            start={name: options[name] for name in sorted(_STARTS & options.keys())},
            options=planner.keep_reader(str(leaf.dataSource().className()).rpartition(".")[2], options, schema)
            if kind == SourceType.FILE
            else keep_options(options, schema),
            limits=tuple(sorted(_LIMITS & options.keys())),
        )
        match kind:
            case SourceType.KAFKA if "subscribe" in options:
                names = {name.strip() for name in options["subscribe"].split(",")} - {""}
                source = replace(source, topics=tuple(sorted(names)))
            case SourceType.FILE:
                recursive = options.get("recursivefilelookup", "false").lower() == "true"
                partitions = not leaf.dataSource().sourceInfo().partitionColumns().isEmpty()
                source = replace(source, path=options.get("path"), recursive=recursive, partitions=partitions)
        yield source


def _find_name(leaf: Any) -> str | None:
    """The name that ``DataStreamReader.name`` gave a source; None before Spark 4.2 too."""
    try:
        name = leaf.sourceIdentifyingName()
        return str(name.name()) if name.getClass().getSimpleName() == "UserProvided" else None
    except Py4JError:
        return None


def _drop_metadata(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_drop_metadata(part) for part in schema]
    if isinstance(schema, dict):
        return {key: {} if key == "metadata" else _drop_metadata(part) for key, part in schema.items()}
    return schema


def _kind(leaf: Any) -> str:
    if leaf.getClass().getSimpleName() == "StreamingRelation":
        name = str(leaf.dataSource().className()).lower()
    elif hasattr(leaf, "sourceName"):
        name = str(_find_provider(leaf) or leaf.sourceName()).lower()
    else:
        return str(leaf.getClass().getSimpleName())
    short = name.rpartition(".")[2]
    if short in _FILES or short.removesuffix("fileformat") in _FILES:
        return SourceType.FILE
    return _RATES.get(short, short)


def _find_provider(leaf: Any) -> str | None:
    """The format of a table of a catalog, which ``StreamingRelationV2`` calls by the name of the table."""
    if leaf.getClass().getSimpleName() != "StreamingRelationV2" or leaf.catalog().isEmpty():
        return None
    provider = leaf.table().properties().get("provider")
    return None if provider is None else str(provider)


@contextmanager
def _make_scratch_folder(batch: int) -> Iterator[Path]:
    """A folder in which a batch can be planned; gone afterwards.

    The reader of operator metadata v2 wants the batch in the listing of ``offsets/``, and does not read it.
    """
    with TemporaryDirectory(prefix="ckpt-preflight-") as name:
        folder = Path(name)
        (folder / OFFSETS).mkdir()
        (folder / OFFSETS / str(batch)).write_text("v1")
        yield folder


def _find_version(frame: DataFrame) -> Spark:
    release = str(frame.sparkSession.version)
    version = known_version(release)
    if version is None:
        raise SparkMissing(f"Spark {release} is older than {min(Spark, key=lambda one: one.rank)}: ckpt cannot ask it")
    return version


def _read_settings(frame: DataFrame, recorded: Mapping[str, str]) -> dict[str, str]:
    """Settings of the session that a restart does not take, and the one that has to fit the state.

    Of a session of Spark Connect as far as a log records them, or state needs them.
    """
    conf = frame.sparkSession.conf
    if is_connect(frame.sparkSession):
        has = {name: conf.get(name, None) for name in (*recorded, settings.PROVIDER_CLASS)}
        differing = {name: str(value) for name, value in has.items() if value not in (None, recorded.get(name))}
    else:
        own = Planner(frame, "append").settings
        differing = {name: value for name, value in own.items() if recorded.get(name, value) != value}
    return {**differing, settings.CHECKPOINT_FORMAT: str(conf.get(settings.CHECKPOINT_FORMAT, "1"))}


def _ask_spark(
    planner: Planner, checkpoint: Checkpoint, storage_options: Mapping[str, str] | None
) -> SparkAnswer | None:
    """Return Spark's answer to the next batch; None where there is none, or Spark does not look while it plans."""
    latest = checkpoint.offsets.latest
    if latest is None or checkpoint.links_out or not _find_version(planner.frame).rules.operator_metadata:
        return None
    batch = latest + 1 if checkpoint.commits.latest == latest else latest
    with _copy_state(checkpoint, batch, storage_options) as folder:
        try:
            planner.plan(folder, batch)
        except Refusal as refusal:
            return refusal.answer
    return SparkAnswer(None, None)


@contextmanager
def _copy_state(checkpoint: Checkpoint, batch: int, storage_options: Mapping[str, str] | None) -> Iterator[Path]:
    storage = open_storage(checkpoint.uri, storage_options or {})
    with _make_scratch_folder(batch) as folder:
        for path, _ in checkpoint.listing.walk(STATE):
            *folders, name = path.split("/")
            if not name.startswith(".") and not _DESCRIPTION.isdisjoint(folders):
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                data = storage.read(path)
                target.write_bytes(move_schema_paths(path, data, folder.as_uri()) or data)
        yield folder
