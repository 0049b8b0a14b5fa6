"""Judge by their last bytes whether the files that a load reads are complete.

A complete LZ4 stream ends with its marker, a complete zip with its central directory. Only a file with another
tail is read further, because Spark does not check the tail: what counts is whether the data is there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS
from ckpt.checkpoint.state.folders import SSTS
from ckpt.checkpoint.state.read_steps import Answer, Step
from ckpt.errors import NotFound
from ckpt.formats.compression import END_MARK
from ckpt.formats.rocksdb import TAIL_LENGTH, parse_zip_tail, read_whole_zip
from ckpt.formats.sidecars import SparkChecksum, parse_spark_sidecar
from ckpt.formats.statefiles import CHECKSUM, LZ4, judge_stream
from ckpt.model import DamageKind, Fault, RocksDBSnapshot, StateFile, StateFileKind
from ckpt.storage.base import FileInfo, Listing, ReadRequest

_LARGEST_READ = 128 << 20
"""Up to this many bytes a suspicious file is read completely; of a larger one only the tail is checked."""

_READ_AT_ONCE = 16 << 20  # bytes of suspicious files, unless one alone is larger

_LARGEST_CHECKSUM = 1 << 16  # bytes

_LOGS = (StateFileKind.DELTA, StateFileKind.CHANGELOG)
_NO_ENTRIES = "NoSuchFileException"  # Spark unpacks a zip without entries and then does not find the file ``metadata``


class Verdict(NamedTuple):
    """The damage of one file."""

    kind: DamageKind
    detail: str
    says: str | None = None  # words of Spark's error or one of its causes, where they do not depend on the version


@dataclass(frozen=True, slots=True)
class Verified:
    """The outcome for a set of files, by path; a file that is in neither ``wrong`` nor ``unknown`` is complete."""

    wrong: dict[str, Verdict] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)  # another codec, or it could not be read
    snapshots: dict[str, RocksDBSnapshot] = field(default_factory=dict)  # what the zips say
    files: Mapping[str, FileInfo] = field(default_factory=dict)  # read completely, as they were listed
    reasons: Mapping[str, str] = field(default_factory=dict)  # why such a file is unknown
    keys: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)  # the first ones of files with rows

    def list_ssts(self, path: str) -> Iterator[tuple[str, int]]:
        """The SST files that a zip names, by path, and their sizes, if the zip was read."""
        recorded = self.snapshots.get(path)
        for name, size in recorded.ssts if recorded else ():
            yield f"{path.rpartition('/')[0]}/{SSTS}/{name}", size

    def with_all(self, others: "Verified") -> "Verified":
        """Return the verdicts on these files and on others together."""
        return Verified(
            {**self.wrong, **others.wrong},
            self.unknown | others.unknown,
            {**self.snapshots, **others.snapshots},
            {**self.files, **others.files},
            {**self.reasons, **others.reasons},
            {**self.keys, **others.keys},
        )

    def without_changed(self, listing: Listing) -> "Verified":
        """Return the verdicts on files that are as they were when every byte of them was read."""
        files = {path: info for path, info in self.files.items() if listing.info(path) == info}
        changed = self.files.keys() - files
        if not changed:
            return self
        return Verified(
            {path: verdict for path, verdict in self.wrong.items() if path not in changed},
            self.unknown - changed,
            {path: snapshot for path, snapshot in self.snapshots.items() if path not in changed},
            files,
            self.reasons,
            {path: keys for path, keys in self.keys.items() if path not in changed},
        )


NOTHING = Verified()


def verify(files: Iterable[StateFile], codec: str, fully_read: Verified = NOTHING) -> Step[Verified]:
    """Check the tail of each file, and then all of those whose tail is not that of a complete file.

    ``codec`` is the one in which the query compresses deltas and changelogs; the ends of others only say that they are
    not LZ4. Files that were ``fully_read`` are in the outcome, and not read again.
    """
    verdicts = Verified()
    looked_at: list[StateFile] = []
    for file in files:
        if file.path in fully_read.files:
            continue
        if file.size == 0:
            says = _NO_ENTRIES if file.kind is StateFileKind.ZIP else None
            verdicts.wrong[file.path] = Verdict(DamageKind.EMPTY, "the file is empty", says)
        else:
            looked_at.append(file)
    tails = yield [request_tail(file) for file in looked_at]
    suspicious: list[StateFile] = []
    for file, tail in zip(looked_at, tails, strict=True):
        of_zip = file.kind is StateFileKind.ZIP
        marked = not of_zip and isinstance(tail, bytes) and tail.endswith(END_MARK)
        if of_zip or codec == LZ4:
            if not (marked or _judge_tail(file, tail, verdicts)):
                suspicious.append(file)
        elif marked:
            verdicts.wrong[file.path] = judge_codec(codec)
        else:
            verdicts.unknown.add(file.path)
    while suspicious:
        sizes = accumulate(file.size for file in suspicious)
        count = max(sum(size <= _READ_AT_ONCE for size in sizes), 1)
        batch, suspicious = suspicious[:count], suspicious[count:]
        contents = yield [ReadRequest(file.path) for file in batch]
        for file, content in zip(batch, contents, strict=True):
            if not isinstance(content, bytes):
                verdicts.unknown.add(file.path)
                continue
            of_zip = file.kind is StateFileKind.ZIP
            verdict = judge_zip(file.path, content, verdicts) if of_zip else _judge_stream(content, file.kind)
            if verdict is not None:
                verdicts.wrong[file.path] = verdict
        del contents, content
    return verdicts.with_all(fully_read)


def judge_codec(codec: str) -> Verdict:
    """The verdict on a file that was compressed with LZ4, where the offsets record another codec."""
    return Verdict(DamageKind.OTHER_CODEC, f"it is compressed with {LZ4}, but the newest offsets record {codec}")


def compare_sizes(files: Sequence[StateFile], verified: Verified) -> Step[Verified]:
    """Compare files whose ends say nothing with the size that Spark's checksum file of each records."""
    answers = yield [ReadRequest(file.path + CHECKSUM, 0, _LARGEST_CHECKSUM) for file in files]
    wrong, known = {**verified.wrong}, set[str]()
    for file, answer in zip(files, answers, strict=True):
        recorded = parse_spark_sidecar(file.path + CHECKSUM, answer) if isinstance(answer, bytes) else None
        if not isinstance(recorded, SparkChecksum):
            continue
        known.add(file.path)
        if recorded.size != file.size:
            detail = f"{file.size} bytes, but its checksum file records {recorded.size}"
            wrong[file.path] = Verdict(DamageKind.TRUNCATED, detail)
    return replace(verified, wrong=wrong, unknown=verified.unknown - known)


