"""The rules of a restart, in the order in which Spark comes to them.

They follow ``MicroBatchExecution.populateStartOffsets`` and what it calls; the first rule that has something to say
decides. ``docs/restart.md`` explains them in the same order, and ``tests/oracle`` holds Spark's own answers.
"""

import re

from ckpt import findings
from ckpt.checkpoint import COMMITS, METADATA, OFFSETS, STATE, Checkpoint, Log
from ckpt.filelogs import file_source_logs
from ckpt.findings import Diagnosis, Finding
from ckpt.formats.names import java_long
from ckpt.model import CommitLog, DamageKind, Kind, OffsetLog, SourceOffset, Unreadable
from ckpt.restart import words
from ckpt.restart.forecast import Forecast, Outcome, SourceRange
from ckpt.restart.start import Start
from ckpt.restart.state_errors import load_failure
from ckpt.restart.versions import Progress, Spark
from ckpt.sources import FileOffset, advance, decode, in_order
from ckpt.storage.base import Listing

JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_JAVA_UUID = re.compile(r"(?=.{9,36}$)[0-9a-fA-F]+(-[0-9a-fA-F]+){4}")  # java.util.UUID.fromString
_MOST_BATCHES = 2**31 - 1  # between the first and the last of a log: Spark makes an array of them


def forecast(checkpoint: Checkpoint, spark: Spark, progress: Progress) -> Forecast:
    """What the next start does: a pure function of what was read."""
    start = Start(checkpoint, spark, progress)
    for rule in _RULES:
        answer = rule(start)
        if answer is not None:
            return answer
    return start.ends(Outcome.UNKNOWN)


def _no_micro_batches(start: Start) -> Forecast | None:
    """A continuous-processing checkpoint follows other rules, which ckpt does not know."""
    if start.checkpoint.kind is not Kind.CONTINUOUS:
        return None
    found = Finding(findings.CONTINUOUS, OFFSETS, "offsets as continuous processing writes them")
    return start.ends(Outcome.UNKNOWN, found)


def _query_metadata(start: Start) -> Forecast | None:
    """``StreamExecution`` reads the query id first (``StreamMetadata.read``), and writes one where there is none."""
    checkpoint = start.checkpoint
    metadata = checkpoint.metadata
    if checkpoint.listing.has_folder(METADATA):
        return start.fails(findings.DIRECTORY_IN_THE_WAY, METADATA, "a folder stands where the file belongs", None)
    if isinstance(metadata, Unreadable):
        return start.fails(findings.UNREADABLE_METADATA, METADATA, metadata.reason, metadata.says)
    if metadata is not None:
        if _JAVA_UUID.fullmatch(metadata.query_id):
            return None
        detail = "the id in it is no UUID"
        return start.fails(findings.UNREADABLE_METADATA, METADATA, detail, words.NO_UUID)
    used = start.latest is not None or start.committed is not None
    if used and start.rules.needs_metadata:
        detail = "the file is not there, though batches were planned"
        return start.fails(findings.MISSING_METADATA, METADATA, detail, words.MISSING_METADATA)
    obstacle = _obstacle(start, "", METADATA)
    return None if obstacle is None else start.ends(Outcome.FAILS_AT_START, obstacle[0], error=obstacle[1])


def _source_logs(start: Start) -> Forecast | None:
    """Sources are created with the plan, and a file source restores its log then (``FileStreamSourceLog.restore``)."""
    checkpoint = start.checkpoint
    for one in file_source_logs(checkpoint.listing, checkpoint.offsets.readable(start.latest)):
        if one.log.first_missing is not None:
            path = f"{one.folder}/{one.log.first_missing}"
            detail = f"entries {one.log.first_needed} to {one.log.latest} are needed, and this one is not there"
            return start.fails(findings.SOURCE_LOG_HOLE, path, detail, words.gone(path))
    for path, entry in checkpoint.source_entries.items():
        if isinstance(entry, Unreadable):
            return start.fails(findings.SOURCE_LOG_UNREADABLE, path, entry.reason, entry.says)
    return None


