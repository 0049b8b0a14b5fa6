"""State moved store by store and partition by partition, in processes of their own where there is enough of it.

Where rows stay in their partition, one task reads an old partition and makes the new one. Where they are spread anew,
each old partition is first divided into a file in a temporary folder, from which each new one takes its part. So no
process has more than the rows of one partition in memory.
"""

import json
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from ckpt import settings
from ckpt.export.choose import Wanted
from ckpt.export.reading import Chosen, Question, choose
from ckpt.model import Operator, Provider, Store
from ckpt.native.files import files_of
from ckpt.native.layout import delimiter_of
from ckpt.native.spread import processes_for
from ckpt.native.temporary import no_room, temporary
from ckpt.processes import in_any_order
from ckpt.rewrite.dropping import NOTHING, Dropping, Key
from ckpt.rewrite.plan import Rewrite, droppings_for, stores_of
from ckpt.rewrite.spreading import is_single, places_of
from ckpt.rewrite.stored import Stored, division, together
from ckpt.rewrite.stores import Families, Moving, Tally, families_of
from ckpt.rewrite.writing import NewState
from ckpt.state.rewritable import Form

_HEAD = struct.Struct(">BI")  # of a message: what it is, and the bytes of a path
_FILE, _SAID = range(2)
_WORTH_A_PROCESS = 2 << 20  # bytes of files: what takes twice as long to write anew as a process to start


class Task(NamedTuple):
    """One store in one partition."""

    operator: int
    store: str
    partition: int


@dataclass(slots=True)
class Move:
    """What all tasks share."""

    chosen: Chosen
    old: Form
    state: NewState
    keys: tuple[Key, ...]  # that are left out
    droppings: Mapping[int, Dropping]
    folder: Path  # for rows on their way
    tally: Tally = field(default_factory=Tally)
    _numbered: dict[tuple[int, str], Families] = field(default_factory=dict)
    _spooled: dict[Path, Any] = field(default_factory=dict)  # files there, opened

    @classmethod
    def opened(cls, place: Any) -> Self:
        """The same in another process; ``place`` is what ``place`` gives."""
        question = Question(place["uri"], Wanted(), all_units=True, batch=place["batch"])
        chosen = choose(question, place["options"])
        keys, ids = tuple(place["keys"]), {int(one): of for one, of in place["ids"].items()}
        state = NewState(Provider(place["provider"]), place["partitions"], place["batch"], ids)
        droppings = droppings_for(chosen, keys) if keys else {}
        old = Form(Provider(place["old"][0]), *place["old"][1:])
        return cls(chosen, old, state, keys, droppings, Path(place["folder"]))

    def place(self) -> dict[str, Any]:
        """What ``opened`` takes, for JSON."""
        return {
            "uri": self.chosen.question.checkpoint,
            "options": dict(self.chosen.options),
            "batch": self.state.batch,
            "old": astuple(self.old),
            "provider": self.state.provider,
            "partitions": self.state.partitions,
            "ids": self.state.ids,
            "keys": self.keys,
            "folder": str(self.folder),
        }

    def divided(self, task: Task) -> Mapping[str, bytes]:
        """Divide the rows of an old partition for the new ones; no file of these is made yet."""
        found = list(self._moved(task))
        if found:
            order, ends = division(np.concatenate([places for places, _ in found]), self.state.partitions)
            rows = together(rows for _, rows in found).take(order)
            schema = pa.schema({"keys": pa.large_binary(), "values": pa.large_binary()}, {"ends": json.dumps(ends)})
            try:
                with pa.ipc.new_file(str(self._spool(task)), schema) as file:
                    file.write_batch(pa.record_batch([rows.keys, rows.values], schema=schema))
            except OSError as error:
                raise no_room(str(error)) from None
        return {}

    def made(self, task: Task) -> Mapping[str, bytes]:
        """The files of a new partition, by path."""
        operator, store = self.store(task)
        parts = self._parts(task) if self.spreads(operator, store) else (rows for _, rows in self._moved(task))
        return self.state.files(operator, store, task.partition, together(parts), self._families(task))

    def spreads(self, operator: Operator, store: Store) -> bool:
        """Whether rows change their partition."""
        return not is_single(operator, store) and self.state.partitions != self.old.partitions

    def store(self, task: Task) -> tuple[Operator, Store]:
        """The store of a task."""
        return next(one for one in stores_of(self.chosen) if (one[0].id, one[1].name) == task[:2])

    def _families(self, task: Task) -> Families:
        """The numbers of column families: those of all old partitions together."""
        found = self._numbered.get(task[:2])
        if found is None:
            found = self._numbered[task[:2]] = families_of(self.chosen, *self.store(task))
        return found

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
            dropping=self.droppings.get(operator.id, NOTHING),
            families=self._families(task),
            tally=self.tally,
        )
        only = None if is_single(operator, store) else task.partition
        for files in files_of(self.chosen, task.operator, task.store, only):
            yield from moving.moved(files)

    def _spool(self, task: Task) -> Path:
        place = [one.name for one in self.store(task)[0].stores].index(task.store)
        return self.folder / f"{task.operator}-{place}-{task.partition}.arrow"

    def _parts(self, task: Task) -> Iterator[Stored]:
        """What the old partitions have for a new one."""
        for partition in range(self.old.partitions):
            path = self._spool(task._replace(partition=partition))
            if path not in self._spooled:
                self._spooled[path] = pa.ipc.open_file(pa.memory_map(str(path))) if path.exists() else None
            file = self._spooled[path]
            if file is not None:
                start, end = json.loads(file.schema.metadata[b"ends"])[task.partition : task.partition + 2]
                yield Stored(*file.get_batch(0).slice(start, end - start).columns)


