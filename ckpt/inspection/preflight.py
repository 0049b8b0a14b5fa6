"""Preflight: may a query be started on a checkpoint now? For ``ckpt preflight`` and for Python."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

from ckpt import settings
from ckpt.advice import Hole, Option, Setting, Words, call, words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.state.chains import is_known_provider
from ckpt.formats.names import parse_java_int
from ckpt.formats.text import quoted
from ckpt.inspection import activity
from ckpt.inspection.bugs import find_bugs
from ckpt.inspection.checks.sink import SinkOutcome
from ckpt.inspection.inspection import OF_NO_STATE, Evidence, Inspection, RatedFinding, gather_evidence, judge
from ckpt.live.outlook import SourceOutcome
from ckpt.live.records import LiveSource
from ckpt.live.sink.records import SinkLog
from ckpt.query.compare_checkpoint import QueryComparison, SparkAnswer, compare_query
from ckpt.query.description import NOT_DESCRIBED, QueryDescription
from ckpt.restart import diagnoses
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Asked, Finding, Severity
from ckpt.restart.own_triggers import OPERATORS, REFUSED_SOURCES
from ckpt.restart.recorded_settings import SettingOutlook, setting_outlooks
from ckpt.storage import open_storage
from ckpt.storage.locations import is_of_one_host
from ckpt.texts import size
from ckpt.values import Value
from ckpt.versions import NEWEST, Spark

_RECENT_S = 600.0
"""A checkpoint that was written to more recently may have a driver: it is worth a few seconds to look again."""
_NOT_IN_A_CHECKPOINT = words(
    "a checkpoint does not record window lengths, session gaps, the watermark delay, the output mode, filters, the "
    "aggregated columns, the type of a join, or user code: changes to these are not seen ({from_query}: the "
    "description of the query that wrote it)",
    from_query=Option("from_query"),
)
_UNSEEN_IN_REAL_TIME = (
    "the sink, which must be Kafka, foreach or the console; the interval, at least 5 seconds; and whether Spark has a "
    "slot for each source partition and each shuffle partition at once, as real-time mode needs"
)
_NOT_IN_A_PLAN = f"{NOT_DESCRIBED}: changes to these are not seen"


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """The start that is about to be tried, as far as it is known."""

    spark: Spark | None = None  # None: any version that can have written the checkpoint, or a later one
    settings: Mapping[str, str] = field(default_factory=dict)  # of the session
    all_settings: bool = False  # these are all that it has
    query: QueryDescription | None = None
    query_file: str | None = None  # of its description, for the commands of remedies
    old: QueryDescription | None = None  # the query that wrote the checkpoint
    old_file: str | None = None  # of its description, likewise
    answer: SparkAnswer | None = None  # of Spark, asked to plan the next batch
    hidden: str | None = None  # why the query, which is at hand, cannot be looked at
    progress: Asked = Asked.SYNC
    must_exist: bool = False  # the query has run before: a start at batch 0 is a hold
    release: str | None = None  # such as ``4.2.1``: of the version, whose known bugs are found


@dataclass(frozen=True, slots=True)
class Readiness(Value):
    """The answer to whether a start can be tried, with its reasons."""

    inspection: Inspection
    holds: tuple[RatedFinding, ...]  # why not; none where it can
    settings: Annotated[tuple[SettingOutlook, ...], "each `--conf`, and how a restart treats it"]
    query: QueryDescription | None
    unknown: tuple[str | Words, ...]  # what could not be seen, a sentence each
    not_asked: tuple[str, ...]  # what nobody asked about: ``sources``, ``sink``, ``query``
    judge_again: "Callable[..., Readiness]" = field(repr=False, compare=False)
    """Judges the same start on another state of the checkpoint, such as a fix would leave: ``judge_start``."""

    @property
    def go(self) -> bool:
        """True if the query can be started: it runs, on every version that was asked about, and loses no row."""
        counted = self.inspection.counted
        return not self.holds and bool(counted) and all(forecast.outcome.runs for forecast in counted)

    @property
    def warnings(self) -> tuple[RatedFinding, ...]:
        """The findings that deserve a look, and hold nothing."""
        held = {id(rated) for rated in self.holds}
        return tuple(rated for rated in self.inspection.troubles if id(rated) not in held)

    def with_advice_of(self, inspection: Inspection) -> "Readiness":
        """Return the answer with other advice: ``inspection`` has the same findings, in the same order."""
        held = {id(rated) for rated in self.holds}
        pairs = zip(self.inspection.findings, inspection.findings, strict=True)
        return replace(self, inspection=inspection, holds=tuple(new for old, new in pairs if id(old) in held))

    @property
    def verdict(self) -> str:
        """One sentence without a full stop."""
        if not self.holds:
            sentence, missing = self.inspection.verdict, self.inspection.checkpoint.missing_folder
            if missing is not None:
                sentence = (
                    "nothing is there yet: the query starts at batch 0 as a new one. If it has run before, check the "
                    f"path: {missing} does not exist"
                )
            cause = self.inspection.cause
            codes = dict.fromkeys(rated.finding.diagnosis.code for rated in self.warnings)
            unsaid = [code for code in codes if missing is not None or cause is None or code != cause.code]
            return f"{sentence}; see {', '.join(unsaid)}" if unsaid else sentence
        first, *others = self.holds
        more = f" (and {len(others)} more)" if others else ""
        return f"{first.cause.words}{more}: see {first.code}"


def judge_start(
    evidence: Checkpoint | Evidence,
    start: PlannedStart,
    sink: SinkLog | None = None,
    live: Sequence[LiveSource] | None = None,
    changed: str | None = None,
) -> Readiness:
    """Judge a start; pure, and raises nothing of its own.

    ``sink`` and ``live`` are None where nobody asked; ``changed`` is a file that changed while ckpt was looking.
    """
    if isinstance(evidence, Checkpoint):
        evidence = gather_evidence(evidence)
    checkpoint, oldest = evidence.checkpoint, evidence.written_by.oldest
    spark = start.spark or (start.query.spark if start.query else None)
    versions = [spark] if spark else [version for version in Spark if oldest is None or version.at_least(oldest)]
    compared = QueryComparison()
    if start.query and not checkpoint.links_out:
        compared = compare_query(start.query, checkpoint, spark or start.query.spark, start.old, start.answer)
    if start.query and start.query.operators == ():
        evidence = replace(evidence, findings=tuple(f for f in evidence.findings if f.diagnosis not in OF_NO_STATE))
    findings = []
    if changed is not None or checkpoint.moving:
        path, detail = changed or "the checkpoint", "it changed while ckpt was reading"
        findings.append(Finding(diagnoses.starting.SECOND_DRIVER, path, detail))
    if start.must_exist and checkpoint.offsets.latest is None and not checkpoint.links_out:
        folder = checkpoint.missing_folder
        detail = f"check the path: {folder} does not exist" if folder else "no batch is planned"
        findings.append(Finding(diagnoses.starting.NOTHING_HERE, "" if folder else "offsets", detail))
    if start.hidden is not None:
        findings.append(Finding(diagnoses.starting.QUERY_NOT_COMPARED, "", start.hidden))
    findings += _compare_state_format(checkpoint, versions, start.settings, all_known=start.all_settings)
    findings += _compare_provider(checkpoint, start)
    master = start.settings.get("spark.master", "local")
    if not master.startswith("local") and is_of_one_host(checkpoint.uri):
        findings.append(Finding(diagnoses.others.NOT_SHARED, "", f"the session runs on {quoted(master, 80)}"))
    findings += compared.findings
    findings += find_bugs(checkpoint, () if start.release is None else (start.release,))
    if start.progress is Asked.REALTIME:
        findings += compare_real_time(start.query, start.settings, versions)
    named = {Hole.QUERY: start.query_file, Hole.OLD_QUERY: start.old_file}
    files = {hole: file for hole, file in named.items() if file is not None}
    inspection = judge(evidence, (spark,) if spark else (), start.progress, 10, sink, live or (), findings, files)
    failing = [forecast for forecast in inspection.counted if not forecast.outcome.runs]
    stops = {finding.key for forecast in failing for finding in forecast.because}
    holds = (f for f in inspection.findings if f.severity is Severity.ERROR or f.finding.key in stops)
    missing = {"sources": live is None, "sink": sink is None, "query": start.query is None}
    counted = (forecast.spark for forecast in inspection.counted)
    newest = spark or max(counted, key=lambda version: version.rank, default=NEWEST)
    return Readiness(
        inspection,
        tuple(holds),
        setting_outlooks(checkpoint, newest, start.settings),
        start.query,
        (
            *evidence.unknown,
            *_list_unseen(checkpoint, start, changed, live),
            *((_UNSEEN_IN_REAL_TIME, *_list_untried(start.query)) if start.progress is Asked.REALTIME else ()),
            *_list_unknown(inspection),
            *compared.unknown,
        ),
        tuple(name for name, not_asked in missing.items() if not_asked),
        partial(judge_start, start=start, sink=sink, live=live),
    )


def _compare_state_format(
    checkpoint: Checkpoint, versions: Iterable[Spark], session: Mapping[str, str], *, all_known: bool
) -> Iterator[Finding]:
    """Compare the state store checkpoint format, which the offset log does not record, with the session's.

    ``versions`` may start the query; ``all_known`` says that ``session`` has all settings of its session.
    """
    state, takes_format = checkpoint.state, any(version.rules.takes_state_format for version in versions)
    if state is None or not state.operators or checkpoint.offsets.latest is None or not takes_format:
        return
    name, needed = settings.CHECKPOINT_FORMAT, str(state.format_version)
    value = session.get(name, "1" if all_known else None)
    if value == needed or (value is None and needed == "1"):
        return
    diagnosis, why = diagnoses.starting.WRONG_SETTING, f"; the session has {name}={value}"
    if value is None:
        diagnosis, why = diagnoses.starting.NEEDED_SETTING, f", which needs {name}={needed}"
    detail = f"the state has checkpoint format {needed}{why}"
    advice = BOOK.advise("start_with", setting=Setting(f"{name}={needed}"))
    yield Finding(diagnosis, "state", detail, advice)


def _compare_provider(checkpoint: Checkpoint, start: PlannedStart) -> Iterator[Finding]:
    """Find a state store provider of the session that is none of Spark's, where no offsets record another."""
    provider = start.settings.get(settings.PROVIDER_CLASS)
    stateless = checkpoint.stateful is False if start.query is None else start.query.operators == ()
    recorded = settings.PROVIDER_CLASS in checkpoint.conf
    if provider is not None and not is_known_provider(provider) and not recorded and not stateless:
        detail = f"the session sets {settings.PROVIDER_CLASS}={quoted(provider, 80)}, and no offsets record another"
        yield Finding(diagnoses.modes.PROVIDER_OF_SESSION, "", detail)


