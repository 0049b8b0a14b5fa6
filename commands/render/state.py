"""The state on a page: what each operator keeps, and which settings the checkpoint overrides."""

from collections.abc import Iterator, Sequence

from ckpt import settings
from ckpt.advice import Words, words
from ckpt.checkpoint.checkpoint import STATE
from ckpt.checkpoint.state.ranges import Ranges, intersect
from ckpt.formats.operators import OperatorName
from ckpt.formats.types import type_name
from ckpt.inspection.inspection import Inspection
from ckpt.model import OF_FOLDERS, EveryByte, FileDamage, Operator, StateInventory, Store
from ckpt.texts import batch_ranges, plural, size

from .blocks import Block, Heading, Item, Line, more

_RECORDED = {
    settings.SHUFFLE_PARTITIONS: "shuffle partitions",
    settings.PROVIDER_CLASS: "provider",
    settings.WATERMARK_POLICY: "watermark policy",
}
_OPERATORS: dict[str, str] = {
    OperatorName.AGGREGATION: "aggregation",
    OperatorName.REAL_TIME_AGGREGATION: "aggregation begun in real-time mode",
    OperatorName.SESSIONS: "session window aggregation",
    OperatorName.DEDUPLICATION: "deduplication",
    OperatorName.DEDUPLICATION_WITHIN_WATERMARK: "deduplication within the watermark",
    OperatorName.JOIN: "stream-stream join",
    OperatorName.LIMIT: "limit",
    OperatorName.GROUPS: "mapGroupsWithState",
    OperatorName.TRANSFORM: "transformWithState",
    OperatorName.TRANSFORM_IN_PANDAS: "transformWithState",
    OperatorName.TRANSFORM_IN_PYTHON: "transformWithState",
}
_IN_FULL = 3  # operators up to which all their stores are shown
_SKEW = 2.0  # times the median from which the largest partition is worth a word


def show_state_briefly(inspection: Inspection) -> Iterator[Block]:
    """State in a few lines, no healthy parts of it where something is wrong; nothing for a stateless query."""
    state = inspection.checkpoint.state
    if state is None:
        return
    yield from _show_all(inspection, state, unread_too=any(f.outcome.runs for f in inspection.counted))
    if inspection.sound:
        for operator in state.operators[:_IN_FULL]:
            yield Item(_describe_briefly(operator, _list_unread(inspection)), 6, f"  operator {operator.id}   ")
        yield from more(len(state.operators) - _IN_FULL)


def show_state(inspection: Inspection) -> Iterator[Block]:
    """State of each operator; nothing for a stateless query."""
    state = inspection.checkpoint.state
    if state is None:
        return
    yield from _show_all(inspection, state)
    recorded = _list_recorded(inspection)
    if recorded:
        yield Item(f"recorded here, overrides the session: {recorded}")
    if inspection.space.known:
        freed = size(inspection.space.known)
        yield Item(words("{freed} could be deleted: {call:prune} plans the deletion after a closer look", freed=freed))
    unread = _list_unread(inspection)
    if len(state.operators) <= _IN_FULL:
        for operator in state.operators:
            yield from _show_operator(operator, inspection)
        return
    for operator in state.operators:
        yield Item(_describe_briefly(operator, unread), 6, f"  operator {operator.id}   ")
    yield Item(words("stores, columns and snapshots: see {fields}"))


def _show_all(inspection: Inspection, state: StateInventory, *, unread_too: bool = True) -> Iterator[Block]:
    """Facts about all state: its provider, and how far it was read."""
    loads = "" if state.needed_version is None else f"   the next start loads version {state.needed_version}"
    yield Heading("State", f"{state.provider}, checkpoint format {state.format_version}{loads}")
    if state.every_byte is not None:
        yield Item(_describe_every_byte(state.every_byte))
    elif state.not_read and unread_too:
        files, bytes_ = plural(state.not_read.files, "file"), size(state.not_read.bytes)
        yield Item(
            words("{files} ({bytes}) known by name and size only: {--deep} reads every byte", files=files, bytes=bytes_)
        )
    elif state.operators and inspection.sound:
        yield Item(words("rows not decoded: {--deep} compares rows with their schemas and with one another"))
    if unread := _list_unread(inspection):
        more = f" and {len(unread) - 1} more" if unread[1:] else ""
        yield Item(f"the storage did not allow ckpt to read {unread[0]}{more}: the following describes the rest")


def _list_unread(inspection: Inspection) -> list[str]:
    """List state that the storage did not allow ckpt to read."""
    return [path for path in sorted(inspection.checkpoint.refused) if path.partition("/")[0] == STATE]


def _describe_every_byte(every_byte: EveryByte) -> str:
    """Result of ``--deep``."""
    text = f"every byte of {plural(every_byte.files, 'file')} was read, {size(every_byte.bytes)}"
    if every_byte.unknown:
        text += f"; {plural(len(every_byte.unknown), 'file')} could not be checked against anything"
    text += f"; {count_damaged(every_byte.damages) if every_byte.damages else 'none'} damaged"
    left = not_decoded(every_byte)
    return f"{text}; rows were {left}" if left else text