def request_tail(file: StateFile) -> ReadRequest:
    """The last bytes of a file: those that tell whether it is complete, and what is in a zip."""
    length = min(TAIL_LENGTH if file.kind is StateFileKind.ZIP else len(END_MARK), file.size)
    return ReadRequest(file.path, file.size - length, length)


def _judge_tail(file: StateFile, tail: Answer, verdicts: Verified) -> bool:
    """Judge one file by its tail; False where all of it has to be read for that."""
    if isinstance(tail, NotFound):
        verdicts.wrong[file.path] = Verdict(DamageKind.MISSING, "it was gone when ckpt tried to read it")
    elif not isinstance(tail, bytes):
        verdicts.unknown.add(file.path)
    elif file.size > _LARGEST_READ:
        detail = f"it does not end like a complete .{file.kind}"
        verdicts.wrong[file.path] = Verdict(DamageKind.TRUNCATED, detail)
    elif file.kind is StateFileKind.ZIP:
        snapshot = parse_zip_tail(file.path, tail, file.size)
        if not isinstance(snapshot, RocksDBSnapshot):
            return False
        verdicts.snapshots[file.path] = snapshot
    else:
        return False
    return True


def _judge_stream(content: bytes, of: StateFileKind) -> Verdict | None:
    details = {
        DamageKind.ODD_END: "it does not end like a complete file, but all its data is there",
        DamageKind.TRUNCATED: f"it was truncated after {len(content)} bytes",
        DamageKind.UNREADABLE: "it does not start like a compressed Spark file",
    }
    kind = judge_stream(content, of)
    return None if kind is None else Verdict(kind, details[kind])


def judge_zip(path: str, content: bytes, verdicts: Verified) -> Verdict | None:
    """Judge a RocksDB zip: by its central directory, or entry by entry as Spark reads it."""
    snapshot = parse_zip_tail(path, content, len(content))
    if isinstance(snapshot, RocksDBSnapshot):
        verdicts.snapshots[path] = snapshot
        return None
    streamed = read_whole_zip(path, content)
    if isinstance(streamed, RocksDBSnapshot):
        verdicts.snapshots[path] = streamed
        return Verdict(DamageKind.ODD_END, "it does not end like a complete zip, but all its entries are there")
    if streamed.fault is Fault.TOO_LARGE:
        return Verdict(DamageKind.UNREADABLE, streamed.reason)
    if snapshot.fault is Fault.INCOMPLETE:
        if not content.startswith(b"PK"):
            return Verdict(DamageKind.UNREADABLE, "it is not a zip", _NO_ENTRIES)
        return Verdict(DamageKind.TRUNCATED, f"it was truncated after {len(content)} bytes")
    return Verdict(DamageKind.UNREADABLE, snapshot.reason)


def written_there(listing: Listing, file: StateFile) -> bool:
    """Tell whether a log in an object store has the time of its own batch, and more bytes than an end alone.

    A file is there only with all its bytes: what Spark writes is complete, whenever it is killed. A file that is cut
    off was already cut off when somebody copied it there. File times tell the two apart: Spark writes the log of batch
    B after the commit of B - 1 and before that of B, while a copied tree is written folder by folder. Times are in
    whole seconds in some stores: the time of the commit before has to be an earlier one.
    """
    if file.kind not in _LOGS or file.size <= len(END_MARK):
        return False
    batch = file.version - 1
    before = listing.info(f"{COMMITS}/{batch - 1}") or listing.info(f"{OFFSETS}/{batch}")
    match [info and info.mtime_ms for info in (before, listing.info(file.path), listing.info(f"{COMMITS}/{batch}"))]:
        case [int(earlier), int(written), int(committed)]:
            return earlier < written <= committed
    return False
