"""Finds checkpoints below a root: folder by folder, and never into the state of a checkpoint."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS, SOURCES, STATE
from ckpt.checkpoint.state.folders import sort_numbers
from ckpt.errors import NotFound, StorageError
from ckpt.storage import Folder, Root

_PARTS = frozenset((OFFSETS, COMMITS, METADATA, SOURCES, STATE))
_TABLES = frozenset(("_delta_log", "_spark_metadata"))  # a Delta table, the output of a file sink
_NEVER = _TABLES | {"_temporary", ".hoodie"}  # folders that hold no checkpoint
_AT_ONCE = 32  # folders of a remote root that are listed side by side


@dataclass(frozen=True, slots=True)
class Discovered:
    """The folders below a root; paths are relative to it, ``""`` is the root itself."""

    checkpoints: tuple[str, ...]  # sorted
    unlisted: tuple[tuple[str, str], ...] = ()  # folders that could not be listed, and why


@dataclass(slots=True)
class _Search:
    root: Root
    checkpoints: list[str] = field(default_factory=list)
    unlisted: list[tuple[str, str]] = field(default_factory=list)

    def list_folder(self, folder: str) -> Folder | None:
        """List one folder; None where it has vanished, or cannot be listed, which is noted unless it is the root."""
        try:
            return self.root.list_level(folder)
        except NotFound:
            if not folder:
                raise
        except StorageError as error:
            if not folder:
                raise
            self.unlisted.append((folder, str(error)))
        return None

    def is_checkpoint(self, folder: str, level: Folder) -> bool:
        """Tell whether a start finds something: logs, metadata, or state or sources with numbered folders."""
        if METADATA in level.files or not level.folders.isdisjoint((OFFSETS, COMMITS)):
            return True
        left = sorted(level.folders & {STATE, SOURCES})
        inside = (self.list_folder(_join(folder, name)) for name in left)
        return any(below is not None and sort_numbers(below.folders) for below in inside)

    def choose_folders(self, folder: str, level: Folder) -> list[tuple[str, bool]]:
        """Note a checkpoint; return the folders to be looked at next, and whether they are links."""
        left_out = set(_NEVER)
        if self.is_checkpoint(folder, level):
            self.checkpoints.append(folder)
            left_out |= _PARTS
        table = not level.folders.isdisjoint(_TABLES)
        chosen = (name for name in sorted(level.folders - left_out) if not (table and "=" in name))
        return [(_join(folder, name), name in level.links) for name in chosen]


def discover(root: Root, depth: int | None = None) -> Discovered:
    """Find the checkpoints at a root and at most ``depth`` levels below it (None: all).

    A symbolic link is looked at and not followed further. In a Delta table, and in the output of a file sink, folders
    of partitions (``day=1``) are left out. Raises NotFound or StorageError where the root itself cannot be listed.
    """
    search = _Search(root)
    level: list[tuple[str, bool]] = [("", False)]  # folders, and whether they are symbolic links
    below = 0
    with ThreadPoolExecutor(1 if root.local else _AT_ONCE, thread_name_prefix="ckpt-discover") as pool:
        while level:
            look = map if root.local else pool.map
            listed = list(look(search.list_folder, [folder for folder, _ in level]))
            deeper: list[tuple[str, bool]] = []
            for (folder, linked), inside in zip(level, listed, strict=True):
                chosen = search.choose_folders(folder, inside) if inside is not None else []
                deeper += [] if linked else chosen
            below += 1
            level = deeper if depth is None or below <= depth else []
    return Discovered(tuple(sorted(search.checkpoints)), tuple(sorted(search.unlisted)))


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
