"""State as DataFrames, for programs and notebooks: ``read_state``, ``read_changes``, ``read_initial_state``."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from ckpt.errors import UsageError
from ckpt.export.choose import Wanted
from ckpt.export.initial import plan_initial_state
from ckpt.export.reading import Question, Reading, plan_readings
from ckpt.export.targets import Shape
from ckpt.spark.export import shaped
from ckpt.spark.initial import initial_frame
from ckpt.spark.needs import pyspark_version


def read_state(
    spark: SparkSession,
    path: str,
    *,
    batch: int | None = None,
    operator: int | None = None,
    store: str | None = None,
    side: str | None = None,
    variable: str | None = None,
    timers: bool = False,
    shape: str = "flat",
    partition_id: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The state of a checkpoint after a committed batch, as a lazy DataFrame; nothing is collected or written.

    ``path`` is whatever ``ckpt inspect`` takes. ``batch`` is the id of a committed batch, by default the newest.
    ``operator``, ``side`` (of a join: left or right), ``variable`` or ``timers`` (of transformWithState) and ``store``
    pick one of ``state_units``; a checkpoint that has only one needs none of them. ``shape`` is ``flat`` (a column for
    each leaf: ``key_user``, ``value_count``) or ``raw`` (Spark's structs); times in state are what the query stored:
    timers and TTL in ms since 1970, ``expiresAtMicros`` in microseconds.

    Raises ``StateDamaged`` where files of that state are missing or damaged, ``UsageError`` for a choice that does not
    exist, ``SparkFailed`` with Spark's words (all ``CkptError``). The session's settings are not changed.

    >>> ckpt.read_state(spark, "/data/checkpoints/orders", side="left").write.parquet("/data/left")  # doctest: +SKIP
    """
    wanted = Wanted(operator, store, side, variable, timers)
    reading = _planned(Question(path, wanted, batch=batch), storage_options)
    return shaped(spark, reading, _shape(shape), partition_id=partition_id).frame


def read_changes(
    spark: SparkSession,
    path: str,
    first: int,
    last: int | None = None,
    *,
    operator: int | None = None,
    store: str | None = None,
    variable: str | None = None,
    shape: str = "flat",
    partition_id: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """What batches ``first`` to ``last`` (the newest committed) changed, both included, as a lazy DataFrame.

    One row for each change: ``batch_id``, ``change_type`` (update, append, delete), then the columns of
    ``read_state``. HDFS-backed stores and RocksDB with changelog checkpointing have them, for as long as the files of
    these batches are there (``StateUnit.change_batches``); joins by ``store``. Raises as ``read_state`` does, and
    ``UsageError`` where the changes of one of these batches are not there, saying of which they are.

    >>> ckpt.read_changes(spark, "/data/checkpoints/orders", 120, 129).where("key_user = 7").show()  # doctest: +SKIP
    """
    wanted = Wanted(operator, store, None, variable)
    reading = _planned(Question(path, wanted, batch=last, changes_from=first), storage_options)
    return shaped(spark, reading, _shape(shape), partition_id=partition_id).frame


def read_initial_state(
    spark: SparkSession,
    path: str,
    *,
    batch: int | None = None,
    operator: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """All state of an operator, one row for each grouping key, as a lazy DataFrame: initial state for another query.

    The key columns come first, in the types of the state schema and named as in ``flat`` without ``key_``; what the
    others hold says ``ckpt.export.initial.Holds``. ``batch`` is the id of a committed batch, by default the newest;
    ``operator`` has to be given where there are several. Values whose time to live is over, but which Spark has not
    removed yet, are among them, with their expiry. Write the frame to Parquet or Delta and start the new query on that:
    Spark plans it again and again, also when the old checkpoint is gone. Raises as ``read_state`` does.

    >>> ckpt.read_initial_state(spark, "/data/checkpoints/orders").write.parquet("/data/initial")  # doctest: +SKIP
    """
    question = Question(path, Wanted(operator), batch=batch)
    return initial_frame(spark, plan_initial_state(question, storage_options, pyspark_version()))


def _shape(name: str) -> Shape:
    if name not in (Shape.FLAT, Shape.RAW):
        raise UsageError(f"shape {name!r}: flat or raw")
    return Shape(name)


def _planned(question: Question, storage_options: Mapping[str, str] | None) -> Reading:
    (reading,) = plan_readings(question, storage_options, pyspark_version())
    return reading
