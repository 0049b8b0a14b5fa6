"""Rules about the first batch: whether its state loads, whether its files can be written, what it reads."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ckpt import settings
from ckpt.advice import Advice
from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS, STATE
from ckpt.checkpoint.history import Uncomputed, find_uncomputed
from ckpt.checkpoint.state.descriptions import list_descriptions
from ckpt.checkpoint.state.folders import find_nested, measure_nested, partition_of, sort_numbers
from ckpt.formats.limits import LARGEST_CHANGE
from ckpt.formats.operators import OPERATORS, OperatorName
from ckpt.formats.statefiles import JOIN_STORES
from ckpt.formats.text import quoted
from ckpt.formats.types import named_fields
from ckpt.model import DamageKind, Json, Operator, StateDamage, StateFileKind, Store
from ckpt.restart import diagnoses, messages, offsets, remedies
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Finding, Forecast, Outcome
from ckpt.restart.logs import join_format
from ckpt.restart.recorded_settings import bound_writer, name_versions
from ckpt.restart.start import Start
from ckpt.restart.state_errors import load_failure
from ckpt.storage.locations import is_of_one_host
from ckpt.texts import span
from ckpt.versions import Progress

_STATE_DIAGNOSES = {  # of what is not simply a damaged file
    DamageKind.MISSING: diagnoses.state.STATE_CHAIN_HOLE,
    DamageKind.VERSION_2: diagnoses.state.SNAPSHOT_OF_4_0,
    DamageKind.VERSION_1: diagnoses.state.SNAPSHOT_NOT_OF_4_0,
    DamageKind.STRAY: diagnoses.state.STATE_NAME_ASTRAY,
    DamageKind.BLOCKED: diagnoses.others.DIRECTORY_IN_THE_WAY,
    DamageKind.MISSING_SST: diagnoses.state.STATE_SST_MISSING,
    DamageKind.MISSING_PARTITION: diagnoses.state.STATE_FOLDER_MISSING,
    DamageKind.MISSING_STATE: diagnoses.state.STATE_FOLDER_MISSING,
    DamageKind.BAD_BLOCK: diagnoses.state.STATE_SST_MISSING,
    DamageKind.MISSING_ROWS: diagnoses.state.STATE_CONTRADICTS,
}


def refuse_asynchronous(start: Start) -> Forecast | None:
    """``AsyncProgressTrackingMicroBatchExecution.markMicroBatchExecutionStart`` looks for stateful operators."""
    if start.progress is not Progress.ASYNC or not start.checkpoint.stateful:
        return None
    finding = Finding(diagnoses.logs.ASYNC_REFUSES_STATE, STATE, "the checkpoint has state")
    return start.ends(Outcome.REFUSED, finding, error=messages.ASYNC_REFUSES_STATE)


def load_state(start: Start) -> Forecast | None:
    """Batch B loads state version B of every store in every partition."""
    kept = start.checkpoint.state
    if kept is None:
        return None
    if any(operator.variables for operator in kept.operators) and not start.rules.transform_with_state:
        detail = f"Spark {start.spark} has no transformWithState"
        return start.stays_unknown(diagnoses.state.STATE_TOO_NEW, STATE, detail)
    moved = _find_moved_schemas(start)
    if moved is not None:
        return moved
    named = ((operator.id, operator.name) for operator in kept.operators if operator.name is not None)
    for number, name in named if start.rules.operator_metadata else ():
        of_real_time = name == OperatorName.REAL_TIME_AGGREGATION
        if name not in OPERATORS or (of_real_time and not start.rules.real_time_state and start.first_batch > 0):
            diagnosis = diagnoses.logs.REAL_TIME_OPERATOR if of_real_time else diagnoses.state.OPERATOR_UNKNOWN
            path, detail = f"{STATE}/{number}/_metadata", f"it calls operator {number} {quoted(name)}"
            return start.fails(diagnosis, path, detail, messages.OPERATORS_DIFFER)
    changed = _find_operators_astray(start) or _find_renamed_operator(start) or _find_changed_operator(start)
    if changed is not None:
        return changed
    recorded = join_format(start.checkpoint)
    if recorded > start.rules.runs_join_format:
        detail = f"the join uses state format {recorded}, with which Spark {start.spark} cannot run it"
        finding = Finding(diagnoses.logs.NEWER_SETTING, f"{OFFSETS}/{start.latest}", detail)
        return start.ends(Outcome.FAILS_IN_BATCH, finding, error=messages.NO_JOIN_FORMAT.format(recorded))
    failing = [(d, f) for d in kept.damages if (f := load_failure(d, kept.provider, start.rules)) is not None]
    if not failing:
        return _count_unique_ids(start) or _doubt_changed_schemas(start) or _doubt_old_state(start)
    without_ids = _find_commit_without_ids(start)
    because = [without_ids] if without_ids else _make_findings(start, [damage for damage, _ in failing])
    first = max((failure for _, failure in failing), key=lambda failure: (failure.at_start, failure.certain))
    runs_into = Outcome.FAILS_IN_BATCH if first.certain else Outcome.UNKNOWN
    return start.ends(Outcome.FAILS_AT_START if first.at_start else runs_into, *because, error=first.words)


def _find_operators_astray(start: Start) -> Forecast | None:
    """Operator metadata that has the number of another folder: the query looks for its operators by number and name.

    If two folders were exchanged, each number is there once, and Spark compares the schemas of other operators.
    """
    numbered = [(operator.id, operator.recorded_id) for operator in start.checkpoint.operators]
    wrong = [(folder, number) for folder, number in numbered if number not in (None, folder)]
    if not wrong:
        return None
    folder, number = wrong[0]
    detail = f"it names operator {number}"
    exchanged = {folder for folder, _ in wrong} == {number for _, number in wrong}
    names = {operator.id: operator.name for operator in start.checkpoint.operators}
    copied = names.get(number) == names[folder]  # the query may have no such operator
    if exchanged or copied:  # its state with it
        return start.stays_unknown(diagnoses.state.OPERATOR_ASTRAY, f"{STATE}/{folder}", detail)
    if not start.rules.operator_metadata:
        return None
    each_batch = any(operator.id == folder and operator.schema_paths for operator in start.checkpoint.operators)
    advice = BOOK.advise("repair") if each_batch else None  # of metadata v2 the file of an older batch may be right
    path = f"{STATE}/{folder}/_metadata"
    return start.fails(diagnoses.state.OPERATOR_ASTRAY, path, detail, messages.OPERATORS_DIFFER, advice)


def _find_renamed_operator(start: Start) -> Forecast | None:
    """Operator metadata with the name of an operator whose state always has another form."""
    for operator, store in start.checkpoint.stores() if start.rules.operator_metadata else ():
        shown = _name_by_schema(store)
        grouped = operator.name == OperatorName.AGGREGATION and shown not in (None, OperatorName.SESSIONS)
        known = operator.name in _FORMS or grouped
        if known and store.key_schema is not None and shown != operator.name:
            path = f"{STATE}/{operator.id}/_metadata"
            really = "its state has a different layout" if shown is None else f"its state belongs to {shown}"
            detail = f"it calls operator {operator.id} {operator.name}, but {really}"
            return start.fails(diagnoses.state.OPERATOR_RENAMED, path, detail, None)
    return None


def _find_changed_operator(start: Start) -> Forecast | None:
    """Operator metadata v2 unlike that of the batches before (``OperatorStateMetadataValidator``, ``checkOldConf``).

    Two earlier files that agree are right; of one alone it is unknown.
    """
    for operator in start.checkpoint.operators if start.rules.operator_metadata else ():
        newest = _identify(operator.name, operator.properties)
        before = [_identify(older.name, older.properties) for older in operator.older]
        if not before or newest in before:
            continue
        names = [name for name, value in newest.items() if value != before[0].get(name)]
        changed = " and ".join(f"{name} is {newest[name]}, but was {before[0].get(name)}" for name in names)
        folder = f"{STATE}/{operator.id}/_metadata/v2"
        batch = sort_numbers(start.checkpoint.listing.in_folder(folder))[-1]
        path, detail = f"{folder}/{batch}", f"{changed} in the previous file"
        if len(before) > 1 and before[0] == before[1]:
            return start.fails(diagnoses.state.OPERATOR_CHANGED, path, detail, None)
        return start.stays_unknown(diagnoses.state.OPERATOR_CHANGED, path, detail)
    return None


def _identify(name: str | None, properties: Json) -> dict[str, Json]:
    """List the name and modes of an operator, which Spark compares with the query, by their names in the file."""
    modes = properties if isinstance(properties, dict) else {}
    return {"operatorName": name, **{mode: modes.get(mode) for mode in ("timeMode", "outputMode")}}


_FORMS = (
    OperatorName.DEDUPLICATION,
    OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
    OperatorName.LIMIT,
    OperatorName.SESSIONS,
)
"""Operators whose state has one form in every version (``BaseStreamingDeduplicateExec.schemaForValueRow``,
``StreamingGlobalLimitExec``, ``StreamingSessionWindowStateManagerImplV1``)."""


def _name_by_schema(store: Store) -> OperatorName | None:
    """Name the operator that has such state, where only one has."""
    key, value = list(named_fields(store.key_schema)), list(named_fields(store.value_schema))
    if [name for name, _ in value] == ["__dummy__"]:
        return OperatorName.DEDUPLICATION
    if [name for name, _ in value] == ["expiresAtMicros"]:
        return OperatorName.DEDUPLICATION_WITHIN_WATERMARK
    if [kind for _, kind in key] == ["void"] and len(value) == 1:
        return OperatorName.LIMIT
    return OperatorName.SESSIONS if "sessionStartTime" in dict(key) else None


def _doubt_changed_schemas(start: Start) -> Forecast | None:
    """State schemas and operator metadata that were changed since: Spark compares them with the query."""
    for damage in start.checkpoint.state.damaged_files if start.checkpoint.state else ():
        schema = damage.path.endswith("/schema") or "/_stateSchema/" in damage.path
        if damage.kind is DamageKind.CHANGED and (schema or start.rules.operator_metadata):
            return start.stays_unknown(diagnoses.state.STATE_REDESCRIBED, damage.path, damage.detail)
    return None


def _doubt_old_state(start: Start) -> Forecast | None:
    """State as old Spark keeps it: joins in state format 1 (up to 2.4), anything without a schema file (up to 3.0).

    Later versions check the first row that they load against the query's own schema
    (``StateStoreProvider.validateStateRowFormat``): sums of decimals do not pass, other rows do.
    """
    conf = start.checkpoint.conf
    join = next((operator for operator, store in start.checkpoint.stores() if store.name in JOIN_STORES), None)
    if join is not None and conf.get(settings.JOIN_FORMAT, "1") == "1":
        return _doubt_join_of_format_1(start, join, settings.JOIN_FORMAT in conf)
    if settings.COMPRESSION_CODEC in conf:  # which Spark records since 3.1
        return None
    for operator in start.checkpoint.operators:
        known = any(store.key_schema is not None or store.column_families for store in operator.stores)
        if not known and not operator.has_metadata:
            path, detail = f"{STATE}/{operator.id}", f"operator {operator.id} has no state schema"
            named = f" ({name_versions(*bound_writer(conf))})" if conf else ""
            advice = BOOK.advise("old_state", named=named)
            return start.stays_unknown(diagnoses.state.STATE_OF_OLD_SPARK, path, detail, advice)
    return None


def _doubt_join_of_format_1(start: Start, join: Operator, recorded: bool) -> Forecast | None:
    """Spark since 3.0 records the format, and runs only inner joins in format 1 (``StreamingSymmetricHashJoinExec``).

    So one that has schemas, which Spark writes since 3.1, is an inner join, and resumes. For one without, Spark since
    4.1 would write schemas of version 1, and cannot.
    """
    described = {store.key_schema is not None for store in join.stores}
    if described == {True} and recorded:
        return None
    path = f"{STATE}/{join.id}"
    detail = f"operator {join.id} is a join, and the offsets record no later format than 1"
    if described == {False} and not start.rules.describes_join_format_1:
        return start.fails(diagnoses.state.JOIN_WITHOUT_SCHEMA, path, detail, None)
    return start.stays_unknown(diagnoses.state.JOIN_OF_FORMAT_1, path, detail)


def _find_commit_without_ids(start: Start) -> Finding | None:
    """State files of format 2 are found by the unique ids in the commit of the batch before: here it has none."""
    kept = start.checkpoint.state
    if kept is None or kept.format_version != 2 or not kept.needed_version:
        return None
    before = kept.needed_version - 1
    commit = start.checkpoint.commits.readable(before)
    if commit is None or commit.state_unique_ids:
        return None
    detail = "it has no unique ids, but the state files have some"
    return Finding(diagnoses.logs.COMMIT_WITHOUT_STATE_IDS, f"{COMMITS}/{before}", detail)


def _count_unique_ids(start: Start) -> Forecast | None:
    """State format 2: an id for each store of each partition (``StatefulOperator.getStateInfo``)."""
    kept = start.checkpoint.state
    if kept is None or not kept.needed_version:
        return None
    commit = start.checkpoint.commits.readable(kept.needed_version - 1)
    ids_by_operator = (commit.state_unique_ids or {}) if commit is not None else {}
    path = f"{COMMITS}/{kept.needed_version - 1}"
    for operator in kept.operators:
        ids, stores = ids_by_operator.get(operator.id), len(operator.stores)
        partitions = max((store.expected_partitions or 0 for store in operator.stores), default=0)
        if ids is None:
            continue
        lacks_some = len(ids) < partitions
        if lacks_some:
            detail = f"it has ids for {len(ids)} partitions of operator {operator.id}, which has {partitions}"
        elif (wrong := next((i for i in range(partitions) if len(ids[i]) != stores), None)) is not None:
            lacks_some = len(ids[wrong]) < stores
            detail = f"it has {len(ids[wrong])} ids for partition {wrong} of operator {operator.id}, not {stores}"
        else:
            continue
        finding = Finding(diagnoses.logs.COMMIT_WITH_OTHER_IDS, path, detail)
        if lacks_some:
            return start.ends(Outcome.FAILS_IN_BATCH, finding)
        compares = start.rules.compares_base_ids  # otherwise the first id is taken
        return start.ends(Outcome.FAILS_AT_COMMIT, finding, error=messages.OTHER_BASE_ID) if compares else None
    return None


def _find_moved_schemas(start: Start) -> Forecast | None:
    """Schemas of transformWithState that are recorded elsewhere: a start fails where they are not there."""
    checkpoint, kept = start.checkpoint, start.checkpoint.state
    for operator in checkpoint.operators:
        moved = [path for path in operator.schema_paths if operator.variables and kept and path in kept.moved_schemas]
        if moved:
            folder = f"{STATE}/{operator.id}/_stateSchema"
            advice = remedies.moved(moved[0], operator.id, checkpoint)
            if not any(True for _ in checkpoint.listing.walk(folder)):
                advice = BOOK.advise("moved_and_lost", folder=folder)
            finding = Finding(diagnoses.state.STATE_MOVED, STATE, f"schemas are read from {moved[0]}", advice)
            if not any(path in checkpoint.lost_schemas for path in moved):
                return start.ends(Outcome.UNKNOWN, finding)
            error = messages.NO_SCHEMA_FILE.format(f"{moved[0].rpartition('/_stateSchema/')[0]}/_stateSchema/")
            return start.ends(Outcome.FAILS_AT_START, finding, error=error)
    return None


def _make_findings(start: Start, damages: Sequence[StateDamage]) -> list[Finding]:
    nested = find_nested(start.checkpoint.listing)
    damaged = dict.fromkeys(partition_of(damage.path) for damage in damages)
    if nested.keys() >= damaged.keys():
        details = ((folder, f"its files are in {nested[folder]}, one level too deep") for folder in damaged)
        fits = measure_nested(start.checkpoint.listing) <= LARGEST_CHANGE
        advice = None if fits else BOOK.advise("move_up")
        return [Finding(diagnoses.state.STATE_NESTED, *detail, advice) for detail in details]
    uncomputed = find_uncomputed(start.checkpoint)
    if uncomputed is not None and uncomputed.whole:
        return [_make_uncomputed(uncomputed, damages, start.checkpoint.uri)]
    if uncomputed is None:
        advise_folder = remedies.lost_state(start.checkpoint)
        return [_make_finding(start, damage, advise_folder) for damage in damages]
    first, *others = (_make_finding(start, damage, lambda _: BOOK.advise("repair")) for damage in damages)
    part = f"if no file was lost, foreachBatch read only part of batch {uncomputed.last}"
    return [replace(first, detail=f"{first.detail}; {part}"), *others]


def _make_uncomputed(uncomputed: Uncomputed, damages: Sequence[StateDamage], uri: str) -> Finding:
    first, last = uncomputed.first, uncomputed.last
    which, versions = span("batch", first, last), span("state version", first + 1, last + 1)
    of = ", ".join(dict.fromkeys(f"operator {damage.operator}" for damage in damages))
    where = f"only {of} lacks" if uncomputed.anywhere else "no partition has"
    older = "all older state is complete" if first else "nor is there any older state"
    detail = f"{which} {'is' if first == last else 'are'} committed, and {where} {versions}; {older}"
    path, *others = (path for damage in damages for path in (damage.path, *damage.missing))
    hosts = first == 0 < last and is_of_one_host(uri)  # several batches without any state: the driver of a cluster
    advice = BOOK.advise("hosts_or_never_computed") if hosts else None
    return Finding(diagnoses.sinks.NEVER_COMPUTED, path, detail, advice, others=tuple(others))


def _make_finding(start: Start, damage: StateDamage, advise_folder: Callable[[str], Advice | None]) -> Finding:
    if damage.kind is DamageKind.OTHER_CODEC:
        detail = f"{damage.path}: {damage.detail}"
        return Finding(diagnoses.logs.CONTRADICTING_SETTING, f"{OFFSETS}/{start.latest}", detail)
    damaged, of_sst = diagnoses.state.STATE_FILE_DAMAGED, damage.file_kind is StateFileKind.SST
    diagnosis = diagnoses.state.STATE_SST_MISSING if of_sst else _STATE_DIAGNOSES.get(damage.kind, damaged)
    is_folder = diagnosis is diagnoses.state.STATE_FOLDER_MISSING
    advice = advise_folder(damage.path) if is_folder else None
    return Finding(diagnosis, damage.path, damage.detail, advice, others=damage.missing)


def write_descriptions(start: Start) -> Forecast | None:
    """Operator metadata and schemas that are missing are written with the plan of a batch, by 3.5 in its tasks."""
    for operator in start.checkpoint.operators:
        for path in list_descriptions(operator):
            if path.endswith(f"/{METADATA}") and not start.rules.operator_metadata:
                continue
            in_the_way = find_obstacle(start, *path.rsplit("/", 1))
            if in_the_way is not None:
                early = start.rules.checks_schemas_at_start
                outcome = Outcome.FAILS_AT_START if early else Outcome.FAILS_IN_BATCH
                return start.ends(outcome, in_the_way[0], error=messages.RENAME_DESTINATION)
    return None


def meet_obstacle(start: Start) -> Forecast | None:
    """Something is in the place of a new batch's offsets, or of the commit after it ran."""
    batch_id = start.first_batch
    planned = start.latest is not None and not start.resumes
    in_the_way = None if planned else find_obstacle(start, OFFSETS, batch_id)
    if in_the_way is not None and start.progress is Progress.SYNC:
        return start.ends(Outcome.FAILS_AT_START, in_the_way[0], error=in_the_way[1])
    in_the_way = in_the_way or find_obstacle(start, COMMITS, batch_id)  # asynchronous writes fail while the batch runs
    if in_the_way is None and batch_id in start.checkpoint.commits:
        detail = f"commits/ ends at batch {start.committed}, offsets/ at batch {start.latest}"
        finding = Finding(diagnoses.logs.COMMITS_AHEAD, f"{COMMITS}/{batch_id}", detail)
        in_the_way = finding, messages.CONCURRENT_UPDATE.format(batch_id)
    return None if in_the_way is None else start.ends(Outcome.FAILS_AT_COMMIT, in_the_way[0], error=in_the_way[1])


