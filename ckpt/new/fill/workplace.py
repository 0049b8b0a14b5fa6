"""State made of rows that were given, file by file and partition by partition: for executors that each have some.

A source is a file of the export, a table, or some rows of a DataFrame: which of its rows belong to which partition? A
target is an operator in one partition: all of its rows are checked, and their state is written.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.checkpoint.state.rewritable import Form, count_partitions
from ckpt.errors import UsageError
from ckpt.formats.rows.arrow import whole
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.types import named_fields
from ckpt.model import Operator, Store
from ckpt.new.exchange import Exchange, FrameSource, ThroughFiles, pack_batch, unpack_batch
from ckpt.new.fill.contents import Joined
from ckpt.new.fill.export_folder import Export
from ckpt.new.fill.filling import Filling, find_partitions
from ckpt.new.fill.frames import Frames, Origin, Piece, Taken, table_of, take_piece
from ckpt.new.rewrite.plan import Rewrite
from ckpt.new.rewrite.stored_rows import divide_rows
from ckpt.new.rewrite.stores import Families
from ckpt.new.rewrite.writing import NewState, write_files
from ckpt.processes import Processes
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit
from ckpt.storage.locations import is_in_memory

Counts: TypeAlias = Mapping[str, int]
"""Rows of units, by label."""


class Share(NamedTuple):
    """One operator in one partition: a target."""

    operator: int
    partition: int


class FileSource(NamedTuple):
    """A file of the export: a source. Its rows are at ``order`` among those of their unit."""

    label: str
    order: int
    name: str


class TableSource(NamedTuple):
    """Rows of a unit in memory: a source; ``first`` is the number of the first of them in their part of a frame."""

    label: str
    order: int
    first: int
    piece: Piece


_WORTH_A_PROCESS = 2 << 20  # bytes of an export: what takes longer to encode than a process to start


@dataclass
class Workplace:
    """The new checkpoint and where its rows come from. One that is pickled opens the old one and the export anew."""

    chosen: Chosen
    old: Form
    new: Form
    into: str  # the new checkpoint
    options: Mapping[str, str]  # for its file system
    source_name: str
    export: Export | None
    state: NewState | None  # None: rows are only checked
    writes: bool  # tasks write files themselves

    def __post_init__(self) -> None:
        self.units: dict[str, StateUnit] = {unit.label: unit for unit in self.chosen.units if not unit.shown_elsewhere}
        self._numbers: dict[tuple[int, str], Families] = {}
        self._joined: dict[str, Joined] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        new = (self.old, self.new, self.into, dict(self.options))
        return Workplace, (self.chosen, *new, self.source_name, self.export, self.state, self.writes)

    @cached_property
    def operators(self) -> dict[int, list[tuple[Operator, Store]]]:
        """The stores of each operator."""
        return {
            number: [*stores] for number, stores in groupby(self.chosen.checkpoint.stores(), lambda store: store[0].id)
        }

    @cached_property
    def targets(self) -> dict[Share, int]:
        """Every operator in every partition, by number."""
        shares = (
            Share(operator, partition)
            for operator, stores in self.operators.items()
            for partition in range(count_partitions(*stores[0], self.new.partitions))
        )
        return {share: number for number, share in enumerate(shares)}

    def divide(self, source: FileSource | TableSource) -> Iterator[tuple[int, bytes]]:
        """Rows of a source by the operators and partitions that they belong to. Raises CkptError."""
        if isinstance(source, TableSource):
            yield from self._divide_piece(source, None)
            return
        assert self.export is not None
        table = TableSource(source.label, source.order, 0, self.export.read_piece(source.label, source.name))
        yield from self._divide_piece(table, self.export.find_exported_columns(source.label))

    def make(self, share: Share, pieces: Iterable[Any]) -> Iterator[tuple[Mapping[str, bytes | int], Counts]]:
        """The files of each store of an operator in one partition, or their bytes; and once how many rows there are.

        Raises CkptError.
        """
        stores = self.operators[share.operator]
        rows = self._gather_rows(share.operator, pieces)
        counts = {taken.unit.label: len(taken) for taken in rows}
        forms = (self.old.partitions, self.new)
        filling = Filling(self.chosen, *forms, stores[0][0], rows, share.partition, self._numbers, self._joined)
        for number, (_, store) in enumerate(stores):
            files = filling.make_files(store, self.state)
            written = write_files(self.into, self.options, files) if self.writes and files else files
            yield written, {} if number else counts

    def _divide_piece(self, source: TableSource, exported: Collection[str] | None) -> Iterator[tuple[int, bytes]]:
        """The rows of a piece, as pieces of one partition each, with the file that they were in and their places."""
        name = source.piece.name
        rows = take_piece(self.source_name, self.units[source.label], exported, source.piece)
        operator, store = self.operators[rows.unit.operator][0]
        count = count_partitions(operator, store, self.new.partitions)
        places, starts = divide_rows(find_partitions(operator, store, rows, count), count)
        numbers = whole(pa.int64(), np.arange(len(rows)) + source.first)
        columns = [*rows.columns, rows.matched, numbers]
        schema = pa.schema(
            {str(at): column.type for at, column in enumerate(columns)},
            {"of": json.dumps([source.label, source.order, name])},
        )
        batch = pa.record_batch(columns, schema=schema).take(whole(pa.int64(), places))
        for partition, (start, end) in enumerate(pairwise(starts)):
            if end > start:
                yield self.targets[Share(operator.id, partition)], pack_batch(batch.slice(start, end - start))

    def _gather_rows(self, operator: int, pieces: Iterable[Any]) -> list[Taken]:
        """The rows of an operator's units in one partition, in the order in which they were given."""
        parts: dict[str, list[tuple[int, str | None, Any]]] = defaultdict(list)
        for piece in pieces:
            batch = unpack_batch(piece)
            label, order, name = json.loads(batch.schema.metadata[b"of"])
            parts[label].append((order, name, batch))
        gathered = []
        for label, unit in self.units.items():
            if unit.operator != operator:
                continue
            ordered = sorted(parts[label], key=lambda part: (part[0], part[2].columns[-1][0].as_py()))
            if ordered:
                *columns, matched, _ = (
                    pa.concat_arrays(own) for own in zip(*(batch.columns for *_, batch in ordered), strict=True)
                )
            else:
                columns = [pa.array([], arrow_type(kind)) for _, kind in named_fields(unit.schema)]
                matched = pa.array([], pa.bool_())
            origin = Origin([(name, np.asarray(batch.columns[-1])) for _, name, batch in ordered])
            gathered.append(Taken(unit, columns, matched, self.source_name, origin))
        return gathered


