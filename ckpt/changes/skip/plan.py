"""``ckpt skip``: the batch that was planned and not committed counts as done, without its rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import fspath
from typing import ClassVar, Unpack

from ckpt.changes.check_fix import check_fix, must_run_first
from ckpt.changes.plan import END_FIRST, OF_EPOCHS, STOP_FIRST, ChangePlan, NoWay, name_log_problem
from ckpt.changes.rewind.files_after import state_above
from ckpt.changes.run import ChangeResult, How, run_change
from ckpt.changes.skip.empty_version import UniqueIds, plan_empty_version
from ckpt.changes.steps import Step, plan_creating, plan_unread_removals
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, STATE, Checkpoint
from ckpt.checkpoint.history import find_recreated_topics, rate_sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.file_logs import files_between, source_folder
from ckpt.checkpoint.sources.files import FileOffset, entry_at
from ckpt.checkpoint.sources.ranges import SourceRange, source_ranges
from ckpt.checkpoint.sources.registry import offset_of, source_views
from ckpt.checkpoint.sources.starts import StartFacts
from ckpt.formats.commits import format_commit_log
from ckpt.formats.names import COMPACT, DEFAULT_INTERVAL
from ckpt.inspection.inspection import inspect
from ckpt.model import Kind, Location
from ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class SkippedSource:
    """The range of one source in the skipped batch, and the reader options that begin there."""

    range: SourceRange
    options: Mapping[str, str]  # empty where none says it
    files: tuple[str, ...] | None = None  # of a file source, as URIs; None of any other, or where its log is damaged


@dataclass(frozen=True, slots=True)
class Skipped:
    """A batch that is left out."""

    batch: int
    sources: tuple[SkippedSource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipPlan(ChangePlan):
    """A commit for the latest batch, and state that has not seen it."""

    command: ClassVar[str] = "skip"

    skipped: tuple[Skipped, ...] = ()


def skip(
    checkpoint: Location, storage_options: Mapping[str, str] | None = None, **how: Unpack[How]
) -> ChangeResult[SkipPlan]:
    """All that ``ckpt skip`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier skip; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.skip("sample_checkpoints/aggregation-killed-hdfs-4.0")
    >>> plan.skipped[0].batch, plan.after[0].batch_id, receipt.applied
    (4, 5, False)

    """
    uri = fspath(checkpoint)
    return run_change(SkipPlan, plan_skip, uri, storage_options, **how)


def plan_skip(storage: Storage) -> SkipPlan:
    """Plan to skip a batch, as ``skip`` does. Raises NotACheckpoint, NotFound, StorageError."""
    inspection = inspect(read_checkpoint(storage, batches=0))
    checkpoint = inspection.checkpoint
    latest = checkpoint.offsets.latest
    if latest is None or latest in checkpoint.commits:
        why = "no batch was planned" if latest is None else f"batch {latest}, the latest, is committed"
        return SkipPlan(inspection=inspection, needed=False, why=why)
    plan = SkipPlan(inspection=inspection, needed=True)
    problem = _refuse_skip(checkpoint, latest)
    if problem is not None:
        return replace(plan, refused=problem)
    try:
        state, ids = plan_empty_version(checkpoint, storage) if checkpoint.stateful else ([], {})
    except NoWay as error:
        return replace(plan, refused=f"version {latest + 1} of the state cannot be written: {error}")
    leftovers = (*state_above(checkpoint.listing, latest), f"{COMMITS}/{latest}")  # of its crashed attempt
    plan = replace(
        plan,
        steps=(*plan_unread_removals(checkpoint.listing, leftovers), *state, *_plan_commit(checkpoint, latest, ids)),
        why=f"batch {latest} counts as done"
        + (f", and state version {latest + 1} equals version {latest}" if checkpoint.stateful else ""),
        skipped=(Skipped(latest, tuple(_describe_skipped_sources(storage, checkpoint, latest))),),
        warnings=tuple(_warn_of_skip(checkpoint, latest)),
    )
    return check_fix(plan, storage, must_run_first(latest + 1))


def _refuse_skip(checkpoint: Checkpoint, latest: int) -> str | None:
    """Why the latest batch cannot be left out, by the file that is missing."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    if checkpoint.kind is Kind.CONTINUOUS:
        return OF_EPOCHS
    if latest == 0:
        return "batch 0 is the first: there is no batch before it to continue from. Begin with a new checkpoint"
    for log, batch in ((offsets, latest), (offsets, latest - 1), (commits, latest - 1)):
        if (problem := name_log_problem(log, batch)) is not None:
            return problem
    if commits.latest != latest - 1:
        return f"{COMMITS}/{commits.latest} is there, and {OFFSETS}/{commits.latest} is not"
    if checkpoint.stateful is None:
        return f"{STATE}/ is missing, and whether the query keeps state is unknown"
    return None


def _plan_commit(checkpoint: Checkpoint, latest: int, ids: UniqueIds) -> Iterator[Step]:
    """The commit is that of the batch before, since no row was seen that moves the watermark."""
    commit = checkpoint.commits.readable(latest - 1)
    assert commit is not None
    if ids:
        commit = replace(commit, state_unique_ids=ids)
    before = f"{COMMITS}/{latest - 1}"
    yield from plan_creating(checkpoint.listing, f"{COMMITS}/{latest}", format_commit_log(commit), before)


def _describe_skipped_sources(storage: Storage, checkpoint: Checkpoint, latest: int) -> Iterator[SkippedSource]:
    """Describe the rows that are left out, and how to read them by hand."""
    before, end = checkpoint.offsets.readable(latest - 1), checkpoint.offsets.readable(latest)
    assert before is not None
    views = source_views(before, rate_sources(checkpoint))
    for index, (view, source_range) in enumerate(zip(views, source_ranges(before, end), strict=True)):
        facts = StartFacts(recreated=find_recreated_topics(checkpoint, latest - 1, index))
        files, last = None, offset_of(end, index)
        if isinstance(last, FileOffset):
            folder = source_folder(checkpoint.listing, end, index)
            files = files_between(storage, folder, entry_at(offset_of(before, index)), last.log_offset)
        yield SkippedSource(source_range, view.start_after(facts).options, files)


def _warn_of_skip(checkpoint: Checkpoint, latest: int) -> Iterator[str]:
    yield END_FIRST if checkpoint.stateful else STOP_FIRST
    yield (
        f"The rows of batch {latest} are not read again by this query: keep these offsets if you want to read them "
        "by hand later."
    )
    yield f"Rows that an attempt at batch {latest} has written to a sink stay there; ckpt cannot see them."
    yield _warn_of_file_sink(latest)
    if checkpoint.stateful:
        yield (
            f"The work that batch {latest} would have done without new rows happens one batch later: windows close "
            f"then, and keys, timeouts and timers expire then. So rows of batch {latest + 1} still meet keys that "
            "would have expired: dropDuplicatesWithinWatermark may drop some of them, and code with timeouts or "
            "timers sees them first."
        )


def _warn_of_file_sink(batch: int) -> str:
    """Name the file that fills the hole which the log of a file sink may not have; measured on Spark 4.2.0."""
    fails = "readers of its folder fail, and so does the query when it compacts _spark_metadata next"
    if (batch + 1) % DEFAULT_INTERVAL == 0:
        due = f"{batch}{COMPACT}, which is the default"
        return (
            f"Do not skip the batch for a file sink whose log lacks batch {batch}, if its file is due as {due}: "
            f"{fails}."
        )
    return (
        f"If the sink is a file sink and its log lacks batch {batch}: before the start, put a file {batch} that "
        f"holds v1 and nothing else into its _spark_metadata. Otherwise {fails}."
    )