def compare_real_time(
    query: QueryDescription | None, session: Mapping[str, str], versions: Sequence[Spark]
) -> Iterator[Finding]:
    """Find settings of the session, and parts of the query, that real-time mode refuses before it writes anything."""
    reasons = [*_list_reasons(query, session, versions)]
    if reasons:
        yield Finding(diagnoses.modes.NOT_FOR_REAL_TIME, "", "; ".join(reasons))


def _list_reasons(
    query: QueryDescription | None, session: Mapping[str, str], versions: Sequence[Spark]
) -> Iterator[str]:
    """``RealTimeStreamExecution``, ``STREAMING_REAL_TIME_MODE``; measured (``tests/restart/realtime``)."""
    keeps_state = any(version.rules.real_time_state for version in versions)
    if keeps_state:
        yield from _compare_settings(session)
    if query is None:
        return
    if query.output_mode.lower() != "update":
        yield f"its output mode is {query.output_mode}, but real-time mode needs update"
    for index, source in enumerate(query.sources):
        if source.kind in REFUSED_SOURCES:
            yield f"source {index} is {source.kind}, but real-time mode reads only Kafka"
        for option in source.limits if source.kind == SourceType.KAFKA else ():
            yield f"source {index} has the option {option}"
    for operator in query.operators or ():
        if operator.name not in OPERATORS or not keeps_state:
            yield f"it has the operator {operator.name}"