def _source_entries(start: Start) -> Forecast | None:
    """A file source looks up the entries of the latest batch, whether it is run again or not (``getBatch``)."""
    begin, end = (start.checkpoint.offsets.readable(i) for i in (start.predecessor, start.latest))
    if end is None:
        return None
    for one in file_source_logs(start.checkpoint.listing, end):
        ends = [decode(in_order(log)[one.source].value) if log else None for log in (begin, end)]
        first, last = (offset.log_offset if isinstance(offset, FileOffset) else -1 for offset in ends)
        if not 0 <= last - first <= _MOST_BATCHES:
            continue
        missing = [entry for entry in range(first + 1, last + 1) if entry not in one.entries]
        if missing:
            path = f"{one.folder}/{one.log.name_of(missing[0])}"
            error = words.does_not_exist(missing[0]) if len(missing) == 1 else None
            detail = f"the latest batch read entries {first + 1} to {last}, and this one is not there"
            return start.fails(findings.SOURCE_LOG_HOLE, path, detail, error)
    return None


def _nothing_planned(start: Start) -> Forecast | None:
    """Without offsets Spark takes the query for a new one."""
    if start.latest is not None:
        return None
    checkpoint = start.checkpoint
    left = [f for f in (OFFSETS, STATE, COMMITS) if _holds_something(checkpoint.listing, f)]
    if left and start.rules.new_query_needs_empty:
        detail = f"offsets/ names no batch, and {' and '.join(f + '/' for f in left)} is not empty"
        asserts = start.rules.asserts_no_commits and start.committed is not None
        error = words.ASSERTION_FAILED if asserts else words.NOT_EMPTY
        return start.fails(findings.COMMITS_WITHOUT_OFFSETS, left[0], detail, error)
    if start.committed is not None:
        detail = f"offsets/ names no batch, and commits/ ends at batch {start.committed}"
        found = Finding(findings.COMMITS_WITHOUT_OFFSETS, COMMITS, detail)
        if 0 in checkpoint.commits:
            return start.ends(
                Outcome.FAILS_AT_COMMIT, found, batch_id=0, reexecutes=False, error=words.concurrent_update(0)
            )
        return start.ends(Outcome.STARTS_FRESH, found, batch_id=0, reexecutes=False)
    return _blocked(start, 0) or start.ends(Outcome.STARTS_FRESH, batch_id=0, reexecutes=False)


def _holds_something(listing: Listing, folder: str) -> bool:
    """Whether Hadoop lists anything there; its local file system leaves hidden checksum files out."""
    files = (name for name in listing.in_folder(folder) if not (name[0] == "." and name.endswith(".crc")))
    return any(True for _ in files) or bool(listing.subfolders(folder))


def _latest_offsets(start: Start) -> Forecast | None:
    """``OffsetSeqLog.getLatest`` takes the highest number that is listed, and opens the file of that name."""
    assert start.latest is not None
    return _highest(start, start.checkpoint.offsets, start.latest) or _offset_file(start, start.latest)


def _highest(start: Start, log: Log[OffsetLog] | Log[CommitLog], latest: int) -> Forecast | None:
    """The highest number in a log may be no batch at all."""
    path = f"{log.folder}/{latest}"
    if latest not in log:
        name = next(odd.name for odd in log.names.odd if odd.batch_id == latest)
        detail = f"Spark reads this name as batch {latest}, and {path} is not there"
        return start.fails(findings.ODD_NAME, f"{log.folder}/{name}", detail, words.no_such_file(path))
    if latest - log.ids[0] > _MOST_BATCHES:
        detail = f"the log goes from batch {log.ids[0]} to {latest}, more than Spark can count"
        return start.fails(findings.ODD_NAME, path, detail, words.TOO_MANY_BATCHES)
    return None


def _offset_file(start: Start, batch_id: int) -> Forecast | None:
    """A start that reads ``offsets/<batch_id>`` and cannot."""
    entry = start.checkpoint.offsets.entries.get(batch_id)
    return _log_file(start, entry, f"{OFFSETS}/{batch_id}", start.rules.newest_offset_log)


def _log_file(
    start: Start, entry: OffsetLog | CommitLog | Unreadable | None, path: str, newest: int
) -> Forecast | None:
    """Spark looks at the version line first, and then at what follows."""
    version = entry.version if entry is not None else None
    if version is not None and version > newest:
        detail = f"its version line is v{version}, and Spark {start.spark} reads at most v{newest}"
        return start.fails(findings.NEWER_LOG_VERSION, path, detail, words.NEWER_VERSION)
    if isinstance(entry, Unreadable):
        return start.fails(findings.UNREADABLE_LOG, path, entry.reason, entry.says)
    return None


