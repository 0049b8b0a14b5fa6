"""``ckpt offsets commit`` as one call: where queries continue in Kafka, as consumer groups that lag tools watch."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from ckpt.errors import SourceError, UsageError
from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.inspection.scan.scan import Scan, scan_all
from ckpt.live.kafka.groups import commit
from ckpt.live.kafka.options import translate_options
from ckpt.model import Location
from ckpt.values import Value

_SAME_NAME = "another checkpoint has the same name: commit them separately, with different prefixes"


@dataclass(frozen=True, slots=True)
class CommittedGroup:
    """The consumer group of one checkpoint."""

    path: Annotated[str, "of the checkpoint, as for `ckpt inspect`"]
    group: Annotated[str, "of consumers"]
    positions: Annotated[Mapping[str, Mapping[str, int]], "object: the next offset by topic and partition"]
    refused: Annotated[str | None, "why nothing was committed"]


@dataclass(frozen=True, slots=True)
class OffsetsCommit(Value):
    """The consumer groups of all checkpoints below some roots."""

    scan: Scan
    groups: tuple[CommittedGroup, ...]  # one for each checkpoint with a Kafka source that answered

    @property
    def problems(self) -> tuple[str, ...]:
        """Roots and checkpoints that could not be read, sources that did not answer, and groups that were refused."""
        unread = (
            row.error or (f"{row.path}: {row.sources_error}" if row.sources_error else None)
            for row in self.scan.checkpoints
        )
        refused = (f"{group.path}: {group.refused}" for group in self.groups if group.refused)
        return (*self.scan.problems, *filter(None, unread), *refused)


def offsets_commit(
    roots: Location | Sequence[Location],
    *,
    group: str,
    source_options: Mapping[str, str],
    storage_options: Mapping[str, str] | None = None,
    depth: int | None = None,
    jobs: int | None = None,
    watcher: Callable[[int, int], None] | None = None,
) -> OffsetsCommit:
    """Commit the Kafka offsets of each query to its own consumer group, for tools that show lag.

    Queries read their checkpoints and no consumer group, so they are not affected. Checkpoints are only read.

    Args:
        roots: Local paths or URIs, of a checkpoint or of any folder above checkpoints.
        group: Prefix of the group names; the checkpoint's name follows. A group with members, or with commits from
            somebody else, is refused.
        source_options: Options of a Kafka reader as Spark calls them, at least ``kafka.bootstrap.servers``.
        storage_options: For the file system of the URIs.
        depth: How many levels below a root to search; 0 is only the root, None is all.
        jobs: How many processes inspect checkpoints, at most; by default one per core.
        watcher: Called after each checkpoint with the number done and the total.

    Raises:
        UsageError: ``depth`` or ``jobs`` is out of range, or Kafka options are unusable or missing.

    >>> ckpt.offsets_commit("sample_checkpoints/kafka-4.2", group="lag-", source_options={})
    Traceback (most recent call last):
    ckpt.errors.UsageError: `source_options`: name the brokers: kafka.bootstrap.servers

    """
    if not source_options:
        raise UsageError.of("{--source-options}: name the brokers: kafka.bootstrap.servers")
    scanned = scan_all(
        roots,
        storage_options=storage_options,
        depth=depth,
        jobs=jobs,
        sources=True,
        source_options=source_options,
        watcher=watcher,
    )
    rows = {row.path: row for row in scanned.checkpoints if row.positions}
    names = {path: f"{group}{row.name}" for path, row in rows.items()}
    refused = _commit_positions(translate_options(source_options), names, rows)
    groups = (
        CommittedGroup(path, name, rows[path].positions, refused.get(name)) for path, name in sorted(names.items())
    )
    return OffsetsCommit(scanned, tuple(groups))


def _commit_positions(
    settings: Mapping[str, str], names: Mapping[str, str], rows: Mapping[str, ScannedCheckpoint]
) -> dict[str, str | None]:
    """Commit what can be committed; for each group, why it was refused, or None."""
    refused: dict[str, str | None] = {name: _SAME_NAME for name, count in Counter(names.values()).items() if count > 1}
    positions = {
        name: {
            (topic, int(partition)): offset
            for topic, partitions in rows[path].positions.items()
            for partition, offset in partitions.items()
        }
        for path, name in names.items()
        if name not in refused
    }
    try:
        return refused | (commit(settings, positions) if positions else {})
    except SourceError as error:
        return refused | dict.fromkeys(positions, str(error))
