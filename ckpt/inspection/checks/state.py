"""Findings about state that no start trips over at once; what stops a start, the forecast finds."""

from collections.abc import Iterator

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import Pattern, pattern
from ckpt.model import DamageKind, Kind
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.restart.state_errors import load_failure
from ckpt.texts import span
from ckpt.versions import Spark

_LAG = 50  # versions that a load replays before it is worth a word: half of Spark's minBatchesToRetain


_OUTLIVES_A_LOAD = {
    DamageKind.CHECKSUM_DIFFERS: diagnoses.others.STALE_SIDECAR,
    DamageKind.WRONG_PARTITION: diagnoses.state.KEYS_ELSEWHERE,
    DamageKind.CONTRADICTION: diagnoses.state.STATE_CONTRADICTS,
    DamageKind.CHANGED: diagnoses.state.STATE_REDESCRIBED,
}


def find_format_two(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find state store checkpoint format 2, which the session has to name: the checkpoint does not record it."""
    if checkpoint.state is not None and checkpoint.state.format_version == 2:
        yield Finding(diagnoses.state.FORMAT_TWO, "state", "state files carry unique ids")


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
        detail = f"{newer.files} files of {which}, and the offset log ends at batch {checkpoint.offsets.latest}"
        yield Finding(diagnoses.state.STATE_ABOVE, newer.example, detail)


def measure_snapshot_lag(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find stores of which a load replays many versions."""
    for operator, store in checkpoint.stores():
        replayed = max((p.replay_versions or 0 for p in store.partitions), default=0)
        if replayed > _LAG:
            detail = f"loading operator {operator.id}, store {store.name}, replays up to {replayed} versions"
            yield Finding(diagnoses.state.SNAPSHOT_LAG, f"state/{operator.id}", detail)


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
        remedy = diagnoses.common.REPAIR if file.path in failing else None
        yield Finding(diagnoses.state.UNREADABLE_STATE_METADATA, file.path, file.reason, remedy)


def find_missing_state(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find that ``state/`` is missing, if the logs show neither that there never was one nor that it is lost.

    The gaps of asynchronous tracking show that there was none: Spark refuses it for stateful queries.
    """
    ran = checkpoint.kind is Kind.MICRO_BATCH and checkpoint.commits.latest is not None
    if not ran or checkpoint.state is not None or pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        return
    if checkpoint.stateful is None:
        yield Finding(diagnoses.state.STATE_SEEMS_LOST, "state", "missing, and the logs have a watermark")
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
        yield Finding(diagnoses.state.STATE_NAME_IGNORED, strays[0], f"its name is no version of the store{more}")


def find_missing_schemas(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find stores whose schema file is missing, of operators that have metadata."""
    for operator, store in checkpoint.stores():
        known = store.key_schema is not None or store.column_families
        if operator.has_metadata and not operator.schema_paths and not known:
            detail = f"store {store.name} of operator {operator.id} has none"
            yield Finding(diagnoses.state.STATE_SCHEMA_MISSING, f"state/{operator.id}/0/_metadata/schema", detail)


def find_other_damage(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find damage in files over which no start fails now, where every byte was read."""
    state = checkpoint.state
    if state is None or state.every_byte is None:
        return
    known = {damage.path for damage in state.damages if damage.kind is not DamageKind.CHECKSUM_DIFFERS}
    known |= {file.path for file in state.unreadable}
    for damage in state.every_byte.damages:
        if damage.kind in _OUTLIVES_A_LOAD or damage.path not in known:
            diagnosis = _OUTLIVES_A_LOAD.get(damage.kind, diagnoses.state.OTHER_STATE_DAMAGED)
            yield Finding(diagnosis, damage.path, damage.detail)


CHECKS = (
    find_format_two,
    find_moved_joins,
    find_abandoned_timeline,
    measure_snapshot_lag,
    find_missing_metadata,
    find_unreadable,
    find_missing_state,
    find_odd_ends,
    find_strays,
    find_missing_schemas,
    find_other_damage,
)
