"""State made of rows that were given, by the executors of Spark: for more than one machine takes.

Each task of a first step reads a file of the export, or a part of a DataFrame, and says which rows belong to which
partition; each of a second one checks all rows of its partition and writes their state. What is in memory of the driver
stays there until it is divided. Importing this imports nothing of Spark.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import lru_cache, partial
from itertools import groupby
from typing import Any, NamedTuple, Self

import pyarrow as pa

from ckpt.copies.copy.selection import select
from ckpt.copies.fill.export_folder import Export, open_export
from ckpt.copies.fill.filling import Filling
from ckpt.copies.fill.rows import Given, Piece, Taken, table_of, taken_from
from ckpt.copies.fill.scatter import parcels, unpacked
from ckpt.copies.rewrite.moving import Task
from ckpt.copies.rewrite.plan import planned, stores_of
from ckpt.copies.rewrite.spreading import places_of
from ckpt.copies.rewrite.stores import Families
from ckpt.copies.rewrite.writing import NewState
from ckpt.errors import CkptError
from ckpt.model import Operator, Provider, Store
from ckpt.spark.calls import Session
from ckpt.spark.tasks import TaskOutcome, absolute, left, raise_refused, refused, written
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.reading import Chosen, Question, choose
from ckpt.state.reading.units import StateUnit


class Parcel(NamedTuple):
    """Rows of a unit for one partition."""

    label: str
    data: bytes


class Share(NamedTuple):
    """One operator in one partition."""

    operator: int
    partition: int


Divided = Iterator[tuple[int, Parcel | TaskOutcome]]
"""Parcels by the number of their share; or, for the first share, why rows were refused."""


class Workplace:
    """A task's knowledge of the new checkpoint."""

    def __init__(self, place: Mapping[str, Any], chosen: Chosen, filling: Filling, export: Export | None) -> None:
        self.place, self.chosen, self.filling, self.export = place, chosen, filling, export
        self.units: dict[str, StateUnit] = {unit.label: unit for unit in chosen.units if not unit.shown_elsewhere}
        stores = groupby(stores_of(chosen), lambda one: one[0].id)
        self.operators: dict[int, list[tuple[Operator, Store]]] = {one: [*own] for one, own in stores}
        self.shares = [
            Share(operator, partition)
            for operator, own in self.operators.items()
            for partition in range(places_of(*own[0], filling.found.new.partitions))
        ]
        self.numbers = {share: number for number, share in enumerate(self.shares)}

    @classmethod
    def opened(cls, text: str) -> Self:
        """Open the workplace of an executor. Raises CkptError."""
        place = json.loads(text)
        question = Question(place["like"], RequestedPart(), all_units=True, batch=place["batch"])
        chosen = choose(question, place["like_options"])
        selection = select(chosen.storage, place["into"], chosen.moment.batch)
        found = planned(chosen, selection, place["into"], *place["form"], new_id=False, of_values=True)
        export = open_export(place["export"], place["options"]) if place["export"] else None
        numbers: dict[tuple[int, str], Families] = {}
        return cls(
            place, chosen, Filling(chosen, found, partial(unpacked, place="", given=()), numbers=numbers), export
        )

    def divided(self, rows: Taken, order: tuple[int, int]) -> Iterator[tuple[int, Parcel]]:
        """Rows of one file as parcels."""
        operator, store = self.operators[rows.unit.operator][0]
        for partition, data in parcels(operator, store, rows, self.filling.found.new.partitions, order):
            yield self.numbers[Share(operator.id, partition)], Parcel(rows.unit.label, data)

    def file(self, label: str, name: str | None, order: int) -> Iterator[tuple[int, Parcel]]:
        """The rows of a file of the export, or of a table. Raises CkptError."""
        assert self.export is not None
        first = 0
        with closing(self.export.pieces(label, name)) as pieces:
            for piece in pieces:
                rows = taken_from(self.export.place, self.units[label], self.export.exported(label), piece)
                yield from self.divided(rows, (order, first))
                first += len(rows)

    def made(self, share: Share, given: Mapping[str, list[bytes]]) -> TaskOutcome:
        """All stores of an operator in one partition. Raises CkptError."""

        def rows(unit: StateUnit) -> Taken:
            return unpacked(unit, self.place["of"], given.get(unit.label, ()))

        own = self.filling
        filling = Filling(own.chosen, own.found, rows, share.partition, numbers=own.numbers)
        state = self.place["state"]
        new = None
        if state is not None:
            ids = {int(operator): of for operator, of in state["ids"].items()}
            new = NewState(Provider(state["provider"]), state["partitions"], state["batch"], ids)
        files = {
            Task(share.operator, store.name, share.partition): filling.files_of(operator, store, new)
            for operator, store in self.operators[share.operator]
        }
        sizes = written(self.place["into"], self.place["into_options"], files) if new else {}
        return TaskOutcome(sizes, [*filling.counts.items()])


