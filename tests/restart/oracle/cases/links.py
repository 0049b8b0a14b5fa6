"""Parts of a checkpoint that are symbolic links out of it, as where a disk was full: Spark follows them."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Case, Mutation


def cases() -> Iterator[Case]:
    for name, path in (("metadata", "metadata"), ("offsets", "offsets"), ("commit", "commits/5")):
        yield Case(f"linked-out-{name}", "stateless-3.5", (link_out(path),))
    for name, path in (("state", "state"), ("partition", "state/0/1")):
        yield Case(f"linked-out-{name}", "aggregation-hdfs-3.5", (link_out(path),), "aggregation")


def link_out(path: str) -> Mutation:
    """Put a symbolic link in the place of a file or folder, which is outside then."""
    return {"op": "link_out", "path": path}
