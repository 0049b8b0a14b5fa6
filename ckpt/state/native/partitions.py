"""The partitions of a unit read side by side, in processes of their own, where there is enough to read."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from ckpt.checkpoint.state.folders import SSTS
from ckpt.errors import UsageError
from ckpt.formats.rows.codecs import MOST_BYTES
from ckpt.model import Provider
from ckpt.processes import Processes, Runner
from ckpt.state.native.entries import batches_of
from ckpt.state.native.store_files import StoreFiles, find_fitting_files, layout_of
from ckpt.state.native.temporary import make_temporary_folder
from ckpt.state.reading.columns import Columns
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit
from ckpt.storage.locations import is_in_memory

_WORTH_A_PROCESS = 16 << 20  # bytes of files: what takes twice as long to decode as a process to start
_UNPACKED = 10  # times the bytes of its files: what HDFS-backed state takes as rows


UnitWork: TypeAlias = Callable[[Chosen, StateUnit, Any, Any], Iterable[Any]]
"""A function of a module: from a unit, what all partitions share and one partition, to results."""


class _Batch:
    """A record batch, pickled without what is outside of its slice."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_batch, (self.rows.schema, self.rows.serialize())


def _read_batch(schema: Any, data: Any) -> _Batch:
    return _Batch(pa.ipc.read_record_batch(data, schema))


def read_batches(
    chosen: Chosen, unit: StateUnit, columns: Columns | None, jobs: int | None = None
) -> Generator[Any, None, None]:
    """All rows of a unit, flat if columns are given, in the order of the partitions. Raises what reading raises."""
    with closing(map_partitions(chosen, unit, _read_rows, columns, jobs)) as batches:
        yield from (batch.rows for batch in batches)


def _read_rows(chosen: Chosen, unit: StateUnit, columns: Columns | None, partition: int) -> Iterator[_Batch]:
    return map(_Batch, batches_of(chosen, unit, columns, partition))


def count_rows(chosen: Chosen, unit: StateUnit, jobs: int | None = None, by: Runner | None = None) -> int:
    """How many rows a unit has. Raises what reading raises."""
    return sum(map_partitions(chosen, unit, _count_rows, None, jobs, by))


def _count_rows(chosen: Chosen, unit: StateUnit, _: None, partition: int) -> Iterator[int]:
    return (batch.num_rows for batch in batches_of(chosen, unit, only=partition))


def map_partitions(
    chosen: Chosen,
    unit: StateUnit,
    work: UnitWork,
    what: Any,
    jobs: int | None,
    by: Runner | None = None,
    only: int | None = None,
) -> Generator[Any, None, None]:
    """The results of each partition of a unit, or of one, in order.

    ``by`` does the work; by default this process, and others where there is enough to share. Raises UsageError for an
    impossible ``jobs``.
    """
    files = list(find_fitting_files(chosen, unit.operator, layout_of(chosen, unit).store, only))
    count = count_processes(chosen, files, jobs)
    with ExitStack() as stack:
        environment: Mapping[str, str] = os.environ
        if by is None and count > 1:  # nothing of the processes stays if they are killed
            environment = {**os.environ, "TMPDIR": stack.enter_context(make_temporary_folder())}
        partitions = [own.place.partition for own in files]
        runner = by or Processes(count, environment)
        results = runner.run(open_unit, (work, chosen, unit, what), partitions, ordered=True)
        yield from (result for _, result in stack.enter_context(closing(results)))


def open_unit(shared: tuple[UnitWork, Chosen, StateUnit, Any]) -> Callable[[Any], Iterable[Any]]:
    """Work on partitions of a unit, in any process."""
    work, *first = shared
    return partial(work, *first)


def count_processes(chosen: Chosen, stores: Sequence[StoreFiles], jobs: int | None, worth: int | None = None) -> int:
    """How many processes pay, if each is worth so many bytes.

    Of HDFS-backed state at most so many that their partitions fit into memory together.
    Raises UsageError for an impossible ``jobs``; None is one for each core.
    """
    if jobs is not None and jobs < 1:
        raise UsageError("`jobs` has to be 1 or more")
    if not stores or is_in_memory(chosen.question.checkpoint):
        return 1
    sizes = [_size(chosen, files) for files in stores]
    count = min(jobs or os.cpu_count() or 1, len(stores), sum(sizes) // (worth or _WORTH_A_PROCESS))
    if chosen.units[0].provider is Provider.HDFS:
        count = min(count, MOST_BYTES // (max(sizes) * _UNPACKED + 1))
    return max(count, 1)


def _size(chosen: Chosen, files: StoreFiles) -> int:
    """Bytes of the files of a version; of SST files of all that are there."""
    ssts = chosen.checkpoint.listing.in_folder(f"{files.place.folder}/{SSTS}") if files.snapshot else {}
    return files.size + sum(info.size for info in ssts.values())
