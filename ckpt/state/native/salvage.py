"""The part of damaged state that can be read: its batch, and the partitions that are lost.

An operator in one partition is taken as a whole: rows of a join side without their counts are no state. Everything is
read once, as whoever takes it reads it, because a damage in the middle of a file shows in no name or size.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from ckpt.checkpoint.state.folders import find_operators
from ckpt.errors import LeftToSpark, NotFound, TooLarge, Undecodable
from ckpt.model import Operator, StateFileKind
from ckpt.state.native import rocksdb
from ckpt.state.native.entries import read_hdfs_rows
from ckpt.state.native.store_files import StoreFiles, find_files_of
from ckpt.state.reading.choose import RequestedPart, StateDamaged, check_operators
from ckpt.state.reading.reading import ChosenState, StateRequest, choose
from ckpt.texts import plural, span


@dataclass(frozen=True, slots=True)
class LostPartition:
    """An operator in one partition, whose keys are lost."""

    operator: int
    partition: int
    keys: Annotated[int | None, "in all stores of the operator there; null if no file records it"]
    why: Annotated[str, "for people; its words are not fixed"]


@dataclass(frozen=True, slots=True)
class Salvage:
    """The batch whose state is taken, and the partitions that are lost."""

    question: StateRequest
    batch: int
    lost: tuple[LostPartition, ...]
    again: tuple[int, int] | None  # the first and the last committed batch after it: they are read again

    @property
    def costs(self) -> str:
        """Say what is lost and read again; empty if nothing is."""
        lost = f"{plural(len(self.lost), 'partition')} of state {'is' if len(self.lost) == 1 else 'are'} lost"
        costs = [lost] if self.lost else []
        if self.again is not None:
            costs.append(f"{span('batch', *self.again)} {'is' if self.again[0] == self.again[1] else 'are'} read again")
        return ", and ".join(costs)


def find_salvage(checkpoint: str, options: Mapping[str, str]) -> Salvage:
    """Find what can be read of damaged state: at the newest batch at which least is lost.

    Raises StateDamaged where an operator or a state schema is lost, or no partition can be read; and what
    ``open_checkpoint`` raises.
    """
    nothing = StateRequest(checkpoint, RequestedPart(), all_units=True, lost=frozenset())
    try:
        newest = choose(nothing, options)
    except StateDamaged as error:  # in checkpoint format 1 a schema is in the folder of the first partition
        scratch = (
            "start the query once into noop with a new checkpoint, and copy state/*/0/_metadata from there to here"
        )
        raise StateDamaged(f"{error}; or {scratch}: Spark writes the same schema") from None
    check_operators(newest.checkpoint)
    offsets, commits = newest.checkpoint.offsets, newest.checkpoint.commits
    batches = [batch for batch in reversed(commits.ids) if batch in offsets and (batch == 0 or batch - 1 in offsets)]
    if not batches:
        why = "no committed batch has both its own offsets and those of the batch before it"
        raise StateDamaged(f"{newest.checkpoint.uri}: {why}")
    oldest = choose(replace(nothing, batch=batches[-1]), options)  # which reads the logs back to there
    intact = set[str]()
    best: tuple[int, dict[tuple[int, int], str]] | None = None
    for batch in batches:
        if oldest.checkpoint.offsets.readable(batch) is None or oldest.checkpoint.commits.readable(batch) is None:
            continue
        chosen = oldest.as_of(batch)
        if best is not None:  # first what was lost at a newer batch
            again = find_lost(chosen, intact, only=best[1])
            if len(again) >= len(best[1]):
                continue
        lost = find_lost(chosen, intact)
        if best is None or len(lost) < len(best[1]):
            best = batch, lost
        if not lost:
            break
    if best is None or len(best[1]) == sum(1 for _ in _list_partitions(newest)):
        raise StateDamaged(f"{newest.checkpoint.uri}: no partition of the state can be read as of any batch")
    batch, lost = best
    return Salvage(
        question=replace(nothing, batch=batch, lost=frozenset(lost)),
        batch=batch,
        lost=tuple(
            LostPartition(operator.id, partition, _count_keys(operator, partition), lost[operator.id, partition])
            for operator, partition in _list_partitions(newest)
            if (operator.id, partition) in lost
        ),
        again=None if batch == batches[0] else (batch + 1, batches[0]),
    )


def find_lost(
    chosen: ChosenState, intact: set[str], only: Mapping[tuple[int, int], str] | None = None
) -> dict[tuple[int, int], str]:
    """Find the partitions of operators that cannot be read as of a batch, and why; of some, or of all.

    ``intact`` are the files that were read already, and is added to. Raises StorageError where storage does not answer.
    """
    folders = {folder.id: folder for folder in find_operators(chosen.checkpoint.listing, chosen.units[0].provider)}
    lost: dict[tuple[int, int], str] = {}
    for operator, partition in _list_partitions(chosen):
        at = operator.id, partition
        if only is not None and at not in only:
            continue
        try:
            for store in operator.stores:
                if partition >= (store.expected_partitions or 0):
                    continue
                there = folders[operator.id].stores.get(store.name, {}).get(partition)
                if there is None:
                    raise StateDamaged(f"there are no files of {store.name} in it")
                files = find_files_of(chosen, there)
                if not intact.issuperset(files.paths):
                    _read(files)
                    intact.update(files.paths)
        except (LeftToSpark, TooLarge):
            raise
        except (StateDamaged, Undecodable, NotFound) as error:
            lost[at] = str(error).removeprefix(f"{chosen.checkpoint.uri}: ")
    return lost


def _list_partitions(chosen: ChosenState) -> Iterator[tuple[Operator, int]]:
    """Every operator in every partition that it should have."""
    for operator in chosen.checkpoint.operators:
        for partition in range(max(store.expected_partitions or 0 for store in operator.stores)):
            yield operator, partition


def _count_keys(operator: Operator, partition: int) -> int | None:
    """How many keys the stores of a partition record, where all do."""
    counts = [own.num_keys for store in operator.stores for own in store.partitions if own.partition == partition]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(operator.stores) else None


def _read(files: StoreFiles) -> None:
    """Read all rows of a store in one partition. Raises Undecodable, NotFound, StorageError."""
    if files.place.names.log_kind is StateFileKind.DELTA:
        deque(read_hdfs_rows(files), maxlen=0)
        return
    with rocksdb.store(files) as store:
        deque(store.batches(b""), maxlen=0)
