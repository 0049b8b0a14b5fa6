"""The file system that an export goes to, through Hadoop as Spark sees it."""

import uuid
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from ckpt.errors import CkptError, UsageError
from ckpt.export.targets import MANIFEST, Mode, Target
from ckpt.spark.trouble import told

_MARKS = (MANIFEST, "_SUCCESS", "_delta_log")  # one of them lies in every folder that Spark or ckpt has written


@dataclass(frozen=True, slots=True)
class Files:
    """Few operations on paths of any Hadoop file system."""

    spark: SparkSession

    def exists(self, path: str) -> bool:
        """Whether there is something at the path."""
        where = self._path(path)
        return bool(self._system(where).exists(where))

    def is_export(self, path: str) -> bool:
        """Whether a folder is empty, or holds what Spark or ckpt has written."""
        where = self._path(path)
        system = self._system(where)
        if not system.getFileStatus(where).isDirectory():
            return False
        names = [status.getPath().getName() for status in system.listStatus(where)]
        return not names or any(mark in names for mark in _MARKS)

    def is_empty(self, path: str) -> bool:
        """Whether a path is a folder with nothing in it."""
        where = self._path(path)
        system = self._system(where)
        return bool(system.getFileStatus(where).isDirectory()) and len(system.listStatus(where)) == 0

    def rename(self, path: str, to: str) -> None:
        """Rename a folder, on most file systems at once. Raises CkptError where that fails."""
        where, target = self._path(path), self._path(to)
        if not self._system(where).rename(where, target):
            raise CkptError(f"{path} could not be renamed to {to}")

    def remove(self, path: str) -> None:
        """Remove a folder and all that is in it; fine where there is none."""
        where = self._path(path)
        self._system(where).delete(where, True)

    def write(self, path: str, text: str) -> None:
        """Write a small file, over one that is there."""
        where = self._path(path)
        stream = self._system(where).create(where, True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()

    def _path(self, path: str) -> Any:
        return self.spark.sparkContext._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: Any) -> Any:
        return path.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())


class Staged:
    """A folder that appears whole or not at all: written beside its place under a hidden name, then renamed.

    What is there already is replaced only where that was asked for, and only once the new folder is whole.
    """

    def __init__(self, files: Files, target: Target) -> None:
        """Look at the place. Raises UsageError where something is there that is not to be, or may not be, replaced."""
        self._files = files
        self._place = target.name.rstrip("/")
        parent, _, name = self._place.rpartition("/")
        if not name or parent.endswith(":/") or parent.endswith(":"):
            raise UsageError(f"--to {target.name}: write below a folder, for the export is written beside it first")
        self.path = f"{parent}/.{name}.ckpt-{uuid.uuid4().hex[:12]}"
        with told(f"looking at {self._place}"):
            self._replaces = files.exists(self._place)
            if self._replaces and target.mode is Mode.ERROR:
                raise UsageError(f"{self._place} is there already: --mode overwrite replaces it")
            if self._replaces and not files.is_export(self._place):
                raise UsageError(f"{self._place} holds something that was not exported, and is not overwritten")

    def finish(self) -> None:
        """Put the whole folder in its place."""
        with told(f"putting {self._place} in its place"):
            if not self._replaces:
                if self._files.exists(self._place):  # a rename would move the folder into it
                    raise CkptError(f"{self._place} appeared while it was being written, and is left as it is")
                self._files.rename(self.path, self._place)
                return
            old = f"{self.path}-old"
            self._files.rename(self._place, old)
            try:
                self._files.rename(self.path, self._place)
            except BaseException:
                self._files.rename(old, self._place)
                raise
            self._files.remove(old)

    def give_up(self) -> None:
        """Remove what was written."""
        self._files.remove(self.path)
