"""Checkpoints of declarative pipelines: ``<storage>/_checkpoints/<table>/<flow>/<version>``.

Spark class ``FlowSystemMetadata``: ``<table>`` is ``<catalog>/<schema>/<name>``, and of a sink its name alone. A run
uses the version with the highest number (``SystemMetadata.getLatestCheckpointDir``), where there is none ``0``; a full
refresh begins the next one, and leaves the others.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from ckpt.errors import CkptError, NotFound
from ckpt.formats.names import parse_java_int
from ckpt.storage import Folder, Root, Storage, open_storage
from ckpt.storage.locations import find_parent, split_options
from ckpt.values import Record

CHECKPOINTS = "_checkpoints"
_OF_TABLE, _OF_SINK = 4, 2  # names from ``_checkpoints`` to a flow
_MOST = 200  # folders that are listed to find flows
_LOGS = frozenset(("offsets", "commits"))


@dataclass(frozen=True, slots=True)
class Flow(Record):
    """One flow of a pipeline, by its folder."""

    pipeline: Annotated[str, "the pipeline's storage"]
    table: Annotated[str, "the table or sink that it writes to: catalog, schema and name, separated by dots"]
    name: Annotated[str, "of the flow"]

    @property
    def refreshed(self) -> str | None:
        """The table as ``--refresh`` takes it; None for a sink, and where a dot may be within a name."""
        return self.table.rpartition(".")[2] if self.table.count(".") == _OF_TABLE - 2 else None


@dataclass(frozen=True, slots=True)
class FlowVersion(Record):
    """One checkpoint of a flow, and those beside it."""

    flow: Flow
    version: Annotated[str, "the name of its folder in the flow's folder"]
    versions: Annotated[tuple[str, ...], "all versions of the flow; runs use the last; none: not looked at"] = ()
    before: Annotated[str | None, "the newest version before it with a commit, if it has none itself"] = None
    siblings: Annotated[tuple[str, ...], "other flows into the same table"] = ()

    @property
    def live(self) -> str | None:
        """The version that runs use; None: not looked at."""
        return self.versions[-1] if self.versions else None

    @property
    def superseded(self) -> bool:
        """True if no run uses it; False also where two names are the highest number, and either may be used."""
        return self.live is not None and parse_java_int(self.live) != parse_java_int(self.version)

    @property
    def above(self) -> tuple[str, ...]:
        """Return the versions above ``before``; a run uses the highest of them and not ``before``."""
        return () if self.before is None else self.versions[self.versions.index(self.before) + 1 :]


def sort_versions(names: Iterable[str]) -> tuple[str, ...]:
    """Sort the names in the folder of a flow that Spark takes for versions, by their numbers.

    Any other name counts as -1 (``SystemMetadata.getLatestCheckpointDir``), so that a negative number beside one is
    none that a run surely uses.
    """
    every = {name: parse_java_int(name) for name in names}
    least = 0 if None in every.values() else None
    numbers = {name: value for name, value in every.items() if value is not None and (least is None or value >= least)}
    return tuple(sorted(numbers, key=lambda name: (numbers[name], name)))


def parse_flow(uri: str) -> tuple[Flow, str | None] | None:
    """Tell which flow a folder belongs to, and which version of it is meant; None for any other folder.

    >>> parse_flow("s3://b/storage/_checkpoints/main/shop/orders/from_a/3")
    (Flow(pipeline='s3://b/storage', table='main.shop.orders', name='from_a'), '3')
    >>> parse_flow("/storage/_checkpoints/main/shop/orders") is None
    True
    """
    root, slashed, below = split_options(uri)[0].rstrip("/").rpartition(f"/{CHECKPOINTS}/")
    names = [name for name in below.split("/") if name]
    version = names.pop() if len(names) in (_OF_SINK + 1, _OF_TABLE + 1) else None
    if not slashed or len(names) not in (_OF_SINK, _OF_TABLE):
        return None
    if version is not None and parse_java_int(version) is None:
        return None
    return Flow(root or "/", ".".join(names[:-1]), names[-1]), version


def parse_version(uri: str) -> FlowVersion | None:
    """Tell which version of a flow a folder is, by its path alone; None for any other folder."""
    parsed = parse_flow(uri)
    return None if parsed is None or parsed[1] is None else FlowVersion(parsed[0], parsed[1])


def find_version(uri: str, storage_options: Mapping[str, str] | None = None) -> FlowVersion | None:
    """Look at what is beside a checkpoint in the folder of its flow; None for one that is of no pipeline.

    What cannot be listed is left out, and the checkpoint itself is judged anyway.
    """
    alone, above = parse_version(uri), find_parent(uri)
    if alone is None or above is None:
        return None
    flow, version = alone.flow, alone.version
    table = find_parent(above)
    with suppress(CkptError):
        storage = open_storage(above, storage_options or {})
        level = storage.list_level()
        versions = sort_versions((*level.files, *level.folders))
        lower = versions[: versions.index(version)] if version in versions else ()
        before = None
        if version in versions and not _has_logs(storage, version):
            before = next((name for name in reversed(lower) if _has_logs(storage, name)), None)
        siblings = () if table is None else _find_siblings(open_storage(table, storage_options or {}), flow)
        return FlowVersion(flow, version, versions, before, siblings)
    return alone


def _has_logs(storage: Root, version: str) -> bool:
    """Tell whether a version has a committed batch, by the files that it has; False where it cannot be listed."""
    with suppress(CkptError):
        return bool(storage.list_level(f"{version}/commits").files)
    return False


def _find_siblings(table: Root, flow: Flow) -> tuple[str, ...]:
    others = sorted(table.list_level().folders - {flow.name})[:_MOST]
    return tuple(name for name in others if sort_versions(list_if_there(table, name).folders))


def list_if_there(storage: Storage, folder: str) -> Folder:
    """One folder; one that is not there has nothing in it."""
    try:
        return storage.list_level(folder)
    except NotFound:
        return Folder({}, frozenset())


def find_live_versions(storage: Storage, top: Folder) -> tuple[str, ...]:
    """Find the version that runs use of each flow at or below a folder: the storage of a pipeline, a table or a flow.

    Paths are relative to the folder, whose content ``top`` is. None: it is no part of a pipeline.
    """
    if CHECKPOINTS in top.folders:
        return tuple(_walk(storage, CHECKPOINTS, list_if_there(storage, CHECKPOINTS), 0, [_MOST]))
    inside = _count_names(storage.uri)
    return () if inside is None else tuple(_walk(storage, "", top, inside, [_MOST]))


def _count_names(uri: str) -> int | None:
    """How many names a folder is below ``_checkpoints``; None where it is not there."""
    names = [name for name in split_options(uri)[0].split("/") if name]
    if CHECKPOINTS not in names:
        return None
    return names[::-1].index(CHECKPOINTS)


def _walk(storage: Storage, path: str, level: Folder, depth: int, budget: list[int]) -> Iterator[str]:
    """Yield the live version of each flow at or below a folder that is so many names below ``_checkpoints``."""
    versions = sort_versions((*level.files, *level.folders))
    if versions and (depth == _OF_TABLE or (depth == _OF_SINK and _is_checkpoint(storage, path, versions[-1]))):
        yield f"{path}/{versions[-1]}" if path else versions[-1]
        return
    for name in sorted(level.folders) if depth < _OF_TABLE else ():
        if budget[0] > 0 and not name.startswith("."):
            budget[0] -= 1
            inner = f"{path}/{name}" if path else name
            yield from _walk(storage, inner, list_if_there(storage, inner), depth + 1, budget)


def _is_checkpoint(storage: Storage, path: str, version: str) -> bool:
    level = list_if_there(storage, f"{path}/{version}" if path else version)
    return not level.folders or not level.folders.isdisjoint(_LOGS)
