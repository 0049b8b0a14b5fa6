"""The call ``inspect``: asks the sink and the sources, and reads every byte of the state, where that is wanted."""

from collections.abc import Mapping, Sequence
from os import fspath

from ckpt.advice import Option, words
from ckpt.calls.tried_advice import leave_out_impossible
from ckpt.checkpoint.reader import open_to_look
from ckpt.errors import UsageError, must_choose_reading, parse_choice
from ckpt.inspection.bugs import parse_releases
from ckpt.inspection.inspection import Inspection, inspect as inspect_opened
from ckpt.live.records import LiveSource
from ckpt.live.sink.records import SinkLog
from ckpt.model import Location
from ckpt.restart.findings import Asked
from ckpt.versions import Spark


def inspect(
    checkpoint: Location,
    *,
    spark: Sequence[Spark | str] = (),
    progress: Asked | str = Asked.BOTH,
    batches: int = 10,
    sink: str | None = None,
    sources: bool = False,
    deep: bool = False,
    names_only: bool = False,
    jobs: int | None = None,
    source_options: Mapping[int, Mapping[str, str]] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Inspection:
    """Inspect a checkpoint. Only reads, and only the checkpoint unless ``sink`` or ``sources`` ask for more.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``, which is not read again unless
            ``deep``.
        spark: The Spark versions to forecast for, as ``"4.2"``; none named is all. Of a release,
            as ``"4.2.1"``, known bugs that this checkpoint can hit are findings, too.
        progress: How the query will be started: ``sync``, ``async``, ``both`` of them,
            ``realtime`` or ``continuous``.
        batches: How many of the newest batches are shown, 0 for all; of a ``Checkpoint``, those that were read.
        sink: The query's output (a table or folder, or ``kafka://...``), to compare its log too; or the kind of
            sink, if it keeps no batch ids: ``upsert``, ``append``, ``kafka`` or ``noop``.
        sources: Ask the sources for their current offsets.
        deep: Read every byte of the state, as ``state_verify`` does. By default the files that the next start
            loads are read completely, up to a limit: ``not_read`` of the result lists the rest.
        names_only: Read no state; judge files by name, size and end.
        jobs: How many processes do that at a time; by default one per core.
        source_options: For ``sources``: the options of the reader of each source by its number, as Spark calls them,
            for Kafka at least ``kafka.bootstrap.servers``, for others ``path``.
        storage_options: For the file systems of the checkpoint and of the sink.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read. A sink or source that does
            not answer is named in ``unreached``, and nothing is raised.

    >>> inspection = ckpt.inspect("sample_checkpoints/async-kafka-4.2")
    >>> print(inspection.verdict.partition(": ")[2])
    offsets/30 is missing (asynchronous progress tracking left a gap)
    >>> inspection.sound, inspection.findings[0].finding.diagnosis.code
    (False, 'CKPT201')
    """
    mode, releases = parse_choice(Asked, progress, "progress"), parse_releases(spark)
    if source_options and not sources:
        raise UsageError(words("{given} needs {needed}", given=Option("source_options"), needed=Option("sources")))
    if jobs is not None and not deep:
        raise UsageError(words("{given} needs {needed}", given=Option("jobs"), needed=Option("deep")))
    must_choose_reading(deep=deep, names_only=names_only)
    if deep:
        from ckpt.state.verify.verify import read_every_byte  # a plain look imports nothing of it

        opened = read_every_byte(fspath(checkpoint), storage_options, batches=batches, jobs=jobs)
    else:
        opened = open_to_look(checkpoint, storage_options, batches=batches, names_only=names_only)
    has: SinkLog | None = None
    live: tuple[LiveSource, ...] = ()
    if sink is not None:
        from ckpt.live.sink.reader import ask_sink

        has = ask_sink(sink, opened.uri, storage_options or {}, partial=True)
    if sources:
        from ckpt.live.asking import ask_sources

        options = {int(index): reader_options for index, reader_options in (source_options or {}).items()}
        live = ask_sources(opened, options, storage_options, partial=True)
    inspection = inspect_opened(opened, releases, mode, batches, has, live)
    return leave_out_impossible(inspection, checkpoint, storage_options, names_only=names_only)
