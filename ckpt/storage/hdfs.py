"""HDFS without a JVM, through hdfs-native.

Asked directly and not through its fsspec file system, which cuts paths at ``#``, ``?`` and ``;`` and
panics where a range begins past the end of a file.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import hdfs_native

from ckpt.errors import StorageError
from ckpt.storage.base import FileInfo, temporary
from ckpt.storage.remote import Backend, ListedItem

# By default hdfs-native retries for three minutes before it says that no name node answers.
_PATIENCE = {"dfs.client.failover.max.attempts": "4", "dfs.client.failover.sleep.max.millis": "1000"}


class HdfsBackend(Backend):
    """A folder of an HDFS, or of a viewfs mount table.

    Writes a temporary file and renames it, which HDFS refuses where the name is taken, unless told to replace.
    """

    def __init__(self, scheme: str, host: str, path: str, settings: Mapping[str, str]) -> None:
        """Connect to a name node or name service; ``settings`` go before those of HADOOP_CONF_DIR."""
        self.whole_files = False
        self.cure = "check HADOOP_CONF_DIR, HADOOP_USER_NAME and the Kerberos ticket"
        self.client = hdfs_native.Client(f"{scheme}://{host}", {**_PATIENCE, **settings})
        self._root = f"/{path}" if path else ""

    def level(self, folder: str) -> Iterable[ListedItem]:
        base = self.join(folder)
        for status in self.client.list_status(base, False):
            if status.path == base and not status.isdir:
                raise NotADirectoryError(base)
            path = f"{folder}/{status.path.rpartition('/')[2]}".lstrip("/")
            yield ListedItem(path, None if status.isdir else FileInfo(status.length, status.modification_time))

    def everything(self) -> None:
        """Nothing better than folder by folder: a name node lists one at a time."""

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """A range of a file: one question to the name node, one to a data node."""
        with self.client.read(self.join(path)) as file:
            left = max(0, len(file) - offset)
            wanted = left if length is None else min(length, left)
            return bytes(file.read_range(offset, wanted)) if wanted else b""

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        try:
            self._write(path, pieces, over=False)
        except StorageError:  # of what is read
            raise
        except Exception:
            with suppress(FileNotFoundError):
                self.client.get_file_info(self.join(path))
                raise FileExistsError(path) from None
            raise

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file over another one, in one step of the name node."""
        self._write(path, (data,), over=True)

    def _write(self, path: str, pieces: Iterable[bytes], *, over: bool) -> None:
        unfinished = self.join(temporary(path))
        try:
            with self.client.create(unfinished, hdfs_native.WriteOptions(overwrite=True)) as file:
                for piece in pieces:
                    file.write(piece)
            self.client.rename(unfinished, self.join(path), over)
        except BaseException:
            with suppress(Exception):
                self.client.delete(unfinished, False)
            raise

    def delete(self, path: str) -> None:
        if not self.client.delete(self.join(path), False):
            raise FileNotFoundError(path)

    def make_folder(self, path: str) -> None:
        self.client.mkdirs(self.join(path), 0o755, True)
