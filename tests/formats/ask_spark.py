"""Have a real Spark read every case of ``spark_cases``: a role of `tests/record/process.py`.

Only Spark's own log classes are called; nothing of ckpt is imported, so an answer can never come from ckpt.
"""

import shutil
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from tests.formats.spark_cases import COMPACTIBLE, ENTRY, KINDS, NAMES

Py4JJavaError: Any = import_module("py4j.protocol").Py4JJavaError
STREAMING = "org.apache.spark.sql.execution.streaming."
ROOMS = ("", "checkpointing.", "runtime.", "sinks.")


class Reader:
    """Spark's log classes, found by name, whichever package this version keeps them in."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm = spark._jvm
        self.hadoop = spark._jsparkSession.sessionState().newHadoopConf()

    def cls(self, name: str):
        for room in ROOMS:
            try:
                self.jvm.java.lang.Class.forName(STREAMING + room + name)
            except Py4JJavaError:
                continue
            found = self.jvm
            for part in (STREAMING + room + name).split("."):
                found = getattr(found, part)
            return found
        raise LookupError(name)

    def log(self, kind: str, folder: Path):
        session, path = self.spark._jsparkSession, str(folder)
        read_only = (False,) if self.spark.version >= "4.2" else ()
        match kind:
            case "offsets":
                return self.cls("OffsetSeqLog")(session, path, *read_only)
            case "commits":
                return self.cls("CommitLog")(session, path, *read_only)
            case "file-source":
                return self.cls("FileStreamSourceLog")(1, session, path)
            case "file-sink":
                nothing = self.jvm.scala.Option.empty()
                return self.cls("FileStreamSinkLog")(1, session, path, nothing)
        raise LookupError(kind)

    def open(self, path: Path):
        return self.jvm.java.io.FileInputStream(str(path))

    def metadata(self, path: Path):
        return self.cls("StreamMetadata").read(self.jvm.org.apache.hadoop.fs.Path(str(path)), self.hadoop).get()


def _shown(reader: Reader, kind: str, record) -> object:
    """What Spark read, as it would write or print it."""
    if kind == "offsets":
        option = record.metadataOpt() if reader.spark.version >= "4.2" else record.metadata()
        metadata = option.get() if option.isDefined() else None
        return [metadata.json() if metadata is not None else None, record.toString()]
    if kind in ("commits", "metadata"):
        return record.json() if record is not None else None
    return len(record)


def _asked(ask: Callable[[], object]) -> dict[str, Any]:
    """What Spark answered, or the classes and first words of what it threw."""
    try:
        return {"read": ask()}
    except (Py4JJavaError, CapturedException) as error:
        java = error.java_exception if isinstance(error, Py4JJavaError) else error._origin
        thrown: list[tuple[str, str]] = []
        while java is not None and len(thrown) < 3:
            words = (java.getMessage() or "").split("\n at [Source")[0]
            thrown.append((java.getClass().getSimpleName(), words[:100]))
            java = java.getCause()
        return {"error": thrown[0][0], "says": " <- ".join(says for _, says in thrown)}


def _file_answers(reader: Reader, kind: str, root: Path) -> dict:
    folder = root / kind
    folder.mkdir()
    path = folder / "7"
    log = None if kind == "metadata" else reader.log(kind, folder)

    def read() -> object:
        record = reader.metadata(path) if log is None else log.deserialize(reader.open(path))
        return _shown(reader, kind, record)

    answers = {}
    for name, raw in KINDS[kind].items():
        path.write_bytes(raw)
        answers[name] = _asked(read)
    return answers


def _latest(reader: Reader, folder: Path) -> str:
    return str(reader.log("commits", folder).getLatestBatchId().toString())


def _restore(reader: Reader, folder: Path) -> int:
    return len(reader.log("file-source", folder).restore())


def _listed(reader: Reader, root: Path) -> dict:
    """For each odd name: the latest batch that a log holding a file of that name sees (or nothing)."""
    answers = {}
    for number, name in enumerate(NAMES):
        folder = root / f"names-{number}"
        folder.mkdir()
        (folder / name).write_bytes(b"v1\n{}")
        answers[name] = _asked(partial(_latest, reader, folder))
        shutil.rmtree(folder)
    return answers


def _restored(reader: Reader, root: Path) -> dict:
    """For each set of file names: how many entries a file source restores, or why it cannot."""
    answers = {}
    for number, (name, files) in enumerate(COMPACTIBLE.items()):
        folder = root / f"compactible-{number}"
        folder.mkdir()
        for file in files:
            (folder / file).write_text(f"v1\n{ENTRY}")
        answers[name] = _asked(partial(_restore, reader, folder))
        if "says" in answers[name]:
            answers[name]["says"] = answers[name]["says"].replace(str(folder), "<log>")
        shutil.rmtree(folder)
    return answers


def answer(spark: Any, _: dict[str, Any], root: Path) -> dict[str, Any]:
    root.mkdir()
    reader = Reader(spark)
    mine: dict[str, Any] = {kind: _file_answers(reader, kind, root) for kind in KINDS}
    mine["names"] = _listed(reader, root)
    mine["compactible"] = _restored(reader, root)
    return mine
