"""Read the state files that the next start loads completely, up to a bound, and count those above it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from ckpt.checkpoint.state.file_ends import NOTHING, Verdict, Verified, judge_zip
from ckpt.checkpoint.state.needed_files import NeededFile, describe_file
from ckpt.checkpoint.state.read_steps import Answer, Step
from ckpt.errors import CkptError
from ckpt.formats.sidecars import hadoop_sidecar_name
from ckpt.formats.statefiles import CHECKSUM, LZ4, RecordType
from ckpt.model import NotRead, StateFile, StateFileKind
from ckpt.storage.base import Listing, ReadRequest
from ckpt.storage.held import HeldFiles

MOST_BYTES = 16 << 20
MOST_BYTES_SLOWLY = 1 << 20  # where the packages are missing that compute checksums
MOST_FILES = 10_000  # on a local disk
MOST_REMOTE = 100  # files in remote storage, besides those whose ends are read anyway

_ORDER = (StateFileKind.ZIP, StateFileKind.DELTA, StateFileKind.CHANGELOG)  # before what may be large
_STREAMS = (StateFileKind.DELTA, StateFileKind.CHANGELOG, StateFileKind.SNAPSHOT)
_KEYS = 20  # of each file


@dataclass(slots=True)
class Allowance:
    """How much may be read completely, by default nothing, and what was: files count again, and are not read again."""

    bytes: int = 0
    files: int = 0
    local: bool = True
    verified: Verified = NOTHING

    @classmethod
    def of(cls, *, local: bool, verified: Verified) -> "Allowance":
        """Return what one look at a checkpoint may read."""
        from ckpt.formats.checksums import FAST

        most = MOST_BYTES if FAST else MOST_BYTES_SLOWLY
        return cls(most, MOST_FILES if local else MOST_REMOTE, local, verified)

    def take(self, file: NeededFile, *, end_is_read: bool) -> bool:
        """Tell whether one more file may be read, and count it."""
        requests = 1 if self.local else (not end_is_read) + file.checksum
        if not 0 < file.size <= self.bytes or requests > self.files:
            return False
        self.bytes -= file.size
        self.files -= requests
        return True


def read_loaded(
    listing: Listing, files: Iterable[StateFile], codec: str, allowance: Allowance, ends: Collection[str]
) -> Step[None]:
    """Read files completely, and the SST files that snapshots among them name, as far as the allowance goes.

    Zips come first, then logs, then what may be large, each from the smallest on; ``ends`` are the paths of files whose
    ends are read anyway. What is found is in ``allowance.verified``.
    """
    if not allowance.bytes:
        return
    by_kind = sorted(files, key=lambda file: (file.kind not in _ORDER, file.kind is not StateFileKind.ZIP, file.size))
    described = (describe_file(listing, file.path, file.kind, codec) for file in by_kind)
    yield from _read(listing, described, allowance, ends=ends)
    zips = (file.path for file in by_kind if file.kind is StateFileKind.ZIP)
    ssts = {path: size for zip_ in zips for path, size in allowance.verified.list_ssts(zip_)}
    in_order = sorted(ssts, key=lambda path: (ssts[path], path))
    described = (describe_file(listing, path, StateFileKind.SST, codec) for path in in_order)
    yield from _read(listing, described, allowance)


def check_descriptions(listing: Listing, contents: Mapping[str, bytes], allowance: Allowance) -> Step[None]:
    """Compare schemas and operator metadata, which were read already, with the checksum files that Hadoop keeps."""
    described = (describe_file(listing, path, None, LZ4) for path in contents if allowance.local)
    files = (file for file in described if file and file.hidden_checksum)
    yield from _read(listing, files, allowance, contents=contents, ends=contents)


def _read(
    listing: Listing,
    files: Iterable[NeededFile | None],
    allowance: Allowance,
    contents: Mapping[str, bytes] = {},
    ends: Collection[str] = (),
) -> Step[None]:
    """Judge files; ``contents`` has what is read already, and ``ends`` are those whose ends are."""
    chosen = [file for file in files if file and allowance.take(file, end_is_read=file.path in ends)]
    chosen = [file for file in chosen if file.path not in allowance.verified.files]
    if not chosen:
        return
    every = (request for file in chosen for request in _requests(file, allowance))
    requests = [request for request in every if request.path not in contents]
    answers = dict(zip((request.path for request in requests), (yield requests), strict=True))
    allowance.verified = allowance.verified.with_all(_judge(listing, chosen, {**contents, **answers}, allowance))


def _requests(file: NeededFile, allowance: Allowance) -> Iterator[ReadRequest]:
    folder, _, name = file.path.rpartition("/")
    yield ReadRequest(file.path, 0, file.size)
    if file.checksum:
        yield ReadRequest(file.path + CHECKSUM)
    if file.hidden_checksum and allowance.local:
        yield ReadRequest(f"{folder}/{hadoop_sidecar_name(name)}")


def _judge(
    listing: Listing, files: Sequence[NeededFile], contents: Mapping[str, Answer], allowance: Allowance
) -> Verified:
    """Judge files as ``ckpt.state.verify`` does. One that could not be read is left to whoever looks at its end."""
    from ckpt.checkpoint.state.one_file import check_file  # a stateless checkpoint needs none of it

    held, verdicts, read, keys = HeldFiles(contents, local=allowance.local), Verified(), {}, {}
    for file in files:
        content, info = contents[file.path], listing.info(file.path)
        if not isinstance(content, bytes) or info is None or len(content) != info.size:
            continue
        read[file.path] = info
        if file.kind is StateFileKind.ZIP:
            verdict = judge_zip(file.path, content, verdicts)
            if verdict is not None:
                verdicts.wrong[file.path] = verdict
        outcome = check_file(held, file)
        if isinstance(outcome, Verdict):
            verdicts.wrong[file.path] = outcome
        elif outcome is not None:
            verdicts.unknown.add(file.path)
        else:
            keys[file.path] = tuple(_first_keys(file, content))
    return verdicts.with_all(Verified(files=read, keys=keys))


def _first_keys(file: NeededFile, content: bytes) -> Iterator[bytes]:
    """The first keys of an intact file; none of a zip, a description, or where packages are missing that read it."""
    with suppress(CkptError, ValueError, IndexError):  # the first block may end in the middle of a record
        if file.kind is StateFileKind.SST:
            from ckpt.formats.sst import first_keys

            yield from islice(first_keys(content), _KEYS)
        elif file.codec == LZ4 and file.kind in _STREAMS:
            from ckpt.formats.blockstream import Pieces, Stream
            from ckpt.formats.changelog import changes_of

            block = next(Stream().blocks(Pieces(iter([content]))), b"")
            records = islice(changes_of(block), _KEYS)
            yield from (record.key for record in records if record.action is not RecordType.DELETE_RANGE)


def count_unread(listing: Listing, files: Mapping[str, int], verified: Verified) -> NotRead:
    """Count the files whose middle was compared with nothing, and their bytes.

    ``files`` are those that the next start loads, with their sizes; SST files are found by the zips among them.
    """
    all_files = dict(files)
    for path in files:
        all_files.update((sst, size) for sst, size in verified.list_ssts(path) if listing.info(sst) is not None)
    judged = (verified.files.keys() - verified.unknown) | verified.wrong.keys()
    left = [size for path, size in all_files.items() if path not in judged]
    return NotRead(len(left), sum(left))
