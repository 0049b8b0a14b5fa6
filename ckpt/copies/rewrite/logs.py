"""The small files of a checkpoint whose state is written anew: settings, number of partitions, and ids of state files.

Nothing else in them changes. Raises ``CannotRewrite`` for a file that is not as Spark writes it.
"""

import json
from collections.abc import Mapping, Sequence

from ckpt.errors import CkptError
from ckpt.model import Json


class CannotRewrite(CkptError):
    """Files of a checkpoint that ckpt cannot write anew; the text says why."""


def change_settings(path: str, data: bytes, settings: Mapping[str, str]) -> bytes:
    """A file of the offset log (``OffsetSeqLog``) with other recorded settings."""
    lines = data.split(b"\n")
    metadata = _parse_object(path, lines[1] if len(lines) > 1 else b"")
    conf = metadata.get("conf")
    if not isinstance(conf, dict):
        raise CannotRewrite(f"{path} records no settings, as Spark does since 2.2")
    metadata["conf"] = {**conf, **settings}
    lines[1] = _encode_json(metadata)
    return b"\n".join(lines)


def change_state_ids(path: str, data: bytes, ids: Mapping[int, Sequence[Sequence[str]]] | None) -> bytes:
    """A file of the commit log (``CommitLog``) that names these state files: [partition][store] of each operator.

    None: state store checkpoint format 1, which names none.
    """
    version, _, text = data.partition(b"\n")
    metadata = _parse_object(path, text)
    metadata.pop("stateUniqueIds", None)
    if ids is not None:
        metadata["stateUniqueIds"] = {str(operator): [list(names) for names in of] for operator, of in ids.items()}
        return b"v2\n" + _encode_json(metadata)
    return (b"v1" if version == b"v2" else version) + b"\n" + _encode_json(metadata)


def change_partitions(path: str, data: bytes, partitions: int) -> bytes:
    """Operator metadata (``OperatorStateMetadata``) with another number of partitions."""
    version, _, text = data.partition(b"\n")
    metadata = _parse_object(path, text)
    stores = metadata.get("stateStoreInfo")
    for store in stores if isinstance(stores, list) else ():
        if isinstance(store, dict):
            store["numPartitions"] = partitions
    return version + b"\n" + _encode_json(metadata)


def _parse_object(path: str, text: bytes) -> dict[str, Json]:
    try:
        record: Json = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise CannotRewrite(f"{path} is not the JSON that Spark writes")
    return record


def _encode_json(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
