"""The rules of a restart, in the order in which Spark comes to them, and those that come before its logs.

They follow ``MicroBatchExecution.populateStartOffsets`` and what it calls; the first rule that has something to say
decides. ``docs/restart.md`` explains them in the same order, and ``tests/restart/oracle`` holds Spark's own answers.
"""

from dataclasses import replace

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS, STATE, Checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import offsets_of, source_type
from ckpt.formats.metadata import is_query_id
from ckpt.model import Kind, Unreadable
from ckpt.restart import batch, diagnoses, logs, messages, offsets, own_triggers, remedies, settings_and_state
from ckpt.restart.batch import find_obstacle, meet_obstacle
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Finding, Forecast, Outcome
from ckpt.restart.start import Start
from ckpt.storage.base import Listing
from ckpt.versions import Progress, Spark


def no_micro_batches(start: Start) -> Forecast | None:
    """Continuous processing writes no metadata into its offsets, and ``MicroBatchExecution`` takes it for granted."""
    if start.checkpoint.kind is not Kind.CONTINUOUS:
        return None
    path, detail = f"{OFFSETS}/{start.latest}", "its second line is empty"
    return start.fails(diagnoses.others.CONTINUOUS, path, detail, messages.NO_WATERMARK_TRACKER)


def query_metadata(start: Start) -> Forecast | None:
    """``StreamExecution`` reads the query id first (``StreamMetadata.read``), and writes one where there is none."""
    metadata = start.checkpoint.metadata
    if start.checkpoint.listing.has_folder(METADATA):
        detail = "a folder has the name of the file"
        return start.fails(diagnoses.others.DIRECTORY_IN_THE_WAY, METADATA, detail, None)
    if (doubt := start.doubts(METADATA, metadata)) is not None:
        return doubt
    if isinstance(metadata, Unreadable):
        return start.fails(diagnoses.logs.UNREADABLE_METADATA, METADATA, metadata.reason, metadata.says)
    if metadata is not None:
        if is_query_id(metadata.query_id):
            return None
        detail = "its id is not a UUID"
        return start.fails(diagnoses.logs.UNREADABLE_METADATA, METADATA, detail, messages.NO_UUID)
    used = start.latest is not None or start.committed is not None
    if used and start.rules.needs_metadata:
        detail = f"the file is missing, though batches were {'committed' if start.latest is None else 'planned'}"
        advice = None
        if remedies.is_of_spark_2_0(start.checkpoint):
            detail, advice = "Spark 2.0 wrote the offsets, but no such file", BOOK.advise("spark_2_0")
        return start.fails(diagnoses.logs.MISSING_METADATA, METADATA, detail, messages.MISSING_METADATA, advice)
    in_the_way = find_obstacle(start, "", METADATA)
    return None if in_the_way is None else start.ends(Outcome.FAILS_AT_START, in_the_way[0], error=in_the_way[1])


def source_logs(start: Start) -> Forecast | None:
    """Sources are created with the plan, and a file source restores its log then (``FileStreamSourceLog.restore``)."""
    checkpoint = start.checkpoint
    for source in file_source_logs(checkpoint.listing, start.end):
        if source.log.first_missing is not None:
            path = f"{source.folder}/{source.log.first_missing}"
            detail = f"entries {source.log.first_needed} to {source.log.latest} are needed, but this one is missing"
            return start.fails(diagnoses.others.SOURCE_LOG_HOLE, path, detail, messages.GONE.format(path))
    for path, entry in checkpoint.source_entries.items() if start.latest is not None else ():
        if isinstance(entry, Unreadable):
            advice = remedies.unreadable_source_log(checkpoint, path)
            return start.fails(diagnoses.others.SOURCE_LOG_UNREADABLE, path, entry.reason, entry.says, advice)
    return None