def _unfinished_repartition(start: Start) -> Forecast | None:
    """``checkUnfinishedRepartitionBatch``: Spark 4.2 and later, before anything else is looked at.

    It compares the recorded shuffle partitions of an uncommitted latest batch with those of the batch before, and so
    trips over whatever is missing there. Asynchronous tracking leaves it out.
    """
    latest, committed = start.latest, start.committed
    if not (start.rules.checks_repartition and start.progress is Progress.SYNC and latest):
        return None
    if committed is None or committed >= latest:
        return None
    if latest - 1 not in start.checkpoint.offsets:
        return _no_predecessor(start, latest, words.previous_not_found(latest - 1))
    unreadable = _offset_file(start, latest - 1)
    if unreadable is not None:
        return unreadable
    logs = {i: start.checkpoint.offsets.readable(i) for i in (latest, latest - 1)}
    counts = []
    for batch_id, log in logs.items():
        metadata = log.metadata if log else None
        if metadata is None:
            detail = "it has no metadata line, which the check for an unfinished repartition needs"
            return start.fails(
                findings.UNFINISHED_REPARTITION, f"{OFFSETS}/{batch_id}", detail, words.no_metadata(batch_id)
            )
        counts.append(metadata.conf.get(SHUFFLE_PARTITIONS))
    path = f"{OFFSETS}/{latest}"
    if None in counts and not start.rules.check_needs_partitions:
        return None
    if None in counts:
        detail = f"no {SHUFFLE_PARTITIONS} is recorded, which the check for an unfinished repartition needs"
        return start.fails(findings.UNFINISHED_REPARTITION, path, detail, words.NO_SHUFFLE_PARTITIONS)
    if counts[0] != counts[1]:
        detail = f"{counts[0]} shuffle partitions, where batch {latest - 1} has {counts[1]}"
        return start.fails(findings.UNFINISHED_REPARTITION, path, detail, words.UNFINISHED_REPARTITION)
    return None


def _latest_sources(start: Start) -> Forecast | None:
    """``OffsetSeq.toStreamProgress`` wants as many sources as the query has, and every query has one."""
    log = start.checkpoint.offsets.readable(start.latest)
    if log is None or log.sources:
        return None
    path, detail = f"{OFFSETS}/{start.latest}", "it names no source, and every query has one"
    return start.fails(findings.SOURCES_DIFFER, path, detail, words.SOURCES_DIFFER)


def _predecessor(start: Start) -> Forecast | None:
    """The offsets that the latest batch begins at (``validateOffsetLogAndGetPrevOffset``)."""
    latest, found = start.latest, start.predecessor
    assert latest is not None
    if start.progress is Progress.ASYNC:
        names = [
            *start.checkpoint.listing.subfolders(OFFSETS),
            *(odd.name for odd in start.checkpoint.offsets.names.odd),
        ]
        taken = max((i for name in names if (i := java_long(name)) is not None and i < latest), default=-1)
        if taken > (-1 if found is None else found):
            detail = f"asynchronous tracking takes it for batch {taken}, which has no file"
            name = next(name for name in names if java_long(name) == taken)
            return start.fails(findings.ODD_NAME, f"{OFFSETS}/{name}", detail, words.offsets_not_found(taken))
    if found is not None:
        return _offset_file(start, found) or _same_sources(start, found, latest)
    if latest == 0 or start.progress is Progress.ASYNC:
        return None
    return _no_predecessor(start, latest, words.does_not_exist(latest - 1))


def _recorded_settings(start: Start) -> Forecast | None:
    """``OffsetSeqMetadata.setSessionConf`` puts the settings of the latest offsets into the session."""
    recorded = _join_format(start)
    if recorded <= start.rules.newest_join_format:
        return None
    detail = (
        f"it records {JOIN_FORMAT}={recorded}, and Spark {start.spark} knows at most {start.rules.newest_join_format}"
    )
    return start.fails(findings.NEWER_SETTING, f"{OFFSETS}/{start.latest}", detail, JOIN_FORMAT)


