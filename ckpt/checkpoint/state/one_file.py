"""Every byte of one state file: read once, in pieces, and compared with whatever checksums there are."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias
from zlib import crc32

from ckpt.checkpoint.state.file_ends import Verdict, judge_codec
from ckpt.checkpoint.state.needed_files import NeededFile
from ckpt.errors import CkptError
from ckpt.formats.blockstream import LeadsOutside, Pieces, Stream
from ckpt.formats.checksums import crc32c, fold_checksums
from ckpt.formats.compression import MAGIC, Corrupt
from ckpt.formats.limits import LARGEST_RECORD, LARGEST_ZIP
from ckpt.formats.rocksdb import ZipTooLarge, read_zip
from ckpt.formats.sidecars import (
    BYTES_PER_CHECKSUM,
    HadoopChecksums,
    SparkChecksum,
    hadoop_sidecar_name,
    parse_hadoop_sidecar,
    parse_spark_sidecar as parse_spark,
)
from ckpt.formats.sst import FOOTER, CorruptData, ReadRange, UnknownTable, check_footer, check_sst
from ckpt.formats.statefiles import CHECKSUM, LZ4, last_bytes
from ckpt.formats.text import drop_white_space
from ckpt.model import DamageKind, StateFileKind, Unreadable
from ckpt.storage import Storage

_PIECE = 8 << 20  # bytes that are read at a time
_LARGEST_WHOLE = 1 << 29  # bytes of a remote SST file, which is in memory as a whole
_LARGEST_ODD = 256 << 20  # bytes of a stream with an odd end that are unpacked to find its last record
_LARGEST_CHECKSUM = 1 << 16  # bytes of Spark's checksum file
_WORTH_FOLDING = 1 << 12  # checksums of pieces that are compared together
_HEAD = 16
_ONE_RECORD = 4  # bytes of the record that ends a file
_NO_CHECKSUM = "its codec has no checksums, and it has no checksum file"
_BY_HADOOP = "Checksum error"  # the ChecksumException of Hadoop's LocalFileSystem


FileOutcome: TypeAlias = Verdict | str | None
"""The damage of a file, or why nothing is known of it; None for a file that is as it was written."""


def check_file(storage: Storage, file: NeededFile) -> FileOutcome:
    """Compare every byte of a file. Never raises for what is in it."""
    try:
        return _File(storage, file).outcome()
    except CkptError as error:  # of the storage, or a package is missing
        return str(error)


class _File:
    def __init__(self, storage: Storage, file: NeededFile) -> None:
        self._storage = storage
        self._file = file
        self._read = 0
        self._crc32c = 0
        self._hidden = self._read_hidden_checksums()
        self._recorded = self._read_spark_checksum()
        self._hidden_wrong: int | None = None  # the first byte of the first piece that is not of its checksum
        self._compared_by_hadoop = 0  # how many bytes Hadoop compares where Spark reads the file: not those of streams

    def outcome(self) -> FileOutcome:
        """The worst that is found: by the file itself, by Spark's checksum of it, by Hadoop's."""
        kind = self._file.kind
        if self._file.size == 0 and kind is not None:
            return Verdict(DamageKind.EMPTY, "the file is empty")
        itself: FileOutcome = None if kind is None else _NO_CHECKSUM
        if kind is StateFileKind.SST:
            itself = self._check_sst_file()
        elif kind is StateFileKind.ZIP:
            itself = self._zip()
        elif kind is not None and self._file.codec == LZ4:
            itself = self._stream()
        else:
            head = self._storage.read_range(self._file.path, 0, len(MAGIC))
            self._read_on(self._pieces())
            if kind is not None and head == MAGIC:
                itself = judge_codec(self._file.codec)
        return itself if isinstance(itself, Verdict) else self._judge_by_checksums(itself)

    def _judge_by_checksums(self, unknown: str | None) -> FileOutcome:
        wrong = self._compare_recorded()
        if wrong is not None:
            return wrong
        if self._hidden_wrong is None or self._is_only_respaced():
            return unknown if self._recorded is None and self._hidden is None else None
        name = hadoop_sidecar_name(self._file.path.rpartition("/")[2])
        detail = f"the bytes from {self._hidden_wrong:,} on do not match its hidden checksum file {name}"
        if self._hidden_wrong < self._compared_by_hadoop or unknown:
            return Verdict(DamageKind.UNREADABLE, detail, _BY_HADOOP)
        return Verdict(DamageKind.CHANGED if self._file.kind is None else DamageKind.CHECKSUM_DIFFERS, detail)

    def _is_only_respaced(self) -> bool:
        """Tell whether a file that describes state is as it was written but for its line ends: Spark reads the same."""
        if self._file.kind is not None or self._hidden is None or self._file.size > LARGEST_RECORD:
            return False
        data = self._storage.read(self._file.path)
        own = drop_white_space(data)
        return own.splitlines() == data.splitlines() and self._hidden.match(own)

    def _check_sst_file(self) -> FileOutcome:
        self._compared_by_hadoop = self._file.size
        read: ReadRange = partial(self._storage.read_range, self._file.path)
        if self._storage.local:
            pieces = self._pieces()
        else:  # two requests
            end = read(max(self._file.size - FOOTER, 0), FOOTER)
            try:
                check_footer(end)  # what does not end as an SST file is not held in memory
            except (Corrupt, UnknownTable):
                return self._judge_whole(self._pieces(), lambda: check_footer(end))
            if self._file.size > _LARGEST_WHOLE:
                self._read_on(self._pieces())
                return f"a remote SST file of more than {_LARGEST_WHOLE:,} bytes"
            data = self._storage.read(self._file.path)
            pieces, read = self._pieces(data), lambda offset, length: data[offset : offset + length]
        return self._judge_whole(pieces, lambda: check_sst(read, self._file.size, Pieces(pieces)))

    def _zip(self) -> FileOutcome:
        if self._file.size > LARGEST_ZIP:
            self._read_on(self._pieces())
            return f"a zip of more than {LARGEST_ZIP:,} bytes"
        data = self._storage.read(self._file.path)

        def check() -> None:
            self._compared_by_hadoop = read_zip(data)[1]

        return self._judge_whole(self._pieces(data), check)

    def _judge_whole(self, pieces: Iterator[bytes], check: Callable[[], object]) -> FileOutcome:
        """A file that Spark reads as a whole, once Hadoop has compared it with its checksums."""
        wrong: Exception | None = None
        try:
            check()
        except (UnknownTable, ZipTooLarge, Corrupt) as error:
            wrong = error
        self._read_on(pieces)
        by_hadoop = _BY_HADOOP if self._hidden_wrong is not None else None  # whose checksums come before anything else
        match wrong:
            case None:
                return None
            case CorruptData():
                kind = DamageKind.UNREADABLE if by_hadoop else DamageKind.BAD_BLOCK
                return Verdict(kind, str(wrong), by_hadoop)
            case Corrupt():
                return Verdict(DamageKind.UNREADABLE, str(wrong), by_hadoop)
            case _:
                return str(wrong)

    def _stream(self) -> FileOutcome:
        """A delta, changelog or HDFS-backed snapshot."""
        stream, head = Stream(), b""
        pieces = self._pieces()
        try:
            for block in stream.blocks(Pieces(pieces)):
                head = head or block[:_HEAD]
        except LeadsOutside as error:
            return Verdict(DamageKind.LEADS_OUTSIDE, str(error))
        except Corrupt as error:
            return Verdict(DamageKind.UNREADABLE, str(error))
        self._read_on(pieces)
        complete = bool(head) and stream.tail.endswith(last_bytes(head))
        if stream.wrong is None and stream.marked and complete:
            return None
        if complete and stream.wrong and not stream.cut and self._is_empty_changelog(stream):
            return Verdict(DamageKind.BAD_END, f"it has no records, and {stream.wrong}")
        if complete and self._has_last_record(stream):
            return Verdict(DamageKind.ODD_END, "it does not end like a complete file, but all its data is there")
        if stream.wrong is None or stream.cut:
            return Verdict(DamageKind.TRUNCATED, stream.wrong or "its last record is missing")
        return Verdict(DamageKind.UNREADABLE, stream.wrong)

    def _is_empty_changelog(self, stream: Stream) -> bool:
        """Since 4.0 Spark takes -1, the only record, for the length of a version, and reads on behind it."""
        return self._file.kind is StateFileKind.CHANGELOG and stream.length == len(stream.tail) == _ONE_RECORD

    def _has_last_record(self, stream: Stream) -> bool:
        """Tell whether the records lead to their end within the blocks that can be read."""
        if stream.length > _LARGEST_ODD:
            return False
        from ckpt.formats.changelog import leads_to_end  # few files have an odd end

        again = Stream()
        good = self._storage.read_range(self._file.path, 0, stream.end)
        return leads_to_end(b"".join(again.blocks(Pieces(iter([good])))))

    def _pieces(self, data: bytes | None = None) -> Iterator[bytes]:
        """The file, which may be in memory as a whole, from its beginning; what has gone by is in the checksums."""
        if data is None and self._file.size <= _PIECE:
            data = self._storage.read_range(self._file.path, 0, 2 * _PIECE)
        if data is None:
            pieces = self._storage.read_pieces(self._file.path, _PIECE)
        else:
            pieces = (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
        return (self._note(piece) for piece in pieces)

    def _note(self, piece: bytes) -> bytes:
        """Compare the next bytes with the checksum files beside it, and return them."""
        if self._file.checksum:
            self._crc32c = crc32c(piece, self._crc32c)
        if self._hidden is not None and self._hidden_wrong is None:
            self._compare_hidden(memoryview(piece), self._hidden)
        self._read += len(piece)
        return piece

    def _compare_hidden(self, piece: memoryview, recorded: HadoopChecksums) -> None:
        """Pieces of a file begin where those of Hadoop do: both sizes are powers of two."""
        size = recorded.bytes_per_checksum
        first, whole = self._read // size, len(piece) // size
        of_whole, rest = recorded.values[first : first + whole], piece[whole * size :]
        if (
            whole > _WORTH_FOLDING
            and len(of_whole) == whole
            and crc32(piece[: whole * size]) == fold_checksums(of_whole, size)
        ):
            piece, first = rest, first + whole
        for number, at in enumerate(range(0, len(piece), size), first):
            if number >= len(recorded.values) or crc32(piece[at : at + size]) != recorded.values[number]:
                self._hidden_wrong = number * size
                return

    def _read_hidden_checksums(self) -> HadoopChecksums | None:
        """Hadoop's checksum file; None where Hadoop ignores it, and on remote storage, where there is none."""
        if not (self._file.hidden_checksum and self._storage.local):
            return None
        folder, _, name = self._file.path.rpartition("/")
        path = f"{folder}/{hadoop_sidecar_name(name)}"
        most = 8 + 4 * (self._file.size // BYTES_PER_CHECKSUM + 1)
        checksums = parse_hadoop_sidecar(path, self._storage.read_range(path, 0, most + 4))
        usable = isinstance(checksums, HadoopChecksums) and _PIECE % checksums.bytes_per_checksum == 0
        return checksums if isinstance(checksums, HadoopChecksums) and usable else None

    def _read_spark_checksum(self) -> SparkChecksum | Unreadable | None:
        if not self._file.checksum:
            return None
        path = self._file.path + CHECKSUM
        return parse_spark(path, self._storage.read_range(path, 0, _LARGEST_CHECKSUM))

    def _compare_recorded(self) -> Verdict | None:
        """Compare Spark's checksum file with the bytes that were read; None where nothing is wrong."""
        recorded, name = self._recorded, (self._file.path + CHECKSUM).rpartition("/")[2]
        if recorded is None:
            return None
        if not isinstance(recorded, SparkChecksum) or recorded.algorithm != "CRC32C":
            return Verdict(DamageKind.ODD_END, f"the checksum file {name} cannot be read")
        if recorded.size != self._read:
            size = max(self._read, self._file.size)
            detail = f"{size:,} bytes, but its checksum file {name} records {recorded.size:,}"
        elif recorded.value & 0xFFFFFFFF != self._crc32c:
            detail = f"its checksum differs from the one in {name}"
        else:
            return None
        return Verdict(DamageKind.ODD_END if self._file.codec == LZ4 else DamageKind.UNREADABLE, detail)

    def _read_on(self, pieces: Iterator[bytes]) -> None:
        """Read the rest of the file, as long as the checksums beside it could say more."""
        most = self._recorded.size if isinstance(self._recorded, SparkChecksum) else -1
        while self._read <= most or (self._hidden is not None and self._hidden_wrong is None):
            if next(pieces, None) is None:
                return
