"""Everything ``ckpt inspect`` says of a checkpoint, as one value; every other command consults it too."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from ckpt.advice import Advice, Hole, Known, Words
from ckpt.checkpoint import history
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.registry import SourceView
from ckpt.checkpoint.state.space import find_temporary_files, size_of
from ckpt.inspection.bugs import find_bugs
from ckpt.inspection.checks.sink import (
    SinkOutcome,
    SinkOutlook,
    add_query_id,
    find_noop_start,
    find_shared_table,
    foresee_sink,
)
from ckpt.inspection.checks.stored import check
from ckpt.inspection.verdict import IF_STATELESS, verdict
from ckpt.inspection.written_by import WrittenBy, written_by
from ckpt.live.outlook import SourceOutlook
from ckpt.live.records import LiveSource
from ckpt.live.sink.records import SinkLog
from ckpt.model import Kind, NotRead, Unneeded
from ckpt.restart.book import BOOK
from ckpt.restart.diagnoses.logs import ASYNC_REFUSES_STATE
from ckpt.restart.diagnoses.others import EMPTY
from ckpt.restart.diagnoses.state import NO_STATE_FOLDER, STATE_SEEMS_LOST
from ckpt.restart.findings import Asked, Finding, Forecast, Outcome, Severity
from ckpt.restart.remedies import name_renamed
from ckpt.restart.rules import forecast
from ckpt.values import Record, Value
from ckpt.versions import Progress, Spark

FORECAST = tuple(Spark)  # the versions that are forecast where none is named
OF_NO_STATE = (NO_STATE_FOLDER, STATE_SEEMS_LOST)  # findings that say nothing of a query known to keep no state


@dataclass(frozen=True, slots=True)
class Cause(Record):
    """The finding that a verdict names."""

    code: str
    file: Annotated[str, "relative to the checkpoint; empty for the whole of it"]
    words: Annotated[str, "for people, as in `verdict`; not fixed"]


@dataclass(frozen=True, slots=True)
class RatedFinding(Record):
    """A finding, how much it matters to what was asked, and its words for this place."""

    finding: Finding
    severity: Severity
    known: Known  # what its words depend on
    stored: bool  # the files show it, whatever is started; False: only some of the starts meet it

    @property
    def code(self) -> str:
        """The code of the finding, ``CKPT201``."""
        return self.finding.diagnosis.code

    @property
    def name(self) -> str:
        """The name of the finding, ``missing-predecessor``."""
        return self.finding.diagnosis.name

    @property
    def path(self) -> str:
        """The file or folder that shows it, relative to the checkpoint; "" for the whole of it."""
        return self.finding.path

    @property
    def meaning(self) -> Words:
        """The meaning of the finding, for this checkpoint."""
        return self.finding.diagnosis.meaning.fill(self.known)

    @property
    def cause(self) -> "Cause":
        """The finding in a few words, as a verdict names it."""
        cause, path = self.finding.diagnosis.cause, f"{self.path}: " if self.path else ""
        named = f"{path}{self.finding.detail}" if cause is None else str(cause.fill(Known(paths=(self.path,))))
        return Cause(self.code, self.path, named)

    @property
    def advice(self) -> Advice | None:
        """The advice on the finding for this checkpoint; None if nothing has to be done."""
        return self.finding.advised and self.finding.advised.fill(self.known)

    @property
    def remedy(self) -> str | None:
        """The advice as the sentences of a document."""
        return None if (advice := self.advice) is None else str(advice)


@dataclass(frozen=True, slots=True)
class Evidence(Record):
    """All facts of a checkpoint by which any start is judged.

    ``gather_evidence`` takes them from the files. The document of ``ckpt inspect`` has them too; then only the newest
    offsets, the operators and their schemas are in ``checkpoint``.
    """

    checkpoint: Checkpoint
    written_by: WrittenBy
    pattern: history.Pattern
    uncommitted: tuple[int, ...]
    unplanned: tuple[int, ...]
    findings: tuple[Finding, ...]  # those that the files show, whatever is started
    forecast: Callable[[Spark, Progress], Forecast]
    unknown: tuple[str, ...] = ()  # what it leaves open, a sentence each


def gather_evidence(checkpoint: Checkpoint) -> Evidence:
    """Gather what the files of a checkpoint show."""
    return Evidence(
        checkpoint,
        written_by(checkpoint),
        history.pattern(checkpoint),
        history.uncommitted(checkpoint),
        history.unplanned(checkpoint),
        tuple(check(checkpoint)),
        lambda spark, progress: forecast(checkpoint, spark, progress),
    )


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of files that no restart needs; None: what was read does not say."""

    old_versions: Annotated[int | None, "state of versions that no start needs; null if names and sizes do not show it"]
    orphans: Annotated[int | None, "SST files that no snapshot names; null unless `--deep` has read the snapshots"]
    temporary: Annotated[int, "temporary files of interrupted writes"]

    @property
    def known(self) -> int:
        """Bytes of all these files, as far as they are known."""
        return (self.old_versions or 0) + (self.orphans or 0) + self.temporary


