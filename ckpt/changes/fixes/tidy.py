"""What blocks a start and can go, or be written again, without a batch that runs again.

Measured: Spark writes a state schema that is not there byte for byte again, misses no checksum file, and takes any
``metadata`` that holds a UUID.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from ckpt.changes.rewind.files_after import state_above
from ckpt.changes.steps import Step, removals, sidecar, unread_removals, writing
from ckpt.checkpoint.checkpoint import COMMITS, METADATA, Checkpoint
from ckpt.errors import UsageError, argument
from ckpt.formats.metadata import build_metadata
from ckpt.model import DamageKind, QueryMetadata, Unreadable
from ckpt.storage import Storage

_SCHEMA = "/_metadata/schema"  # of every operator but transformWithState, and joins from state format 3 on
_TEMPORARY = (".tmp", ".tmp.crc")


@dataclass(frozen=True, slots=True)
class Tidied:
    """Files of one kind that are removed or written."""

    what: str  # "remove orphaned checksum files"
    steps: tuple[Step, ...]
    of_later_batches: bool = False  # they show that batches ran which the logs do not have


def tidy(checkpoint: Checkpoint, storage: Storage, query_id: str | None, *, temporary: bool) -> tuple[Tidied, ...]:
    """What is to be done, by kind.

    Args:
        checkpoint: What was read.
        storage: Where it is.
        query_id: Goes into a lost ``metadata``.
        temporary: Remove the temporary files of interrupted writes too.

    Raises:
        UsageError: The query id is no UUID, or is there already.
        StorageError: A file cannot be read.

    """
    listing = checkpoint.listing
    sidecars = [Step(path, storage.read(path), None) for path in (*_stale(checkpoint), *_orphans(checkpoint))]
    every = (
        Tidied("write metadata", tuple(_metadata(checkpoint, storage, query_id))),
        Tidied("remove names that Spark takes for batches", tuple(removals(storage, listing, _odd_names(checkpoint)))),
        Tidied(
            "remove state schemas that cannot be read, which Spark writes again",
            tuple(removals(storage, listing, _schemas(checkpoint))),
        ),
        Tidied("remove checksum files that fit no file", tuple(sidecars)),
        Tidied("remove state of later batches", tuple(_newer_state(checkpoint)), of_later_batches=True),
        Tidied("remove temporary files", tuple(_leftovers(checkpoint)) if temporary else ()),
    )
    return tuple(one for one in every if one.steps)


def _metadata(checkpoint: Checkpoint, storage: Storage, query_id: str | None) -> Iterator[Step]:
    if query_id is None:
        return
    try:
        text = str(UUID(query_id))
    except ValueError:
        raise UsageError(f"{argument('query_id', query_id)} is no UUID, as Spark's query ids are") from None
    if isinstance(checkpoint.metadata, QueryMetadata):
        raise UsageError(f"{argument('query_id', query_id)}: {METADATA} holds the id {checkpoint.query_id} already")
    yield from writing(storage, checkpoint.listing, METADATA, build_metadata(text))


def _odd_names(checkpoint: Checkpoint) -> Iterator[str]:
    for log in (checkpoint.offsets, checkpoint.commits):
        yield from (f"{log.folder}/{odd.name}" for odd in log.names.odd)


def _schemas(checkpoint: Checkpoint) -> Iterator[str]:
    for damage in checkpoint.state.damages if checkpoint.state else ():
        if damage.kind is DamageKind.BAD_SCHEMA and damage.path.endswith(_SCHEMA):
            yield damage.path


def _stale(checkpoint: Checkpoint) -> Iterator[str]:
    """Checksums of other content; those of a newest commit that cannot be read may tell what it was."""
    commits = checkpoint.commits
    lost = isinstance(commits.entries.get(commits.latest or 0), Unreadable)
    kept = sidecar(f"{COMMITS}/{commits.latest}") if lost else None
    return (path for path in checkpoint.stale_sidecars if path != kept)


def _orphans(checkpoint: Checkpoint) -> Iterator[str]:
    for log in (checkpoint.offsets, checkpoint.commits):
        names = checkpoint.listing.in_folder(log.folder)
        for name in names:
            if name[0] == "." and name.endswith(".crc") and name[1:-4] not in names:
                yield f"{log.folder}/{name}"


def _newer_state(checkpoint: Checkpoint) -> Iterator[Step]:
    newer = checkpoint.state.newer if checkpoint.state else None
    if newer is not None:
        yield from unread_removals(checkpoint.listing, state_above(checkpoint.listing, newer.first_version - 1))


def _leftovers(checkpoint: Checkpoint) -> Iterator[Step]:
    for folder, names in checkpoint.listing.folders.items():
        paths = (f"{folder}/{name}" if folder else name for name in names if name.endswith(_TEMPORARY))
        yield from unread_removals(checkpoint.listing, paths)