def _compare_settings(session: Mapping[str, str]) -> Iterator[str]:
    """Spark compares settings that the session has itself, not their defaults."""
    provider = session.get(settings.PROVIDER_CLASS)
    if provider not in (None, settings.ROCKSDB_PROVIDER):
        yield f"the session sets {settings.PROVIDER_CLASS}, but not to RocksDB"
    version = session.get(settings.CHECKPOINT_FORMAT)
    number = None if version is None else parse_java_int(version.strip())
    if number is not None and number < 2:
        yield f"the session sets {settings.CHECKPOINT_FORMAT}={number}, below 2"


def _list_untried(query: QueryDescription | None) -> Iterator[str]:
    """List the sources that real-time mode may not read: no Spark was asked."""
    for index, source in enumerate(query.sources if query is not None else ()):
        if source.kind != SourceType.KAFKA and source.kind not in REFUSED_SOURCES:
            yield f"real-time mode was not tried with source {index}, {source.kind}"


def _list_unseen(
    checkpoint: Checkpoint, start: PlannedStart, changed: str | None, live: Sequence[LiveSource] | None
) -> Iterator[str | Words]:
    age, state, verify = activity.measure_age_s(checkpoint.listing), checkpoint.state, call("state_verify")
    if changed is None and age is not None and age < _RECENT_S:
        yield (
            f"the newest file is {max(age, 0):.0f} s old, and nothing changed while ckpt was reading: a driver that "
            "waits for rows writes nothing"
        )
    if checkpoint.offsets.latest is None and not start.must_exist:
        yield words(
            "whether this query has run before: if no batch is planned, {must_exist} holds the start",
            must_exist=Option("must_exist"),
        )
    if checkpoint.offsets.latest is None and live is not None:
        yield "current offsets of the sources: no batch is planned, so no file shows what the query reads"
    if state is not None and state.not_read:
        yield words(
            "damage in the middle of state files: {bytes} that the start loads were not read ({verify} reads them)",
            bytes=size(state.not_read.bytes),
            verify=verify,
        )
    elif state is not None and state.every_byte is None:
        yield words("rows of the state: they were not decoded ({verify} does that)", verify=verify)
    if start.query is not None and start.query.operators:
        yield _NOT_IN_A_CHECKPOINT if start.old is None else _NOT_IN_A_PLAN


def _list_unknown(inspection: Inspection) -> Iterator[str]:
    """List what was asked about and is still not known."""
    for source in inspection.live:
        if source.outcome is SourceOutcome.UNKNOWN and source.said:
            yield f"current offsets of source {source.live.index}: {source.said}"
    sink = inspection.sink
    if sink is not None and sink.outcome is SinkOutcome.UNKNOWN and not sink.log.keeps_no_ids:
        yield f"batches in the sink: {sink.said}"


def find_changed_file(checkpoint: Checkpoint, storage_options: Mapping[str, str] | None = None) -> str | None:
    """Look at a checkpoint again, after some seconds if it was written to recently: the first path that changed.

    Raises StorageError where it cannot be listed again.
    """
    if checkpoint.listing.files == 0:
        return None
    age = activity.measure_age_s(checkpoint.listing)
    wait = activity.LOOKS_APART_S if age is not None and age < _RECENT_S else 0.0
    _, changed = activity.look_again(open_storage(checkpoint.uri, storage_options or {}), checkpoint.listing, wait)
    return changed
