"""Rules for the transactions in the log of a Delta table; pure."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from ckpt.formats.deltalog import Action, Restore, TableSettings, Transaction, parse_retention_ms
from ckpt.formats.text import Damaged
from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
from ckpt.model import Fault

VersionedAction = tuple[int, Action]
"""An action, and the version of the table that has it; -1 where a checkpoint of the log has it."""


def replay_delta_log(
    uri: str, earlier: Iterable[VersionedAction], counting: Iterable[VersionedAction], now_ms: float
) -> SinkLog:
    """Find the last transaction of each writer, and tell whether it still counts (Delta's ``InMemoryLogReplay``).

    Of ``earlier`` versions, which a checkpoint of the log has too, only a RESTORE matters. ``now_ms`` is in ms since
    1970 UTC. Raises Damaged where the time for which transactions count is not understood.
    """
    last: dict[str, Transaction] = {}
    history = list(earlier)
    times: dict[str, dict[int, int]] = {}
    retention: str | None = None
    created_ms: int | None = None
    for version, action in counting:
        match action:
            case TableSettings():
                retention, created_ms = action.retention, action.created_ms
            case Transaction():
                last[action.app_id] = action
        history.append((version, action))
    for _, action in history:
        if isinstance(action, Transaction) and action.updated_ms is not None:
            times.setdefault(action.app_id, {})[action.version] = action.updated_ms
    lost = _find_lost_batches(history)
    limit_ms = None if retention is None else parse_retention_ms(retention)
    if retention is not None and limit_ms is None:
        raise Damaged(Fault.BAD_JSON, f"ckpt does not understand how long it keeps transactions ({retention})")
    oldest_ms = None if limit_ms is None else now_ms - limit_ms
    writers = [
        SinkWriter(
            transaction.app_id,
            transaction.version,
            transaction.updated_ms,
            expired=oldest_ms is not None and (transaction.updated_ms is None or transaction.updated_ms <= oldest_ms),
            taken_back=(min(batches), max(batches)) if (batches := lost.get(transaction.app_id)) else None,
            restored_to=batches[min(batches)] if batches else None,
            gaps=_find_gaps(history, transaction.app_id),
            written_ms=_keep_written(times.get(transaction.app_id, {}), transaction.version),
        )
        for transaction in last.values()
    ]
    writers.sort(key=lambda writer: writer.updated_ms or 0, reverse=True)
    return SinkLog(uri, SinkKind.DELTA, writers=tuple(writers), retention=retention, created_ms=created_ms)


def _find_gaps(history: Iterable[VersionedAction], app_id: str) -> tuple[tuple[int, int], ...]:
    """Find the batches of a writer that the table passed over, as far as its versions are there one after another."""
    batches = [
        action.version
        for version, action in history
        if version >= 0 and isinstance(action, Transaction) and action.app_id == app_id
    ]
    gaps = ((before + 1, after - 1) for before, after in pairwise(batches))
    return tuple((low, high) for low, high in gaps if low <= high and not any(low <= b <= high for b in batches))


def _keep_written(times: Mapping[int, int], last: int) -> dict[int, int]:
    """Keep the times of batches up to the last one: a table that had forgotten later ones accepts ids again."""
    return {batch: time_ms for batch, time_ms in times.items() if batch <= last}


def _find_lost_batches(history: Iterable[VersionedAction]) -> dict[str, dict[int, int]]:
    """Find the batches of each writer whose rows a RESTORE took back, by actions in the order of their versions.

    Each with the version to which that took the table.
    """
    lost: dict[str, dict[int, int]] = {}
    written: list[tuple[int, Transaction]] = []
    for version, action in history:
        if isinstance(action, Transaction):
            written.append((version, action))
        elif isinstance(action, Restore):
            for then, transaction in written:
                if action.to_version < then < version:
                    lost.setdefault(transaction.app_id, {})[transaction.version] = action.to_version
    return lost