def fill(
    chosen: Chosen,
    rewrite: Rewrite,
    source: Export | Frames,
    options: Mapping[str, str],
    engine: Exchange | None,
    jobs: int | None,
    counts: Counter[str],
    state: NewState | None,
) -> Iterator[Mapping[str, bytes | int]]:
    """Check all rows and, unless ``state`` is None, make their files, or have tasks write them: then their bytes.

    ``counts`` gets the rows of each unit. By default ``jobs`` processes do it; None is as many as are worth it. Raises
    CkptError.
    """
    engine = engine or ThroughFiles(Processes(_count_processes(chosen, source, jobs)))
    export = source if isinstance(source, Export) else None
    new = (rewrite.old, rewrite.new, rewrite.into, options)
    work = Workplace(chosen, *new, source.place, export, state, engine.writes)
    sources: list[FileSource | TableSource] = []
    frames = []
    for label in work.units:
        if isinstance(source, Export):
            sources += (FileSource(label, order, name) for order, name in enumerate(source.list_files(label)))
            continue
        frame = source.tables[label]
        if hasattr(frame, "mapInArrow"):
            frames.append(FrameSource(frame, partial(_wrap_frame, label)))
        else:
            sources.append(TableSource(label, 0, 0, Piece(None, table_of(frame))))
    for _, (files, rows) in engine.exchange(work, sources, [*work.targets], frames):
        counts.update(rows)
        yield files


def _count_processes(chosen: Chosen, source: Export | Frames, jobs: int | None) -> int:
    """How many processes pay for an export; frames in memory stay in this one. Raises UsageError."""
    if jobs is not None and jobs < 1:
        raise UsageError.of("{--jobs} has to be 1 or more")
    if isinstance(source, Frames) or any(map(is_in_memory, (source.place, chosen.question.checkpoint))):
        return 1
    return max(min(jobs or os.cpu_count() or 1, source.listing.bytes // _WORTH_A_PROCESS), 1)


def _wrap_frame(label: str, partition: int, first: int, batch: Any) -> TableSource:
    piece = Piece(f"partition {partition} of the DataFrame", pa.Table.from_batches([batch]))
    return TableSource(label, partition, first, piece)
