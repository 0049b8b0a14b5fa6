"""The call ``evolve``: a changed query continues; of pyspark nothing is imported where no data frame is given."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING, Unpack

from ckpt.calls.preflight import describe_query, name_file
from ckpt.changes.apply import ApplyOptions, ChangeResult
from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.new.evolve.plan import EvolveOptions, EvolvePlan
from ckpt.query.description import QueryDescription, read_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ckpt.spark.executors import Executors


def evolve(
    checkpoint: Location,
    new: Location | None = None,
    *,
    to: "DataFrame | QueryDescription | str | None" = None,
    storage_options: Mapping[str, str] | None = None,
    to_storage_options: Mapping[str, str] | None = None,
    output_mode: str = "append",
    from_query: QueryDescription | str | None = None,
    map_source: Sequence[str] = (),
    map_operator: Sequence[str] = (),
    map_column: Sequence[str] = (),
    default: Mapping[str, str] | None = None,
    start: Mapping[str, str] | None = None,
    accept_from_now_on: bool = False,
    new_id: bool = False,
    plan: bool = False,
    jobs: int | None = None,
    engine: "Executors | None" = None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[EvolvePlan]:
    """Carry a checkpoint over to a changed query, like ``ckpt evolve``.

    With ``new`` a checkpoint is written there, and ``checkpoint`` is only read. Stop the old query first: rows that it
    reads after that are read again. Without ``new`` the checkpoint is changed in place, as far as no state changes: a
    plan, which ``apply=True`` performs.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        new: A path or URI of a folder that does not exist, or contains no file.
        to: The changed query: an unstarted streaming data frame, its ``QueryDescription``, or the path of its
            ``query.json``. Only ``undo`` needs none.
        storage_options: For the file systems of the checkpoint and the backup, and of ``new``, as for ``copy``.
        to_storage_options: For the file system of ``new``, instead of ``storage_options``.
        output_mode: Of a data frame.
        from_query: The description, or its path, of the query that wrote the checkpoint: without it ckpt cannot tell
            whether a state column is still computed in the same way.
        map_source: Maps the checkpoint's sources to the query's, as ``OLD=NEW``, by number or name; ``-`` is none.
            Needed if several would fit.
        map_operator: Maps stateful operators likewise, by id.
        map_column: Maps state columns, as ``OLD=NEW``, with names as in ``state_show``; OLD ``-`` is none. For columns
            that are computed differently, or that have the same name.
        default: The value of a new column of a key, in all rows of the state, by its name.
        start: Where a new source begins, as JSON of an offset by its number or name; by default where its reader
            options say.
        accept_from_now_on: Accept that new parts know only rows from now on.
        new_id: Give the new checkpoint its own query id.
        plan: Only report what would be written to ``new``; without ``new``, what the change needs: each option, its
            cost, and the one call that does it all.
        jobs: Processes at a time that write state in other columns; by default one for each core, where there is
            enough to do.
        engine: By default processes on this machine write that state; ``ckpt.types.Executors()`` uses Spark's.
        how: In place: ``apply=True`` performs the plan, ``undo`` undoes an earlier change; see ``ApplyOptions``. With
            ``new`` its ``watcher`` is called with the number of files written so far, and the number of all.

    Raises:
        NotACheckpoint, NotFound, StorageError: The old one cannot be read, or the new one not be written; in that
            case it is removed as far as possible.
        CkptError: A start on it would fail anyway, or the new one is wrong.
        UsageError: A URI or option is wrong, or one place is inside the other.

    >>> query = ckpt.types.QueryDescription.read("docs/query.json")
    >>> old = "sample_checkpoints/aggregation-hdfs-4.2"
    >>> more = {"map_operator": ["-=0"], "accept_from_now_on": True}
    >>> plan, receipt = ckpt.evolve(old, "memory://evolved", to=query, **more)
    >>> plan.written, plan.batch, plan.verdict.value, [source.change.value for source in plan.sources]
    (True, 9, 'from-now-on', ['same'])
    """
    from ckpt.changes.apply import Receipt
    from ckpt.new.carry_over import evolve_checkpoint
    from ckpt.new.guide import guide_change
    from ckpt.new.request import NewCheckpoint, Rewriting

    described = _describe(to, output_mode, checkpoint, storage_options)
    old = read_query(from_query)
    wanted = EvolveOptions(map_source, map_operator, map_column, default or {}, start or {}, old, accept_from_now_on)
    if new is None and engine is not None:
        raise UsageError.of("{--engine} writes state, and an in-place change writes none: leave it out")
    if new is None and to_storage_options:
        raise UsageError.of("{--to-storage-options} is for NEW, and an in-place change has none: leave it out")
    if new is None and plan and described is not None:
        guided = guide_change(described, fspath(checkpoint), wanted, storage_options or {})
        return ChangeResult(replace(guided, new_id=new_id, query_file=name_file(to)), Receipt())
    into = None
    if new is not None:
        making: Rewriting = {"plan": plan, "jobs": jobs, "engine": engine, "watcher": how.get("watcher")}
        making |= {"to_storage_options": to_storage_options}
        uri, old_uri = fspath(new), fspath(checkpoint)
        into = NewCheckpoint(uri=uri, old=old_uri, options=storage_options or {}, new_id=new_id, **making)
    evolved, receipt = evolve_checkpoint(described, checkpoint, into, wanted, storage_options, **how)
    return ChangeResult(replace(evolved, query_file=name_file(to)), receipt)


def _describe(
    query: "DataFrame | QueryDescription | str | None",
    output_mode: str,
    checkpoint: Location,
    storage_options: Mapping[str, str] | None,
) -> QueryDescription | None:
    """Describe a data frame; a description stays, or is read. Raises as ``describe_query``."""
    if query is None or isinstance(query, QueryDescription | str):
        return read_query(query)
    return describe_query(query, output_mode=output_mode, checkpoint=checkpoint, storage_options=storage_options)
