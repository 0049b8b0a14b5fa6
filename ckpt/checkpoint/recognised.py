"""Decides whether a folder is a checkpoint, by names that Spark writes and by the first bytes of files.

Spark itself asks for neither: it takes ``offsets/0000`` of PostgreSQL for batch 0.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS, PARTS, SOURCES, STATE
from ckpt.errors import CkptError, NotFound, StorageError
from ckpt.formats.statefiles import version_of
from ckpt.storage import Folder, Storage, open_storage
from ckpt.storage.base import ReadRequest
from ckpt.storage.locations import find_parent

_FEW, _HEAD = 4, 256  # files or folders of one folder that are looked at; bytes of each file
_ABOVE = 4  # folders above: from state/0/0/_metadata to its checkpoint
_BATCH = re.compile(r"(0|[1-9][0-9]{0,17})(\.compact)?")
_ID = re.compile(rb'\{\s*"id"\s*:\s*("[^"]*"?|[\w.+-]*)\s*\}?')
_JAVA, _UNFINISHED = b"\xac\xed\x05sr", b"ckpt has not finished "  # Spark 2.0 serialized offsets; ckpt's own mark
_OTHERS = {
    "a data directory of PostgreSQL": r"PG_VERSION",
    "a Delta table": r"_delta_log/",
    "a Hudi table": r"\.hoodie/",
    "an Iceberg table": r"version-hint\.text|.*\.metadata\.json",
    "the output of a file sink": r"_spark_metadata/",
    "a log directory of Kafka": r"meta\.properties|(partition|topic)\.metadata|.*-(epoch|offset)-checkpoint",
    "a folder of Flink checkpoints or savepoints": r"(chk-\d+|savepoint-[0-9a-f]{6}-[0-9a-f]{12}|taskowned)/",
    "a DStreams checkpoint, which Structured Streaming does not read": r"checkpoint-\d{12,}|receivedBlockMetadata/",
    "a git folder": r"HEAD",
}
"""Other formats that are often beside checkpoints, each by the name of a file or folder in it."""


def find_parts(top: Folder) -> list[str]:
    """The parts of a checkpoint that a folder has by name: the file ``metadata``, which says most, and folders."""
    return [METADATA] * (METADATA in top.files) + [part for part in PARTS if part in top.folders - {METADATA}]


def is_checkpoint(storage: Storage, top: Folder, folder: str = "") -> bool:
    """Tell whether a folder, whose first level is ``top``, is what Spark left, or may be what is left of that."""
    logs = not {METADATA, OFFSETS, COMMITS}.isdisjoint(find_parts(top))
    made = made_by_spark(storage, top, folder)
    return logs if made is None else made


def made_by_spark(storage: Storage, top: Folder, folder: str = "") -> bool | None:
    """Tell whether the parts of a checkpoint in a folder are Spark's; None where they are empty, or there are none.

    One part is enough. What cannot be read may be Spark's.
    """
    verdicts = set[bool]()
    for part in find_parts(top):
        try:
            verdicts.update(_JUDGES[part](storage, f"{folder}/{part}" if folder else part))
        except NotFound:
            continue
        except StorageError:
            return True
        if True in verdicts:
            return True
    return False if verdicts else None


def _judge_metadata(storage: Storage, path: str) -> Iterator[bool]:
    return _judge_files(storage, [path], lambda text: bool(_ID.fullmatch(text)) or b'{"id":'.startswith(text))


def _judge_log(storage: Storage, folder: str) -> Iterator[bool]:
    level = storage.list_level(folder)
    batches = sorted(filter(_BATCH.fullmatch, level.files), key=lambda name: (len(name), name))
    chosen = dict.fromkeys(f"{folder}/{name}" for name in batches[:_FEW] + batches[-_FEW:])
    return _judge_files(storage, chosen, _is_log) if chosen else _judge_names(*level.files, *level.folders)


def _is_log(text: bytes) -> bool:
    """Tell it by the first line, or where that is lost, by what is in the second of all Spark versions."""
    versioned = re.match(rb"v-?\d*\s*(\n|$)", text) is not None
    return versioned or text.startswith((_JAVA, _UNFINISHED)) or b'atchWatermarkMs"' in text


def _judge_files(storage: Storage, paths: Iterable[str], is_sparks: Callable[[bytes], bool]) -> Iterator[bool]:
    for answer in storage.read_many([ReadRequest(path, 0, _HEAD) for path in paths]):
        if isinstance(answer, bytes):  # a crash leaves zeros; an editor adds a mark, or writes UTF-16
            text = answer.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe").strip()
            yield from [is_sparks(text)] if text else []
        elif not isinstance(answer, NotFound):
            yield True


def _judge_names(*names: str) -> Iterator[bool]:
    """Judge names that Spark does not write: visible ones and those of macOS are foreign, others prove nothing."""
    yield from [False] * any(name[0] != "." or name[:2] == "._" for name in names)


def _judge_state(storage: Storage, folder: str) -> Iterator[bool]:
    """Judge by names alone: there is an operator 0, with partitions, and stores in these if it is a join."""
    level = storage.list_level(folder)
    folders = [f"{folder}/0"] if "0" in level.folders else []
    yield from [] if folders else _judge_names(*level.files, *level.folders)
    for _ in range(3):
        levels = {path: storage.list_level(path) for path in folders[:_FEW]}
        for inner in levels.values():
            known = "_metadata" in inner.folders or any(version_of(name) is not None for name in inner.files)
            yield from [True] if known else _judge_names(*inner.files)
        folders = [f"{path}/{name}" for path, inner in levels.items() for name in sorted(inner.folders)]


def _judge_sources(storage: Storage, folder: str) -> Iterator[bool]:
    level = storage.list_level(folder)
    for path, number in ((f"{folder}/{name}", _BATCH.fullmatch(name)) for name in sorted(level.folders)[:_FEW]):
        known = number and storage.list_level(path).folders & {OFFSETS, "rocksdb"}  # of Iceberg, of Auto Loader
        yield from [True] if known else _judge_log(storage, path)
    yield from _judge_names(*level.files)


_JUDGES: Mapping[str, Callable[[Storage, str], Iterator[bool]]] = {
    METADATA: _judge_metadata,
    OFFSETS: _judge_log,
    COMMITS: _judge_log,
    STATE: _judge_state,
    SOURCES: _judge_sources,
}


def describe_other(storage: Storage, top: Folder) -> str | None:
    """Say what a folder is that is no checkpoint, and what to do; None where that is not known.

    On a local disk, the folders that it is in are looked at too.
    """
    iceberg = OFFSETS in top.folders and re.search(r"/sources/\d+/?$", storage.uri)
    what = "the folder of an Iceberg source, " * bool(iceberg)
    places = [storage.uri]
    while storage.local and len(places) <= _ABOVE and (above := find_parent(places[-1])) is not None:
        places.append(above)
    for uri in places:
        with suppress(CkptError):
            opened = open_storage(uri, {}) if uri in places[1:] else storage
            level = opened.list_level() if opened is not storage else top
            if opened is not storage and is_checkpoint(opened, level):
                return f"it is {what}in a checkpoint: use {uri}"
            names = [*level.files, *(f"{name}/" for name in level.folders)]
            names += opened.list_level(METADATA).files if METADATA in level.folders else ()
            for name, pattern in _OTHERS.items():
                if any(re.fullmatch(pattern, inside) for inside in names):
                    where = "in " * (opened is not storage)
                    return f"it is {where}{name}; use the folder that the query names as checkpointLocation"
    return f"it is {what}whose checkpoint should be two folders above it" if iceberg else None
