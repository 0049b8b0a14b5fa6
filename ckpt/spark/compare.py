"""State read in two ways, or at two versions, compared by Spark: rows are counted where they lie, never collected."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import attrgetter

from pyspark.sql import Column, DataFrame, SparkSession, functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructField, StructType

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.migrate.comparison import Carried, TwoWays, VersionComparison
from ckpt.spark.frames import read_raw_frame
from ckpt.spark.installed import Watcher, find_pyspark_version
from ckpt.spark.jobs import run_jobs
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.reading import Reading, StateRequest, plan_readings
from ckpt.state.reading.units import UnitKind, state_units

_PLACE = "partition_id"


@dataclass(frozen=True, slots=True)
class Comparing:
    """A checkpoint whose state is compared by one session."""

    spark: SparkSession
    checkpoint: Checkpoint
    storage_options: Mapping[str, str] | None = None
    watcher: Watcher | None = None

    def compare_versions(self, ways: Iterable[TwoWays]) -> Iterator[VersionComparison]:
        """Each version that can be read in two ways: key and value of every row.

        A job for each unit of state, of which only counts come to the driver, one row for each partition. Raises
        SparkFailed, and what ``plan_readings`` raises.
        """
        for (operator, store, version, older), places in _group_partitions(ways, "version", "older"):
            for reading in self._plan_readings(operator, store, version):
                longer = (self._read_longer(reading, older, partition) for partition in places)
                direct = self._read_frame(reading, places)
                counts = self._compare_frames(reading, direct, reduce(DataFrame.union, longer))
                differing = tuple(sorted(partition for partition, _, _, *only in counts if any(only)))
                label = reading.unit.label
                yield VersionComparison(operator, label, version, older, places, *_sum_counts(counts), differing)

    def count_carried(self, ways: Iterable[TwoWays]) -> Iterator[Carried]:
        """How much the first snapshot of the new way has in common with the last version of the old one."""
        for (operator, store, last, later), places in _group_partitions(ways, "last", "later"):
            both = zip(*(self._plan_readings(operator, store, version) for version in (last, later)), strict=True)
            for reading, other in both:
                frames = self._read_frame(reading, places), self._read_frame(other, places)
                counts = self._compare_frames(reading, *frames)
                rows, rows_later, gone, _ = _sum_counts(counts)
                yield Carried(operator, reading.unit.label, last, later, places, rows, rows_later, rows - gone)

    def _plan_readings(self, operator: int, store: str, version: int) -> tuple[Reading, ...]:
        """All units of an operator, or those of one of its stores where it has several."""
        units = [unit for unit in state_units(self.checkpoint) if unit.operator == operator and store in unit.stores]
        apart = any(unit.kind is UnitKind.STORE for unit in units)
        wanted = RequestedPart(operator, store if apart else None)
        question = StateRequest(self.checkpoint.uri, wanted, all_units=True, batch=version - 1)
        return plan_readings(question, self.storage_options, find_pyspark_version())

    def _read_frame(self, reading: Reading, partitions: Iterable[int]) -> DataFrame:
        return read_raw_frame(self.spark, reading).where(F.col(_PLACE).isin(*partitions))

    def _read_longer(self, reading: Reading, older: int, partition: int) -> DataFrame:
        """Read one partition again, beginning at an older snapshot (``SupportsFineGrainedReplay``)."""
        more = {"snapshotStartBatchId": str(older - 1), "snapshotPartitionId": str(partition)}
        return read_raw_frame(self.spark, replace(reading, options={**reading.options, **more}))

    def _compare_frames(self, reading: Reading, frame: DataFrame, other: DataFrame) -> list[tuple[int, ...]]:
        doing = f"comparing {reading.unit.label} in batch {reading.moment.batch}"
        with run_jobs(self.spark, doing, self.watcher):
            return [tuple(map(int, row)) for row in _count_differences(frame, other).collect()]


def _group_partitions(
    ways: Iterable[TwoWays], *versions: str
) -> Iterator[tuple[tuple[int, str, int, int], tuple[int, ...]]]:
    """Partitions of a store that have the same two versions."""
    of_way = attrgetter("operator", "store", *versions)
    for key, group in groupby(sorted((way for way in ways if None not in of_way(way)), key=of_way), key=of_way):
        yield key, tuple(way.partition for way in group)


def _sum_counts(counts: Sequence[tuple[int, ...]]) -> tuple[int, int, int, int]:
    rows, others, only, only_other = (sum(row[ordinal] for row in counts) for ordinal in range(1, 5))
    return rows, others, only, only_other


def _count_differences(direct: DataFrame, replayed: DataFrame) -> DataFrame:
    """For each partition: rows of both, and how many are in one only."""
    own, other = _make_comparable(direct, 1, 0), _make_comparable(replayed, 0, 1)
    rows = own.union(other).groupBy(*own.columns[:-2]).agg(F.sum("a").alias("a"), F.sum("b").alias("b"))
    excess = (F.greatest(F.col(x) - F.col(y), F.lit(0)) for x, y in (("a", "b"), ("b", "a")))
    return rows.groupBy(_PLACE).agg(F.sum("a"), F.sum("b"), *map(F.sum, excess))


def _make_comparable(frame: DataFrame, a: int, b: int) -> DataFrame:
    columns = []
    for field in frame.schema.fields:
        kind = _name_by_position(field.dataType)
        columns.append(_replace_maps(F.col(field.name).cast(kind), kind).alias(field.name))
    return frame.select(*columns, F.lit(a).alias("a"), F.lit(b).alias("b"))


def _name_by_position(kind: DataType) -> DataType:
    """A type whose fields are named by their position, for two may share a name; what is always NULL is a string."""
    match kind:
        case StructType():
            fields = enumerate(kind.fields)
            return StructType(
                [StructField(f"_{i}", _name_by_position(field.dataType), field.nullable) for i, field in fields]
            )
        case ArrayType():
            return ArrayType(_name_by_position(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_name_by_position(kind.keyType), _name_by_position(kind.valueType), kind.valueContainsNull)
        case NullType():
            return StringType()
    return kind


def _replace_maps(column: Column, kind: DataType) -> Column:
    """Replace every map of a value by an array of entries: maps cannot be grouped."""
    has_map = "map<" in kind.simpleString()  # fields are named by their position
    match kind:
        case StructType() if has_map:
            fields = (
                _replace_maps(column.getField(field.name), field.dataType).alias(field.name) for field in kind.fields
            )
            return F.when(column.isNotNull(), F.struct(*fields))
        case ArrayType() if has_map:
            return F.transform(column, lambda element: _replace_maps(element, kind.elementType))
        case MapType():
            entry = StructType([StructField("key", kind.keyType), StructField("value", kind.valueType)])
            return _replace_maps(F.map_entries(column), ArrayType(entry))
    return column