def find_obstacle(start: Start, folder: str, name: int | str) -> tuple[Finding, str] | None:
    """Return what keeps Spark from creating a file, and the words it then uses."""
    listing = start.checkpoint.listing
    path, sidecar = (f"{folder}/{file_name}".lstrip("/") for file_name in (name, f".{name}.crc"))
    if isinstance(name, int) and listing.has_folder(path):
        finding = Finding(diagnoses.others.DIRECTORY_IN_THE_WAY, path, f"Spark must write the file {path}")
        return finding, messages.CONCURRENT_UPDATE.format(name)
    if start.checkpoint.local and listing.info(sidecar) and not listing.info(path):
        detail = f"Spark must write {path}, but its checksum file already exists"
        return Finding(diagnoses.others.ORPHAN_SIDECAR_BLOCKS, sidecar, detail), messages.USED_CONCURRENTLY
    return None


def runs(start: Start) -> Forecast:
    """Nothing blocks it."""
    batch_id, because = start.first_batch, []
    if not start.resumes:
        detail = f"commits/ has no file for batch {batch_id}"
        stores = (store for _, store in start.checkpoint.stores())
        newest = (partition.newest_version or 0 for store in stores for partition in store.partitions)
        # without state nothing shows whether it ran, and otherwise it writes a version
        if start.checkpoint.listing.has_folder(STATE) and not any(version > batch_id for version in newest):
            detail += (
                f", and state/ has none of version {batch_id + 1}: it may come from a failed start, for example with a "
                "query that does not fit the state; the batch's offsets are now fixed"
            )
        because.append(Finding(diagnoses.logs.UNCOMMITTED_LATEST, f"{OFFSETS}/{batch_id}", detail))
        if start.progress is Progress.ASYNC and start.predecessor is None and batch_id > 0:
            detail = f"batch {batch_id} runs again, and there is no earlier offset file"
            because.append(Finding(diagnoses.logs.REPLAY_FROM_BEGINNING, f"{OFFSETS}/{batch_id}", detail))
        begins_at = start.predecessor
        done = [i for i in start.checkpoint.commits.ids if begins_at is not None and begins_at < i < batch_id]
        if start.progress is Progress.ASYNC and done:
            detail = f"batch {batch_id} starts at the end of batch {begins_at}, but batch {done[-1]} is committed"
            readable, commits = start.checkpoint.offsets.records, start.checkpoint.commits
            begins = any(batch in commits or batch == 0 or batch - 1 in readable for batch in readable)
            advice = None if begins else BOOK.advise("repair")  # otherwise ``repair-async`` can begin
            because.append(Finding(diagnoses.logs.FINISHED_ROWS_AGAIN, f"{OFFSETS}/{batch_id}", detail, advice))
    because += offsets.find_skipping_logs(start)
    because += offsets.find_sources_left_out(start)
    if start.committed is not None and start.latest is not None and start.committed > start.latest:
        detail = f"commits/ ends at batch {start.committed}, offsets/ at batch {start.latest}"
        because.append(Finding(diagnoses.logs.COMMITS_AHEAD, f"{COMMITS}/{start.committed}", detail))
    if start.checkpoint.metadata is None:
        because.append(Finding(diagnoses.logs.NEW_QUERY_ID, METADATA, "the file is missing"))
    return start.ends(Outcome.RESUMES, *because)
