"""Findings that no forecast has: one function for each, about the logs, then about state, then about other files.

Whatever stops or spoils a start is found by the forecast (``ckpt.restart``) and not looked for again here.
"""

import re
import time
from collections.abc import Iterator
from itertools import groupby, pairwise

from ckpt import settings
from ckpt.advice import Code, Known, advise
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, STATE, Checkpoint
from ckpt.checkpoint.history import Pattern, in_real_time, pattern, unplanned
from ckpt.checkpoint.sources.connectors import ConnectorOffset
from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchOffset
from ckpt.checkpoint.sources.registry import advances, counts_anew, offset_of, share_no_kind
from ckpt.checkpoint.state.folders import SSTS, find_nested as find_nested_stores, find_store_partitions
from ckpt.checkpoint.state.space import list_temporary_files
from ckpt.formats.names import compactible_id, compactible_log, sort_batch_names
from ckpt.formats.sidecars import sidecar
from ckpt.formats.statefiles import DEFAULT_STORE
from ckpt.inspection.checks.auto_loader import find_auto_loader
from ckpt.inspection.checks.sink_times import CLOCKS_APART_MS
from ckpt.model import DamageKind, Kind, OffsetLog, Unreadable
from ckpt.restart import diagnoses, offsets
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Finding
from ckpt.restart.newer import find_unknown_settings, name_setting
from ckpt.restart.remedies import can_rewind, topic_switch_planned
from ckpt.restart.state_errors import load_failure
from ckpt.storage.locations import is_of_one_host
from ckpt.texts import instant, quote_word, span
from ckpt.versions import Spark

_MAX_FILE_AGE_MS = 7 * 86_400_000  # the default of the option maxFileAge
_LAG = 50  # versions that a load replays before it is worth a word: half of Spark's minBatchesToRetain
_OUTLIVES_A_LOAD = {
    DamageKind.CHECKSUM_DIFFERS: diagnoses.others.STALE_SIDECAR,
    DamageKind.WRONG_PARTITION: diagnoses.state.KEYS_ELSEWHERE,
    DamageKind.CONTRADICTION: diagnoses.state.STATE_CONTRADICTS,
    DamageKind.CHANGED: diagnoses.state.STATE_REDESCRIBED,
    DamageKind.OTHER_SCHEMA: diagnoses.state.SCHEMA_OF_OTHER_ROWS,
}
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TEMPORARY = re.compile(rf"^(.*?/temporary-{_UUID})(?=/|$)")
_PASSING = re.compile(
    r"^(?:file:/*|dbfs:/+)?(/?(?:local_disk0|databricks/driver|mnt/tmp|opt/spark/work-dir)"
    r"|/.*?/kubernetes\.io~empty-dir/[^/]+|/.*?/appcache/application_\w+)(?=/|$)"
)
"""Databricks, its driver, EMR, the image of Spark; a pod's own volume, and folders of YARN's containers."""
_OF_ICEBERG = re.compile(r"sources/[^/]+/offsets")
"""Where an Iceberg source keeps the place at which the query began, as file 0 (``InitialOffsetStore``)."""


