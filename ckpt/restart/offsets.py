"""Rules about what the offsets of the sources say."""

import json
from collections.abc import Iterator
from dataclasses import replace

from ckpt.advice import Advice, advise
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.history import find_renumbered_entry
from ckpt.checkpoint.sources import registry
from ckpt.checkpoint.sources.connectors import ConnectorOffset
from ckpt.checkpoint.sources.file_logs import FileSourceLog, file_source_logs
from ckpt.checkpoint.sources.files import FileOffset, entry_at
from ckpt.checkpoint.sources.kafka import NO_TOPIC_YET, KafkaOffset, is_kafka
from ckpt.checkpoint.sources.kind import LONG, Advance
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchOffset
from ckpt.model import Json, OffsetLog, SourceOffset, Unreadable
from ckpt.restart import diagnoses, messages, remedies
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Finding, Forecast, Outcome
from ckpt.restart.start import MOST_BATCHES, Start
from ckpt.texts import instant


def malformed_offsets(start: Start) -> Forecast | None:
    """The sources parse the offsets that the first batch begins or ends at; a new batch begins at the latest ones."""
    assert start.latest is not None
    read = (start.latest,) if start.resumes else (start.predecessor, start.latest)
    for batch_id in read:
        log = start.checkpoint.offsets.readable(batch_id)
        for index, source in enumerate(log.sources if log else ()):
            if not source.well_formed:
                detail = f"the offset of source {index} is {'truncated JSON' if source.cut else 'not JSON'}"
                others = {type(registry.offset_of(log, index)) for log in start.checkpoint.offsets.records.values()}
                error = None  # Kafka has words of its own for JSON that was cut, others let Jackson's error out
                if source.cut and KafkaOffset in others:
                    error = messages.CUT_KAFKA_OFFSET
                elif source.cut and others & {FileOffset, RateMicroBatchOffset}:
                    error = messages.CUT_OFFSET
                return start.fails(diagnoses.logs.MALFORMED_OFFSET, f"{OFFSETS}/{batch_id}", detail, error)
    return None


def exhausted_offsets(start: Start) -> Forecast | None:
    """A new batch of rate-micro-batch counts on from the latest one, up to the end of a long."""
    for index, offset in enumerate(registry.offsets_of(start.end)) if start.end is not None and start.resumes else ():
        if not isinstance(offset, RateMicroBatchOffset):
            continue
        path = f"{OFFSETS}/{start.latest}"
        for what, number in (("row", offset.rows), ("timestamp", offset.timestamp_ms)):
            detail = f"source {index} is at {what} {number}, but the largest number is {LONG}"
            if number == LONG:
                return start.fails(diagnoses.logs.MALFORMED_OFFSET, path, detail, None)
            if number > LONG - _MANY_ROWS:
                return start.stays_unknown(diagnoses.logs.MALFORMED_OFFSET, path, detail)
    return None


def endless_watermark(start: Start) -> Forecast | None:
    """A watermark of so many ms that operators which count in microseconds overflow; others take it."""
    commit, end = start.checkpoint.commits.newest, start.end
    watermarks = [
        (COMMITS, start.committed, commit.next_watermark_ms if commit is not None and start.resumes else None),
        (OFFSETS, start.latest, end.metadata.watermark_ms if end is not None and end.metadata is not None else None),
    ]
    logs = (log for batch, log in start.checkpoint.offsets.records.items() if batch != start.latest)
    used = any(log.metadata.watermark_ms for log in logs if log.metadata is not None)
    for log, batch, watermark_ms in watermarks if start.checkpoint.stateful and used else ():
        if watermark_ms is not None and watermark_ms > LONG // 1000:
            detail = f"the watermark is {watermark_ms} ms"
            stated = Finding(diagnoses.logs.FAR_WATERMARK, f"{log}/{batch}", detail)
            return start.ends(Outcome.UNKNOWN, next(find_far_watermark(start.checkpoint), stated))
    return None


_DAY_MS = 86_400_000
FAR_MS = _DAY_MS  # more than any time zone, or the clock of another machine, is ahead


