"""The call ``rehearse``; of pyspark nothing is imported before there is a data frame."""

from collections.abc import Mapping, Sequence
from os import fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.new.evolve.plan import EvolveOptions
from ckpt.new.rehearsal import Rehearsal
from ckpt.query.description import QueryDescription, read_query
from ckpt.spark.connect import NO_PLAN, require_classic
from ckpt.spark.installed import find_pyspark_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rehearse(
    checkpoint: Location,
    *,
    to: "DataFrame",
    batches: int = 3,
    old_query: "DataFrame | None" = None,
    storage_options: Mapping[str, str] | None = None,
    output_mode: str = "append",
    from_query: QueryDescription | None = None,
    map_source: Sequence[str] = (),
    map_operator: Sequence[str] = (),
    map_column: Sequence[str] = (),
    default: Mapping[str, str] | None = None,
    start: Mapping[str, str] | None = None,
    evolve: bool = True,
    limit: int = 20,
    seconds: float = 600,
    scratch: str | None = None,
) -> Rehearsal:
    """Try a query on a temporary copy of a checkpoint; report if it starts, its rows, state and batch times.

    The copy is what ``ckpt.evolve`` with ``accept_from_now_on`` would write or, if that refuses, a plain copy. It has
    its own query id. The query reads its sources there with trigger ``availableNow`` and writes to Spark's sink
    ``noop``; then the copy is removed. The checkpoint is only read, and so are the sources; the sink is not touched.
    The query may keep running. The copy needs as much space as the checkpoint. The query's functions (UDFs) run as
    usual, including any writes to other systems.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        to: The changed query: the streaming data frame whose ``writeStream`` starts it; of a classic session.
        batches: How many batches to run; fewer if the sources run out of rows. The first is a batch that was
            planned and not committed, if there is one. If there are no new rows at all, the rows of an earlier batch
            are read again.
        old_query: The unchanged query: it runs too, on a plain copy, for comparison.
        storage_options: For the file system of the checkpoint.
        output_mode: ``append``, ``update`` or ``complete``, of both queries.
        from_query: The description of the old query, by default that of ``old_query``; this and the next five as of
            ``ckpt.evolve``.
        map_source: Which source of the checkpoint is which of the query.
        map_operator: Which stateful operator is which.
        map_column: Which column of state is which.
        default: The value of new key columns in old rows.
        start: Where a new source begins.
        evolve: False: run on a plain copy, as a start on the checkpoint itself would.
        limit: Return at most this many changed rows per unit of state; all are counted.
        seconds: Stop a query after this time.
        scratch: A local folder in which the copy is made, by default that of the system for temporary files. The
            executors of a cluster must reach it under the same path.

    Raises:
        UsageError: It is not a streaming data frame; its sources would be written to (``cleanSource``, or a source
            that ckpt does not know); executors are elsewhere, and there is no ``scratch``.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read, or the copy not be written.
        CkptError: A start on the unchanged checkpoint fails with any query, so it cannot be copied.

    >>> rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> counts = rows.selectExpr("value % 7 AS user", "value").groupBy("user").agg({"*": "count", "value": "sum"})
    >>> tried = ckpt.rehearse("sample_checkpoints/aggregation-hdfs-4.2", to=counts, batches=1, output_mode="update")
    >>> tried.starts, [batch.rows_in for batch in tried.new.batches], tried.new.state[0].changed
    (True, [10], 7)
    """
    if batches < 1:
        raise UsageError.of("{--batches} must be at least 1")
    find_pyspark_version()
    from ckpt.spark.rehearsing import Stage

    spark, uri = require_classic(to.sparkSession, NO_PLAN), fspath(checkpoint)
    if scratch is None and not str(spark.sparkContext.master).startswith("local"):
        raise UsageError.of(
            "{--scratch}: name a folder that this session's executors can reach; the copy is made there"
        )
    stage = Stage(checkpoint, storage_options, output_mode, batches, seconds, limit)
    new = stage.describe(to)
    old = None if old_query is None else stage.describe(old_query)
    wanted, wrote = None, read_query(from_query) or old
    if evolve:
        wanted = EvolveOptions(map_source, map_operator, map_column, default or {}, start or {}, wrote, True)
    with TemporaryDirectory(prefix="ckpt-rehearse-", dir=scratch) as name:
        result = stage.rehearse(to, Path(name) / "new", new, wanted, wrote)
        beside = None if old_query is None else stage.rehearse(old_query, Path(name) / "old")
    return Rehearsal(uri, str(spark.version), result, beside)
