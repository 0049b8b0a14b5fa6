"""What a case is, and short words for the damage done to log files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.spark import mutations, queries, samples

SAMPLES = Path(__file__).parents[4] / "sample_checkpoints"

_MADE_WITH = {sample.name: sample.store for sample in samples.SAMPLES}

Mutation = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A sample, the damage done to a copy of it, and the query that is started on the copy.

    `store` names the state store settings of the session: "own" are those that the sample was made with,
    "default" Spark's defaults. `batches` is how many batches are watched. A stateless query is started in both
    modes unless the case is `sync_only`; a stateful one with asynchronous tracking only to record its `refusal`.
    """

    name: str
    sample: str
    mutations: tuple[mutations.Mutation, ...] = ()
    query: str = "stateless"
    store: str = "own"
    batches: int = 1
    refusal: bool = False
    sync_only: bool = False

    @property
    def settings(self) -> str | None:
        """The key of `queries.STATE_STORES` that the session is set to; None for Spark's defaults."""
        named = _MADE_WITH.get(self.sample) if self.store == "own" else self.store
        return None if named in ("default", "hdfs") else named

    @property
    def folder(self) -> Path:
        """Where the sample is; nowhere on most machines, if it is one of Spark's own (`borrowed`)."""
        return (samples.GOLDENS if self.borrowed else SAMPLES) / self.sample

    @property
    def borrowed(self) -> bool:
        """Whether the sample is one of `samples.GOLDENS`."""
        return self.sample.startswith("checkpoint-version-")

    @property
    def stateful(self) -> bool:
        """Whether the query that is started keeps state."""
        return queries.QUERIES[self.query].stateful

    @property
    def needs(self) -> str:
        """The service that its query reads from; empty without one."""
        return queries.QUERIES[self.query].needs

    @property
    def alone(self) -> bool:
        """Whether a JVM of its own is started for it.

        Spark 4.0 takes the version line of its RocksDB snapshots from the checkpoint format of the first query that
        uses one in a JVM (`RocksDBCheckpointMetadata.VERSION`), and keeps to it.
        """
        return "format2" in (self.settings, _MADE_WITH.get(self.sample))

    def modes(self, minor: str) -> tuple[str, ...]:
        """The progress modes recorded for a Spark minor version; none where it lacks the query."""
        if minor < queries.QUERIES[self.query].since:
            return ()
        if self.sync_only or self.batches > 1 or (self.stateful and not self.refusal):
            return ("sync",)
        return ("sync", "async")


def delete(*paths: str, keep_crc: bool = False) -> list[Mutation]:
    """Delete files (patterns allowed), with their checksums unless told otherwise."""
    return [{"op": "delete", "path": path} | ({"keep_crc": True} if keep_crc else {}) for path in paths]


def delete_logs(offsets: Iterable[int] = (), commits: Iterable[int] = ()) -> list[Mutation]:
    """Delete the offset and commit files of the given batches."""
    return delete(*(f"offsets/{batch}" for batch in offsets), *(f"commits/{batch}" for batch in commits))


def delete_tree(*paths: str) -> list[Mutation]:
    return [{"op": "delete_tree", "path": path} for path in paths]


def write(path: str, text: str | bytes, keep_crc: bool = False) -> Mutation:
    """Write a file, with or without leaving the old checksum beside it."""
    content = {"hex": text.hex()} if isinstance(text, bytes) else {"text": text}
    return {"op": "write", "path": path, **content} | ({"keep_crc": True} if keep_crc else {})


def truncate(path: str, size: int) -> Mutation:
    """Keep the first `size` bytes of a file, or all but the last `-size`."""
    return {"op": "truncate", "path": path, "bytes": size}


def replace(path: str, old: str, new: str) -> Mutation:
    """Replace a text that must be there."""
    return {"op": "replace_text", "path": path, "old": old, "new": new}


def copy(path: str, to: str) -> Mutation:
    """Copy a file or folder inside the checkpoint."""
    return {"op": "copy", "path": path, "to": to}


def move(path: str, to: str) -> Mutation:
    """Rename a file or folder inside the checkpoint."""
    return {"op": "move", "path": path, "to": to}


def mkdir(path: str) -> Mutation:
    """Make an empty folder."""
    return {"op": "mkdir", "path": path}


def latest(sample: str) -> int:
    """The newest planned batch of a sample."""
    return max(int(path.name) for path in (SAMPLES / sample / "offsets").glob("[0-9]*"))


def versions(sample: str, partition: str, suffix: str) -> list[int]:
    """The state versions of which a partition of a sample has a file `<version>.<suffix>`, ascending."""
    return sorted(int(path.stem) for path in (SAMPLES / sample / partition).glob(f"[0-9]*.{suffix}"))
