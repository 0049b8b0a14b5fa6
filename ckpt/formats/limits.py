"""How much is read of one file: what is larger than anything Spark writes there is damage, and not parsed."""

from collections.abc import Mapping

from ckpt.model import Fault, Unreadable

LARGEST_RECORD = 4 << 20
"""Bytes of a log file, of ``metadata``, of operator metadata or of a state schema.

Offsets of 20 Kafka sources with 5,000 partitions each have 2.5 MB; a commit of 20 operators with 1,000 partitions each
in state store checkpoint format 2 has 3.2 MB.
"""

LARGEST_LOGS = 8 << 20
"""Bytes of log files larger than 1 MiB that are read together, the newest first, unless all are asked for."""

LARGEST_CHANGE = 64 << 20
"""Bytes of files that one change reads and writes again, such as the operator metadata of all batches."""

LARGEST_SOURCE_LOG = 56 << 20
"""Bytes of a file source's log that are read to name all its files: about 500,000 of them."""

LARGEST_ACTION = 64 << 20
"""Bytes of one line in the log of a Delta table, which is one action."""

LARGEST_PART = 4 << 30
"""Bytes of one Parquet file of an export, whose rows are in memory at once."""

LARGEST_ZIP = 64 << 20
"""Bytes that the entries of a RocksDB zip may have once they are unpacked: ``MANIFEST``, ``OPTIONS`` and names."""


def choose_affordable(sizes: Mapping[str, int]) -> list[str]:
    """Of log files and their sizes, the newest last, those that are read together: all but the oldest of very large."""
    kept, total = [], 0
    for path, size in reversed(list(sizes.items())):
        large = (1 << 20) < size <= LARGEST_RECORD
        total += size if large else 0
        if not large or total <= LARGEST_LOGS:
            kept.append(path)
    return kept[::-1]


def refuse_too_large(path: str, size: int) -> Unreadable | None:
    """The file as one that is not read, where its ``size`` in bytes is too large for a record."""
    reason = describe_excess(size, LARGEST_RECORD)
    return None if reason is None else Unreadable(path, Fault.TOO_LARGE, reason)


def describe_excess(size: int, largest: int) -> str | None:
    """Why a file of ``size`` bytes is not read; None where it has no more than ``largest``."""
    return f"it has {size:,} bytes, but ckpt reads at most {largest:,} of such a file" if size > largest else None