def moved(
    chosen: Chosen, found: Rewrite, jobs: int | None, tally: Tally, state: NewState
) -> Iterator[Mapping[str, bytes]]:
    """The files of each store in each new partition; ``tally`` counts rows. Raises Undecodable, StorageError."""
    with temporary() as folder:
        move = Move(chosen, found.old, state, found.keys, found.droppings, Path(folder), tally)
        stores = list(stores_of(chosen))
        files = {(of.id, store.name): list(files_of(chosen, of.id, store.name)) for of, store in stores}
        count = processes_for(chosen, list(chain.from_iterable(files.values())), jobs, _WORTH_A_PROCESS)
        old = [
            Task(operator.id, store.name, one.place.partition)
            for operator, store in stores
            if move.spreads(operator, store)
            for one in files[operator.id, store.name]
        ]
        new = [
            Task(operator.id, store.name, partition)
            for operator, store in stores
            for partition in range(places_of(operator, store, state.partitions))
        ]
        deque(_done(move, old, count, makes=False), maxlen=0)
        yield from _done(move, new, count, makes=True)


def _done(move: Move, tasks: list[Task], count: int, *, makes: bool) -> Iterator[Mapping[str, bytes]]:
    """What comes of each task, in any order."""
    count = min(count, len(tasks))
    if count <= 1:
        yield from map(move.made if makes else move.divided, tasks)
        return
    shares = [tasks[first::count] for first in range(count)]
    waiting: dict[Task, dict[str, bytes]] = {}
    for given, message in in_any_order(doer, {**move.place(), "makes": makes}, shares):
        task = Task(*given)
        if message is None:
            yield waiting.pop(task, {})
        elif message[0] == _FILE:
            end = _HEAD.size + _HEAD.unpack_from(message)[1]
            waiting.setdefault(task, {})[message[_HEAD.size : end].decode()] = message[end:]
        else:
            _take(move, task, json.loads(message[1:]))


def _take(move: Move, task: Task, said: Any) -> None:
    """What another process has counted, and which keys it has left out."""
    rows, dropped, seen = said
    of = [Counter({(task.operator, task.store, family): count for family, count in one}) for one in (rows, dropped)]
    move.tally.add(Tally(*of))
    if seen:
        move.droppings[task.operator].seen.update(seen)


def doer(place: Any) -> Callable[[Any], Iterator[bytes]]:
    """What a process does with each of its tasks: says which files come of it, counts, and keys left out."""
    move = Move.opened(place)

    def do(given: Any) -> Iterator[bytes]:
        task, move.tally = Task(*given), Tally()
        for path, data in (move.made if place["makes"] else move.divided)(task).items():
            yield _HEAD.pack(_FILE, len(path.encode())) + path.encode() + data
        counts = ([(family[2], count) for family, count in of.items()] for of in (move.tally.rows, move.tally.dropped))
        said = [*counts, sorted(move.droppings.get(task.operator, NOTHING).seen)]
        yield bytes([_SAID]) + json.dumps(said).encode()

    return do