def find_far_watermark(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find a watermark beyond the time at which its batch was planned: only a row from the future brings it there.

    The watermark that a batch leaves is in its commit, and in the offsets of the batch after it; a start takes the
    higher one of the newest of both (``MicroBatchExecution.populateStartOffsets``).
    """
    planned = [(i, entry.metadata) for i, entry in checkpoint.offsets.records.items() if entry.metadata]
    left = [(i - 1, metadata.watermark_ms, metadata.timestamp_ms) for i, metadata in planned]
    latest, commit = checkpoint.commits.latest, checkpoint.commits.newest
    if planned and latest == planned[-1][0] and commit is not None and commit.next_watermark_ms is not None:
        newest = planned[-1][1]
        left.append((latest, max(commit.next_watermark_ms, newest.watermark_ms), newest.timestamp_ms))
    ahead = [(batch, ms, ms - time_ms) for batch, ms, time_ms in left if time_ms > 0 and ms - time_ms > FAR_MS]
    if not ahead or ahead[-1][0] != left[-1][0]:
        return
    batch, (_, watermark_ms, ahead_ms) = ahead[0][0], ahead[-1]
    unseen = len(ahead) == len(left) and batch > 0  # it was there before the batches that were read
    since = f"since batch {batch} or an earlier one" if unseen else f"since batch {batch}"
    detail = f"{since}; it is {instant(watermark_ms)} now, {ahead_ms // _DAY_MS:,} days ahead"
    goes_back = not unseen and any(i < batch for i in checkpoint.commits.ids)
    advice = BOOK.advise("far_watermark", number=batch, before=batch - 1) if goes_back else None
    yield Finding(diagnoses.logs.FAR_WATERMARK, f"{COMMITS}/{batch}", detail, advice)


_MANY_ROWS = 1 << 31
"""More than a batch has: the checkpoint does not say how many rows, or milliseconds, each takes."""


def doubtful_offsets(start: Start) -> Forecast | None:
    """Offsets that only the source itself could judge: lost, of another kind, or gone backwards."""
    begin, end = start.begin or _find_beginnings(start), start.end
    if begin is None or end is None:
        return None
    names = {source.name or str(index) for index, source in registry.indexed(begin.sources)}
    added = [source for source in end.sources if source.name not in names]
    if start.left_out and added:
        detail = f"source {added[0].name} is not in batch {start.predecessor}, but {start.left_out[0].name} is"
        return start.stays_unknown(diagnoses.logs.SOURCES_DIFFER, f"{OFFSETS}/{start.latest}", detail)
    pairs, alone = _pair_sources(start, begin, end), len(end.sources) == 1
    doubts = (_doubt(start, index, *pair, alone=alone) for index, pair in enumerate(pairs))
    return next((doubt for doubt in doubts if doubt is not None), None)


def _doubt(start: Start, index: int, old: SourceOffset, new: SourceOffset, *, alone: bool) -> Forecast | None:
    path, before, elsewhere = f"{OFFSETS}/{start.latest}", f"batch {start.predecessor}", None
    if start.predecessor is None:
        before, begins = f"sources/{old.name or index}/0", json.dumps(old.value, separators=(",", ":"))
        elsewhere = BOOK.advise("first_batch_elsewhere", begins=begins)
    if str(index if old.name is None else old.name) != str(index if new.name is None else new.name):
        detail = f"source {index} has a different name than in {before}"
        return start.stays_unknown(diagnoses.logs.SOURCES_DIFFER, path, detail, elsewhere)
    if old.text is None:
        return None
    if new.text is None:
        detail = f"source {index} has no offset, but had one in {before}"
        return start.stays_unknown(diagnoses.logs.SOURCES_DIFFER, path, detail, elsewhere)
    begin, end = registry.decode(old.value), registry.decode_like(old.value, new.value)
    if not (old.well_formed and new.well_formed) or (begin == NO_TOPIC_YET and is_kafka(end)):
        return None
    if registry.is_of_other_kind(old, new):
        was, now = map(registry.source_type, (begin, end))
        detail = f"source {index} is of the kind {now}, but is {was} in {before}"
        return start.stays_unknown(diagnoses.logs.OF_OTHER_QUERY, path, detail, elsewhere)
    moved = registry.advance(begin, end)
    if start.resumes or isinstance(begin, FileOffset) or moved is None:  # ``source_entries`` judges files
        return None
    if moved.switched:
        gone, came = moved.switched
        detail = f"source {index} reads another topic than in {before}: topic {came}, but {gone} there"
        advice = elsewhere or remedies.topic_switch_planned(start.checkpoint, start.predecessor, gone)
        answer = start.stays_unknown(diagnoses.others.TOPIC_SWITCHED, path, detail, advice)
    elif moved.went_back and not registry.counts_anew(end):
        diagnosis = diagnoses.others.OFFSETS_WENT_BACK
        detail = f"source {index} ends before the {'start in' if start.predecessor is None else 'end of'} {before}"
        if isinstance(begin, RateMicroBatchOffset) and isinstance(end, RateMicroBatchOffset):
            error = messages.OFFSETS_REVERSED.format(begin.rows, end.rows)
            return start.fails(diagnosis, path, detail, error, BOOK.advise("offsets_reversed", latest=start.latest))
        reached, advice = _explain_return(start.latest, index, begin, moved, alone=alone)
        answer = start.stays_unknown(diagnosis, path, detail + reached, elsewhere or advice)
    else:
        return None
    lenient = (moved.switched or moved.recreated) and alone  # one of Kafka
    loads = start.checkpoint.state is None or not start.checkpoint.state.damages
    return replace(answer, if_lenient=start.latest) if lenient and loads else answer


def _find_beginnings(start: Start) -> OffsetLog | None:
    """Where Kafka sources began, as the beginning of batch 0; other sources have no offset."""
    initial, end = start.checkpoint.initial_offsets, start.end
    if not initial or end is None or start.latest != 0:
        return None
    olds = (replace(source, value=initial.get(index)) for index, source in enumerate(registry.in_order(end)))
    return replace(end, sources=tuple(old if old.value is not None else replace(old, text=None) for old in olds))


def _pair_sources(start: Start, begin: OffsetLog, end: OffsetLog) -> list[tuple[SourceOffset, SourceOffset]]:
    """Return the offsets of each source at the beginning and the end of a batch, without sources that are left out.

    Offset log v2 goes by names (``OffsetMap.toStreamProgress``), whatever the order of its lines.
    """
    if not end.names_sources:
        return list(zip(registry.in_order(begin), registry.in_order(end), strict=False))
    ends, left_out = {source.name: source for source in end.sources}, {source.name for source in start.left_out}
    olds = (replace(source, name=source.name or str(index)) for index, source in registry.indexed(begin.sources))
    return [(old, ends[old.name]) for old in olds if old.name in ends and old.name not in left_out]


def find_sources_left_out(start: Start) -> Iterator[Finding]:
    """Find sources of which the newest offsets have none, and which are therefore read again."""
    for source in start.left_out:
        path, detail = f"{OFFSETS}/{start.latest}", f"source {source.name} has no offset"
        if start.resumes:
            detail += f": batch {start.first_batch} reads it again from the end of batch {start.predecessor}"
        yield Finding(diagnoses.logs.SOURCE_LEFT_OUT, path, detail)


_KAFKA_BACK = (
    "with failOnDataLoss, the default, the start fails (offset was changed); with failOnDataLoss=false it "
    "runs batch {} without these rows"
)


def _explain_return(
    latest: int | None, index: int, begin: registry.Offset | None, moved: Advance, *, alone: bool
) -> tuple[str, Advice | None]:
    """Say where a source that went backwards is now, and what helps, as far as it shows.

    A start that finds rows of Kafka gone fails, and has written the offsets that are there now (on 3.5 to 4.3).
    """
    if isinstance(begin, ConnectorOffset):
        return f": {moved.went_back[0]}", BOOK.advise("connector_went_back")
    if not moved.recreated or not isinstance(begin, KafkaOffset):
        return "", None
    first, *more = moved.went_back
    others = f", and {len(more)} more" if more else ""
    beginning: dict[str, dict[str, Json]] = {}  # of topics that were created again; the others go on
    for (topic, partition), offset in begin.partitions.items():
        new = moved.recreated.get(topic)
        beginning.setdefault(topic, {})[str(partition)] = offset if new is None else 0 if partition in new else None
    to = json.dumps(beginning, separators=(",", ":"))
    skip, start_there = BOOK.advise("topic_recreated", latest=latest, source=index, to=to).steps
    of_others = () if alone else BOOK.advise("other_sources", latest=latest).steps
    advice = advise(skip, *of_others, start_there)  # to start there is refused before the skip
    return f": {first}{others}; {_KAFKA_BACK.format(latest)}", advice


def source_entries(start: Start) -> Forecast | None:
    """A file source looks up the entries of the latest batch, whether it is run again or not (``getBatch``)."""
    for source_log in file_source_logs(start.checkpoint.listing, start.end) if start.end else ():
        first, last = (entry_at(registry.offset_of(log, source_log.source)) for log in (start.begin, start.end))
        if last - first > MOST_BATCHES:
            continue
        missing = [entry for entry in range(first + 1, last + 1) if entry not in source_log.entries]
        if missing:
            path = f"{source_log.folder}/{source_log.log.name_of(missing[0])}"
            error = messages.DOES_NOT_EXIST.format(missing[0]) if len(missing) == 1 else None
            detail = f"the latest batch read entries {first + 1} to {last}, but this one is missing"
            if source_log.log.latest is None:
                detail = f"the log is empty, but the latest batch read entries {first + 1} to {last}"
                return start.fails(diagnoses.others.SOURCE_LOG_LOST, source_log.folder, detail, error)
            return start.fails(diagnoses.others.SOURCE_LOG_HOLE, path, detail, error)
        nameless = _find_nameless_file(start, source_log, first, last)
        if nameless is not None:
            return start.ends(Outcome.FAILS_AT_START, nameless)
        lost = _find_lost_log(start, source_log, max(first, last))
        if lost is not None and (last < first or (start.resumes and source_log.next_entry < last)):
            return start.ends(Outcome.FAILS_AT_START, lost, error=messages.FILES_REVERSED)
        if last < first:
            path = f"{OFFSETS}/{start.latest}"
            detail = f"source {source_log.source} ends before the end of batch {start.predecessor}"
            advice = BOOK.advise("offsets_reversed", latest=start.latest)
            if not start.resumes:  # planned by a start that failed, if nobody has edited it: no copy has a better one
                advice = BOOK.advise("repair")
            return start.fails(diagnoses.others.OFFSETS_WENT_BACK, path, detail, messages.FILES_REVERSED, advice)
    return None


def _find_nameless_file(start: Start, log: FileSourceLog, first: int, last: int) -> Finding | None:
    """Find an entry of the latest batch without the path of a file, of which Spark makes a ``Path``."""
    for path, files in start.checkpoint.source_entries.items():
        if path.startswith(f"{log.folder}/") and not isinstance(files, Unreadable):
            read = (file for file in files if first < file.log_offset <= last)
            entries = (file.log_offset for file in read if file.path[:1] != "/" and ":" not in file.path)
            if (entry := next(entries, None)) is not None:
                detail = f"entry {entry} has no absolute file path, and the latest batch has read it"
                return Finding(diagnoses.others.SOURCE_LOG_UNREADABLE, path, detail)
    return None


def _find_lost_log(start: Start, log: FileSourceLog, last: int) -> Finding | None:
    """Find a log that ends before the entry ``last`` of the offsets: the next files get a number that was read."""
    if log.next_entry > last:
        return None
    ends = "is empty" if log.log.latest is None else f"ends at entry {log.log.latest}"
    detail = f"the log {ends}, but batches have read up to entry {last}: the next files get number {log.next_entry}"
    begun_again = find_renumbered_entry(start.checkpoint, min(start.checkpoint.offsets.entries)) is not None
    advice = None if log.log.latest is None or begun_again else BOOK.advise("repair")
    return Finding(diagnoses.others.SOURCE_LOG_LOST, log.folder, detail, advice)


def find_skipping_logs(start: Start) -> Iterator[Finding]:
    """Find logs of file sources that lack newest entries: the files in the next ones are not read, or fail a batch."""
    for log in file_source_logs(start.checkpoint.listing, start.end) if start.end else ():
        finding = _find_lost_log(start, log, entry_at(registry.offset_of(start.end, log.source)))
        if finding is not None:
            yield finding