def filled(
    session: Session, given: Given, filling: Filling, options: Mapping[str, str], state: NewState | None
) -> Iterator[Mapping[str, int]]:
    """Have executors check all rows and, unless ``state`` is None, write them; how large their files are.

    ``filling`` says what is to be filled, and gets the counts. Raises CkptError, after yielding what tasks had written.
    """
    from ckpt.spark.installed import pyspark_version

    pyspark_version()
    from ckpt.spark.errors import spark_failures
    from ckpt.spark.session import classic
    from ckpt.spark.session import session as opened

    text = _place(given, filling, options, state)
    here = Workplace(json.loads(text), filling.chosen, filling, given if isinstance(given, Export) else None)
    tasks = [
        Task(one.operator, store.name, one.partition)
        for one in here.shares
        for _, store in here.operators[one.operator]
    ]
    with opened(session.master, session.confs or {}, delta=False, given=session.spark) as spark:
        context = classic(spark).sparkContext
        try:
            with spark_failures("importing state"):
                parts = context.union(
                    [one for label in here.units for one in _parts(context, here, text, given, label)]
                )
                made = parts.partitionBy(len(here.shares), int).mapPartitionsWithIndex(partial(_filled_there, text))
                done = made.collect()
            raise_refused(done)
        except BaseException:
            if state is not None:
                yield from left(filling.found.into, options, tasks)
            raise
    counts = Counter(dict.fromkeys(here.units, 0))
    for outcome in done:
        counts.update(dict(outcome.said))
        yield outcome.sizes
    filling.counts.update(counts)


def _place(given: Given, filling: Filling, options: Mapping[str, str], state: NewState | None) -> str:
    """Describe all places for the tasks, as JSON."""
    chosen, new = filling.chosen, filling.found.new
    return json.dumps(
        {
            "like": absolute(chosen.question.checkpoint),
            "like_options": dict(chosen.options),
            "batch": chosen.moment.batch,
            "into": absolute(filling.found.into),
            "into_options": dict(options),
            "form": [new.provider, new.partitions, new.version],
            "of": given.place,
            "export": absolute(given.place) if isinstance(given, Export) else None,
            "options": dict(given.options) if isinstance(given, Export) else {},
            "state": state
            and {
                "provider": state.provider,
                "partitions": state.partitions,
                "batch": state.batch,
                "ids": state.ids,
            },
        }
    )


def _parts(context: Any, here: Workplace, text: str, given: Given, label: str) -> Iterator[Any]:
    """The rows of a unit, divided: an RDD, or more than one. Raises CkptError."""
    if isinstance(given, Export):
        files = [*enumerate(given.files(label))]
        yield context.parallelize(files, len(files)).flatMap(partial(_file_there, text, label))
        return
    for piece in given.pieces(label):
        if hasattr(piece.table, "mapInArrow"):
            divided = piece.table.mapInArrow(partial(_part_there, text, label), "share int, label string, data binary")
            yield divided.rdd.map(_parcel)
        else:
            table = Piece(None, table_of(piece.table))
            rows = taken_from(given.place, here.units[label], given.exported(label), table)
            own = [*here.divided(rows, (0, 0))]
            yield context.parallelize(own, max(min(len(own), context.defaultParallelism), 1))


@lru_cache(maxsize=1)
def _there(text: str) -> Workplace:
    """Open the workplace of a Python worker of Spark, once."""
    return Workplace.opened(text)


def _file_there(text: str, label: str, file: tuple[int, str | None]) -> Divided:
    """A task of the first step: one file of an export."""
    try:
        yield from _there(text).file(label, file[1], file[0])
    except CkptError as error:
        yield 0, refused(error)


def _part_there(text: str, label: str, batches: Iterable[Any]) -> Iterator[Any]:
    """A task of the first step: a partition of a DataFrame. What is refused has no label, and is the error as JSON."""
    from pyspark import TaskContext

    context = TaskContext.get()
    part, first, place = context.partitionId() if context else 0, 0, _there(text)
    schema = pa.schema({"share": pa.int32(), "label": pa.string(), "data": pa.binary()})
    for batch in batches:
        piece = Piece(f"partition {part} of the DataFrame", pa.Table.from_batches([batch]))
        found: list[tuple[int, str | None, bytes]]
        try:
            rows = taken_from(place.place["of"], place.units[label], None, piece)
            found = [(number, parcel.label, parcel.data) for number, parcel in place.divided(rows, (part, first))]
        except CkptError as error:
            found = [(0, None, json.dumps(refused(error).refused).encode())]
        columns = [pa.array(own, kind) for own, kind in zip(zip(*found, strict=True), schema.types, strict=True)]
        yield pa.record_batch(columns, schema=schema) if found else pa.record_batch([[], [], []], schema=schema)
        first += batch.num_rows


def _parcel(row: Any) -> tuple[int, Parcel | TaskOutcome]:
    """A row of what ``_part_there`` gives."""
    data = bytes(row.data)
    return row.share, Parcel(row.label, data) if row.label is not None else TaskOutcome({}, [], tuple(json.loads(data)))


def _filled_there(text: str, number: int, parts: Iterable[tuple[int, Parcel | TaskOutcome]]) -> Iterator[TaskOutcome]:
    """A task of the second step: one operator in one partition."""
    given: dict[str, list[bytes]] = {}
    for _, one in parts:
        if isinstance(one, TaskOutcome):
            yield one
            return
        given.setdefault(one.label, []).append(one.data)
    try:
        here = _there(text)
        yield here.made(here.shares[number], given)
    except CkptError as error:
        yield refused(error)
