"""The calls ``preflight`` and ``describe_query``; of pyspark nothing is imported where no data frame is given."""

from collections.abc import Mapping
from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING

from ckpt.advice import Option, words
from ckpt.calls.tried_advice import leave_out_impossible
from ckpt.checkpoint.reader import open_for_start
from ckpt.errors import UsageError, must_choose_reading, parse_choice
from ckpt.inspection.preflight import PlannedStart, Readiness, find_changed_file, judge_start
from ckpt.live.asking import ask_sources
from ckpt.live.sink.reader import ask_sink
from ckpt.model import Location
from ckpt.query.description import QueryDescription, read_query
from ckpt.restart.findings import Asked
from ckpt.spark.installed import find_pyspark_version
from ckpt.versions import Spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def preflight(
    checkpoint: Location,
    *,
    query: "DataFrame | None" = None,
    output_mode: str = "append",
    expect: QueryDescription | str | None = None,
    from_query: QueryDescription | str | None = None,
    spark: Spark | str | None = None,
    conf: Mapping[str, str] | None = None,
    progress: Asked | str = Asked.SYNC,
    must_exist: bool = False,
    deep: bool = False,
    names_only: bool = False,
    sources: bool = False,
    source_options: Mapping[int, Mapping[str, str]] | None = None,
    sink: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Readiness:
    """Judge whether a query can be started now, like ``ckpt preflight``; with a data frame, Spark is asked too.

    Without ``query`` it needs no Spark. With it Spark plans the next batch on a temporary copy of the description of
    the state (from 4.0 on it compares operators and schemas with the query while it plans): no job runs, no source is
    opened, nothing is written to the checkpoint.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``, which is not read again.
        query: The streaming data frame whose ``writeStream`` starts the query. One of Spark Connect shows no plan: the
            checkpoint and the session's settings are judged, and CKPT270 says that the query was not compared.
        output_mode: Of ``query``: ``append``, ``update`` or ``complete``.
        expect: Instead of ``query`` its description, of ``ckpt.describe_query``, or the file of that.
        from_query: The description (or its file) of the query that wrote the checkpoint, to find changes Spark misses.
        spark: The version that will start it, or the release, as ``"4.2.1"``, to find its known bugs, too; by default
            that of the query, or each that can have written it.
        conf: Settings of the start; those of the session of ``query`` are known.
        progress: How it will be started: ``sync``, ``async``, ``both``, ``realtime`` or ``continuous``.
        must_exist: The query has run before: hold if no batch is planned there.
        deep: Read every byte of the state, as ``state_verify`` does, and not only what the next start loads, up to a
            bound.
        names_only: Read no state; judge files by name, size and end.
        sources: Also ask the sources for their current offsets; with ``query``, using its readers' options.
        source_options: For ``sources``: the options of the reader of each source by its number, as ``inspect`` takes
            them; those of the readers of ``query`` are known.
        sink: Also read the log of this sink, a Delta table or the folder of a file sink; or what the sink does.
        storage_options: For the file system of the checkpoint and of the sink.

    Raises:
        UsageError: ``query`` is not a streaming data frame, or arguments contradict each other.
        SparkMissing: The Spark of ``query`` is older than 3.5.
        SourceError: A source cannot be reached, or a package is missing.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> readiness = ckpt.preflight("sample_checkpoints/async-kafka-4.2", spark="4.2")
    >>> readiness.go, readiness.holds[0].code
    (False, 'CKPT201')
    """
    of_the_frame = {"expect": expect, "spark": spark, "conf": conf, "source_options": source_options}
    if query is not None and (name := next((name for name, value in of_the_frame.items() if value is not None), None)):
        raise UsageError(words("{query} already says {given}: leave it out", given=Option(name), query=Option("query")))
    if source_options and not sources:
        raise UsageError(words("{given} needs {needed}", given=Option("source_options"), needed=Option("sources")))
    must_choose_reading(deep=deep, names_only=names_only)
    opened = open_for_start(checkpoint, storage_options, names_only=names_only or deep)
    if deep and opened.state is not None:
        from ckpt.state.verify.verify import read_every_byte  # it needs the packages of ``native``

        opened = read_every_byte(fspath(checkpoint), storage_options)
    mode, before = parse_choice(Asked, progress, "progress"), read_query(from_query)
    has = ask_sink(sink, opened.uri, storage_options or {})
    if query is not None:
        from ckpt.spark.preflight import ask_readers, plan_start

        start = plan_start(query, opened, output_mode, storage_options)
        live = ask_readers(query, output_mode, opened) if sources else None
    else:
        version = None if spark is None else parse_choice(Spark, spark, "spark")
        wanted, named = read_query(expect), name_file(expect)
        start = PlannedStart(version, conf or {}, query=wanted, query_file=named, release=spark)
        live = ask_sources(opened, source_options or {}, storage_options) if sources else None
    start = replace(start, old=before, old_file=name_file(from_query), progress=mode, must_exist=must_exist)
    readiness = judge_start(opened, start, has, live, find_changed_file(opened, storage_options))
    tried = leave_out_impossible(readiness.inspection, checkpoint, storage_options, names_only=names_only)
    return readiness.with_advice_of(tried)


def describe_query(
    frame: "DataFrame",
    *,
    output_mode: str = "append",
    checkpoint: Location | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> QueryDescription:
    """Describe an unstarted query's expectations, for ``ckpt preflight --expect``: ``.write("query.json")``.

    Spark plans the first batch of a new query in an empty temporary folder: no job runs, no source is opened, but user
    code of transformWithState is initialized. Of the options of a source those are kept that name what it reads, or
    decide which rows and values come of it (``mode``, ``timestampFormat``); no credential is. The schema of state
    depends on some settings that a restart takes from the checkpoint: describe a query for its checkpoint if it was not
    created with the settings of this session.

    Args:
        frame: The streaming data frame whose ``writeStream`` starts the query; of a classic session.
        output_mode: ``append``, ``update`` or ``complete``.
        checkpoint: Plan with the settings that this checkpoint has recorded.
        storage_options: For the file system of the checkpoint.

    Raises:
        UsageError: It is not a streaming data frame, its session is one of Spark Connect, or there is no such mode.
        SparkMissing: Its Spark is older than 3.5.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> query = ckpt.describe_query(rows.groupBy("value").count(), output_mode="update")
    >>> [operator.name for operator in query.operators], [source.kind for source in query.sources]
    (['stateStoreSave'], ['rate-micro-batch'])
    """
    find_pyspark_version("describing a query needs Spark", oldest=Spark.V3_5)
    from ckpt.spark.preflight import describe

    return describe(frame, output_mode, checkpoint, storage_options)


def name_file(query: object) -> str | None:
    """Name the file of a description that was given as one."""
    return query if isinstance(query, str) else None