def _list_recorded(inspection: Inspection) -> str:
    """The settings that a restart takes from the checkpoint, whatever the session says."""
    checkpoint = inspection.checkpoint
    offsets = checkpoint.offsets.readable(checkpoint.offsets.latest)
    conf = offsets.metadata.conf if offsets and offsets.metadata else {}
    return ", ".join(f"{name} {conf[key].rpartition('.')[2]}" for key, name in _RECORDED.items() if key in conf)


def _show_operator(operator: Operator, inspection: Inspection) -> Iterator[Block]:
    yield Line(f"  operator {operator.id}   {_name_operator(operator)}")
    for variable in operator.variables:
        yield Line(f"    {variable.kind} {variable.name}{' with TTL' if variable.ttl else ''}")
    for store in operator.stores:
        yield Item(_describe_store(store, inspection), 6, f"    {store.name}: ")
        for side, schema in (("key", store.key_schema), ("value", store.value_schema)):
            if schema is not None:
                yield Item(type_name(schema), 14, f"      {side:7} ")


def _describe_briefly(operator: Operator, unread: Sequence[str]) -> str:
    """An operator among many: how much there is of it, and of which batches."""
    stores = operator.stores
    counts = [store.num_keys for store in stores]
    keys = [plural(sum(count or 0 for count in counts), "key")] if stores and None not in counts else []
    complete: Ranges | None = None
    for store in stores:
        complete = store.readable_batches if complete is None else intersect(complete, store.readable_batches)
    facts = [
        plural(len(stores), "store"),
        plural(max((len(store.partitions) for store in stores), default=0), "partition"),
        *keys,
        size(sum(store.bytes for store in stores)),
        _describe_readable(tuple(complete or ()), unread),
    ]
    return f"{_name_operator(operator)}: {', '.join(facts)}"


def _name_operator(operator: Operator) -> str:
    """An operator in plain words, with the name that Spark gives it."""
    if operator.name is None:
        return "name not recorded"
    word = _OPERATORS.get(operator.name)
    return operator.name if word is None else f"{word} ({operator.name})"


def _describe_store(store: Store, inspection: Inspection) -> Words:
    unknown, unread = words("number of keys not recorded"), _list_unread(inspection)
    if inspection.checkpoint.commits.ids:  # what is counted is the state of a committed batch
        unknown += words(" ({call:state_count})")
    keys = unknown if store.num_keys is None else plural(store.num_keys, "key")
    facts = [size(store.bytes) + _describe_skew(store), *(["changelog"] if store.changelog else [])]
    facts += [_describe_loading(store), _describe_readable(store.readable_batches, unread)]
    partitions = plural(len(store.partitions), "partition")
    return words("{partitions}, {keys}, {facts}", partitions=partitions, keys=keys, facts=", ".join(facts))


def _describe_readable(batches: Ranges, unread: Sequence[str]) -> str:
    """For which batches a store can be loaded."""
    if unread:
        return "batches with complete state unknown"
    if not batches:
        return "no batch has complete state"
    return f"state of {batch_ranges(batches)} is complete"


def _describe_loading(store: Store) -> str:
    """Files of a load: the newest snapshot that all partitions have, and the versions of changes on top."""
    snapshot = newest_snapshot(store)
    replay = [p.replay_versions for p in store.partitions if p.replay_versions is not None]
    if not replay:
        return snapshot
    changes = f"up to {plural(max(replay), 'version')} of changes" if max(replay) else "no changes"
    return f"{snapshot}, a load replays {changes}"


def newest_snapshot(store: Store) -> str:
    """Of which version the newest snapshot is, or of which ones where partitions differ."""
    match store.newest_snapshots:
        case None:
            return "no snapshot yet"
        case None, highest:
            return f"newest snapshots up to version {highest}, none yet in some partitions"
        case lowest, highest if lowest == highest:
            return f"newest snapshot version {highest}"
        case lowest, highest:
            return f"newest snapshots version {lowest} to {highest}, by partition"


def _describe_skew(store: Store) -> str:
    """How much larger the largest partition is than the median one, where that is much."""
    from statistics import median  # not at the top: it takes longer than a look at a small checkpoint

    sizes = [partition.bytes for partition in store.partitions]
    middle = median(sizes) if sizes else 0
    if not middle or max(sizes) < _SKEW * middle:
        return ""
    return f" (the largest partition is {max(sizes) / middle:.1f} times the median)"


def count_damaged(damages: Sequence[FileDamage]) -> str:
    """``2 files``, ``1 file and 2 folders of state``: what is damaged."""
    folders = sum(damage.kind in OF_FOLDERS for damage in damages)
    files = [plural(len(damages) - folders, "file")] if len(damages) > folders else []
    return " and ".join([*files, *([f"{plural(folders, 'folder')} of state"] if folders else [])])


def not_decoded(every_byte: EveryByte) -> str:
    """In how many partitions rows were looked at, where every byte was; empty where they all were."""
    if every_byte.rows_unread:
        return "not compared with their schema: ckpt cannot read the state as of the newest committed batch"
    if every_byte.compared == every_byte.partitions:
        return ""
    of_all = f"{every_byte.compared:,} of {plural(every_byte.partitions, 'partition')}"
    return f"compared with their schema in {of_all}; the others are too large"