@dataclass(frozen=True, slots=True)
class Inspection(Value):
    """The contents of one checkpoint, its findings, and the next start of each Spark version."""

    checkpoint: Checkpoint
    asked: Asked
    written_by: WrittenBy
    pattern: history.Pattern
    batches: tuple[history.Batch, ...]  # the newest, oldest first
    uncommitted: tuple[int, ...]
    unplanned: tuple[int, ...]
    sources: tuple[SourceView, ...]  # the position of each at the end of the latest batch
    forecasts: tuple[Forecast, ...]  # in the order of ``Progress``, versions in order
    counted: tuple[Forecast, ...]  # those about a start that somebody may try: the verdict rests on them
    verdict: str  # one sentence without a full stop
    findings: tuple[RatedFinding, ...]  # worst first
    sink: SinkOutlook | None = None  # None: nobody asked
    live: tuple[SourceOutlook, ...] = ()  # of each source; none: nobody asked

    @property
    def deep(self) -> bool:
        """True if every byte of the state was read, and rows were compared."""
        state = self.checkpoint.state
        return state is not None and state.every_byte is not None

    @property
    def not_read(self) -> NotRead:
        """The state files that the next start loads and that were not read completely, or fit no checksum known."""
        return self.checkpoint.state.not_read if self.checkpoint.state else NotRead(0, 0)

    @property
    def space(self) -> "Space":
        """The bytes and files that could be deleted while the query is stopped."""
        state = self.checkpoint.state
        unneeded = state.unneeded if state else Unneeded(0, 0)
        listing = self.checkpoint.listing
        return Space(unneeded.old_versions, unneeded.orphans, size_of(listing, find_temporary_files(listing)))

    @property
    def unreached(self) -> tuple[str, ...]:
        """Reasons why the sink or a source could not be asked, one line each; none: everything was looked at."""
        sources = (source for source in self.live if source.live.unreached is not None)
        texts = [f"source {source.live.index} {source.said}" for source in sources]
        if self.sink is not None and self.sink.outcome is SinkOutcome.UNREACHED:
            texts.insert(0, f"sink {self.sink.said}")
        return tuple(texts)

    @property
    def not_asked(self) -> tuple[str, ...]:
        """The places that could be asked and were not: ``sources``, ``sink``. Some losses show only there."""
        missing = {"sources": bool(self.sources) and not self.live, "sink": self.sink is None}
        return tuple(name for name, not_asked in missing.items() if not_asked)

    @property
    def troubles(self) -> tuple[RatedFinding, ...]:
        """The findings that are more than notes, worst first."""
        return tuple(judged for judged in self.findings if judged.severity is not Severity.NOTE)

    @property
    def cause(self) -> Cause | None:
        """The worst finding, which the verdict names; None if there are none but notes."""
        return _find_cause(self.findings)

    @property
    def notes(self) -> tuple[RatedFinding, ...]:
        """The other findings, but those that the verdict or the lines of the forecast say already."""
        shown = (ASYNC_REFUSES_STATE, NO_STATE_FOLDER) if IF_STATELESS in self.verdict else (ASYNC_REFUSES_STATE,)
        notes = (rated for rated in self.findings if rated.severity is Severity.NOTE)
        return tuple(note for note in notes if note.finding.diagnosis not in shown)

    @property
    def advice(self) -> Advice:
        """The advice on the worst finding; empty if nothing has to be done."""
        if self.troubles:
            worst = self.troubles[0]
            return (worst.advice or Advice()).mark_stop(only_copy=worst.severity is Severity.ERROR)
        by_diagnosis = {rated.finding.diagnosis: rated for rated in self.findings}
        if EMPTY in by_diagnosis:
            return by_diagnosis[EMPTY].advice or Advice()
        return BOOK.advise("ask_again") if self.unreached else Advice()

    @property
    def to_repair(self) -> bool:
        """True if a finding advises a repair: exactly then ``repair`` looks for a fix, unless it is asked for more."""
        return any(rated.advice is not None and rated.advice.repairs for rated in self.troubles)

    @property
    def trouble_names(self) -> str:
        """Diagnoses of the troubles, each once: ``CKPT101 unreadable-log-file, CKPT204 commits-ahead-of-offsets``."""
        diagnoses = (rated.finding.diagnosis for rated in self.troubles)
        return ", ".join(dict.fromkeys(f"{diagnosis.code} {diagnosis.name}" for diagnosis in diagnoses))

    @property
    def sound(self) -> bool:
        """True if there are no findings but notes."""
        return not self.troubles


