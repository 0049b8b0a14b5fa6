"""Rules about the offset and commit logs: which files a start opens, and what they have to say."""

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint, Log
from ckpt.checkpoint.history import Pattern, in_real_time, pattern
from ckpt.checkpoint.sources.registry import share_no_kind
from ckpt.formats.names import parse_java_long
from ckpt.formats.operators import OperatorName
from ckpt.formats.text import quoted
from ckpt.model import CommitLog, Fault, OffsetLog, Unreadable
from ckpt.restart import diagnoses, messages, remedies
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Forecast
from ckpt.restart.newer import advise_newer, newer_log, newer_value
from ckpt.restart.recorded_settings import find_refused
from ckpt.restart.start import MOST_BATCHES, Start
from ckpt.settings import CHECKPOINT_FORMAT, JOIN_FORMAT, SHUFFLE_PARTITIONS, SOURCE_EVOLUTION
from ckpt.texts import plural

_UNFINISHED = {
    Fault.UNFINISHED: diagnoses.logs.UNFINISHED,
    Fault.UNFINISHED_CHANGE: diagnoses.logs.UNFINISHED_CHANGE,
}


def latest_offsets(start: Start) -> Forecast | None:
    """``OffsetSeqLog.getLatest`` takes the highest number that is listed, and opens the file of that name."""
    assert start.latest is not None
    return _check_highest(start, start.checkpoint.offsets, start.latest) or _check_offset_file(start, start.latest)


def _check_highest(start: Start, log: Log[OffsetLog] | Log[CommitLog], latest: int) -> Forecast | None:
    """The highest number in a log may be no batch at all."""
    path = f"{log.folder}/{latest}"
    if latest not in log:
        name = next(name for name, batch_id in log.names.odd.items() if batch_id == latest)
        detail = f"Spark reads this name as batch {latest}, but {path} does not exist"
        error = messages.NO_SUCH_FILE.format(path)
        return start.fails(diagnoses.others.ODD_NAME, f"{log.folder}/{name}", detail, error)
    if latest - log.ids[0] > MOST_BATCHES:
        detail = f"the log spans batches {log.ids[0]} to {latest}, more than Spark can count"
        return start.fails(diagnoses.others.ODD_NAME, path, detail, messages.TOO_MANY_BATCHES)
    return None


def _check_offset_file(start: Start, batch_id: int) -> Forecast | None:
    """A start that reads ``offsets/<batch_id>`` and cannot."""
    entry = start.checkpoint.offsets.entries.get(batch_id)
    return _check_log_file(start, entry, f"{OFFSETS}/{batch_id}", start.rules.newest_offset_log)


def _check_log_file(
    start: Start, entry: OffsetLog | CommitLog | Unreadable | None, path: str, newest: int
) -> Forecast | None:
    """Spark looks at the version line first, and then at what follows."""
    version = entry.version if entry is not None else None
    if version is not None and version > newest:
        reads = f"Spark {start.spark} reads at most v{newest}"
        newer = newer_log(path.partition("/")[0], version)
        reads = "no known Spark version reads that" if newer else reads
        detail = f"its version line is v{version}, and {reads}"
        advice = advise_newer(start.checkpoint, f"v{version} there") if newer else None
        return start.fails(diagnoses.logs.NEWER_LOG_VERSION, path, detail, messages.NEWER_VERSION, advice)
    if (doubt := start.doubts(path, entry)) is not None:
        return doubt
    if isinstance(entry, Unreadable) and entry.fault in _UNFINISHED:
        return start.fails(_UNFINISHED[entry.fault], path, entry.reason, entry.says)
    if isinstance(entry, Unreadable):
        folder, _, batch_id = path.partition("/")
        by_place = remedies.unreadable_log(start.checkpoint, folder, int(batch_id))
        return start.fails(diagnoses.logs.UNREADABLE_LOG, path, entry.reason, entry.says, by_place)
    return None


