"""The call ``scan``: how much of the state is read is chosen here, since reading every byte needs more packages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from os import PathLike

from ckpt.errors import must_choose_reading
from ckpt.inspection.bugs import parse_releases
from ckpt.inspection.scan.scan import InspectOptions, Scan, Watcher, read_loaded, scan_all
from ckpt.model import Location
from ckpt.storage import Storage
from ckpt.versions import Spark


def scan(
    roots: Location | Sequence[Location],
    *,
    storage_options: Mapping[str, str] | None = None,
    depth: int | None = None,
    jobs: int | None = None,
    changed_since: str | datetime | None = None,
    sources: bool = False,
    source_options: Mapping[str, str] | None = None,
    all_versions: bool = False,
    deep: bool = False,
    names_only: bool = False,
    spark: Sequence[Spark | str] = (),
    resume: str | PathLike[str] | None = None,
    watcher: Watcher | None = None,
) -> Scan:
    """Find all checkpoints at and below some roots, and inspect each. Only reads; starts no JVM.

    A problem with one checkpoint or root is reported there, and does not stop the others.

    Args:
        roots: Local paths or URIs, of a checkpoint or of any folder above checkpoints.
        storage_options: For the file system of the URIs.
        depth: How many levels below a root to search; 0 is only the root, None is all.
        jobs: How many processes inspect checkpoints, at most; by default one per core.
        changed_since: Leave out checkpoints without a log file written since this time, or for this long: ``"8h"``.
        sources: Also ask every Kafka source for its current offsets.
        source_options: For ``sources``: options of the reader of every Kafka source as Spark calls them, at least
            ``kafka.bootstrap.servers``.
        all_versions: Of a flow of a declarative pipeline, also the versions that a full refresh has superseded.
        deep: Read every byte of the state of each checkpoint. By default what its next start loads is read completely,
            up to a bound: ``not_read`` of a row says what is above it.
        names_only: Read no state; judge files by name, size and end.
        spark: The Spark versions to forecast for, or releases, as ``"4.2.1"``, to find known bugs; by default all.
        resume: A local file that keeps rows until the scan has ended. If it has rows of the same scan, interrupted
            within the last day, they are reused; others are replaced, and ``started_over`` says why.
        watcher: Called after each checkpoint with the number done and the total.

    Raises:
        UsageError: ``depth`` or ``jobs`` is out of range, the options of Kafka cannot be used, or are missing, or
            ``resume`` is a file that no scan wrote.
        CkptError: ``resume`` cannot be written, or another scan is writing it.
        StorageError: With ``resume``: a root no longer answers.

    >>> found = ckpt.scan("sample_checkpoints", depth=1)
    >>> found.checkpoints[0].severity, len(found.checkpoints) > 40
    (<Severity.ERROR: 'error'>, True)
    """
    return scan_all(
        roots,
        storage_options=storage_options,
        depth=depth,
        jobs=jobs,
        changed_since=changed_since,
        sources=sources,
        source_options=source_options,
        all_versions=all_versions,
        how=choose_inspect_options(spark, deep=deep, names_only=names_only),
        resume=resume,
        watcher=watcher,
    )


def choose_inspect_options(spark: Sequence[Spark | str], *, deep: bool, names_only: bool) -> InspectOptions:
    """Return what has the state of a checkpoint read as asked for. Raises UsageError."""
    must_choose_reading(deep=deep, names_only=names_only)
    reading = _read_every_byte if deep else _read_names if names_only else read_loaded
    return InspectOptions(reading, parse_releases(spark))


def _read_names(storage: Storage, storage_options: Mapping[str, str]) -> None:
    storage.names_only = True


def _read_every_byte(storage: Storage, storage_options: Mapping[str, str]) -> None:
    from ckpt.state.verify.verify import look_at_every_byte  # it needs the packages of ``native``

    look_at_every_byte(storage, storage_options, jobs=1)  # checkpoints are looked at side by side