def inspect(
    checkpoint: Checkpoint,
    versions: Sequence[Spark | str] = (),
    progress: Asked = Asked.BOTH,
    batches: int = 10,
    sink: SinkLog | None = None,
    live: Sequence[LiveSource] = (),
) -> Inspection:
    """Judge a checkpoint that was read, with what a sink and sources have answered; of releases also known bugs."""
    bugs, sparks = [*find_bugs(checkpoint, versions)], [*dict.fromkeys(map(Spark, versions))]
    return judge(gather_evidence(checkpoint), sparks, progress, batches, sink, live, bugs)


def judge(
    evidence: Evidence,
    versions: Sequence[Spark] = (),
    progress: Asked = Asked.BOTH,
    batches: int = 10,
    sink: SinkLog | None = None,
    live: Sequence[LiveSource] = (),
    more: Sequence[Finding] = (),
    files: Mapping[Hole, str] | None = None,
) -> Inspection:
    """Judge the starts of these versions with this progress tracking, also by findings of the caller; pure."""
    checkpoint, origin = evidence.checkpoint, evidence.written_by
    if checkpoint.links_out:
        sink, live = None, ()  # their batches and offsets would be compared with logs that may not be read
    wanted = [version for version in FORECAST if version in versions or not versions]
    modes, named = _list_modes(progress, checkpoint), bool(versions)
    every = (evidence.forecast(version, mode) for mode in modes for version in wanted)
    plain = tuple(f for f in every if _is_offered(f, progress, named=named))
    tried = tuple(f for f in plain if _counts(f, origin, progress, named=named))
    if not progress.in_micro_batches and not named:
        tried = tuple(f for f in tried if f.outcome is not Outcome.REFUSED) or tried
    sink_outlook = foresee_sink(checkpoint, tried, sink) if sink is not None else None
    in_sink = sink_outlook.unread_batch if sink_outlook is not None else None
    refused = (f.spark for f in tried if f.outcome is Outcome.REFUSED)
    remedied, forecasts, counted = tuple(evidence.forecast(spark, Progress.SYNC) for spark in refused), plain, tried
    sources: tuple[SourceOutlook, ...] = ()
    if live:
        from ckpt.live.forecast import foresee_sources, inform_forecast

        remedied, forecasts, counted = (
            tuple(inform_forecast(uninformed, live, in_sink) for uninformed in group)
            for group in (remedied, plain, tried)
        )
        sources = foresee_sources(tried, live, in_sink)
    stored = [
        *evidence.findings,
        *(sink_outlook.findings if sink_outlook is not None else ()),
        *find_noop_start(checkpoint, sink_outlook),
        *find_shared_table(checkpoint, sink),
        *(finding for source in sources for finding in source.findings),
        *more,
    ]
    known = gather_known(checkpoint, sink_outlook, files)
    spoken = ((*forecasts, *remedied), (*counted, *remedied))
    judged = _rate_findings(checkpoint, *spoken, progress, stored, sink_outlook, known)
    cause = _find_cause(judged)
    return Inspection(
        checkpoint,
        progress,
        origin,
        evidence.pattern,
        history.batches(checkpoint, batches),
        evidence.uncommitted,
        evidence.unplanned,
        history.sources(checkpoint),
        forecasts,
        counted,
        verdict(
            counted,
            [f for f in forecasts if f not in counted and f.outcome is not Outcome.REFUSED],
            [j.finding.diagnosis.code for j in judged if j.severity is Severity.ERROR],
            cause="" if cause is None else cause.words,
            state_unseen=any(j.finding.diagnosis in OF_NO_STATE for j in judged),
            not_read=checkpoint.state is not None and bool(checkpoint.state.not_read),
        ),
        judged,
        sink_outlook,
        sources,
    )


