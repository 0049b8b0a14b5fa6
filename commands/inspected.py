"""Read the document of ``ckpt inspect CHECKPOINT -o json``, which stands for a checkpoint that is not at hand."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace

from ckpt import model
from ckpt.advice import CHECKPOINT, Advice, Code, advise, call, plain, run, words
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, SOURCES, STATE, Checkpoint, Log
from ckpt.checkpoint.pipelines import parse_version
from ckpt.checkpoint.sources.file_logs import name_folder
from ckpt.checkpoint.sources.kind import SourceType, Unit
from ckpt.checkpoint.sources.registry import SourceRange
from ckpt.errors import CkptError, one_line
from ckpt.formats.names import BatchNames
from ckpt.formats.sourcelogs import SourceFile
from ckpt.inspection.inspection import Evidence
from ckpt.inspection.written_by import WrittenBy
from ckpt.query.description import QueryDescription
from ckpt.restart.diagnoses import all_diagnoses
from ckpt.restart.findings import Asked, Diagnosis, Finding, Forecast, Outcome, Severity
from ckpt.storage.base import FileInfo, Listing
from ckpt.storage.local import read_text
from ckpt.texts import instant, mask_secrets
from ckpt.versions import Progress, Spark

from .render.advice import read_advice
from .render.inspection import CheckpointKeys, FindingKeys, InspectionDocument, SourceKeys
from .render.keys import parse

_WHOLE = words(
    "{inspect} without {--spark}, {--progress}, {--sink} and {--sources}",
    inspect=Code("ckpt inspect CHECKPOINT -o json"),
)


_NO_ADVICE = advise(
    run(
        call("inspect", CHECKPOINT),
        words("Inspect the checkpoint itself: an earlier version wrote this document, with advice only as text."),
    )
)
"""For a finding in a document that contains advice only as text."""


def is_document(path: str) -> bool:
    """Tell whether a command line names a document, and no checkpoint: a file, or a name for one that is missing."""
    if parse_version(path) is not None:  # a file in the place of a checkpoint
        return False
    return os.path.isfile(path) or (path.endswith(".json") and "://" not in path and not os.path.isdir(path))


def read_evidence(path: str) -> tuple[Evidence, CheckpointKeys]:
    """Read a document: all that a start is judged by, and the checkpoint as the document shows it.

    Raises CkptError where it cannot be read, is another document, or speaks of some starts only; its ``forecast``
    raises it for a version of Spark that the document does not speak of.
    """
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not text"
        raise CkptError(f"{one_line(path)} cannot be read: {why}") from error
    try:
        document = parse(InspectionDocument, json.loads(text) | {"next": []})  # whose steps follow from the rest
        return _build_evidence(document, path), document.checkpoint
    except KeyError as error:
        lacks = plain(f"{one_line(path)} has no key {error.args[0]!r}: print it again with ")
        raise CkptError(lacks + _WHOLE) from error
    except (ValueError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise CkptError(plain(f"{one_line(path)} is not a document that ") + _WHOLE + " prints") from error


def mask_query(query: QueryDescription) -> QueryDescription:
    """Mask the folders of a query as those of a document are masked, so that they can be compared."""
    masked = (replace(source, path=source.path and mask_secrets(source.path)) for source in query.sources)
    return replace(query, sources=tuple(masked))


def _build_evidence(document: InspectionDocument, path: str) -> Evidence:
    if document.sink is not None or any(source.live is not None for source in document.sources):
        changing = plain(f"{one_line(path)} has answers from the sink or the sources, which can change: print ")
        raise CkptError(changing + _WHOLE)
    known = {diagnosis.code: diagnosis for diagnosis in all_diagnoses()}
    explained = {reason for keys in document.restart for reason in keys.reasons}
    advice = {
        (keys.code, keys.remedy): read_advice(keys.advice) for keys in document.findings if keys.advice is not None
    }
    findings = {
        (keys.code, keys.path): _read_finding(keys, known.get(keys.code), explained, advice)
        for keys in document.findings
    }
    forecasts = {
        (keys.spark, keys.progress): Forecast(
            Spark(keys.spark),
            keys.progress,
            keys.outcome,
            keys.batch_id,
            keys.reexecutes,
            tuple(SourceRange(part.index, part.from_, part.to) for part in keys.sources),
            keys.error,
            keys.never_run,
            keys.lost,
            tuple(findings[reason] for reason in keys.reasons),
        )
        for keys in document.restart
        if keys.spark in list(Spark)  # a later ckpt knows later ones
    }

    def find_forecast(spark: Spark, progress: Progress) -> Forecast:
        if forecast := forecasts.get((spark, progress)):
            return forecast
        if not progress.in_micro_batches and any(mode is progress for _, mode in forecasts):
            return Forecast(spark, progress, Outcome.REFUSED)
        why = plain(f"{one_line(path)} does not say how Spark {spark} starts ({progress}): print ")
        raise CkptError(why + _WHOLE)

    origin = document.checkpoint.written_by
    return Evidence(
        _build_checkpoint(document),
        WrittenBy(origin.at_least, origin.at_most, origin.evidence, origin.platform, origin.newer),
        document.batches.pattern,
        document.batches.uncommitted,
        document.batches.unplanned,
        tuple(findings[keys.code, keys.path] for keys in document.findings if keys.stored),
        find_forecast,
        tuple(_list_unknown(document, path)),
    )


def _read_finding(
    keys: FindingKeys,
    known: Diagnosis | None,
    explained: Set[tuple[str, str]],
    advice: Mapping[tuple[str, str | None], Advice | None],
) -> Finding:
    """A finding with its diagnosis, which a later ckpt may have declared. A text is never filled in a second time.

    ``explained``: codes and paths of findings that are a note for another reason, that a start is not counted.
    """
    own = Diagnosis(keys.code, keys.name, keys.severity, texts=(plain(keys.meaning), None))
    diagnosis = known or own
    minor = keys.severity is Severity.NOTE and (keys.code, keys.path) not in explained
    here = None if keys.remedy is None else advice.get((keys.code, keys.remedy), _NO_ADVICE)
    return Finding(
        diagnosis, keys.path, keys.detail, here, minor and diagnosis.severity_for(Asked.BOTH) is not Severity.NOTE
    )


def _list_unknown(document: InspectionDocument, path: str) -> Iterator[str]:
    latest = document.latest
    newest = "no batch was planned"
    if latest.offset_batch is not None:
        when = "" if latest.timestamp_ms is None else f", planned {instant(latest.timestamp_ms)}"
        newest = f"the newest batch was {latest.offset_batch}{when}"
    yield f"changes to the checkpoint since {one_line(path)} was written ({newest}), and whether a driver is running"
    for source in document.sources:
        if _find_entry(source) > 0 and _count_entries(document, source.index) not in (0, 1):
            yield (
                f"source {source.index}: all files of the newest batch; "
                f"{one_line(path)} lists only the files of the last log entry"
            )


def _count_entries(document: InspectionDocument, source: int) -> int | None:
    """How many entries of the log of a file source the newest batch has; None if the document does not say."""
    newest = document.batches.shown[-1].advanced[source : source + 1] if document.batches.shown else ()
    return next((advance.amount for advance in newest if advance and advance.unit == Unit.ENTRIES), None)


def _build_checkpoint(document: InspectionDocument) -> Checkpoint:
    """The checkpoint, as far as a document has it: the newest offsets, the operators and their schemas."""
    latest, planned = document.latest.offset_batch, document.batches.offsets
    entries = {} if latest is None or latest in planned.unreadable else dict(_read_offsets(document, latest))
    names = _name_batches([latest] if planned.first is not None else [], latest)
    watermark = document.latest.committed_watermark_ms
    newest_commit = document.latest.committed_batch
    committed = {newest_commit} if latest in document.batches.uncommitted else {newest_commit, latest}
    commits = {} if newest_commit is None else {newest_commit: model.CommitLog(1, watermark)}
    query_id = document.checkpoint.query_id
    folders: dict[str, dict[str, FileInfo]] = {"": {}, SOURCES: {}}
    folders |= {STATE: {}} if document.checkpoint.stateful else {}
    folders |= {name_folder(source.index, source.name): _list_source_log(source) for source in document.sources}
    return Checkpoint(
        document.checkpoint.path,
        document.checkpoint.kind,
        Listing(folders),
        None if query_id is None else model.QueryMetadata(query_id),
        Log(OFFSETS, names, entries),
        Log(COMMITS, _name_batches(committed, newest_commit), commits),
        _read_state(document),
        source_entries={
            f"{name_folder(source.index, source.name)}/0": tuple(
                SourceFile(file, 0, _find_entry(source)) for file in _list_files(source)
            )
            for source in document.sources
        },
    )


def _name_batches(batches: Iterable[int | None], latest: int | None) -> BatchNames:
    ids = tuple(sorted(batch for batch in batches if batch is not None))
    return BatchNames(ids, {} if latest is None or latest in ids else {f"+{latest}": latest}, ())


def _read_offsets(document: InspectionDocument, latest: int) -> Iterator[tuple[int, model.OffsetLog]]:
    """The newest offsets, and those before as far as file sources need them: which entry the batch begins after."""
    facts = document.latest
    metadata = None
    if facts.timestamp_ms is not None:
        metadata = model.OffsetMetadata(facts.watermark_ms or 0, facts.timestamp_ms, facts.conf)
    named = any(source.name is not None for source in document.sources)
    sources = tuple(
        model.SourceOffset(source.name, None, source.offset, source.well_formed) for source in document.sources
    )
    yield latest, model.OffsetLog(2 if named else 1, metadata, sources)
    earlier = tuple(model.SourceOffset(source.name, None, _find_start(document, source)) for source in document.sources)
    yield latest - 1, model.OffsetLog(2 if named else 1, None, earlier)


def _find_start(document: InspectionDocument, source: SourceKeys) -> model.Json:
    """Where the newest batch begins to read a file source; None for others, and for the first batch."""
    count = _count_entries(document, source.index)
    return {"logOffset": _find_entry(source) - count} if source.type is SourceType.FILE and count is not None else None


def _find_entry(source: SourceKeys) -> int:
    """The entry of its log up to which a file source was read; 0 for other sources."""
    entry = source.decoded.get("log_offset")
    return entry if isinstance(entry, int) else 0


def _list_files(source: SourceKeys) -> list[str]:
    files = source.decoded.get("files")
    return [file for file in files if isinstance(file, str)] if isinstance(files, list) else []


def _list_source_log(source: SourceKeys) -> dict[str, FileInfo]:
    """The folder of a source: a rate source is known by a file ``0`` in it."""
    return {"0": FileInfo(0, None)} if source.type is SourceType.RATE else {}


def _read_state(document: InspectionDocument) -> model.StateInventory | None:
    state = document.state
    if state is None:
        return None
    operators = tuple(
        model.Operator(
            operator.id,
            operator.name,
            tuple(
                model.Store(
                    store.name,
                    (),
                    None,
                    store.changelog,
                    store.readable_batches,
                    store.newest_snapshot_version,
                    None,
                    tuple(model.ColumnFamily(each.name, each.key_schema, each.value_schema) for each in store.families),
                    store.key_schema,
                    store.value_schema,
                )
                for store in operator.stores
            ),
            operator.variables,
            operator.properties,
            has_metadata=operator.has_metadata,
        )
        for operator in state.operators
    )
    every_byte = model.EveryByte(0, 0, (), ()) if document.deep else None
    not_read = document.not_read
    if not_read is None:  # an earlier ckpt read every byte or none
        stores = (store for operator in state.operators for store in operator.stores)
        not_read = model.NotRead(0, 0 if document.deep else sum(store.bytes for store in stores))
    return model.StateInventory(
        state.provider,
        state.format_version,
        None,
        operators,
        None,
        (),
        None,
        (),
        (),
        every_byte=every_byte,
        not_read=not_read,
    )
