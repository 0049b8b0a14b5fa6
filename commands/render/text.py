"""Small things that every page is made of. Text from a checkpoint is untrusted and passes through ``printable``."""

import os
import sys
from collections.abc import Sequence

from ckpt.model import OF_FOLDERS, EveryByte, FileDamage
from ckpt.texts import batch_ranges, plural, plural_of, printable, ranges, size, span

__all__ = [
    "batch_ranges",
    "coloured",
    "damaged",
    "lower",
    "not_decoded",
    "plural",
    "plural_of",
    "printable",
    "ranges",
    "size",
    "span",
]


def lower(sentence: str) -> str:
    """A sentence as the rest of another one."""
    return sentence[:1].lower() + sentence[1:]


def coloured() -> bool:
    """Whether standard output is a terminal that may be coloured (``NO_COLOR`` is honoured)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def damaged(found: Sequence[FileDamage]) -> str:
    """``2 files``, ``1 file and 2 folders of state``: what is damaged."""
    folders = sum(damage.kind in OF_FOLDERS for damage in found)
    files = [plural(len(found) - folders, "file")] if len(found) > folders else []
    return " and ".join([*files, *([f"{plural(folders, 'folder')} of state"] if folders else [])])


def not_decoded(found: EveryByte) -> str:
    """In how many partitions rows were looked at, where every byte was; empty where they all were."""
    if found.compared == found.partitions:
        return ""
    of_all = f"{found.compared:,} of {plural(found.partitions, 'partition')}"
    return f"compared with their schema in {of_all}; the others are too large"