def _find_cause(judged: Sequence[RatedFinding]) -> Cause | None:
    if not judged or judged[0].severity is Severity.NOTE:
        return None
    cause = judged[0].cause
    more = sum(rated.code == cause.code for rated in judged) - 1
    return replace(cause, words=f"{cause.words} (and {more} more)") if more else cause


def _list_modes(progress: Asked, checkpoint: Checkpoint) -> list[Progress]:
    """The modes to forecast: those with a trigger of their own where one is asked about, or files show that it ran."""
    if progress is not Asked.BOTH:
        return [Progress(progress.value)]
    ran = {Progress.REALTIME: history.in_real_time(checkpoint), Progress.CONTINUOUS: checkpoint.kind is Kind.CONTINUOUS}
    return [mode for mode in Progress if ran.get(mode, True)]


def _is_offered(forecast: Forecast, progress: Asked, *, named: bool) -> bool:
    """Tell whether a version has the mode at all, and runs the query in it where nobody asked about the mode."""
    if forecast.progress.in_micro_batches:
        return True
    if progress is Asked.BOTH:
        return forecast.outcome is not Outcome.REFUSED
    return named or forecast.progress is Progress.CONTINUOUS or forecast.spark.rules.real_time


def _counts(forecast: Forecast, origin: WrittenBy, progress: Asked, *, named: bool) -> bool:
    """Tell whether a forecast is about a start that somebody may try.

    Not one with a Spark older than the one that wrote the checkpoint, and not an asynchronous one of a stateful
    query, unless that version or mode was asked for by name. One with a trigger of its own only if it was.
    """
    if progress is Asked.BOTH and not forecast.progress.in_micro_batches:
        return False
    too_old = origin.oldest is not None and not forecast.spark.at_least(origin.oldest)
    mode_named = progress is Asked.ASYNC or not progress.in_micro_batches
    return (named or not too_old) and (mode_named or forecast.outcome is not Outcome.REFUSED)


def _rate_findings(
    checkpoint: Checkpoint,
    forecasts: Sequence[Forecast],
    counted: Sequence[Forecast],
    progress: Asked,
    stored: Sequence[Finding],
    sink: SinkOutlook | None,
    known: Known,
) -> tuple[RatedFinding, ...]:
    """Return the findings of forecasts and checks, once per diagnosis and path.

    A finding that speaks only of starts that nobody tries, or of batches long past, is a note.
    """
    spoken_of = [f for forecast in forecasts for f in forecast.because]
    findings: dict[tuple[str, str], Finding] = {}
    places: dict[str, list[str]] = {}
    for finding in (*spoken_of, *stored):
        if finding.key not in findings:
            findings[finding.key] = name_renamed(add_query_id(finding, sink), checkpoint)
            places.setdefault(finding.diagnosis.code, []).extend((finding.path, *finding.others))
    shown = {finding.key for finding in stored}
    notes = {f.key for f in spoken_of} - {f.key for forecast in counted for f in forecast.because}
    here = {code: replace(known, paths=tuple(paths)) for code, paths in places.items()}
    judged = []
    for key, finding in findings.items():
        severity = Severity.NOTE if key in notes or finding.minor else finding.diagnosis.severity_for(progress)
        judged.append(RatedFinding(finding, severity, here[finding.diagnosis.code], key in shown))
    return tuple(sorted(judged, key=lambda j: (-j.severity.rank, j.finding.diagnosis is ASYNC_REFUSES_STATE, j.code)))


def gather_known(checkpoint: Checkpoint, sink: SinkOutlook | None, files: Mapping[Hole, str] | None = None) -> Known:
    """Gather the facts that fill in advice, except paths of a finding; ``files`` are those that the user has named."""
    has_answered = sink is not None and sink.outcome is not SinkOutcome.UNREACHED
    return Known(
        checkpoint.uri.rstrip("/") or checkpoint.uri,
        sink=sink.log.uri if sink is not None and has_answered else None,
        sink_kind=sink.kind if sink is not None else None,
        deep=checkpoint.state is not None and checkpoint.state.every_byte is not None,
        files=files or {},
    )
