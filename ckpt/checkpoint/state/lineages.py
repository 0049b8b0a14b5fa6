"""State store checkpoint format 2: which files lead to a version, as its changelog begins by saying."""

from collections.abc import Mapping

from ckpt.checkpoint.state.chains import WantedVersion
from ckpt.checkpoint.state.folders import StorePartition
from ckpt.checkpoint.state.read_steps import Step
from ckpt.formats.compression import HEAD
from ckpt.formats.statefiles import LZ4, Lineage, parse_lineage
from ckpt.storage.base import ReadRequest

_HEAD = 1 << 16
"""Bytes from the beginning of a changelog that surely hold its first block, with the lineage."""


def read_lineages(targets: Mapping[StorePartition, WantedVersion], codec: str) -> Step[dict[StorePartition, Lineage]]:
    """Read the lineage that the changelog of the wanted version begins with, unless there is a zip."""
    requests: dict[StorePartition, ReadRequest] = {}
    for store, (version, unique_id) in ((p, (t.version, t.unique_id)) for p, t in targets.items()):
        this = (version, unique_id)
        if unique_id is not None and this not in store.names.snapshots and this in store.names.logs:
            requests[store] = ReadRequest(
                f"{store.folder}/{store.names.logs[this]}", 0, _HEAD if codec == LZ4 else HEAD
            )
    if not requests:
        return {}
    answers = yield list(requests.values())
    lineages = {}
    for store, answer in zip(requests, answers, strict=True):
        lineage = parse_lineage(answer, codec) if isinstance(answer, bytes) else None
        if lineage is not None:
            lineages[store] = lineage
    return lineages
