"""``ckpt import-state`` as calls: a new checkpoint whose state are rows that were given, checked against its schema.

Everything but the rows comes from a checkpoint of the query: the one that the rows were exported from, or one that a
new query has made without any state.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import fspath

from ckpt.changes.backup import choose_options
from ckpt.errors import CkptError, one_line
from ckpt.model import Location
from ckpt.new.exchange import Exchange
from ckpt.new.fill.export_folder import Export, open_export
from ckpt.new.fill.frames import Frames, table_of
from ckpt.new.fill.state import is_keyless, make_state
from ckpt.new.placing import Watcher, check_apart
from ckpt.new.request import NewCheckpoint, Rewriting
from ckpt.new.rewrite.plan import Rewrite, RewrittenUnit, plan_rewrite
from ckpt.new.rewrite.writing import make_new
from ckpt.state.native.show import state_count
from ckpt.state.reading.reading import ChosenState


def import_state(
    export: Location,
    new: Location,
    *,
    like: Location,
    storage_options: Mapping[str, str] | None = None,
    to_storage_options: Mapping[str, str] | None = None,
    provider: str | None = None,
    partitions: int | None = None,
    format_version: int | None = None,
    new_id: bool = False,
    plan: bool = False,
    jobs: int | None = None,
    engine: Exchange | None = None,
    watcher: Watcher | None = None,
) -> Rewrite:
    """Write a new checkpoint whose state comes from an export, edited or not; without Spark.

    Its state is exactly that of the export. Everything else is copied from ``like``, which is only read: the checkpoint
    that was exported, at the same batch, or a new query's checkpoint without state. The rows of one operator in
    one partition are in memory at once, and those of one file.

    Args:
        export: What ``ckpt export-state --all-units`` has written, in Parquet or Delta and the shape raw or flat.
        new: A path or URI of a folder that does not exist, or contains no file.
        like: The checkpoint: a path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file systems of the export and of ``like``, and for that of ``new``, as for ``copy``.
        to_storage_options: For the file system of ``new``, instead of ``storage_options``.
        provider: ``hdfs`` or ``rocksdb``; by default as in ``like``.
        partitions: The number of shuffle partitions; by default as in ``like``.
        format_version: The state store checkpoint format, 1 or 2; by default as in ``like``.
        new_id: Give the new checkpoint its own query id.
        plan: Check all rows, and only report what would be written.
        jobs: How many processes check and make files, at most; by default one per core.
        engine: By default processes on this machine check and write; ``ckpt.types.Executors()`` uses Spark's.
        watcher: Called with the number of partitions written so far, and the number of all.

    Raises:
        NotACheckpoint, NotFound, StorageError: A place cannot be read, or the new one not be written; in that case it
            is removed as far as possible.
        CkptError: A row does not match the state's schema, a key occurs twice, or the export belongs to another batch
            or query; the text names the row and the reason.
        StateDamaged: Files of the state of ``like`` are missing or damaged.
        UsageError: A URI or option is wrong, or one place is inside another.

    >>> import tempfile
    >>> old = "sample_checkpoints/aggregation-hdfs-4.2"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = ckpt.export_state(old, to=f"{folder}/state", all_units=True, engine="native")
    ...     made = ckpt.import_state(f"{folder}/state", f"{folder}/new", like=old, provider="rocksdb")
    >>> made.batch, made.new.provider.value, len(made.changed)
    (9, 'rocksdb', 1)
    """
    export, new = fspath(export), fspath(new)
    check_apart(export, new)
    source = open_export(export, choose_options(export, storage_options or {}))
    how: Rewriting = {"provider": provider, "partitions": partitions, "format_version": format_version}
    how |= {"plan": plan, "jobs": jobs, "engine": engine, "watcher": watcher}
    how |= {"to_storage_options": to_storage_options}
    wanted = NewCheckpoint(uri=new, old=fspath(like), options=storage_options or {}, new_id=new_id, **how)
    return _write(source, wanted.old, wanted)


def write_state(
    frames: Mapping[str, object],
    new: Location,
    *,
    like: Location,
    storage_options: Mapping[str, str] | None = None,
    to_storage_options: Mapping[str, str] | None = None,
    provider: str | None = None,
    partitions: int | None = None,
    format_version: int | None = None,
    new_id: bool = False,
    engine: Exchange | None = None,
) -> Rewrite:
    """Import frames in memory instead of an export.

    Args:
        frames: A frame for each unit of state by its label (``StateUnit.label``): a ``pyarrow.Table``, or a DataFrame
            of pandas or Spark, with the columns of ``read_state_arrow`` in the shape flat or raw. They are all of the
            state as of the newest committed batch of ``like``.
        new: As for ``import_state``.
        like: As for ``import_state``.
        storage_options: As for ``import_state``.
        to_storage_options: As for ``import_state``.
        provider: As for ``import_state``.
        partitions: As for ``import_state``.
        format_version: As for ``import_state``.
        new_id: As for ``import_state``.
        engine: As for ``import_state``: ``ckpt.types.Executors()`` leaves a DataFrame of Spark where it is; otherwise
            its rows are fetched.

    Raises:
        CkptError: As for ``import_state``.

    >>> old = "sample_checkpoints/aggregation-hdfs-4.2"
    >>> rows = ckpt.read_state_arrow(old).slice(0, 3)
    >>> made = ckpt.write_state({"operator 0": rows}, "memory://edited", like=old)
    >>> [(written.unit.label, written.rows) for written in made.units]
    [('operator 0', 3)]
    """
    source = Frames(frames if engine is not None else {label: table_of(frame) for label, frame in frames.items()})
    how: Rewriting = {"provider": provider, "partitions": partitions, "format_version": format_version}
    how |= {"engine": engine, "to_storage_options": to_storage_options}
    wanted = NewCheckpoint(uri=fspath(new), old=fspath(like), options=storage_options or {}, new_id=new_id, **how)
    return _write(source, wanted.old, wanted)


def _write(source: Export | Frames, like: str, new: NewCheckpoint) -> Rewrite:
    """Check all rows, and write it where it is not only planned. Raises CkptError."""
    plan = plan_rewrite(like, new, of_values=True)
    if plan.rewrite.refused:
        return plan.rewrite
    _check_units(source, like, [unit.unit.label for unit in plan.rewrite.units])
    if isinstance(source, Export):
        _check_belongs(source, like, new.options, plan.chosen)
        plan = plan._replace(rewrite=replace(plan.rewrite, imported=True, exported_id=source.query_id))
    counts: Counter[str] = Counter()
    files, rewrite = partial(make_state, plan, new, source, counts), plan.rewrite
    if new.plan:
        deque(files(None), maxlen=0)
    else:
        with new.open() as placing:
            rewrite = make_new(plan, placing, files, new.watcher)
    return replace(rewrite, units=tuple(_count_rows(source, rewrite, counts)))


def _count_rows(source: Export | Frames, rewrite: Rewrite, counts: Mapping[str, int]) -> Iterator[RewrittenUnit]:
    """How many rows of each unit there were, and how many the export had as it was written."""
    for unit in rewrite.units:
        label = unit.unit.label
        yield replace(
            unit, rows=counts[label], exported=source.units[label].rows if isinstance(source, Export) else None
        )


def _check_units(source: Export | Frames, like: str, units: Sequence[str]) -> None:
    """Raise CkptError where there are rows of other units than the checkpoint has."""
    missing = [f"has no rows of {label}" for label in units if label not in source.units]
    strange = [f"has rows of {label}" for label in source.units if label not in units]
    for why in (*missing, *strange):
        raise CkptError(one_line(f"{source.place} {why}, but the state of {like} consists of: {'; '.join(units)}"))


def _check_belongs(export: Export, like: str, options: Mapping[str, str], chosen: ChosenState) -> None:
    """Raise CkptError where batches of the checkpoint would be missing in the state, or be in it twice."""
    batch, problem = chosen.moment.batch, None
    if export.query_id is not None and export.query_id == chosen.moment.query_id:
        if export.batch != batch:
            problem = (
                f"has the state of batch {export.batch}, but the newest committed batch of {like} is {batch}: export "
                "that one"
            )
        elif {unit.planned_ms for unit in export.units.values()} - {chosen.moment.planned_ms, None}:
            problem = (
                f"has the state of a different batch {batch}: {like} has planned that batch again since; "
                "export it again"
            )
    else:
        counts = state_count(like, storage_options=choose_options(like, options), batch=batch)
        lost = next((each for each in counts.units if each.rows and not is_keyless(each.unit)), None)
        if lost is not None:
            problem = (
                f"is from a different query than {like}, whose state has {lost.rows:,} rows of {lost.unit.label} "
                "that would be lost: start the new query once without rows, and use its checkpoint"
            )
    if problem is not None:
        raise CkptError(one_line(f"{export.place} {problem}"))