def unfinished_repartition(start: Start) -> Forecast | None:
    """``checkUnfinishedRepartitionBatch``: Spark 4.2 and later, before any other check.

    It compares the recorded shuffle partitions of an uncommitted latest batch with those of the batch before, and so
    trips over whatever is missing there. Asynchronous tracking leaves it out.
    """
    latest, committed = start.latest, start.committed
    checks = start.rules.checks_repartition and not start.takes_gaps
    if not (checks and latest) or committed is None or committed >= latest:
        return None
    if latest - 1 not in start.checkpoint.offsets:
        return _fail_without_predecessor(start, latest, messages.PREVIOUS_NOT_FOUND.format(latest - 1))
    if (unreadable := _check_offset_file(start, latest - 1)) is not None:
        return unreadable
    diagnosis = diagnoses.logs.UNFINISHED_REPARTITION
    counts: list[str | None] = []
    for batch_id in (latest, latest - 1):
        log = start.checkpoint.offsets.readable(batch_id)
        if log is None or log.metadata is None:
            detail = "it has no metadata line, which the check for an unfinished repartition needs"
            error, advice = messages.NO_METADATA.format(batch_id), None if counts else BOOK.advise("of_old_spark")
            return start.fails(diagnosis, f"{OFFSETS}/{batch_id}", detail, error, advice)
        counts.append(log.metadata.conf.get(SHUFFLE_PARTITIONS))
    path = f"{OFFSETS}/{latest}"
    if None in counts:
        if not start.rules.check_needs_partitions:
            return None
        detail = f"no {SHUFFLE_PARTITIONS} is recorded, which the check for an unfinished repartition needs"
        advice = BOOK.advise("of_old_spark") if counts[0] is None else None
        return start.fails(diagnosis, path, detail, messages.NO_SHUFFLE_PARTITIONS, advice)
    if counts[0] != counts[1]:
        detail = f"{counts[0]} shuffle partitions, but batch {latest - 1} has {counts[1]}"
        return start.fails(diagnosis, path, detail, messages.UNFINISHED_REPARTITION)
    return None


def latest_sources(start: Start) -> Forecast | None:
    """``OffsetSeq.toStreamProgress`` wants as many sources as the query has, and every query has one."""
    if start.end is None or start.end.sources:
        return None
    path, detail = f"{OFFSETS}/{start.latest}", "it names no source, but every query has one"
    return start.fails(diagnoses.logs.SOURCES_DIFFER, path, detail, messages.SOURCES_DIFFER)


def predecessor(start: Start) -> Forecast | None:
    """The offsets that the latest batch begins at (``validateOffsetLogAndGetPrevOffset``)."""
    latest, before = start.latest, start.predecessor
    assert latest is not None
    if start.takes_gaps:
        names = [*start.checkpoint.listing.subfolders(OFFSETS), *start.checkpoint.offsets.names.odd]
        taken = max((i for name in names if (i := parse_java_long(name)) is not None and i < latest), default=-1)
        if taken > (-1 if before is None else before):
            detail = f"asynchronous tracking reads it as batch {taken}, which has no file"
            name = next(name for name in names if parse_java_long(name) == taken)
            error = messages.OFFSETS_NOT_FOUND.format(taken)
            return start.fails(diagnoses.others.ODD_NAME, f"{OFFSETS}/{name}", detail, error)
    if before is not None and (unreadable := _check_offset_file(start, before)) is not None:
        return unreadable
    if before is not None or latest == 0 or start.takes_gaps:
        return _check_number_of_sources(start)
    return _fail_without_predecessor(start, latest, messages.DOES_NOT_EXIST.format(latest - 1))


def _fail_without_predecessor(start: Start, latest: int, error: str) -> Forecast:
    left_by_design = pattern(start.checkpoint) is Pattern.ASYNC_PROGRESS
    diagnosis = diagnoses.logs.MISSING_PREDECESSOR if left_by_design else diagnoses.logs.LOST_PREDECESSOR
    nearest = start.checkpoint.offsets.before(latest)
    there = "there is no earlier batch" if nearest is None else f"the nearest earlier batch is {nearest}"
    detail = f"a synchronous start looks for the offsets of batch {latest - 1}; {there}"
    advice = remedies.no_predecessor(start.checkpoint, latest)
    return start.fails(diagnosis, f"{OFFSETS}/{latest - 1}", detail, error, advice)


def _check_number_of_sources(start: Start) -> Forecast | None:
    """Both offset files are read with the sources of the one query, so they must agree in number."""
    before, after, path = start.begin, start.end, f"{OFFSETS}/{start.latest}"
    for file in (path, f"{OFFSETS}/{start.predecessor}"):
        if (added := start.checkpoint.respaced.get(file)) is not None and added.sources:
            detail = f"Spark counts {plural(added.sources, 'blank line')} at its end as sources"
            return start.fails(diagnoses.logs.SOURCES_DIFFER, file, detail, messages.SOURCES_DIFFER)
    if before is None or after is None or len(before.sources) == len(after.sources):
        return None
    if after.names_sources:
        return None  # and so goes by names: ``Start.left_out``
    detail = f"{OFFSETS}/{start.predecessor} names {len(before.sources)}, {path} names {len(after.sources)}"
    diagnosis = diagnoses.logs.OF_OTHER_QUERY if share_no_kind(before, after) else diagnoses.logs.SOURCES_DIFFER
    return start.fails(diagnosis, path, detail, messages.SOURCES_DIFFER)