def _join_format(start: Start) -> int:
    """The recorded state format of joins; 0 where there is none."""
    log = start.checkpoint.offsets.readable(start.latest)
    recorded = log.metadata.conf.get(JOIN_FORMAT, "") if log and log.metadata else ""
    return int(recorded) if recorded.isdecimal() and len(recorded) < 10 else 0


def _no_predecessor(start: Start, latest: int, error: str) -> Forecast:
    stateful = start.checkpoint.stateful
    diagnosis = findings.LOST_PREDECESSOR if stateful else findings.MISSING_PREDECESSOR
    nearest = start.checkpoint.offsets.before(latest)
    there = "no earlier batch is there" if nearest is None else f"the nearest earlier batch is {nearest}"
    detail = f"a synchronous start looks for the offsets of batch {latest - 1}; {there}"
    return start.fails(diagnosis, f"{OFFSETS}/{latest - 1}", detail, error)


def _same_sources(start: Start, earlier: int, latest: int) -> Forecast | None:
    """Both offset files are read with the sources of the one query, so they must agree in number."""
    before, after = (start.checkpoint.offsets.readable(i) for i in (earlier, latest))
    if before is None or after is None or len(before.sources) == len(after.sources):
        return None
    detail = f"batch {earlier} has {len(before.sources)} sources, batch {latest} has {len(after.sources)}"
    return start.fails(findings.SOURCES_DIFFER, f"{OFFSETS}/{latest}", detail, words.SOURCES_DIFFER)


def _latest_commit(start: Start) -> Forecast | None:
    """``CommitLog.getLatest``."""
    if start.committed is None:
        return None
    beyond = _highest(start, start.checkpoint.commits, start.committed)
    if beyond is not None:
        return beyond
    path, entry = f"{COMMITS}/{start.committed}", start.checkpoint.commits.entries.get(start.committed)
    written = _commit_version(start.checkpoint)
    if start.rules.commit_log_exact and entry is not None and entry.version not in (None, written):
        detail = f"its version line is v{entry.version}, and the session of this query writes v{written}"
        return start.fails(findings.NEWER_LOG_VERSION, path, detail, words.NEWER_VERSION)
    return _log_file(start, entry, path, start.rules.newest_commit_log)


def _commit_version(checkpoint: Checkpoint) -> int:
    """The version of commits that the session of Spark 4.0 and 4.1 writes: 2 with state store checkpoint format 2."""
    if checkpoint.state is not None:
        return checkpoint.state.format_version
    versions = {entry.version for entry in checkpoint.commits.entries.values() if isinstance(entry, CommitLog)}
    return 2 if versions == {2} else 1


def _malformed_offsets(start: Start) -> Forecast | None:
    """The sources parse the offsets that the first batch begins or ends at; a new batch begins at the latest ones."""
    assert start.latest is not None
    read = (start.latest,) if start.resumes else (start.predecessor, start.latest)
    for batch_id in read:
        log = start.checkpoint.offsets.readable(batch_id)
        for index, source in enumerate(log.sources if log else ()):
            if not source.well_formed:
                detail = f"the offset of source {index} is no JSON"
                return start.fails(findings.MALFORMED_OFFSET, f"{OFFSETS}/{batch_id}", detail, None)
    return None


def _doubtful_offsets(start: Start) -> Forecast | None:
    """Offsets that only the source itself could judge: lost, of another kind, or gone backwards."""
    begin, end = (start.checkpoint.offsets.readable(i) for i in (start.predecessor, start.latest))
    if begin is None or end is None:
        return None
    for index, (old, new) in enumerate(zip(in_order(begin), in_order(end), strict=True)):
        doubt = _doubt(index, old, new, start)
        if doubt is not None:
            diagnosis, detail = doubt
            detail = f"source {index} {detail} batch {start.predecessor}"
            return start.ends(Outcome.UNKNOWN, Finding(diagnosis, f"{OFFSETS}/{start.latest}", detail))
    return None


def _doubt(index: int, old: SourceOffset, new: SourceOffset, start: Start) -> tuple[Diagnosis, str] | None:
    if str(index if old.name is None else old.name) != str(index if new.name is None else new.name):
        return findings.SOURCES_DIFFER, "has another name than in"
    if old.text is None:
        return None
    if new.text is None:
        return findings.SOURCES_DIFFER, "has no offset, and had one in"
    if not (old.well_formed and new.well_formed):
        return None
    if type(decode(old.value)) is not type(decode(new.value)):
        return findings.SOURCES_DIFFER, "is of another kind than in"
    moved = None if start.resumes else advance(old.value, new.value)
    if moved is not None and moved.went_back:
        return findings.OFFSETS_WENT_BACK, "ends before the end of"
    return None


