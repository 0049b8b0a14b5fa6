"""State moved store by store and partition by partition, in processes of their own where there is enough of it.

Where rows stay in their partition, one task reads an old partition and makes the new one. Where they are spread anew,
each old partition is first divided into a file in a temporary folder, from which each new one takes its part. So no
process has more than the rows of one partition in memory.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa

from ckpt import settings
from ckpt.checkpoint.state.rewritable import Form
from ckpt.copies.rewrite.dropping import NOTHING, Dropping, Key
from ckpt.copies.rewrite.filtering import Leaving
from ckpt.copies.rewrite.plan import Rewrite, leaving_for, stores_of
from ckpt.copies.rewrite.spreading import is_single, places_of
from ckpt.copies.rewrite.stored_rows import Stored, division, together
from ckpt.copies.rewrite.stores import Families, Moving, Tally, families_of
from ckpt.copies.rewrite.writing import NewState
from ckpt.model import Operator, Provider, Store
from ckpt.processes import Processes
from ckpt.state.native.layout import delimiter_of
from ckpt.state.native.partitions import processes_for
from ckpt.state.native.store_files import StoreFiles, files_of
from ckpt.state.native.temporary import no_room, temporary
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.reading import Chosen, Question, choose

_OPEN = 256  # files for rows on their way that are open at a time
_WORTH_A_PROCESS = 2 << 20  # bytes of files: what takes twice as long to write anew as a process to start


class Task(NamedTuple):
    """One store in one partition."""

    operator: int
    store: str
    partition: int


@dataclass(slots=True)
class Move:
    """Everything that all tasks share."""

    chosen: Chosen
    old: Form
    state: NewState
    keys: tuple[Key, ...]  # that are left out
    where: str | None  # which are kept
    leaving: Mapping[int, Leaving]  # by operator
    folder: Path  # for rows on their way
    into: str  # the new checkpoint
    given: Mapping[str, str]  # options for its file system
    tally: Tally = field(default_factory=Tally)
    _numbered: dict[tuple[int, str], Families] = field(default_factory=dict)
    _spools: dict[tuple[int, str], list[Path]] = field(default_factory=dict)
    _files: dict[tuple[int, str], dict[int, StoreFiles]] = field(default_factory=dict)

    @classmethod
    def opened(cls, place: Any) -> Self:
        """Open the workplace in another process; ``place`` is what ``place`` gives."""
        question = Question(place["uri"], RequestedPart(), all_units=True, batch=place["batch"])
        chosen = choose(question, place["options"])
        keys, ids = tuple(place["keys"]), {int(one): of for one, of in place["ids"].items()}
        state = NewState(Provider(place["provider"]), place["partitions"], place["batch"], ids)
        old = Form(Provider(place["old"][0]), *place["old"][1:])
        leaving = leaving_for(chosen, keys, place["where"])
        kept = (chosen, old, state, keys, place["where"], leaving)
        move = cls(*kept, Path(place["folder"]), place["into"], place["given"])
        for operator, store, numbers, internal in place["families"]:
            move._numbered[operator, store] = Families(numbers, set(internal))
        return move

    def place(self) -> dict[str, Any]:
        """Return the argument of ``opened``, for JSON."""
        return {
            "uri": self.chosen.question.checkpoint,
            "options": dict(self.chosen.options),
            "batch": self.state.batch,
            "old": astuple(self.old),
            "provider": self.state.provider,
            "partitions": self.state.partitions,
            "ids": self.state.ids,
            "keys": self.keys,
            "where": self.where,
            "folder": str(self.folder),
            "into": self.into,
            "given": dict(self.given),
            "families": [
                (*store, families.numbers, sorted(families.internal)) for store, families in self._all_families()
            ],
        }

    def files(self, operator: int, store: str) -> Mapping[int, StoreFiles]:
        """The files of a store by old partition. Raises StateDamaged, StorageError."""
        found = self._files.get((operator, store))
        if found is None:
            of = {files.place.partition: files for files in files_of(self.chosen, operator, store)}
            found = self._files[operator, store] = of
        return found

    def forget(self) -> None:
        """Count anew."""
        self.tally = Tally()

    def said(self, task: Task) -> list[Any]:
        """Return the counts of a store, and the keys that were left out: the argument of ``take``."""
        counts = ([(family[2], count) for family, count in of.items()] for of in (self.tally.rows, self.tally.dropped))
        dropping = self.leaving.get(task.operator)
        return [*counts, sorted(dropping.seen) if isinstance(dropping, Dropping) else []]

    def take(self, task: Task, said: list[Any]) -> None:
        """Take over what was said of a task elsewhere."""
        rows, dropped, seen = said
        of = [Counter({(task.operator, task.store, family): count for family, count in one}) for one in (rows, dropped)]
        self.tally.add(Tally(*of))
        dropping = self.leaving.get(task.operator)
        if isinstance(dropping, Dropping):
            dropping.seen.update(seen)

    def parts(self, task: Task) -> tuple[Stored, list[int]]:
        """The rows of an old partition in the order of the new ones, and where each of these begins."""
        found = list(self._moved(task))
        places = [np.zeros(0, np.int64), *(places for places, _ in found)]
        order, ends = division(np.concatenate(places), self.state.partitions)
        return together(rows for _, rows in found).take(order), ends

    def divided(self, task: Task) -> Mapping[str, bytes]:
        """Divide the rows of an old partition for the new ones; no file of these is made yet."""
        rows, ends = self.parts(task)
        if len(rows):
            schema = pa.schema({"keys": pa.large_binary(), "values": pa.large_binary()}, {"ends": json.dumps(ends)})
            try:
                with pa.ipc.new_file(str(self._spool(task)), schema) as file:
                    file.write_batch(pa.record_batch([rows.keys, rows.values], schema=schema))
            except OSError as error:
                raise no_room(str(error), str(self.folder.parent)) from None
        return {}

    def made(self, task: Task) -> Mapping[str, bytes]:
        """The files of a new partition, by path."""
        spreads = self.spreads(*self.store(task))
        return self.filled(task, self._spooled_for(task) if spreads else (rows for _, rows in self._moved(task)))

    def filled(self, task: Task, parts: Iterable[Stored]) -> dict[str, bytes]:
        """The files of a new partition that has these rows, by path."""
        operator, store = self.store(task)
        return self.state.files(operator, store, task.partition, together(parts), self._families(task))

    def spreads(self, operator: Operator, store: Store) -> bool:
        """Tell whether rows change their partition."""
        return not is_single(operator, store) and self.state.partitions != self.old.partitions

    def store(self, task: Task) -> tuple[Operator, Store]:
        """The store of a task."""
        return next(one for one in stores_of(self.chosen) if (one[0].id, one[1].name) == task[:2])

    def _families(self, task: Task) -> Families:
        """The numbers of column families: those of all old partitions together."""
        found = self._numbered.get(task[:2])
        if found is None:
            has_any = bool(self.store(task)[1].column_families)
            found = families_of(self.files(*task[:2]).values()) if has_any else Families()
            self._numbered[task[:2]] = found
        return found

    def _all_families(self) -> Iterator[tuple[tuple[int, str], Families]]:
        for operator, store in stores_of(self.chosen):
            yield (operator.id, store.name), self._families(Task(operator.id, store.name, 0))

    def _moved(self, task: Task) -> Iterator[tuple[Any, Stored]]:
        """The rows of an old partition, if it has any; of a store with rows in one only, of all."""
        operator, store = self.store(task)
        recorded = self.chosen.recorded
        moving = Moving(
            operator=operator,
            store=store,
            old=self.old.provider,
            new=self.state.provider,
            before=self.old.partitions,
            partitions=self.state.partitions if self.spreads(operator, store) else None,
            avro=recorded.get(settings.ENCODING_FORMAT) == "avro" and bool(operator.variables),
            delimiter=delimiter_of(recorded),
            leaving=self.leaving.get(operator.id, NOTHING),
            families=self._families(task),
            tally=self.tally,
        )
        every = self.files(task.operator, task.store)
        for partition in every if is_single(operator, store) else every.keys() & {task.partition}:
            yield from moving.moved(every[partition])

    def _spool(self, task: Task) -> Path:
        return self.folder / f"{self._stem(task)}{task.partition}.arrow"

    def _stem(self, task: Task) -> str:
        place = [one.name for one in self.store(task)[0].stores].index(task.store)
        return f"{task.operator}-{place}-"

    def _spooled_for(self, task: Task) -> Iterator[Stored]:
        """Return the rows of the old partitions for a new one, once all of them are divided."""
        if task[:2] not in self._spools:
            self._spools[task[:2]] = sorted(self.folder.glob(f"{self._stem(task)}*.arrow"))
        for path in self._spools[task[:2]]:
            batch, ends = _spooled(path)
            start, end = ends[task.partition : task.partition + 2]
            if end > start:
                yield Stored(*batch.slice(start, end - start).columns)


@lru_cache(maxsize=_OPEN)
def _spooled(path: Path) -> tuple[Any, list[int]]:
    """The rows of an old partition in the order of new ones, and where each of these begins."""
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    return file.get_batch(0), json.loads(file.schema.metadata[b"ends"])


class Moves(Protocol):
    """Who moves rows."""

    def moved(self, move: Move, old: list[Task], new: list[Task], /) -> Iterator[Mapping[str, bytes | int]]:
        """Divide old partitions, and then make new ones: the files of each, or the bytes of those it has written."""
        ...


@dataclass(frozen=True, slots=True)
class MovesHere:
    """Moves rows in so many processes of this machine; None is as many as are worth it."""

    jobs: int | None

    def moved(self, move: Move, old: list[Task], new: list[Task]) -> Iterator[Mapping[str, bytes]]:
        """As of ``Moves``. Raises UsageError for an impossible number."""
        stores = [(operator.id, store.name) for operator, store in stores_of(move.chosen)]
        files = list(chain.from_iterable(move.files(*store).values() for store in stores))
        count = processes_for(move.chosen, files, self.jobs, _WORTH_A_PROCESS)
        deque(_done(move, old, count, makes=False), maxlen=0)
        yield from _done(move, new, count, makes=True)


def moved(
    chosen: Chosen, found: Rewrite, given: Mapping[str, str], tally: Tally, by: Moves, state: NewState
) -> Iterator[Mapping[str, bytes | int]]:
    """The files of each store in each new partition; ``tally`` counts rows. Raises Undecodable, StorageError."""
    with temporary() as folder:
        kept = (chosen, found.old, state, found.keys, found.where, found.leaving)
        move = Move(*kept, Path(folder), found.into, given, tally)
        old = [
            Task(operator.id, store.name, partition)
            for operator, store in stores_of(chosen)
            if move.spreads(operator, store)
            for partition in move.files(operator.id, store.name)
        ]
        new = [
            Task(operator.id, store.name, partition)
            for operator, store in stores_of(chosen)
            for partition in range(places_of(operator, store, state.partitions))
        ]
        yield from by.moved(move, old, new)


def _done(move: Move, tasks: list[Task], count: int, *, makes: bool) -> Iterator[Mapping[str, bytes]]:
    """The files that come of each task, in any order."""
    if min(count, len(tasks)) <= 1:
        yield from map(move.made if makes else move.divided, tasks)
        return
    for task, (files, said) in Processes(count).run(do_moves, (move.place(), makes), tasks):
        move.take(task, said)
        yield files


def do_moves(shared: tuple[Any, bool]) -> Callable[[Task], Iterator[tuple[Mapping[str, bytes], list[Any]]]]:
    """Divide or make partitions in another process: the files of each, what was counted, and keys left out."""
    place, makes = shared
    move = Move.opened(place)

    def do(task: Task) -> Iterator[tuple[Mapping[str, bytes], list[Any]]]:
        move.forget()
        files = (move.made if makes else move.divided)(task)
        yield files, move.said(task)

    return do