def find_unreadable_files(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find files that cannot be read and that no start reads (the forecast covers the others)."""
    latest = checkpoint.offsets.latest
    read_by_a_start = {
        "offsets": {latest, checkpoint.offsets.before(latest) if latest else None},
        "commits": {checkpoint.commits.latest},
    }
    for log in (checkpoint.offsets, checkpoint.commits):
        for batch_id, entry in sorted(log.entries.items()):
            if isinstance(entry, Unreadable) and batch_id not in read_by_a_start[log.folder]:
                yield Finding(diagnoses.logs.UNREADABLE_LOG_IGNORED, f"{log.folder}/{batch_id}", entry.reason)


def find_ignored_gaps(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find gaps below what a start looks at."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    latest = offsets.latest
    needed = None if latest is None else (latest - 1, latest - 1)
    gaps = {log.folder: tuple(span for span in log.missing if span != needed) for log in (offsets, commits)}
    if gaps["offsets"] == gaps["commits"] and gaps["offsets"]:
        detail = f"{_describe_batches(gaps['offsets'])} no file here and none in commits"
        yield Finding(diagnoses.logs.GAP_IGNORED, "offsets", detail)
    else:
        for folder, spans in gaps.items():
            if spans:
                yield Finding(diagnoses.logs.GAP_IGNORED, folder, f"{_describe_batches(spans)} no file")
    stray = [i for i in unplanned(checkpoint) if latest is not None and i < latest]
    if stray:
        count = "one committed batch has" if len(stray) == 1 else f"{len(stray)} committed batches have"
        detail = f"{count} no offsets: {stray[0]}" + (" ..." if stray[1:] else "")
        yield Finding(diagnoses.logs.GAP_IGNORED, "commits", detail)


def _describe_batches(spans: tuple[tuple[int, int], ...]) -> str:
    count = sum(last - first + 1 for first, last in spans)
    first, last = spans[0]
    begin = f"{first}" if first == last else f"{first} to {last}"
    more = " and others" if spans[1:] else ""
    return f"{count} {'batch' if count == 1 else 'batches'} ({begin}{more}) {'has' if count == 1 else 'have'}"


def find_two_writers(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find the work of a second writer: one alone plans batches at rising times, and its watermark never falls."""
    with_metadata = [(i, log.metadata) for i, log in checkpoint.offsets.records.items() if log.metadata]
    findings = []
    for (earlier, before), (later, after) in pairwise(with_metadata):
        if after.watermark_ms < before.watermark_ms:
            detail = f"the watermark of batch {later} is lower than that of batch {earlier}"
        elif after.timestamp_ms < before.timestamp_ms:
            detail = f"batch {later} was planned at an earlier time than batch {earlier}"
        else:
            continue
        past = checkpoint.is_past(later)
        findings.append(Finding(diagnoses.logs.TWO_WRITERS, f"offsets/{later}", detail, minor=past))
    yield from sorted(findings, key=lambda finding: finding.minor)[:1]


def find_copied_offsets(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find the newest offsets that are those of an earlier batch, and were planned in the same millisecond.

    ``ckpt repair --choose read-again`` makes such a copy on purpose: it is harmful if its checksum is of other bytes.
    """
    planned: dict[int, tuple[int, OffsetLog]] = {}
    for batch, log in checkpoint.offsets.records.items():
        if log.metadata is None or log.metadata.timestamp_ms <= 0:
            continue
        earlier, same = planned.setdefault(log.metadata.timestamp_ms, (batch, log))
        if earlier != batch == checkpoint.offsets.latest and log == same:
            advice = BOOK.advise("copied_offsets", before=batch - 1) if can_rewind(checkpoint, batch - 1) else None
            detail = f"it is a copy of offsets/{earlier}"
            on_purpose = f"offsets/.{batch}.crc" not in checkpoint.stale_sidecars
            yield Finding(diagnoses.logs.COPIED_OFFSETS, f"offsets/{batch}", detail, advice, minor=on_purpose)


def find_later_times(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find the batch with the latest time, if that is in the future, further than two clocks may be apart."""
    records = checkpoint.offsets.records.items()
    latest_ms, batch = max(((log.metadata.timestamp_ms, i) for i, log in records if log.metadata), default=(0, 0))
    now_ms = time.time_ns() // 1_000_000
    if latest_ms > now_ms + CLOCKS_APART_MS:
        detail = f"batch {batch} was planned at {instant(latest_ms)}, but it is {instant(now_ms)} here"
        yield Finding(diagnoses.logs.PLANNED_LATER, f"offsets/{batch}", detail)


def find_lagging_log(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find asynchronous tracking, which plans and runs batches that it does not log."""
    if pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        detail = f"rows after the offsets of batch {checkpoint.offsets.latest} may already have been written"
        yield Finding(diagnoses.logs.LOG_LAGS_BEHIND, f"offsets/{checkpoint.offsets.latest}", detail)


def find_cut_commit(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find the newest commit without a watermark, in a checkpoint of a Spark that always writes one (2.4 and later)."""
    commit, since_2_4 = checkpoint.commits.newest, settings.WATERMARK_POLICY in checkpoint.conf
    if commit is not None and commit.next_watermark_ms is None and since_2_4:
        path = f"commits/{checkpoint.commits.latest}"
        yield Finding(diagnoses.logs.COMMIT_CUT_SHORT, path, "it records no watermark")


def compare_offsets(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find sources that went backwards, or to another table, in one of the batches that were read."""
    switches: dict[int, list[tuple[int, int, str, str]]] = {}
    for (earlier, before), (later, after) in pairwise(checkpoint.offsets.records.items()):
        past = checkpoint.is_past(later)
        for index, advance in enumerate(advances(before, after)):
            where = f"source {index}, from batch {earlier} to batch {later}"
            if advance is not None and advance.replaced:
                detail = f"{where}: the table id differs"
                yield Finding(diagnoses.others.SOURCE_REPLACED, f"offsets/{later}", detail, minor=past)
            elif advance is not None and advance.switched:
                switches.setdefault(index, []).append((earlier, later, *advance.switched))
            elif advance is not None and advance.went_back and not counts_anew(offset_of(after, index)):
                advice = BOOK.advise("topic_was_recreated", before=earlier) if advance.recreated else None
                if can_rewind(checkpoint, earlier) and later in checkpoint.commits and not past:
                    forward = isinstance(offset_of(after, index), _FORWARD)
                    advice = BOOK.advise("offsets_moved_back", before=earlier) if forward else advice
                detail = f"{where}: {advance.went_back[0]}"
                yield Finding(diagnoses.others.OFFSETS_WENT_BACK, f"offsets/{later}", detail, advice, past)
    for index, switched in switches.items():
        yield from _describe_switches(checkpoint, index, switched)


def _describe_switches(
    checkpoint: Checkpoint, index: int, switches: list[tuple[int, int, str, str]]
) -> Iterator[Finding]:
    """Describe how a source went to other topics; where one comes back, queries with several took turns."""
    topics = dict.fromkeys(name for *_, gone, came in switches for name in (gone, came))
    in_turns = len(topics) <= len(switches)
    for earlier, later, gone, came in switches[-1:] if in_turns else switches:
        advice = None
        detail = f"source {index}, from batch {earlier} to batch {later}: topic {came} instead of {gone}"
        if in_turns:
            detail += f", the last of {len(switches)} switches: several queries seem to share this checkpoint"
        if later in checkpoint.commits:
            name = "topics_in_turns" if in_turns else "topic_was_switched"
            name = name if can_rewind(checkpoint, earlier) else "topic_was_switched_in_state"
            advice = BOOK.advise(name, before=earlier, gone=gone)
            ends = {topic: batch for batch, _, topic, _ in switches if topic not in (gone, came)} if in_turns else {}
            for topic, batch in ends.items():
                if can_rewind(checkpoint, batch):
                    advice = advise(*advice.steps, *BOOK.advise("topic_in_turns", before=batch, gone=topic).steps)
        elif later == checkpoint.offsets.latest:
            advice = topic_switch_planned(checkpoint, earlier, gone)
        yield Finding(diagnoses.others.TOPIC_SWITCHED, f"offsets/{later}", detail, advice, checkpoint.is_past(later))


_FORWARD = (ConnectorOffset, DeltaOffset, RateMicroBatchOffset)
"""Offsets of sources that never go back by themselves: a topic that was recreated starts over."""


def compare_source_counts(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find batches with another number of sources, which a query keeps as long as its checkpoint."""
    logs = checkpoint.offsets.records.items()
    runs = [(n, [i for i, _ in same]) for n, same in groupby(logs, key=lambda log: len(log[1].sources))]
    returned = False
    for number, ((few, earlier), (many, later)) in enumerate(pairwise(runs)):
        if returned:
            returned = False
            continue  # the batches before were the odd ones
        returned = number + 2 < len(runs) and runs[number + 2][0] == few
        if all(log.names_sources for i, log in logs if i == later[0]):
            continue  # the forecast goes by their names
        if share_no_kind(checkpoint.offsets.records[earlier[-1]], checkpoint.offsets.records[later[0]]):
            continue  # they are of another query, as the forecast says
        detail = f"{_describe_files(earlier)} {few}, {_describe_files(later)} {many}"
        past, paths = checkpoint.is_past(later[0]) or returned, tuple(f"{OFFSETS}/{batch}" for batch in later)
        named = f"offsets/ of {span('batch', later[0], later[-1])}" if later[2:] else " and ".join(paths)
        advice = BOOK.advise("repair", path=named).fill(Known(paths=paths))
        yield Finding(diagnoses.logs.SOURCES_DIFFER, paths[0], detail, advice, past)


def _describe_files(batch_ids: list[int]) -> str:
    first, last = batch_ids[0], batch_ids[-1]
    return f"offsets/{first} names" if first == last else f"offsets/{first} to offsets/{last} name"


def find_edited_file_logs(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find entries in the logs of file sources as Spark does not write them (``FileStreamSource.SeenFilesMap``)."""
    planned_ms = checkpoint.planned_ms(checkpoint.offsets.latest)
    latest_ms: dict[str, int] = {}  # by source: the newest of the files in earlier entries
    for path, files in checkpoint.source_entries.items():
        source, _, name = path.rpartition("/")
        number = compactible_id(name)
        for file in sorted(files, key=lambda file: file.log_offset) if not isinstance(files, Unreadable) else ():
            before_ms, time_ms = latest_ms.get(source, 0), file.timestamp_ms
            detail = None
            shown = f"entry {file.log_offset} says that its file was modified at {instant(time_ms)}"
            if number is not None and (file.log_offset > number or (name.isdecimal() and file.log_offset != number)):
                detail = f"it has an entry with the number {file.log_offset}"
            elif file.path[:1] != "/" and ":" not in file.path:
                detail = f"entry {file.log_offset} has no absolute file path"
            elif planned_ms and time_ms - planned_ms > offsets.FAR_MS:
                detail = f"{shown}, after the newest batch was planned: later files count as too old"
            elif before_ms - time_ms > _MAX_FILE_AGE_MS:
                detail = f"{shown}, long before files in earlier entries: the file counts as unread"
            if detail is not None:
                yield Finding(diagnoses.others.FILE_LOG_EDITED, path, detail)
                return
            latest_ms[source] = max(before_ms, time_ms)


def find_sink_log_holes(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find holes in the log of a file sink that writes below the checkpoint."""
    for folder in checkpoint.listing.folders:
        if folder.rpartition("/")[2] == "_spark_metadata":
            log = compactible_log(checkpoint.listing.in_folder(folder))
            if log.first_missing is not None:
                detail = f"entries {log.first_needed} to {log.latest} are needed, but this one is missing"
                yield Finding(diagnoses.others.SINK_LOG_HOLE, f"{folder}/{log.first_missing}", detail)


def find_format_two(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find state store checkpoint format 2, which the session has to name: the checkpoint does not record it."""
    if checkpoint.state is not None and checkpoint.state.format_version == 2:
        yield Finding(diagnoses.state.FORMAT_TWO, "state", "state files have unique ids")


def find_versions(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find a version that no run uses, and one that runs begin with though an earlier one has batches."""
    flow = checkpoint.flow
    if flow is None:
        return
    if flow.superseded:
        yield Finding(diagnoses.modes.SUPERSEDED, "", f"runs use version {flow.live}")
    elif flow.before is not None and checkpoint.commits.latest is None:
        detail = f"no batch is committed in version {flow.version}, but version {flow.before} has batches"
        run = Code(f"spark-pipelines run --full-refresh {quote_word(flow.flow.refreshed or 'TABLE')}")
        named = {"unused": f"{flow.version}.unused", "folders": ", ".join(flow.above), "before": flow.before}
        advice = BOOK.advise("version_without_batches", run=run, **named)
        yield Finding(diagnoses.modes.UNFINISHED_VERSION, "", detail, advice)


def find_real_time(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that real-time mode wrote the checkpoint, whose starts are other ones than those of the forecasts."""
    if in_real_time(checkpoint):
        stateless = checkpoint.state is None
        detail = "the newest commit has version 2 but no state ids" if stateless else "the aggregation is named so"
        yield Finding(diagnoses.logs.REAL_TIME, COMMITS if stateless else STATE, detail)


def find_moved_joins(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find moved schemas of operators without variables, which are joins: their restart does without them."""
    state = checkpoint.state
    for operator in checkpoint.operators:
        moved = [path for path in operator.schema_paths if state and path in state.moved_schemas]
        if moved and not operator.variables:
            yield Finding(diagnoses.state.STATE_MOVED_JOIN, f"state/{operator.id}", f"schemas are read from {moved[0]}")


def find_abandoned_timeline(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find state files above the version that the next start loads and writes."""
    newer = checkpoint.state.newer if checkpoint.state else None
    if newer is not None:
        which = span("version", newer.first_version, newer.last_version)
        detail = f"{newer.files} files of {which}, but the offset log ends at batch {checkpoint.offsets.latest}"
        diagnosis = diagnoses.state.STATE_ABOVE if newer.harmful else diagnoses.state.STATE_AHEAD
        yield Finding(diagnosis, newer.example, detail)


def measure_snapshot_lag(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find stores whose load replays many versions."""
    for operator, store in checkpoint.stores():
        replayed = max((p.replay_versions or 0 for p in store.partitions), default=0)
        if replayed > _LAG:
            detail = f"loading operator {operator.id}, store {store.name}, replays up to {replayed} versions"
            yield Finding(diagnoses.state.SNAPSHOT_LAG, f"state/{operator.id}", detail)


def find_newer_spark(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find settings that no known Spark records: a start leaves them out. What fails a start says so itself."""
    if names := find_unknown_settings(checkpoint):
        detail = f"it records {', '.join(name_setting(checkpoint, name) for name in names[:5])}"
        yield Finding(diagnoses.logs.PERHAPS_NEWER, f"{OFFSETS}/{checkpoint.offsets.latest}", detail)


def find_missing_metadata(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find operators without metadata, as Spark before 4.0 leaves them."""
    without = [operator.id for operator in checkpoint.operators if not operator.has_metadata]
    if without:
        detail = f"there is none for operator {', '.join(map(str, without))}"
        yield Finding(diagnoses.state.NO_OPERATOR_METADATA, f"state/{without[0]}", detail)


def find_unreadable(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find operator metadata and schema files that cannot be read."""
    state = checkpoint.state
    failing = {damage.path for damage in state.damages} if state else set()  # over which a start fails: it has a fix
    for file in state.unreadable if state else ():
        advice = BOOK.advise("repair") if file.path in failing else None
        if file.path.endswith("/_metadata/metadata"):
            advice = BOOK.advise("written_again")
        yield Finding(diagnoses.state.UNREADABLE_STATE_METADATA, file.path, file.reason, advice)


def find_missing_state(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that ``state/`` is missing, if the logs show neither that there never was one nor that it is lost.

    The gaps of asynchronous tracking show that there was none: Spark refuses it for stateful queries.
    """
    ran = checkpoint.kind is Kind.MICRO_BATCH and checkpoint.commits.latest is not None
    if not ran or checkpoint.state is not None or pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        return
    if checkpoint.stateful is None:
        yield Finding(diagnoses.state.STATE_SEEMS_LOST, "state", "missing, but the logs have a watermark")
    else:
        detail = "missing, which is normal for a stateless query and a loss for any other"
        yield Finding(diagnoses.state.NO_STATE_FOLDER, "state", detail)


def find_odd_ends(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find state files truncated after their data, if every Spark version loads them anyway."""
    state = checkpoint.state
    for damage in state.damages if state else ():
        failures = (load_failure(damage, state.provider, spark.rules) for spark in Spark if state)
        if damage.kind is DamageKind.ODD_END and not any(failures):
            yield Finding(diagnoses.state.ODD_END, damage.path, damage.detail)


def find_strays(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find files in a store that are no versions of it, and that no version of Spark trips over."""
    strays = checkpoint.state.strays if checkpoint.state else ()
    if strays:
        more = f"; {len(strays) - 1:,} more like it" if len(strays) > 1 else ""
        yield Finding(diagnoses.state.STATE_NAME_IGNORED, strays[0], f"its name is not a version of the store{more}")


def find_missing_schemas(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find stores whose schema file is missing, of operators that have metadata."""
    for operator, store in checkpoint.stores():
        known = store.key_schema is not None or store.column_families
        if operator.has_metadata and not operator.schema_paths and not known:
            detail = f"store {store.name} of operator {operator.id} has none"
            yield Finding(diagnoses.state.STATE_SCHEMA_MISSING, f"state/{operator.id}/0/_metadata/schema", detail)


def find_schemas_astray(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find schemas in partitions where Spark writes none: they came there with the folder of partition 0."""
    for operator, store in checkpoint.stores():
        for partition in (there.partition for there in store.partitions if there.partition):
            inner = "" if store.name == DEFAULT_STORE else f"{store.name}/"
            path = f"{STATE}/{operator.id}/{partition}/{inner}_metadata/schema"
            if checkpoint.listing.info(path) is not None:
                detail = f"the schema of store {store.name} of operator {operator.id} is in partition {partition}"
                yield Finding(diagnoses.state.SCHEMA_ASTRAY, f"{STATE}/{operator.id}", detail)


def find_rows_not_compared(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find stores without a schema, where every byte was read: what their rows are is not known."""
    state = checkpoint.state
    of_old_spark = settings.COMPRESSION_CODEC not in checkpoint.conf  # which wrote no schemas
    if state is None or state.every_byte is None or state.needed_version is None or of_old_spark:
        return
    for operator, store in checkpoint.stores():
        if not store.column_families and store.key_schema is None:
            inner = "" if store.name == DEFAULT_STORE else f"{store.name}/"
            path, detail = f"{STATE}/{operator.id}/0/{inner}_metadata/schema", f"store {store.name} has no schema"
            path = f"{STATE}/{operator.id}/_stateSchema/{store.name}" if operator.schema_paths else path
            yield Finding(diagnoses.state.ROWS_NOT_COMPARED, path, detail)


def find_other_damage(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find damage in files over which no start fails now, where they were read completely."""
    state = checkpoint.state
    if state is None:
        return
    known = {damage.path for damage in state.damages if damage.kind is not DamageKind.CHECKSUM_DIFFERS}
    known |= {file.path for file in state.unreadable}
    for damage in state.damaged_files:
        if damage.kind is DamageKind.FOREIGN or (damage.kind is DamageKind.OTHER_CODEC and state.damages):
            continue  # named once for all, or with its setting by the forecast
        if damage.kind in _OUTLIVES_A_LOAD or damage.path not in known:
            diagnosis = _OUTLIVES_A_LOAD.get(damage.kind, diagnoses.state.OTHER_STATE_DAMAGED)
            yield Finding(diagnosis, damage.path, damage.detail)


def find_foreign_snapshots(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find snapshots of abandoned batches that the next start loads, where every byte was read."""
    state = checkpoint.state
    damages = state.every_byte.damages if state and state.every_byte else ()
    foreign = [damage for damage in damages if damage.kind is DamageKind.FOREIGN]
    if state and foreign:
        stores = find_store_partitions(checkpoint.listing, state.provider)
        lowest = min((version for store in stores for version, _ in store.list_outdated()), default=0)
        batch = lowest - 2  # version 1 is the state after batch 0
        more = f"; {len(foreign) - 1:,} more like it" if len(foreign) > 1 else ""
        back = batch >= 0 and can_rewind(checkpoint, batch)
        advice = BOOK.advise("foreign_snapshot", before=batch) if back else None
        yield Finding(diagnoses.state.SNAPSHOT_OF_ABANDONED, foreign[0].path, foreign[0].detail + more, advice)


def find_vanished(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find files that were listed and gone when they were to be read."""
    if checkpoint.moving:
        yield Finding(diagnoses.others.CHANGED_WHILE_READ, "", "files appeared or disappeared between two reads")
    elif checkpoint.vanished:
        detail = f"{len(checkpoint.vanished)} of the files listed were gone when ckpt tried to read them"
        yield Finding(diagnoses.others.CHANGED_WHILE_READ, checkpoint.vanished[0], detail)


def find_orphan_sidecars(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find ``.N.crc`` without ``N`` in a log: in the way where batch N is still to come, harmless below."""
    latest = checkpoint.offsets.latest
    for log in (checkpoint.offsets, checkpoint.commits):
        names = checkpoint.listing.in_folder(log.folder)
        orphans = [name for file in log.names.others if file.endswith(".crc") and (name := file[1:-4]) not in names]
        for belongs_to in sorted(name for name in orphans if name.isdecimal()):
            detail = f"its file {log.folder}/{belongs_to} is missing"
            commit_due = log is checkpoint.commits and int(belongs_to) == latest
            to_come = latest is None or int(belongs_to) > latest or commit_due
            blocks = to_come and checkpoint.local
            diagnosis = diagnoses.others.ORPHAN_SIDECAR_BLOCKS if blocks else diagnoses.others.ORPHAN_SIDECAR
            yield Finding(diagnosis, f"{log.folder}/.{belongs_to}.crc", detail)


def find_directories(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find folders with the name of a batch that is still to come."""
    latest = checkpoint.offsets.latest
    for log in (checkpoint.offsets, checkpoint.commits):
        for name in checkpoint.listing.subfolders(log.folder):
            if name.isdecimal() and (latest is None or int(name) > latest):
                path = f"{log.folder}/{name}"
                yield Finding(diagnoses.others.DIRECTORY_IN_THE_WAY, path, f"Spark must write the file {path}")


def find_stale_sidecars(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find log files whose hidden checksum file does not match."""
    for path in checkpoint.stale_sidecars:
        yield Finding(diagnoses.others.STALE_SIDECAR, path, "its checksums do not match the file next to it")


def find_added_white_space(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find text files that are as Spark wrote them, but for white space."""
    for path, added in checkpoint.respaced.items():
        proof = f", and {sidecar(path)} matches the rest" if added.proven else ""
        yield Finding(diagnoses.others.WHITE_SPACE_ADDED, path, f"it has {added.what}{proof}")


def find_leftovers(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find temporary files of writes that broke off, in the folders of this checkpoint."""
    paths = list_temporary_files(checkpoint.listing)
    if paths:
        count = f"{len(paths)} temporary files" if len(paths) > 1 else "a temporary file"
        yield Finding(diagnoses.others.LEFTOVER, paths[0], f"{count} in this checkpoint")


def find_nested(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find folders that are checkpoints of their own, however deep."""
    for folder in sorted(checkpoint.listing.folders):
        above, _, name = folder.rpartition("/")
        ids = sort_batch_names(checkpoint.listing.in_folder(folder)).ids if above and name == OFFSETS else ()
        if ids and not (tuple(ids) == (0,) and _OF_ICEBERG.fullmatch(folder)):
            advice = BOOK.advise("inspect_nested", nested=f"{checkpoint.uri.rstrip('/')}/{above}")
            detail = "another checkpoint, which this report does not cover"
            yield Finding(diagnoses.others.NESTED, above, detail, advice)


def find_passing_place(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that the checkpoint is, or was written, in a place that ends with the run, the container or the machine."""
    recorded = ((f"{STATE}/{operator.id}", path) for operator in checkpoint.operators for path in operator.schema_paths)
    for path, location in (("", checkpoint.uri), *recorded):
        where = f"it was written in {location}" if path else location
        if made := _TEMPORARY.match(location):
            detail = f"{where if path else made[1]}: Spark made it for one run because checkpointLocation was not set"
        elif kept := _PASSING.match(location):
            detail = f"{where}: {kept[1]} disappears with the container or the machine"
        else:
            continue
        yield Finding(diagnoses.others.PASSING_PLACE, path, detail)
        return


def find_other_hosts(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that partitions of state have no folder on a local path: executors elsewhere wrote them on their own disks.

    Measured on 4.2 with workers that have disks of their own: the driver writes the logs and the schemas, and batches
    run and are committed until a partition is loaded on another host.
    """
    damages = checkpoint.state.damages if checkpoint.state else ()
    missing = [at.path for at in damages if at.kind is DamageKind.MISSING_PARTITION and at.path.count("/") == 2]
    missing = [path for path in missing if not checkpoint.listing.has_folder(f"{path}/{SSTS}")]
    if missing and is_of_one_host(checkpoint.uri) and not find_nested_stores(checkpoint.listing).keys() >= {*missing}:
        detail = "executors on other hosts may have it"
        yield Finding(diagnoses.others.OTHER_HOSTS, missing[0], detail)


def find_nothing(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that there is nothing yet, or nothing any more."""
    if checkpoint.kind is Kind.EMPTY and checkpoint.query_id is None:
        missing = checkpoint.missing_folder
        detail = "there are no offsets, commits or state"
        yield Finding(diagnoses.others.EMPTY, "", f"{missing} does not exist" if missing else detail)


_CHECKS = (
    find_unreadable_files,
    find_ignored_gaps,
    find_two_writers,
    find_copied_offsets,
    find_later_times,
    offsets.find_far_watermark,
    find_lagging_log,
    find_cut_commit,
    compare_source_counts,
    compare_offsets,
    find_edited_file_logs,
    find_sink_log_holes,
    find_format_two,
    find_real_time,
    find_versions,
    find_auto_loader,
    find_moved_joins,
    find_abandoned_timeline,
    measure_snapshot_lag,
    find_newer_spark,
    find_missing_metadata,
    find_unreadable,
    find_missing_state,
    find_odd_ends,
    find_strays,
    find_missing_schemas,
    find_schemas_astray,
    find_rows_not_compared,
    find_other_damage,
    find_foreign_snapshots,
    find_nothing,
    find_vanished,
    find_orphan_sidecars,
    find_directories,
    find_stale_sidecars,
    find_added_white_space,
    find_leftovers,
    find_nested,
    find_passing_place,
    find_other_hosts,
)


def check(checkpoint: Checkpoint) -> list[Finding]:
    """Run every check, and return the findings in the order of the checks; where parts were not read, these alone."""
    if links := checkpoint.links_out:
        return [Finding(diagnoses.others.LINK_OUT, path, "nothing beyond it was read") for path in links]
    findings = (finding for find in _CHECKS for finding in find(checkpoint))
    refused = [Finding(diagnoses.others.READING_REFUSED, path, why) for path, why in sorted(checkpoint.refused.items())]
    return [*refused, *(finding for finding in findings if not checkpoint.is_refused(finding.path))]
