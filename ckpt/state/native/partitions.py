"""The partitions of a unit read side by side, in processes of their own, where there is enough to read."""

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from ckpt.checkpoint.state.folders import SSTS
from ckpt.errors import UsageError
from ckpt.formats.rows.codecs import MOST_BYTES
from ckpt.model import Json, Provider
from ckpt.processes import Work, can_share, in_order
from ckpt.state.native import shapes
from ckpt.state.native.batches import columns_of, raw_batches, shaped
from ckpt.state.native.layout import layout_of
from ckpt.state.native.store_files import StoreFiles, fitting
from ckpt.state.native.temporary import temporary
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.columns import PARTITION, Columns
from ckpt.state.reading.reading import Chosen, Question, choose
from ckpt.state.reading.units import StateUnit

_WORTH_A_PROCESS = 16 << 20  # bytes of files: what takes twice as long to decode as a process to start
_UNPACKED = 10  # times the bytes of its files: what HDFS-backed state takes as rows


def batches_of(
    chosen: Chosen, unit: StateUnit, columns: Columns | None, jobs: int | None = None
) -> Generator[Any, None, None]:
    """All rows of a unit, flat if columns are given, in the order of the partitions. Raises what reading raises."""
    partition_id = columns is not None and any(column.path == (PARTITION,) for column in columns.kept)
    what = {"flat": columns is not None, "partition_id": partition_id}
    messages = side_by_side(chosen, unit, rows_of, what, jobs)
    if messages is None:
        yield from (shaped(columns, raw) for raw in raw_batches(chosen, unit))
        return
    schema = shapes.raw_schema(unit) if columns is None else shapes.flat_schema(columns)
    with closing(messages):
        for message in messages:
            yield pa.ipc.read_record_batch(pa.py_buffer(message), schema)


def rows_of(place: Any) -> Callable[[Any], Iterator[Any]]:
    """What a process does with each of its partitions: its rows, in Arrow's form for messages."""
    chosen, unit = opened(place)
    columns = columns_of(unit, partition_id=place["partition_id"]) if place["flat"] else None
    return lambda partition: (shaped(columns, raw).serialize() for raw in raw_batches(chosen, unit, partition))


def rows_in(chosen: Chosen, unit: StateUnit, jobs: int | None = None) -> int:
    """How many rows a unit has. Raises what reading raises."""
    messages = side_by_side(chosen, unit, numbers_of, {}, jobs)
    if messages is None:
        return sum(raw.num_rows for raw in raw_batches(chosen, unit))
    return sum(map(int, messages))


def numbers_of(place: Any) -> Callable[[Any], Iterator[bytes]]:
    """What a process does with each of its partitions: the number of its rows."""
    chosen, unit = opened(place)
    return lambda partition: (b"%d" % raw.num_rows for raw in raw_batches(chosen, unit, partition))


def side_by_side(
    chosen: Chosen, unit: StateUnit, work: Work, what: Mapping[str, Json], jobs: int | None
) -> Generator[bytes, None, None] | None:
    """What processes say of each partition, in the order of partitions; None where there is too little to share.

    ``work`` opens its place by ``opened``, which also has ``what``. Raises UsageError for an impossible ``jobs``.
    """
    found = list(fitting(chosen, unit.operator, layout_of(chosen, unit).store))
    count = processes_for(chosen, found, jobs)
    if count == 1:
        return None
    place = {
        "uri": chosen.question.checkpoint,
        "options": dict(chosen.options),
        "wanted": asdict(chosen.question.wanted),
        "batch": chosen.moment.batch,
        "unit": unit.label,
        **what,
    }
    return _messages(work, place, [files.place.partition for files in found], count)


def _messages(work: Work, place: Any, partitions: list[int], count: int) -> Generator[bytes, None, None]:
    with ExitStack() as stack:
        folder = stack.enter_context(temporary())  # of the processes: nothing of them stays if they are killed
        found = in_order(work, place, partitions, count, {**os.environ, "TMPDIR": folder})
        for _, message in stack.enter_context(closing(found)):
            if message is not None:
                yield message


def processes_for(chosen: Chosen, found: Sequence[StoreFiles], jobs: int | None, worth: int | None = None) -> int:
    """How many processes pay, if each is worth so many bytes.

    Of HDFS-backed state at most so many that their partitions fit into memory together.
    Raises UsageError for an impossible ``jobs``; None is one for each core.
    """
    if jobs is not None and jobs < 1:
        raise UsageError("`jobs` has to be 1 or more")
    if not found or not can_share(chosen.question.checkpoint):
        return 1
    sizes = [_size(chosen, files) for files in found]
    count = min(jobs or os.cpu_count() or 1, len(found), sum(sizes) // (worth or _WORTH_A_PROCESS))
    if chosen.units[0].provider is Provider.HDFS:
        count = min(count, MOST_BYTES // (max(sizes) * _UNPACKED + 1))
    return max(count, 1)


def _size(chosen: Chosen, files: StoreFiles) -> int:
    """Bytes of the files of a version; of SST files of all that are there."""
    ssts = chosen.checkpoint.listing.in_folder(f"{files.place.folder}/{SSTS}") if files.snapshot else {}
    return files.size + sum(info.size for info in ssts.values())


def opened(place: Any) -> tuple[Chosen, StateUnit]:
    """The unit of a place, in the process that reads it."""
    question = Question(place["uri"], RequestedPart(**place["wanted"]), all_units=True, batch=place["batch"])
    chosen = choose(question, place["options"])
    return chosen, next(unit for unit in chosen.units if unit.label == place["unit"])
