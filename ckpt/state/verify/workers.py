"""Files verified one after the other, or side by side in processes."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ckpt.checkpoint.state.needed_files import NeededFile
from ckpt.processes import Processes, Runner
from ckpt.state.verify.one_file import FileOutcome, check_file
from ckpt.storage import open_storage
from ckpt.storage.locations import is_in_memory

_WORTH_A_PROCESS = 48 << 20  # bytes: what takes as long to verify as a process to start


def check_files(
    uri: str, options: Mapping[str, str], files: Sequence[NeededFile], jobs: int, by: Runner | None = None
) -> Iterator[tuple[NeededFile, FileOutcome]]:
    """Check each file; outcomes come as files are done.

    Raises CkptError where a process ends before its work is done.
    """
    count = sum(file.size for file in files) // _WORTH_A_PROCESS + 1 if not is_in_memory(uri) else 1
    if min(count, jobs) > 1:
        files = sorted(files, key=lambda file: file.size, reverse=True)  # shares of about the same size
    runner = by or Processes(min(count, jobs))
    return runner.run(open_checker, (uri, dict(options)), files)


def open_checker(shared: tuple[str, Mapping[str, str]]) -> Callable[[NeededFile], Iterator[FileOutcome]]:
    """Check the files of a checkpoint, in any process."""
    storage = open_storage(*shared)
    return lambda file: iter([check_file(storage, file)])
