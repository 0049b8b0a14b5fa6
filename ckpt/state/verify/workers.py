"""Files verified one after the other, or side by side in processes."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ckpt.checkpoint.state.file_ends import Verdict
from ckpt.checkpoint.state.needed_files import NeededFile
from ckpt.model import DamageKind, StateFileKind
from ckpt.processes import can_share, in_any_order
from ckpt.state.verify.one_file import FileOutcome, check_file
from ckpt.storage import open_storage

_WORTH_A_PROCESS = 48 << 20  # bytes: what takes as long to verify as a process to start


def outcomes(
    uri: str, options: Mapping[str, str], files: Sequence[NeededFile], jobs: int
) -> Iterator[tuple[NeededFile, FileOutcome]]:
    """What comes of each file, in the order in which they are done.

    Raises CkptError where a process ends before its work is done.
    """
    total = sum(file.size for file in files)
    count = min(jobs, len(files), total // _WORTH_A_PROCESS + 1) if can_share(uri) else 1
    if count <= 1:
        storage = open_storage(uri, options)
        yield from ((file, check_file(storage, file)) for file in files)
        return
    shares = [list(map(asdict, share)) for share in _shares(files, count)]
    for file, answer in in_any_order(checker, {"uri": uri, "options": dict(options)}, shares):
        if answer is not None:
            verdict, unknown = json.loads(answer)
            found = FileOutcome(verdict and Verdict(DamageKind(verdict[0]), *verdict[1:]), unknown)
            yield _file(file), found


def checker(place: Any) -> Callable[[Any], Iterator[bytes]]:
    """What a process does with each of its files."""
    storage = open_storage(place["uri"], place["options"])

    def check(file: Any) -> Iterator[bytes]:
        yield json.dumps(check_file(storage, _file(file))).encode()

    return check


def _file(given: Mapping[str, Any]) -> NeededFile:
    kind = given["kind"]
    return NeededFile(**{**given, "kind": None if kind is None else StateFileKind(kind)})


def _shares(files: Sequence[NeededFile], count: int) -> list[list[NeededFile]]:
    """The files in ``count`` lots of about the same size, the largest first."""
    shares: list[list[NeededFile]] = [[] for _ in range(count)]
    sizes = [0] * count
    for file in sorted(files, key=lambda file: file.size, reverse=True):
        least = sizes.index(min(sizes))
        shares[least].append(file)
        sizes[least] += file.size + 1
    return shares