def _first_batch(start: Start) -> Forecast | None:
    """The log is in order: a batch is run."""
    assert start.latest is not None
    end = start.checkpoint.offsets.readable(start.latest)
    begin = start.checkpoint.offsets.readable(start.predecessor)
    if end is None:
        return None
    if start.resumes:
        batch_id, ranges = start.latest + 1, _ranges(end, None)
    else:
        batch_id, ranges = start.latest, _ranges(begin, end)
    refused = _asynchronous_with_state(start, batch_id, ranges)
    return (
        refused
        or _state(start, batch_id, ranges)
        or _blocked(start, batch_id, ranges)
        or _runs(start, batch_id, ranges)
    )


def _ranges(begin: OffsetLog | None, end: OffsetLog | None) -> tuple[SourceRange, ...]:
    sides = [in_order(log) if log else () for log in (begin, end)]
    count = max(map(len, sides))
    values = [[source.value for source in side] + [None] * (count - len(side)) for side in sides]
    return tuple(SourceRange(i, a, b) for i, (a, b) in enumerate(zip(*values, strict=True)))


def _asynchronous_with_state(start: Start, batch_id: int, ranges: tuple[SourceRange, ...]) -> Forecast | None:
    """``AsyncProgressTrackingMicroBatchExecution.markMicroBatchExecutionStart`` looks for stateful operators."""
    if start.progress is Progress.SYNC or not start.checkpoint.stateful:
        return None
    found = Finding(findings.ASYNC_REFUSES_STATE, STATE, "the checkpoint has state")
    return start.ends(Outcome.REFUSED, found, error=words.ASYNC_REFUSES_STATE)


def _state(start: Start, batch_id: int, ranges: tuple[SourceRange, ...]) -> Forecast | None:
    """Batch B loads state version B of every store in every partition."""
    state = start.checkpoint.state
    if state is None:
        return None
    if any(operator.variables for operator in state.operators) and not start.spark.at_least(Spark.V4_0):
        return start.ends(Outcome.UNKNOWN)  # it has no transformWithState, so no query can be tried
    moved = [p for o in state.operators if o.variables for p in o.schema_paths if p in state.moved_schemas]
    if moved:
        found = Finding(findings.STATE_MOVED, STATE, f"schemas are read from {moved[0]}")
        if any(path in start.checkpoint.lost_schemas for path in moved):
            return start.ends(Outcome.FAILS_AT_START, found, error=words.NO_FILE)
        return start.ends(Outcome.UNKNOWN, found)
    join_format = _join_format(start)
    if join_format > start.rules.runs_join_format and any(o.name == "symmetricHashJoin" for o in state.operators):
        detail = f"the join keeps state format {join_format}, with which Spark {start.spark} cannot run it"
        found = Finding(findings.NEWER_SETTING, f"{OFFSETS}/{start.latest}", detail)
        error, again = words.no_join_format(join_format), not start.resumes
        return start.ends(
            Outcome.FAILS_IN_BATCH, found, batch_id=batch_id, reexecutes=again, sources=ranges, error=error
        )
    failing = [(d, f) for d in state.damages if (f := load_failure(d, state.provider, start.spark)) is not None]
    if not failing:
        return None
    because = tuple(Finding(_STATE_DIAGNOSES[damage.kind], damage.path, damage.detail) for damage, _ in failing)
    at_start = next((failure for _, failure in failing if failure.at_start), None)
    if at_start is not None:
        return start.ends(Outcome.FAILS_AT_START, *because, error=at_start.words)
    again, words_of_first = not start.resumes, failing[0][1].words
    return start.ends(
        Outcome.FAILS_IN_BATCH, *because, batch_id=batch_id, reexecutes=again, sources=ranges, error=words_of_first
    )


