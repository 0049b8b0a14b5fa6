"""Rows exchanged between partitions: each source is divided, and each target made of the pieces that belong to it.

The work is that of one source or one target, whoever does it: processes of this machine, or Spark's executors
(``ckpt.types.Executors``). So nobody has more than the rows of one partition in memory.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ckpt.processes import Processes
from ckpt.state.native.temporary import make_temporary_folder, report_no_room

_OPEN = 256  # files with pieces that are open at a time


class Division(Protocol):
    """The work of an exchange, and all that its tasks share; it can be pickled, and so can sources and targets."""

    def divide(self, source: Any, /) -> Iterator[tuple[int | None, Any]]:
        """Pieces of a source, as bytes, each with the number of its target; and results, which have none."""
        ...

    def make(self, target: Any, pieces: Iterable[bytes | pa.Buffer], /) -> Iterator[Any]:
        """Results of a target; its pieces come in any order, as bytes or buffers of Arrow."""
        ...


class FrameSource(NamedTuple):
    """A DataFrame of Spark, each of whose partitions is a source, some rows at a time."""

    frame: Any
    source: Callable[[int, int, pa.RecordBatch], Any]  # of a partition's number, the first row's, and a record batch


class Exchange(Protocol):
    """Exchanges rows between partitions."""

    @property
    def writes(self) -> bool:
        """True if tasks write files themselves, for more than this machine takes; else their bytes are results."""
        ...

    def exchange(
        self, division: Division, sources: Sequence[Any], targets: Sequence[Any], frames: Sequence[FrameSource] = ()
    ) -> Generator[tuple[Any, Any], None, None]:
        """Each result with its source or target. Raises what the work raises."""
        ...


class _Spooled(NamedTuple):
    """A piece in a file."""

    path: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class ThroughFiles:
    """Exchanges rows through files of a temporary folder, by processes of this machine."""

    processes: Processes
    writes: bool = False

    def exchange(
        self, division: Division, sources: Sequence[Any], targets: Sequence[Any], frames: Sequence[FrameSource] = ()
    ) -> Generator[tuple[Any, Any], None, None]:
        """Exchange rows without frames, in a temporary folder. Raises CkptError where that is full."""
        assert not frames
        with make_temporary_folder() as folder:
            pieces: dict[int, list[_Spooled]] = defaultdict(list)
            for (_, source), (number, item) in self.processes.run(
                divide_into_files, (division, folder), [*enumerate(sources)]
            ):
                if number is None:
                    yield source, item
                else:
                    pieces[number].append(item)
            tasks = [(target, pieces[number]) for number, target in enumerate(targets)]
            for (target, _), result in self.processes.run(make_from_files, division, tasks):
                yield target, result


def divide_into_files(
    shared: tuple[Division, str],
) -> Callable[[tuple[int, Any]], Iterator[tuple[int | None, Any]]]:
    """Divide sources in any process: results, and where the pieces of each target are."""
    division, folder = shared

    def divide(task: tuple[int, Any]) -> Iterator[tuple[int | None, Any]]:
        path, start = f"{folder}/{task[0]}", 0
        try:
            with open(path, "wb") as file:
                for number, item in division.divide(task[1]):
                    if number is None:
                        yield None, item
                        continue
                    yield number, _Spooled(path, start, file.write(item))
                    start += len(item)
        except OSError as error:
            raise report_no_room(str(error), os.path.dirname(folder)) from None

    return divide


def make_from_files(division: Division) -> Callable[[tuple[Any, Sequence[_Spooled]]], Iterator[Any]]:
    """Make targets in any process."""
    return lambda task: division.make(task[0], map(_read_piece, task[1]))


def unpack_batch(piece: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return the record batch of a piece."""
    return pa.ipc.open_stream(piece).read_next_batch()


def _read_piece(piece: _Spooled) -> pa.Buffer:
    file = _map_file(piece.path)
    file.seek(piece.start)
    return file.read_buffer(piece.size)


@lru_cache(maxsize=_OPEN)
def _map_file(path: str) -> pa.MemoryMappedFile:
    return pa.memory_map(path)
