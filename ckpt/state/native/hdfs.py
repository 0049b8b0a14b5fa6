"""The rows of an HDFS-backed store in one partition."""

from collections.abc import Iterator

from ckpt.formats.rows.codecs import decompressed
from ckpt.formats.rows.errors import WITH_SPARK, TooLarge, Undecodable
from ckpt.formats.rows.hdfs import Records, newest, records_of, with_key
from ckpt.formats.rows.row_checksums import plain_file
from ckpt.formats.rows.rows import Rows, rows_at
from ckpt.state.native.store_files import MOST_ROWS, StoreFiles


def rows_in(files: StoreFiles) -> Iterator[tuple[Rows, Rows]]:
    """Keys and values, some at a time. The files of the version are in memory, as they are in Spark."""
    found = _records(files)
    for path, records in zip(_paths(files), newest(found, distinct=files.snapshot is not None), strict=True):
        for start in range(0, len(records), MOST_ROWS):
            yield _rows(files, path, records.take(slice(start, start + MOST_ROWS)))


def row_with(files: StoreFiles, key: bytes) -> tuple[Rows, Rows] | None:
    """Read the row of one key, given as the bytes of its row; None where it is not there."""
    found = with_key(_records(files), key)
    return None if found is None else _rows(files, files.place.folder, found)


def _rows(files: StoreFiles, path: str, some: Records) -> tuple[Rows, Rows]:
    try:
        keys = rows_at(some.data, some.key_at, some.key_size)
        return keys, rows_at(some.data, some.value_at, some.value_size)
    except Undecodable as error:
        raise files.refused(path, error) from None


def _paths(files: StoreFiles) -> list[str]:
    return [*filter(None, [files.snapshot]), *files.logs]


def _records(files: StoreFiles) -> list[Records]:
    """The records of every file, oldest first."""
    found: list[Records] = []
    for path in _paths(files):
        try:
            data = decompressed(files.pieces(path), files.codec, files.most)
            found.append(records_of(plain_file(data) if files.checksums else data))
        except Undecodable as error:
            raise files.refused(path, error) from None
        if sum(len(one.data) for one in found) > files.most:
            raise files.refused(
                path, TooLarge(f"its partition unpacks to more than {files.most:,} bytes: {WITH_SPARK}")
            )
    return found
