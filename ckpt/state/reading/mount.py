"""Where Spark finds a checkpoint: at its own path, or behind a mount table where it could not read that.

Spark's state reader has two weaknesses about paths (measured on 4.0 to 4.3). It percent-encodes the path and takes the
result for a path, so that one with a space or a ``%`` is not found. And it follows the absolute paths in operator
metadata v2, which are dead, or somebody else's, once a checkpoint was moved or copied. A mount table of Hadoop's
``viewfs`` cures both on every file system and on a cluster, without copying state and without writing to the
checkpoint: its links lead to the real folders, and rewritten operator metadata (a few kilobytes in a temporary folder
of the driver, the only one to read them) replaces the recorded one.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS, SOURCES, STATE, Checkpoint
from ckpt.errors import StorageError
from ckpt.formats.limits import refuse_too_large
from ckpt.formats.operators import OperatorName, parse_operator_metadata, replace_schema_paths
from ckpt.model import Json, OperatorMetadata
from ckpt.state.reading.units import StateUnit
from ckpt.storage.locations import spark_uri

VIEW = "viewfs"
ROOT = f"{VIEW}://ckpt-view"
"""How replaced files name the root of the view: its name is chosen when it is mounted."""

_KEPT = "/-_.!~*'():@&=+$,;"  # what Java's URI leaves in a path as it is


@dataclass(frozen=True, slots=True)
class Mount:
    """A view of a checkpoint: ``links`` lead from paths in it to URIs, ``replaced`` files are staged."""

    reasons: tuple[str, ...]
    links: Mapping[str, str]
    replaced: Mapping[str, str]  # path and text of files that replace recorded ones; ROOT is the view
    folders: tuple[str, ...]  # of the replaced files: each needs a link
    path: str  # of the checkpoint in the view


def is_plain(uri: str) -> bool:
    """Tell whether a path means the same to Spark's state reader when it is percent-encoded once too often."""
    path = uri.partition(":")[2]
    return all(char.isalnum() or char in _KEPT or (ord(char) > 127 and char.isprintable()) for char in path)


def mount_for(checkpoint: Checkpoint, unit: StateUnit, read: Callable[[str], bytes]) -> Mount | None:
    """The mount that reading a unit needs, if any; ``read`` reads a file of the checkpoint. Raises StorageError."""
    reasons, replaced = [], {path: _move_to_root(path, read(path), unit) for path in _find_misled(checkpoint, unit)}
    if replaced:
        reasons.append("operator metadata names schema files by paths outside this checkpoint")
    elif unit.prefix_columns is not None:
        replaced[f"{STATE}/{unit.operator}/_metadata/metadata"] = _metadata_with_prefix(checkpoint, unit)
        reasons.append("no operator metadata says how the keys of these session windows are stored")
    home = spark_uri(checkpoint.uri)
    if not is_plain(home):
        reasons.append("Spark's state reader cannot open a path with such characters")
    if not reasons:
        return None
    if not replaced:
        return Mount(tuple(reasons), {"/checkpoint": _target(home)}, {}, (), "/checkpoint")
    folders = tuple(sorted({path.partition("/_metadata/")[0] + "/_metadata" for path in replaced}))
    links = {f"/{path}": _target(f"{home}/{path}") for path in _entries(checkpoint) if path not in folders}
    return Mount(tuple(reasons), links, replaced, folders, "/")


def _target(uri: str) -> str:
    scheme, _, path = uri.partition(":")
    return f"{scheme}:{quote(path, safe=_KEPT)}"


def _entries(checkpoint: Checkpoint) -> Iterator[str]:
    """List what is linked one by one: the logs, and everything in the folder of each operator."""
    listing = checkpoint.listing
    yield from (name for name in (OFFSETS, COMMITS, SOURCES) if listing.has_folder(name))
    if listing.info(METADATA):
        yield METADATA
    for operator in listing.subfolders(STATE):
        yield from (f"{STATE}/{operator}/{name}" for name in listing.subfolders(f"{STATE}/{operator}"))


def _find_misled(checkpoint: Checkpoint, unit: StateUnit) -> Iterator[str]:
    """Files of operator metadata whose schema paths lead out of the checkpoint."""
    state = checkpoint.state
    for operator in checkpoint.operators:
        if operator.id == unit.operator and state and not set(operator.schema_paths).isdisjoint(state.moved_schemas):
            folder = f"{STATE}/{operator.id}/_metadata/v2"
            for name, info in checkpoint.listing.in_folder(folder).items():
                if not name.isdecimal():
                    continue
                path = f"{folder}/{name}"
                if (large := refuse_too_large(path, info.size)) is not None:
                    raise StorageError(f"{path}: unreadable operator metadata: {large.reason}")
                yield path


def _move_to_root(path: str, data: bytes, unit: StateUnit) -> str:
    moved = move_schema_paths(path, data, ROOT)
    if moved is None:
        raise StorageError(f"operator metadata of operator {unit.operator} does not have Spark's format")
    return moved.decode()


def move_schema_paths(path: str, data: bytes, root: str) -> bytes | None:
    """Operator metadata v2 with schema paths below ``root``, which are absolute; None for another file."""
    record = parse_operator_metadata(path, data)
    if not isinstance(record, OperatorMetadata):
        return None
    paths = [old for store in record.stores for old in store.schema_paths]
    return replace_schema_paths(data, {old: f"{root}/{STATE}/{old.rpartition(f'/{STATE}/')[2]}" for old in paths})


def _metadata_with_prefix(checkpoint: Checkpoint, unit: StateUnit) -> str:
    """Operator metadata v1, as Spark 4.0 and later write it for session windows."""
    places = [op for op in checkpoint.operators if op.id == unit.operator]
    stores: list[Json] = [
        {
            "storeName": name,
            "numColsPrefixKey": unit.prefix_columns,
            "numPartitions": max(len(store.partitions) for folder in places for store in folder.stores),
        }
        for name in unit.stores
    ]
    operator = {"operatorId": unit.operator, "operatorName": OperatorName.SESSIONS}
    return "v1\n" + json.dumps({"operatorInfo": operator, "stateStoreInfo": stores}, separators=(",", ":"))
