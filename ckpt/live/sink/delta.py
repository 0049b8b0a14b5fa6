"""Rules for the transactions in the log of a Delta table; pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from ckpt.formats.deltalog import Action, Restore, TableSettings, Transaction, parse_retention_ms
from ckpt.formats.text import Damaged
from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
from ckpt.model import Fault

VersionedAction = tuple[int, Action]
"""An action, and the version of the table that has it; -1 where a checkpoint of the log has it."""


def replay_delta_log(
    uri: str,
    earlier: Iterable[VersionedAction],
    counting: Sequence[VersionedAction],
    now_ms: float,
    first_version: int = 0,
) -> SinkLog:
    """Find the last transaction of each writer, and tell whether it still counts (Delta's ``InMemoryLogReplay``).

    Of ``earlier`` versions, which a checkpoint of the log has too, only a RESTORE matters; ``first_version`` is the
    first that was read. ``now_ms`` is in ms since 1970 UTC. Raises Damaged where the time for which transactions count
    is not understood.
    """
    history = [*earlier, *counting]
    last = {action.app_id: action for _, action in counting if isinstance(action, Transaction)}
    settings = [action for _, action in counting if isinstance(action, TableSettings)]
    retention, created_ms = (settings[-1].retention, settings[-1].created_ms) if settings else (None, None)
    rows, times = _Rows(first_version), dict[str, dict[int, int]]()
    for version, action in history:
        rows.add(version, action)
        if isinstance(action, Transaction) and action.updated_ms is not None:
            times.setdefault(action.app_id, {})[action.version] = action.updated_ms
    lost = {app_id: rows.list_lost(app_id) for app_id in last}
    limit_ms = None if retention is None else parse_retention_ms(retention)
    if retention is not None and limit_ms is None:
        raise Damaged(Fault.BAD_JSON, f"ckpt does not understand its retention of transactions ({retention})")
    oldest_ms = None if limit_ms is None else now_ms - limit_ms
    writers = [
        SinkWriter(
            transaction.app_id,
            transaction.version,
            transaction.updated_ms,
            expired=oldest_ms is not None and (transaction.updated_ms is None or transaction.updated_ms <= oldest_ms),
            taken_back=(min(batches), max(batches)) if (batches := lost[transaction.app_id]) else None,
            restored_to=batches[min(batches)] if batches else None,
            kept=rows.find_kept(transaction.app_id, min(batches)) if batches else None,
            gaps=_find_gaps(history, transaction.app_id),
            written_ms={  # of later batches, which it had forgotten, it accepts the ids again
                batch: ms for batch, ms in times.get(transaction.app_id, {}).items() if batch <= transaction.version
            },
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


class _Rows:
    """The transactions whose rows a table has, followed version by version; a RESTORE removes some, or adds them."""

    def __init__(self, first_version: int) -> None:
        self._first = first_version  # nothing is known of versions before, but for transactions of a checkpoint
        self._complete = True  # no RESTORE went further back than that
        self._all: list[tuple[int, Transaction]] = []  # with the version that has it; -1: a checkpoint
        self._named: set[tuple[str, int]] = set()
        self._there: list[int] = []  # which of them the table has the rows of, in order
        self._after: list[tuple[int, tuple[int, ...]]] = []  # the same after each RESTORE, which is rare
        self._by: dict[int, int] = {}  # the version to which the RESTORE went that took one back

    def add(self, version: int, action: Action) -> None:
        """Follow the next action; those of a checkpoint have version -1."""
        match action:
            case Transaction():
                named = (action.app_id, action.version)
                if version >= 0 or named not in self._named:  # a checkpoint repeats those of earlier versions
                    self._named.add(named)
                    self._there.append(len(self._all))
                    self._all.append((version, action))
            case Restore(to_version=int(to_version)):
                before, self._there = self._there, self._go_back(to_version)
                self._by |= dict.fromkeys({*before} - {*self._there}, to_version)
                self._after.append((version, tuple(self._there)))

    def _go_back(self, to_version: int) -> list[int]:
        self._complete = self._complete and to_version >= self._first - 1
        restored, base = next(((v, base) for v, base in reversed(self._after) if v <= to_version), (-2, ()))
        later = (i for i, (version, _) in enumerate(self._all) if restored < version <= to_version)
        return [*base, *later]

    def list_lost(self, app_id: str) -> dict[int, int]:
        """Batches of a writer whose rows are gone, each with the version to which the RESTORE took the table."""
        there = {self._all[i][1].version for i in self._there if self._all[i][1].app_id == app_id}
        own = ((i, txn) for i, (version, txn) in enumerate(self._all) if txn.app_id == app_id and version >= 0)
        return {txn.version: self._by[i] for i, txn in own if i in self._by and txn.version not in there}

    def find_kept(self, app_id: str, before: int) -> int | None:
        """Return the newest batch of a writer below ``before`` whose rows the table has; None: not known, or none."""
        own = (self._all[i][1] for i in self._there)
        kept = [txn.version for txn in own if txn.app_id == app_id and txn.version < before]
        return max(kept) if kept and self._complete else None
