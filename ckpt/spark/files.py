"""The file system that an export goes to, through Hadoop as Spark sees it."""

import time
import uuid
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from ckpt.errors import CkptError
from ckpt.spark.jobs import SparkFailed, translate_failures
from ckpt.state.export.targets import ExportTarget, check_target, folder_and_name

_RENAMED_AT_ONCE = ("file:", "hdfs:")  # elsewhere renaming a folder may be copying its files one by one
_TRIES, _PAUSE_SECONDS = 20, 0.5


@dataclass(frozen=True, slots=True)
class Files:
    """Few operations on paths of any Hadoop file system."""

    spark: SparkSession

    def exists(self, path: str) -> bool:
        """Tell whether there is something at the path."""
        where, system = self._locate(path)
        return bool(system.exists(where))

    def list_names(self, path: str) -> list[str] | None:
        """List a folder; None for a file."""
        where, system = self._locate(path)
        if not system.getFileStatus(where).isDirectory():
            return None
        return [status.getPath().getName() for status in system.listStatus(where)]

    def rename(self, path: str, to: str) -> None:
        """Rename a folder, on most file systems at once. Raises CkptError where that fails."""
        where, system = self._locate(path)
        if not system.rename(where, self._locate(to)[0]):
            raise CkptError(f"{path} could not be renamed to {to}")

    def remove(self, path: str) -> None:
        """Remove a folder and all that is in it; fine where there is none."""
        where, system = self._locate(path)
        system.delete(where, True)

    def write(self, path: str, text: str) -> None:
        """Write a small file, over one that is there."""
        where, system = self._locate(path)
        with closing(system.create(where, True)) as stream:
            stream.write(bytearray(text, "utf-8"))

    def _locate(self, path: str) -> tuple[Any, Any]:
        """Hadoop's path, and its file system."""
        where = self.spark.sparkContext._jvm.org.apache.hadoop.fs.Path(path)
        return where, where.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())


class Staged:
    """A folder that appears whole or not at all: written beside its place under a hidden name, then renamed.

    Existing data is replaced only if requested, and only when the new folder is complete.
    """

    def __init__(self, files: Files, target: ExportTarget) -> None:
        """Look at the place. Raises UsageError if something exists that must not be replaced."""
        self._files = files
        self._place = target.name.rstrip("/")
        parent, name = folder_and_name(self._place)
        self.path = f"{parent}/.{name}.ckpt-{uuid.uuid4().hex[:12]}"
        self._at_once = self._place.startswith(_RENAMED_AT_ONCE)
        with translate_failures(f"checking {self._place}"):
            self._replaces = files.exists(self._place)
            if self._replaces:
                check_target(target, files.list_names(self._place))

    def finish(self, texts: Mapping[str, str]) -> None:
        """Put the whole folder in its place, with small files that say so: path below it, and text.

        Where renaming is copying these are written last, so that nothing has them that is not whole.
        """
        with translate_failures(f"putting {self._place} in its place"):
            if self._at_once:
                self._write(self.path, texts)
            if not self._replaces:
                if self._files.exists(self._place):  # a rename would move the folder into it
                    raise CkptError(f"{self._place} appeared while the export was being written, and is not changed")
                self._swap(texts)
                return
            old = f"{self.path}-old"
            self._files.rename(self._place, old)
            try:
                self._swap(texts)
            except BaseException:
                self._files.rename(old, self._place)
                raise
            self._files.remove(old)

    def _swap(self, texts: Mapping[str, str]) -> None:
        """Rename the folder to its place, which is free; leave that free where it fails."""
        try:
            self._files.rename(self.path, self._place)
            if not self._at_once:
                self._write(self._place, texts)
        except BaseException:
            if not self._at_once:
                self._files.remove(self._place)  # a copy that was cut short
            raise

    def _write(self, folder: str, texts: Mapping[str, str]) -> None:
        for path, text in texts.items():
            self._files.write(f"{folder}/{path}", text)

    def give_up(self) -> None:
        """Remove what was written, as far as the file system still answers.

        Tasks that were cancelled go on until they notice, and make the folder again: it is removed until it stays away.
        """
        with suppress(SparkFailed), translate_failures(f"removing {self.path}"):
            for _ in range(_TRIES):
                self._files.remove(self.path)
                time.sleep(_PAUSE_SECONDS)
                if not self._files.exists(self.path):
                    return
