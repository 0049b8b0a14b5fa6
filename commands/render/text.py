"""Small things that every page is made of.

Text from a checkpoint is untrusted and passes through ``escape_unprintable``.
"""

import os
import sys
from collections.abc import Sequence

from ckpt.model import OF_FOLDERS, EveryByte, FileDamage
from ckpt.texts import batch_ranges, escape_unprintable, plural, plural_of, ranges, size, span

__all__ = [
    "batch_ranges",
    "coloured",
    "count_damaged",
    "escape_unprintable",
    "lower",
    "not_decoded",
    "plural",
    "plural_of",
    "ranges",
    "size",
    "span",
]


def lower(sentence: str) -> str:
    """A sentence as the rest of another one."""
    return sentence[:1].lower() + sentence[1:]


def coloured() -> bool:
    """True if standard output is a terminal that may be coloured (``NO_COLOR`` is honoured)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def count_damaged(damages: Sequence[FileDamage]) -> str:
    """``2 files``, ``1 file and 2 folders of state``: what is damaged."""
    folders = sum(damage.kind in OF_FOLDERS for damage in damages)
    files = [plural(len(damages) - folders, "file")] if len(damages) > folders else []
    return " and ".join([*files, *([f"{plural(folders, 'folder')} of state"] if folders else [])])


def not_decoded(every_byte: EveryByte) -> str:
    """In how many partitions rows were looked at, where every byte was; empty where they all were."""
    if every_byte.compared == every_byte.partitions:
        return ""
    of_all = f"{every_byte.compared:,} of {plural(every_byte.partitions, 'partition')}"
    return f"compared with their schema in {of_all}; the others are too large"
