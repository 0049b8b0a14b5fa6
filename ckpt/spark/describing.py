"""Describe the expectations of an unstarted query: sources, stateful operators, and their state."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ckpt.checkpoint.checkpoint import OFFSETS, STATE
from ckpt.checkpoint.reader import open_checkpoint
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.inspection.checks.query import list_families
from ckpt.inspection.query import DescribedOperator, DescribedSource, DescribedStore, QueryDescription
from ckpt.model import Operator
from ckpt.spark.planning import Planner, Refusal, list_operator_names
from ckpt.versions import Spark

_FILES = frozenset({"avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml", "libsvm"})
_RATES = {"ratestream": SourceType.RATE, "rate": SourceType.RATE, "rate-micro-batch": SourceType.RATE_MICRO_BATCH}


@contextmanager
def make_scratch_folder(batch: int) -> Iterator[Path]:
    """A folder in which a batch can be planned; gone afterwards.

    The reader of operator metadata v2 wants the batch in the listing of ``offsets/``, and does not read it.
    """
    with TemporaryDirectory(prefix="ckpt-preflight-") as name:
        folder = Path(name)
        (folder / OFFSETS).mkdir()
        (folder / OFFSETS / str(batch)).write_text("v1")
        yield folder


def describe(planner: Planner, spark: Spark) -> QueryDescription:
    """Describe what Spark would write of a new query with these settings."""
    sources = tuple(_describe_sources(planner))
    settings = planner.settings
    mode = planner.output_mode.lower()
    operators, unsupported, unplanned = None, None, None
    try:
        planner.check()
    except Refusal as refusal:
        unsupported = refusal.answer.words
    if unsupported is None:
        with make_scratch_folder(0) as folder:
            try:
                operators = tuple(_describe_operators(folder, list_operator_names(planner.plan(folder, 0))))
            except Refusal as refusal:
                unplanned = refusal.answer.words
    return QueryDescription(spark, mode, sources, operators, unsupported, unplanned, settings)


def _describe_operators(folder: Path, names: list[str]) -> Iterator[DescribedOperator]:
    """Each operator; what Spark wrote of it, from 4.0 on."""
    (folder / STATE).mkdir(exist_ok=True)
    state = open_checkpoint(str(folder)).state
    written = {operator.id: operator for operator in state.operators} if state else {}
    for number, name in enumerate(names):
        written_operator = written.get(number)
        yield _describe_operator(written_operator, name) if written_operator else DescribedOperator(name)


def _describe_operator(operator: Operator, name: str) -> DescribedOperator:
    properties = operator.properties if isinstance(operator.properties, dict) else {}
    return DescribedOperator(
        operator.name or name,
        tuple(DescribedStore(store.name, list_families(store)) for store in operator.stores),
        {variable.name: variable.kind for variable in operator.variables},
        _text(properties.get("timeMode")),
        _text(properties.get("outputMode")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _describe_sources(planner: Planner) -> Iterator[DescribedSource]:
    for leaf in planner.leaves:
        options, kind = planner.read_options(leaf), _kind(leaf)
        loss = options.get("failondataloss", "true").lower() != "false"
        topics = _topics(options) if kind == SourceType.KAFKA else None
        if kind != SourceType.FILE:
            yield DescribedSource(str(kind), topics, loss)
            continue
        recursive = options.get("recursivefilelookup", "false").lower() == "true"
        partitions = not leaf.dataSource().sourceInfo().partitionColumns().isEmpty()
        yield DescribedSource(str(kind), None, loss, options.get("path"), recursive, partitions)


def _kind(leaf: Any) -> str:
    if leaf.getClass().getSimpleName() == "StreamingRelation":
        name = str(leaf.dataSource().className()).lower()
    elif hasattr(leaf, "sourceName"):
        name = str(leaf.sourceName()).lower()
    else:
        return str(leaf.getClass().getSimpleName())
    short = name.rpartition(".")[2]
    if short in _FILES or short.removesuffix("fileformat") in _FILES:
        return SourceType.FILE
    return _RATES.get(short, short)


def _topics(options: Mapping[str, str]) -> tuple[str, ...] | None:
    named = options.get("subscribe")
    return None if named is None else tuple(sorted({name.strip() for name in named.split(",")} - {""}))
