"""State made of rows that were given, file by file and partition by partition: for executors that each have some.

A source is a file of the export, a table, or some rows of a DataFrame: which of its rows belong to which partition? A
target is an operator in one partition: all of its rows are checked, and their state is written.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from ckpt.copies.copy.selection import select_files
from ckpt.copies.exchange import Exchange, FrameSource, ThroughFiles
from ckpt.copies.fill.export_folder import Export, open_export
from ckpt.copies.fill.filling import Filling
from ckpt.copies.fill.join_matches import Joined
from ckpt.copies.fill.rows import Given, Piece, table_of, take_piece
from ckpt.copies.fill.scatter import gather_rows, pack_parcels
from ckpt.copies.rewrite.plan import Rewrite, list_stores, plan_rewrite
from ckpt.copies.rewrite.spreading import count_partitions
from ckpt.copies.rewrite.stores import Families
from ckpt.copies.rewrite.writing import NewState, list_state_files, write_files
from ckpt.errors import CkptError
from ckpt.model import Operator, Store
from ckpt.processes import Processes
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit

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


@dataclass
class Workplace:
    """The new checkpoint and where its rows come from. One that is pickled opens both anew."""

    chosen: Chosen
    rewrite: Rewrite
    source_name: str
    export: Export | None
    options: Mapping[str, str]  # for the new checkpoint
    state: NewState | None  # None: rows are only checked
    writes: bool  # tasks write files themselves

    def __post_init__(self) -> None:
        self.units: dict[str, StateUnit] = {unit.label: unit for unit in self.chosen.units if not unit.shown_elsewhere}
        self._numbers: dict[tuple[int, str], Families] = {}
        self._joined: dict[str, Joined] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        chosen, new, export = self.chosen, self.rewrite.new, self.export
        form = (self.rewrite.into, new.provider, new.partitions, new.version)
        opening = (export.place, dict(export.options)) if export is not None else None
        return _reopen, (
            chosen,
            form,
            self.source_name,
            opening,
            dict(self.options),
            self.state,
            self.writes,
        )

    @cached_property
    def operators(self) -> dict[int, list[tuple[Operator, Store]]]:
        """The stores of each operator."""
        return {number: [*stores] for number, stores in groupby(list_stores(self.chosen), lambda store: store[0].id)}

    @cached_property
    def targets(self) -> dict[Share, int]:
        """Every operator in every partition, by number."""
        shares = (
            Share(operator, partition)
            for operator, stores in self.operators.items()
            for partition in range(count_partitions(*stores[0], self.rewrite.new.partitions))
        )
        return {share: number for number, share in enumerate(shares)}

    def divide(self, source: FileSource | TableSource) -> Iterator[tuple[int, bytes]]:
        """Rows of a source by the operators and partitions that they belong to. Raises CkptError."""
        if isinstance(source, TableSource):
            yield from self._divide_pieces(source, None)
            return
        assert self.export is not None
        with closing(self.export.read_pieces(source.label, source.name)) as pieces:
            for piece in pieces:
                table = TableSource(source.label, source.order, 0, piece)
                yield from self._divide_pieces(table, self.export.find_exported_columns(source.label))

    def make(self, share: Share, pieces: Iterable[Any]) -> Iterator[tuple[Mapping[str, bytes | int], Counts]]:
        """The files of each store of an operator in one partition, or their bytes; and once how many rows there are.

        Raises CkptError.
        """
        rows = gather_rows(self.units, self.source_name, pieces)
        filling = Filling(self.chosen, self.rewrite, rows, share.partition, numbers=self._numbers, joined=self._joined)
        for number, (operator, store) in enumerate(self.operators[share.operator]):
            files = filling.make_files(operator, store, self.state)
            counts = {} if number else filling.counts
            yield write_files(self.rewrite.into, self.options, files) if self.writes and files else files, counts

    def _divide_pieces(self, source: TableSource, exported: Collection[str] | None) -> Iterator[tuple[int, bytes]]:
        rows = take_piece(self.source_name, self.units[source.label], exported, source.piece)
        operator, store = self.operators[rows.unit.operator][0]
        order = (source.order, source.first)
        for partition, data in pack_parcels(operator, store, rows, self.rewrite.new.partitions, order):
            yield self.targets[Share(operator.id, partition)], data


def _reopen(
    chosen: Chosen,
    form: tuple[str, str, int, int],
    source_name: str,
    export: tuple[str, Mapping[str, str]] | None,
    options: Mapping[str, str],
    state: NewState | None,
    writes: bool,
) -> Workplace:
    selection = select_files(chosen.storage, form[0], chosen.moment.batch)
    rewrite = plan_rewrite(chosen, selection, *form, new_id=False, of_values=True)
    return Workplace(chosen, rewrite, source_name, open_export(*export) if export else None, options, state, writes)


def fill(
    chosen: Chosen,
    rewrite: Rewrite,
    source: Given,
    options: Mapping[str, str],
    by: Exchange | None,
    counts: Counter[str],
    state: NewState | None,
) -> Iterator[Mapping[str, bytes | int]]:
    """Check all rows and, unless ``state`` is None, make their files, or write them: then their bytes.

    ``counts`` gets the rows of each unit. By default this process does it. Raises CkptError, after yielding what tasks
    had written.
    """
    by = by or ThroughFiles(Processes(1))
    export = source if isinstance(source, Export) else None
    work = Workplace(chosen, rewrite, source.place, export, options, state, by.writes)
    sources: list[FileSource | TableSource] = []
    frames = []
    for label in work.units:
        if export is not None:
            sources += (FileSource(label, order, name) for order, name in enumerate(export.list_files(label)))
            continue
        for piece in source.read_pieces(label):
            if hasattr(piece.table, "mapInArrow"):
                frames.append(FrameSource(piece.table, partial(_wrap_frame, label)))
            else:
                sources.append(TableSource(label, 0, 0, Piece(None, table_of(piece.table))))
    try:
        for _, (files, rows) in by.exchange(work, sources, [*work.targets], frames):
            counts.update(rows)
            yield files
    except GeneratorExit:
        raise
    except BaseException:
        if by.writes and state is not None:
            with suppress(CkptError):
                yield list_state_files(rewrite.into, options)
        raise


def _wrap_frame(label: str, partition: int, first: int, batch: Any) -> TableSource:
    piece = Piece(f"partition {partition} of the DataFrame", pa.Table.from_batches([batch]))
    return TableSource(label, partition, first, piece)