def recorded_settings(start: Start) -> Forecast | None:
    """``OffsetSeqMetadata.setSessionConf`` puts the settings of the latest offsets into the session."""
    path = f"{OFFSETS}/{start.latest}"
    for name, value in find_refused(start.checkpoint, start.spark):
        newer = newer_value(name, value)
        takes = "no known Spark version accepts" if newer else f"Spark {start.spark} does not accept"
        detail = f"it records {name}={quoted(value)}, which {takes}"
        advice = advise_newer(start.checkpoint, f"{name}={quoted(value)}") if newer else None
        return start.fails(diagnoses.logs.REFUSED_SETTING, path, detail, None, advice)
    evolves = start.checkpoint.conf.get(SOURCE_EVOLUTION, "").strip().lower() == "true"
    names = [source.name for source in start.end.sources] if start.end is not None else []  # Spark numbers the others
    unnamed = any(name is None or name.isdecimal() for name in names)
    if evolves and start.spark.records(SOURCE_EVOLUTION) and unnamed:
        detail = f"it records {SOURCE_EVOLUTION}=true, but does not name its sources"
        return start.fails(diagnoses.logs.REFUSED_SETTING, path, detail, messages.SOURCES_UNNAMED)
    recorded, newest = recorded_join_format(start.checkpoint), start.rules.newest_join_format
    if recorded <= newest:
        return None
    newer = newer_value(JOIN_FORMAT, str(recorded))
    knows = "no known Spark version has that" if newer else f"Spark {start.spark} knows at most {newest}"
    detail = f"it records {JOIN_FORMAT}={recorded}, but {knows}"
    advice = advise_newer(start.checkpoint, f"{JOIN_FORMAT}={recorded}") if newer else None
    return start.fails(diagnoses.logs.NEWER_SETTING, path, detail, JOIN_FORMAT, advice)


def recorded_join_format(checkpoint: Checkpoint) -> int:
    """The recorded state format of joins, which every query records; 0 where there is none."""
    recorded = checkpoint.conf.get(JOIN_FORMAT, "")
    return int(recorded) if recorded.isdecimal() and len(recorded) < 10 else 0


def join_format(checkpoint: Checkpoint) -> int:
    """The state format of the joins that there are; 0 where there is none."""
    joins = any(operator.name == OperatorName.JOIN for operator in checkpoint.operators)
    return recorded_join_format(checkpoint) if joins else 0


def _find_written_version(checkpoint: Checkpoint) -> int:
    """The version of commits that Spark 4.0 and 4.1 write, and read: 2 in a session with state format 2, or else 1."""
    if checkpoint.state is not None:
        return checkpoint.state.format_version
    commits = [entry for entry in checkpoint.commits.entries.values() if isinstance(entry, CommitLog)]
    names_state = any(commit.state_unique_ids for commit in commits)
    return 2 if names_state and {commit.version for commit in commits} == {2} else 1


def early_commit(start: Start) -> Forecast | None:
    """Since Spark has real-time mode, every start reads the newest commit before the predecessor."""
    return latest_commit(start) if start.rules.real_time else None


def latest_commit(start: Start) -> Forecast | None:
    """``CommitLog.getLatest``."""
    if start.committed is None:
        return None
    if (beyond := _check_highest(start, start.checkpoint.commits, start.committed)) is not None:
        return beyond
    path, entry = f"{COMMITS}/{start.committed}", start.checkpoint.commits.entries.get(start.committed)
    written = _find_written_version(start.checkpoint)
    if start.rules.commit_log_exact and entry is not None and entry.version not in (None, written):
        reads = f"the session of this query writes v{written}"
        if in_real_time(start.checkpoint):
            reads = f"Spark {start.spark} reads only v{written} in a session without {CHECKPOINT_FORMAT}=2"
        detail = f"its version line is v{entry.version}, and {reads}"
        return start.fails(diagnoses.logs.NEWER_LOG_VERSION, path, detail, messages.NEWER_VERSION)
    return _check_log_file(start, entry, path, start.rules.newest_commit_log)