def nothing_planned(start: Start) -> Forecast | None:
    """Without offsets Spark takes the query for a new one."""
    if start.latest is not None:
        return None
    checkpoint = start.checkpoint
    left = [f for f in (OFFSETS, STATE, COMMITS) if _holds_something(checkpoint.listing, f)]
    in_first_batch = left == [STATE] and _holds_no_state(checkpoint.listing)
    first = Finding(diagnoses.logs.FIRST_REAL_TIME_BATCH, STATE, "it only has schemas and temporary files")
    if in_first_batch and start.rules.new_query_needs_empty:
        return start.ends(Outcome.FAILS_AT_START, first, error=messages.NOT_EMPTY)
    if left and start.rules.new_query_needs_empty:
        detail = f"offsets/ has no batch, but {' and '.join(f + '/' for f in left)} is not empty"
        asserts = start.rules.asserts_no_commits and start.committed is not None
        error = messages.ASSERTION_FAILED if asserts else messages.NOT_EMPTY
        return start.fails(diagnoses.logs.COMMITS_WITHOUT_OFFSETS, left[0], detail, error)
    if start.committed is not None:
        detail = f"offsets/ has no batch, but commits/ ends at batch {start.committed}"
        finding = Finding(diagnoses.logs.COMMITS_WITHOUT_OFFSETS, COMMITS, detail)
        if 0 in checkpoint.commits:
            return start.ends(Outcome.FAILS_AT_COMMIT, finding, error=messages.CONCURRENT_UPDATE.format(0))
        return start.ends(Outcome.STARTS_FRESH, finding)
    for path, entry in checkpoint.source_entries.items():
        if isinstance(entry, Unreadable):
            detail = f"{entry.reason}: a file, Kafka or rate source fails at start; no batch shows which source this is"
            advice = BOOK.advise("no_batch_yet")
            return start.stays_unknown(diagnoses.others.SOURCE_LOG_UNREADABLE, path, detail, advice)
    because = [first] if in_first_batch else []
    emptied = None if in_first_batch else _describe_emptied(checkpoint)
    if emptied is not None:
        kept = [f"{folder}/" for folder in (OFFSETS, COMMITS, STATE) if checkpoint.listing.has_folder(folder)]
        detail = f"it contains no batch, though {' and '.join(kept)} {'is' if len(kept) == 1 else 'are'} there{emptied}"
        because.append(Finding(diagnoses.logs.BATCHES_VANISHED, kept[-1].rstrip("/"), detail))
    elif checkpoint.query_id is not None and not in_first_batch:
        detail = f"it contains the id {checkpoint.query_id}, but offsets and commits have no batch"
        because.append(Finding(diagnoses.logs.ID_WITHOUT_BATCHES, METADATA, detail))
    return meet_obstacle(start) or start.ends(Outcome.STARTS_FRESH, *because)


def _holds_something(listing: Listing, folder: str) -> bool:
    """Tell whether Hadoop lists anything there; its local file system leaves hidden checksum files out."""
    files = (name for name in listing.in_folder(folder) if not (name[0] == "." and name.endswith(".crc")))
    return any(True for _ in files) or bool(listing.subfolders(folder))


def _describe_emptied(checkpoint: Checkpoint) -> str | None:
    """Describe what shows, besides folders, that a query ran although no batch is left; None if nothing does.

    A start makes ``metadata`` and the folders of both logs within a second, in an order that depends on the version,
    and changes none of them before it plans a batch; ``state/`` is made by a batch that is planned already. One empty
    ``offsets/`` alone may be anybody's.
    """
    listing, logs = checkpoint.listing, (OFFSETS, COMMITS)
    if listing.has_folder(STATE) or (all(map(listing.has_folder, logs)) and checkpoint.metadata is None):
        return ""
    written = listing.info(METADATA)
    if written is not None and written.mtime_ms is not None:
        for folder in logs:
            if listing.changed_ms.get(folder, 0) > written.mtime_ms + _ONE_START_MS:
                return f", and {folder}/ was changed after the first start had written metadata"
    return None


def _holds_no_state(listing: Listing) -> bool:
    """Tell whether ``state/`` has schemas of a query, and besides these temporary files only."""
    files = [path.rpartition("/") for path, _ in listing.walk(STATE)]
    kept = [(folder, name) for folder, _, name in files if name[0] != "."]
    return bool(kept) and all(folder.endswith("/_metadata") and name == "schema" for folder, name in kept)


_ONE_START_MS = 60_000  # a start takes less than a second from ``metadata`` to its logs, or back
RULES = (
    no_micro_batches,
    query_metadata,
    source_logs,
    nothing_planned,
    logs.latest_offsets,
    logs.unfinished_repartition,
    logs.latest_sources,
    logs.early_commit,
    logs.predecessor,
    logs.recorded_settings,
    logs.latest_commit,
    offsets.doubtful_offsets,
    offsets.exhausted_offsets,
    offsets.endless_watermark,
    offsets.malformed_offsets,
    offsets.source_entries,
    batch.refuse_asynchronous,
    settings_and_state.contradicting_settings,
    batch.write_descriptions,
    batch.load_state,
    batch.meet_obstacle,
    batch.runs,
)


