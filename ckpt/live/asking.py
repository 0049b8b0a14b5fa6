"""Asks each source of a checkpoint that ckpt can ask."""

import re
from collections.abc import Iterable, Mapping

from ckpt.advice import Hole
from ckpt.checkpoint import history
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.plugins import PluginOffset
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.errors import SourceError, StorageError
from ckpt.live.delta.ask import ask_delta
from ckpt.live.files.ask import ask_files, find_folder
from ckpt.live.iceberg.ask import ask_iceberg
from ckpt.live.kafka.ask import ask_kafka
from ckpt.live.kafka.options import SERVERS
from ckpt.live.kind import LiveKind, SourceRequest, lower_options, unusable_option
from ckpt.live.plugins import find_live_kind
from ckpt.live.records import Answer, LiveSource, NotAsked, Unreached
from ckpt.model import Json

_KIND_OF: dict[str, LiveKind] = {
    SourceType.KAFKA: LiveKind("the brokers", SERVERS, Hole.HOST, ask_kafka, asked_for_query=True),
    SourceType.DELTA: LiveKind("the table", "path", Hole.URI, ask_delta),
    SourceType.ICEBERG: LiveKind("the table", "path", Hole.URI, ask_iceberg),
    SourceType.FILE: LiveKind("the folder", "path", Hole.URI, ask_files, find_place=find_folder),
}


def live_kind_of(view: SourceView) -> LiveKind | None:
    """Return the kind that asks a source; None where ckpt cannot ask it."""
    if isinstance(view.record, PluginOffset):
        return find_live_kind(view.record.kind)
    return _KIND_OF.get(view.type)


def ask_sources(
    checkpoint: Checkpoint,
    options: Mapping[int, Mapping[str, str]],
    storage_options: Mapping[str, str] | None = None,
    *,
    partial: bool = False,
    given_only: bool = False,
) -> tuple[LiveSource, ...]:
    """Ask the sources of a checkpoint what they have now; one answer for each source, in their order.

    ``options`` are those of the reader of each source, by its number, as Spark calls them: for Kafka at least
    ``kafka.bootstrap.servers``, for others ``path``, which for a folder of files can be left out if its log tells.
    ``storage_options`` are for paths of the same kind as that of the checkpoint. ``partial``: the answer of a source
    that cannot be reached says so (``unreached``). ``given_only``: ask none of whose options nothing is given. Raises
    UsageError where there is no such source, its options cannot be used, or none has its place; SourceError or
    StorageError where a source cannot be reached, or a package is missing.
    """
    views = history.sources(checkpoint)
    if checkpoint.offsets.latest is None:
        return ()  # what the query reads is not known
    if not views:
        reason = "the newest offsets, which list the sources, are missing or cannot be read"
        return tuple(LiveSource(index, NotAsked(reason)) for index in sorted(options))
    options = {**({} if given_only else _find_options(checkpoint, views)), **options}
    for index in sorted(options):
        if index >= len(views):
            raise unusable_option(f"the checkpoint has no source {index}; the first one is source 0")
        if live_kind_of(views[index]) is None:
            raise unusable_option(f"source {index}: {_refuse(views[index])}")
    first = next(((kind, view.index) for view in views if (kind := live_kind_of(view)) is not None), None)
    if first is not None and not options:
        kind, index = first
        raise unusable_option(f"name {kind.place} of source {index}: {kind.describe_option(checkpoint, index)}")
    answers = []
    for view in views:
        try:
            answer = _ask_source(checkpoint, view, options.get(view.index), storage_options or {})
        except (SourceError, StorageError) as error:
            if not partial:
                raise
            answer = Unreached(str(error))
        answers.append(LiveSource(view.index, answer, view.name))
    return tuple(answers)


def _find_options(checkpoint: Checkpoint, views: Iterable[SourceView]) -> dict[int, Mapping[str, str]]:
    kinds = ((view.index, kind) for view in views if (kind := live_kind_of(view)) is not None)
    return {index: options for index, kind in kinds if (options := kind.find_options(checkpoint, index))}


def list_missing_options(checkpoint: Checkpoint) -> dict[int, Mapping[str, str]]:
    """List the options, by source, that have to be given so that every source is asked which can be."""
    views = history.sources(checkpoint)
    known = _find_options(checkpoint, views)
    kinds = ((view.index, kind) for view in views if (kind := live_kind_of(view)) and view.index not in known)
    return {index: {kind.option: kind.name_place(checkpoint, index)} for index, kind in kinds}


def _ask_source(
    checkpoint: Checkpoint, view: SourceView, options: Mapping[str, str] | None, storage_options: Mapping[str, str]
) -> Answer:
    kind = live_kind_of(view)
    if kind is None:
        return NotAsked(_refuse(view))
    if options is None:
        return NotAsked(f"name {kind.place}: {kind.describe_option(checkpoint, view.index)}")
    if kind.option not in lower_options(options):
        options = {**kind.find_options(checkpoint, view.index), **options}
    return kind.ask(SourceRequest(checkpoint, view, options, storage_options))


def _refuse(view: SourceView) -> str:
    looks = _NAMES.get(view.type) or _guess_name(view.offset)
    return f"ckpt cannot ask {f'a source that looks like {looks}' if looks else f'a source of type {view.type}'}"


_NAMES: Mapping[str, str] = {
    SourceType.CLOUD_FILES: "Auto Loader",
    SourceType.KINESIS: "Kinesis",
    SourceType.PUB_SUB: "Pub/Sub",
    SourceType.PULSAR: "Pulsar",
    SourceType.PAIMON: "Paimon",
    SourceType.HUDI: "Hudi",
    SourceType.COSMOS: "Cosmos DB",
    SourceType.MONGODB: "MongoDB",
    SourceType.SEQUENTIAL_UNION: "a sequential union",
}


def _guess_name(offset: Json) -> str | None:
    """Guess a source that ckpt does not know by the names in its offset."""
    names = tuple(offset) if isinstance(offset, dict) else ()
    if set(names) & {"commitTime", "offsetCommitTime"}:
        return "Hudi"
    if any(name.startswith("shardId-") for name in names):
        return "Kinesis"
    if any(re.match("(non-)?persistent://", name) for name in names):
        return "Pulsar"
    return None