def _blocked(start: Start, batch_id: int, ranges: tuple[SourceRange, ...] = ()) -> Forecast | None:
    """Something lies where a new batch's offsets are written first, or the batch's commit after it ran."""
    planned = start.latest is not None and not start.resumes
    obstacle = None if planned else _obstacle(start, OFFSETS, batch_id)
    if obstacle is not None and start.progress is Progress.SYNC:
        found, error = obstacle
        return start.ends(Outcome.FAILS_AT_START, found, error=error)
    obstacle = obstacle or _obstacle(start, COMMITS, batch_id)  # asynchronous writes fail while the batch runs
    if obstacle is None and batch_id in start.checkpoint.commits:
        detail = f"commits/ ends at batch {start.committed}, offsets/ at batch {start.latest}"
        obstacle = (
            Finding(findings.COMMITS_AHEAD, f"{COMMITS}/{batch_id}", detail),
            words.concurrent_update(batch_id),
        )
    if obstacle is None:
        return None
    found, error = obstacle
    return start.ends(
        Outcome.FAILS_AT_COMMIT, found, batch_id=batch_id, reexecutes=planned, sources=ranges, error=error
    )


def _obstacle(start: Start, folder: str, name: int | str) -> tuple[Finding, str] | None:
    """What keeps Spark from creating a file, and the words it then uses."""
    listing = start.checkpoint.listing
    path, sidecar = (f"{folder}/{one}".lstrip("/") for one in (name, f".{name}.crc"))
    if isinstance(name, int) and listing.has_folder(path):
        found = Finding(findings.DIRECTORY_IN_THE_WAY, path, f"Spark has to write the file {path}")
        return found, words.concurrent_update(name)
    if start.checkpoint.local and listing.info(sidecar) and not listing.info(path):
        detail = f"Spark has to write {path}, and its checksum file is already there"
        return Finding(findings.ORPHAN_SIDECAR_BLOCKS, sidecar, detail), words.USED_CONCURRENTLY
    return None


def _runs(start: Start, batch_id: int, ranges: tuple[SourceRange, ...]) -> Forecast | None:
    """Nothing stands in the way."""
    because = []
    if not start.resumes:
        detail = f"commits/ has no file for batch {batch_id}"
        because.append(Finding(findings.UNCOMMITTED_LATEST, f"{OFFSETS}/{batch_id}", detail))
        if start.progress is Progress.ASYNC and start.predecessor is None and batch_id > 0:
            detail = f"batch {batch_id} is run again, and no earlier offset file is there"
            because.append(Finding(findings.REPLAY_FROM_BEGINNING, f"{OFFSETS}/{batch_id}", detail))
    if start.committed is not None and start.latest is not None and start.committed > start.latest:
        detail = f"commits/ ends at batch {start.committed}, offsets/ at batch {start.latest}"
        because.append(Finding(findings.COMMITS_AHEAD, f"{COMMITS}/{start.committed}", detail))
    if start.checkpoint.metadata is None:
        because.append(Finding(findings.NEW_QUERY_ID, METADATA, "the file is not there"))
    return start.ends(Outcome.RESUMES, *because, batch_id=batch_id, reexecutes=not start.resumes, sources=ranges)


_STATE_DIAGNOSES = {
    DamageKind.MISSING: findings.STATE_CHAIN_HOLE,
    DamageKind.EMPTY: findings.STATE_FILE_DAMAGED,
    DamageKind.TRUNCATED: findings.STATE_FILE_DAMAGED,
    DamageKind.ODD_END: findings.STATE_FILE_DAMAGED,
    DamageKind.UNREADABLE: findings.STATE_FILE_DAMAGED,
    DamageKind.BAD_SCHEMA: findings.STATE_FILE_DAMAGED,
    DamageKind.BLOCKED: findings.DIRECTORY_IN_THE_WAY,
    DamageKind.MISSING_SST: findings.STATE_SST_MISSING,
    DamageKind.MISSING_PARTITION: findings.STATE_FOLDER_MISSING,
    DamageKind.MISSING_STATE: findings.STATE_FOLDER_MISSING,
}

_RULES = (
    _no_micro_batches,
    _query_metadata,
    _source_logs,
    _nothing_planned,
    _latest_offsets,
    _unfinished_repartition,
    _latest_sources,
    _predecessor,
    _recorded_settings,
    _latest_commit,
    _doubtful_offsets,
    _malformed_offsets,
    _source_entries,
    _first_batch,
)