_OF_REAL_TIME = (
    (
        own_triggers.refuse_real_time,
        query_metadata,
        own_triggers.commit_alone,
        own_triggers.begin_without_offsets,
        nothing_planned,
        logs.latest_offsets,
        logs.unfinished_repartition,
        logs.latest_commit,
    ),
    (
        own_triggers.refuse_format_1,
        no_micro_batches,
        own_triggers.fail_without_end,
        own_triggers.doubt_deleted_state,
        own_triggers.begin_without_offsets,
        *RULES[RULES.index(logs.latest_sources) :],
    ),
)
"""The order of a start in real-time mode: before it deletes what is planned and not committed, and after that."""
_OF_CONTINUOUS = (
    (
        own_triggers.refuse_continuous,
        query_metadata,
        logs.latest_commit,
        own_triggers.doubt_unreadable_plan,
        own_triggers.fail_without_offsets,
    ),
    (
        own_triggers.begin_without_offsets,
        logs.latest_offsets,
        own_triggers.doubt_other_source,
        own_triggers.continue_after,
    ),
)
"""The order of a start with a continuous trigger, likewise."""


def forecast(checkpoint: Checkpoint, spark: Spark, progress: Progress) -> Forecast:
    """Forecast the next start: a pure function of what was read."""
    for path in checkpoint.links_out:  # whoever does not read all parts of a checkpoint knows nothing of its start
        finding = Finding(diagnoses.others.LINK_OUT, path, "nothing beyond it was read")
        return Forecast(spark, progress, Outcome.UNKNOWN, because=(finding,))
    start = Start(checkpoint, spark, progress)
    answer = _ask_rules(start)
    if answer.outcome.runs and (only := _find_only_databricks(start)) is not None:
        answer = Forecast(spark, progress, Outcome.UNKNOWN, because=(only, *answer.because))
    return _doubt_refused(answer, checkpoint) if checkpoint.refused else answer


def _find_only_databricks(start: Start) -> Finding | None:
    """Find a source that only Databricks has: with it a query of any Spark of Apache fails before it looks here."""
    kinds = [source_type(offset) for offset in offsets_of(start.end)] if start.end else []
    if SourceType.CLOUD_FILES not in kinds:
        return None
    detail = f"source {kinds.index(SourceType.CLOUD_FILES)} is Auto Loader, which exists only on Databricks"
    return Finding(diagnoses.modes.ONLY_DATABRICKS, f"{OFFSETS}/{start.latest}", detail)


def _doubt_refused(answer: Forecast, checkpoint: Checkpoint) -> Forecast:
    """Doubt an answer of the rules where a start reads what ckpt could not, unless it fails before, or there anyway.

    The rules themselves come to the files of the logs. Spark does without a checksum file that it cannot read.
    """
    hidden = (path for path in checkpoint.refused if not path.rpartition("/")[2].startswith("."))
    unread = [path for path in sorted(hidden) if path.partition("/")[0] not in (METADATA, OFFSETS, COMMITS)]
    because = tuple(finding for finding in answer.because if not checkpoint.is_refused(finding.path))
    in_state = all(path.partition("/")[0] == STATE for path in unread)
    fails = answer.outcome is Outcome.FAILS_AT_START or (answer.outcome is Outcome.FAILS_IN_BATCH and in_state)
    if not unread or answer.outcome is Outcome.REFUSED or (fails and because):
        return answer
    doubts = (Finding(diagnoses.others.READING_REFUSED, path, checkpoint.refused[path]) for path in unread)
    return Forecast(answer.spark, answer.progress, Outcome.UNKNOWN, because=(*because, *doubts))


def _ask_rules(start: Start) -> Forecast:
    progress = start.progress
    if progress.in_micro_batches:
        return next(answer for rule in RULES if (answer := rule(start)) is not None)
    before, after = _OF_REAL_TIME if progress is Progress.REALTIME else _OF_CONTINUOUS
    for rule in before:
        if (answer := rule(start)) is not None:
            return answer
    start = own_triggers.delete_planned(start)
    answer = next(answer for rule in after if (answer := rule(start)) is not None)
    deleted = own_triggers.find_deleted(start)
    return answer if deleted is None else replace(answer, because=(*answer.because, deleted))
