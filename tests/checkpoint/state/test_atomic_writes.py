"""In an object store, the ends of logs that Spark itself wrote are not read, and the verdict is the same."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks import generate
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.file_ends import written_there
from ckpt.checkpoint.state.folders import find_operators
from ckpt.checkpoint.state.loaded_files import MOST_REMOTE
from ckpt.errors import StorageError
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Provider, StateFile, StateFileKind
from ckpt.storage.base import FileInfo, Listing, ReadRequest
from ckpt.storage.local import LocalStorage
from tests.checkpoint.state import s3_times
from tests.conftest import Ckpt, Run
from tests.restart.oracle.cases import CASES
from tests.support.services.counting import counting_s3
from tests.support.spark import mutations

pytestmark = pytest.mark.slow

PARTITIONS = 20
NEWEST = "state/0/0/20.delta"


class Counting(LocalStorage):
    """A local folder, maybe with files that are there only with all their bytes; counts reads of logs."""

    def __init__(self, root: str, *, whole: bool) -> None:
        super().__init__(root, root)
        self.whole_files, self.names_only = whole, True
        self.read_logs = 0

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        wanted = list(requests)
        self.read_logs += sum(request.path.endswith(_LOGS) for request in wanted)
        return super().read_many(wanted)


def told(found: Inspection) -> object:
    """All that it says of starts, and of what is wrong."""
    return found.verdict, found.forecasts, found.findings


_LOGS = (".delta", ".changelog")
_UNSEEN = ("flipped-", "contents-")  # in the middle of a file
CUT = [
    case
    for case in CASES
    if case.stateful and not case.name.startswith(_UNSEEN) and any(end in str(case.mutations) for end in _LOGS)
]


def test_damage_that_was_copied_there_is_told_as_on_a_disk(tmp_path):
    """A third of what the oracle did to logs of state, in checkpoints that Spark had written there."""
    spared, differ = 0, []
    for number, case in enumerate(case for case in CUT[::3] if case.folder.is_dir()):
        folder = mutations.copy_of(case.folder, tmp_path / str(number))
        generate.times_of_batches(folder)
        mutations.apply(folder, case.mutations)
        disk, store = (Counting(str(folder), whole=whole) for whole in (False, True))
        here, there = (inspect(read_checkpoint(storage)) for storage in (disk, store))
        spared += disk.read_logs - store.read_logs
        differ += [case.name] if told(here) != told(there) else []

    assert differ == []
    assert spared > len(CUT) / 3


@pytest.mark.parametrize(
    ("earlier", "written", "committed", "size", "there"),
    [
        (8_000, 15_000, 18_000, 90, True),
        (8_000, 18_000, 18_000, 90, True),  # whole seconds
        (8_000, 8_000, 18_000, 90, False),
        (8_000, 19_000, 18_000, 90, False),  # copied after the commits
        (8_000, 7_000, 18_000, 90, False),  # copied before them
        (8_000, 15_000, 18_000, 21, False),  # less than a log can have
        (None, 15_000, 18_000, 90, False),
        (8_000, 15_000, None, 90, False),
    ],
)
def test_the_times_of_the_commits_around_it_tell_who_wrote_a_log(earlier, written, committed, size, there):
    commits = {"1": FileInfo(1, earlier), "2": FileInfo(1, committed)}
    log = StateFile(3, StateFileKind.DELTA, size, "state/0/0/3.delta", None)
    snapshot = StateFile(3, StateFileKind.SNAPSHOT, size, "state/0/0/3.snapshot", None)
    files = {name: FileInfo(size, written) for name in ("3.delta", "3.snapshot")}
    listing = Listing({"": {}, "commits": commits, "state": {}, "state/0": {}, "state/0/0": files})

    assert written_there(listing, log) is there
    assert not written_there(listing, snapshot)  # of any time at all: maintenance writes it


@pytest.mark.parametrize("query", s3_times.recorded())
def test_what_spark_wrote_to_s3_has_such_times(query):
    """Most of it: those that were written in the second of the commit before are read like any other."""
    listing = s3_times.recorded()[query]
    places = [
        place
        for operator in find_operators(listing, Provider.UNKNOWN)
        for partitions in operator.stores.values()
        for place in partitions.values()
    ]
    logs = [place.log(log) for place in places for log in place.names.logs if log[0] <= s3_times.BATCHES]
    known = [log for log in logs if written_there(listing, log)]

    assert len(logs) == 3 * s3_times.BATCHES
    assert len(known) > len(logs) / 2


def test_the_log_of_the_first_batch_is_newer_than_its_offsets():
    log = StateFile(1, StateFileKind.DELTA, 90, "state/0/0/1.delta", None)
    folders = {"commits": {"0": FileInfo(1, 9_000)}, "state/0/0": {"1.delta": FileInfo(90, 5_000)}}

    assert not written_there(Listing(folders), log)
    assert written_there(Listing(folders | {"offsets": {"0": FileInfo(1, 1_000)}}), log)


def counted(ckpt: Ckpt, folder: Path, *how: str) -> tuple[Run, dict[str, int]]:
    """What is said of a checkpoint in S3, and how many requests of each kind that took."""
    with counting_s3(folder) as server:
        given = [word for pair in server.options.items() for word in ("--storage-options", "=".join(pair))]
        return ckpt("inspect", "s3://bucket/ck", *how, *given), dict(server.requests)


@pytest.mark.parametrize("sample", [generate.HDFS, generate.CHANGELOG], ids=lambda sample: sample.name)
def test_only_snapshots_are_read_of_state_that_spark_wrote_to_an_object_store(ckpt, tmp_path, sample):
    files = generate.wide_state(sample, tmp_path / "bucket/ck", PARTITIONS)
    logs = 11 + 11 + 2 + 2  # offsets, commits, metadata (its head first, to recognise it), operator metadata and schema
    copied, all_read = counted(ckpt, tmp_path, "--names-only")
    generate.times_of_batches(tmp_path / "bucket/ck")
    written, requests = counted(ckpt, tmp_path, "--names-only")
    bounded, more_requests = counted(ckpt, tmp_path)

    assert files < 1_000  # one page of names
    reads = logs + PARTITIONS * 11
    assert all_read == {"LIST": 2, "HEAD": reads, "GET": reads}
    reads = logs + PARTITIONS
    assert requests == {"LIST": 2, "HEAD": reads, "GET": reads}
    reads += MOST_REMOTE
    assert more_requests == {"LIST": 2, "HEAD": reads, "GET": reads}
    assert "known by name and size only: --deep reads every byte\n" in " ".join(bounded.stdout.split(" "))
    assert written.stdout == copied.stdout
    assert written.exit_code == copied.exit_code == bounded.exit_code == 0
