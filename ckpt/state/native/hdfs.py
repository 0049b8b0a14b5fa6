"""The rows of an HDFS-backed store in one partition."""

from collections.abc import Iterator

from ckpt.formats.rows.codecs import decompress
from ckpt.formats.rows.errors import WITH_SPARK, TooLarge, Undecodable
from ckpt.formats.rows.hdfs import Records, find_key, keep_newest, records_of
from ckpt.formats.rows.row_checksums import plain_file
from ckpt.formats.rows.unsafe import Rows, rows_at
from ckpt.state.native.store_files import MOST_ROWS, StoreFiles


def read_rows(files: StoreFiles) -> Iterator[tuple[Rows, Rows]]:
    """Keys and values, some at a time. The files of the version are in memory, as they are in Spark."""
    records_of_files = _read_records(files)
    for path, records in zip(
        _paths(files), keep_newest(records_of_files, distinct=files.snapshot is not None), strict=True
    ):
        for start in range(0, len(records), MOST_ROWS):
            yield _rows(files, path, records.take(slice(start, start + MOST_ROWS)))


def read_row(files: StoreFiles, key: bytes) -> tuple[Rows, Rows] | None:
    """Read the row of one key, given as the bytes of its row; None where it is not there."""
    record = find_key(_read_records(files), key)
    return None if record is None else _rows(files, files.place.folder, record)


def _rows(files: StoreFiles, path: str, records: Records) -> tuple[Rows, Rows]:
    try:
        keys = rows_at(records.data, records.key_at, records.key_size)
        return keys, rows_at(records.data, records.value_at, records.value_size)
    except Undecodable as error:
        raise files.refused(path, error) from None


def _paths(files: StoreFiles) -> list[str]:
    return [*filter(None, [files.snapshot]), *files.logs]


def _read_records(files: StoreFiles) -> list[Records]:
    """The records of every file, oldest first."""
    read: list[Records] = []
    for path in _paths(files):
        try:
            data = decompress(files.pieces(path), files.codec, files.most)
            read.append(records_of(plain_file(data) if files.checksums else data))
        except Undecodable as error:
            raise files.refused(path, error) from None
        if sum(len(records.data) for records in read) > files.most:
            raise files.refused(
                path, TooLarge(f"its partition unpacks to more than {files.most:,} bytes: {WITH_SPARK}")
            )
    return read
