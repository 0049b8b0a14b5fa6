"""``ckpt migrate changelog``, ``provider`` and ``real-time``: a setting that a query can go over to, and how.

Each has its proof and its checks; the first check that applies decides.

**Changelog checkpointing.** Spark loads a version from the newest snapshot at or below it and the changelogs behind
that, whatever the setting is (class ``RocksDB``, ``load``), so the same checkpoint continues in both directions; the
setting decides how the next versions are written. It is not among those that a checkpoint records. Measured on Spark
3.5, 4.0, 4.2 and 4.3, with state store checkpoint format 2 on 4.2.

**State store provider.** Spark continues with the provider that the offset log records, whatever the session says
(class ``OffsetSeqMetadata``, ``setSessionConf``; measured in both directions on 4.2), and has nothing that turns the
files of one into those of the other. ``ckpt rewrite`` does, and the same query continues. State that it does not write
can only come into a new query, as initial state of transformWithState, which runs on RocksDB only
(``TransformWithStateExec``). How far state can be taken is what the tests of this project show (``Transfer``).

**Real-time mode.** Spark 4.3 wants a newest commit of version 2 (``CHECKPOINT_FORMAT_V1_NOT_SUPPORTED``), and its own
answer is a new checkpoint. With state, ``ckpt rewrite`` writes one from which real-time mode continues; without, the
version of the newest commit is all that is missing. Shown by real starts (``tests/restart/realtime``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeVar

from ckpt import settings
from ckpt.advice import Call, Setting, Step, Words, call, plain, run, words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import as_checkpoint
from ckpt.checkpoint.state.ranges import contains
from ckpt.checkpoint.state.rewritable import Form, refuse_rewrite
from ckpt.errors import CkptError, parse_choice
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.inspection.verdict import outcome_words
from ckpt.migrate.book import BOOK
from ckpt.migrate.comparison import Comparison, TwoWays, Written, find_two_ways, find_written
from ckpt.migrate.handoff.plan import Handoff, handoff
from ckpt.migrate.variables import OperatorFamily, family_of
from ckpt.model import Kind, Location, Provider, ToProvider
from ckpt.restart.diagnoses.modes import REAL_TIME_FORMAT
from ckpt.restart.findings import Asked, Forecast, Outcome
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.confs import PROVIDER_CLASSES
from ckpt.state.reading.initial import InitialShape, plan_initial_states
from ckpt.state.reading.reading import StateRequest
from ckpt.state.reading.units import state_units
from ckpt.texts import quote_word
from ckpt.values import Value
from ckpt.versions import NEWEST, Progress, Spark

PROVIDER_NAMES = {
    Provider.HDFS: "HDFS-backed",
    Provider.ROCKSDB: "RocksDB",
    Provider.UNKNOWN: "of an unknown provider",
}
NEEDS = (
    "sources: Kafka, without the options maxOffsetsPerTrigger and minPartitions",
    "sink: Kafka, foreach or the console",
    'output mode: update. Trigger: realTime="5 minutes" (at least 5 seconds)',
    "state: aggregations, dropDuplicates and transformWithState in Scala or Java only, with Spark 4.3 or later",
    "a Spark slot for each source partition and each shuffle partition, all at once",
)
"""Demands of real-time mode on the query, which no file of a checkpoint shows."""


class Changelog(StrEnum):
    """The wanted state of changelog checkpointing."""

    ON = "on"
    OFF = "off"


class SwitchOutcome(StrEnum):
    """A switch of changelog checkpointing, as far as the files foretell it."""

    READY = "ready"  # it can be made
    ALREADY = "already"  # the newest version is written so everywhere
    NOTHING = "nothing"  # there is no state
    REFUSED = "refused"
    SWITCHED = "switched"  # verified
    PARTLY = "partly"  # verified: in some partitions only
    NOT_YET = "not-yet"  # verified: in no partition


class MoveOutcome(StrEnum):
    """A move to the other provider, as far as the files foretell it."""

    ALREADY = "already"  # the checkpoint is of that provider
    NOTHING = "nothing"  # there is no state
    POSSIBLE = "possible"  # state can be handed over to a new query
    NO_WAY = "no-way"  # it cannot; the alternatives are named
    REFUSED = "refused"  # ckpt could not tell


class RealTimeOutcome(StrEnum):
    """A change to real-time mode, as far as the files foretell it."""

    ALREADY = "already"  # a start in real-time mode continues as it is
    REWRITE = "rewrite"  # the same query continues on a checkpoint that ``ckpt rewrite`` writes
    COMMIT = "commit"  # the newest commit gets version 2
    NO_WAY = "no-way"  # real-time mode does not run such a query
    REFUSED = "refused"  # ckpt cannot tell, or something else is wrong


class Transfer(StrEnum):
    """How far state of an operator can be taken to the other provider."""

    AS_IT_IS = "as-it-is"  # ckpt writes it for the other provider, and the same query continues with it
    GOES_ON = "goes-on"  # a new query continues with it; shown by tests against an uninterrupted query
    STATE_ONLY = "state-only"  # it can be loaded; whether a new query then answers the same is not shown
    NONE = "none"


_Outcome = TypeVar("_Outcome", SwitchOutcome, MoveOutcome, RealTimeOutcome)
_Checks = Iterator[tuple[bool, _Outcome, str]]
"""True if a check applies, its outcome, and the name of the text that gives the reason; the first to apply decides."""


def _decide(checks: _Checks[_Outcome], **parts: object) -> tuple[_Outcome, Words | None]:
    outcome, why = next((outcome, why) for applies, outcome, why in checks if applies)
    return outcome, BOOK.text(why, **parts) if why else None


def _check_state(checkpoint: Checkpoint, refused: _Outcome, nothing: _Outcome, setting: str) -> _Checks[_Outcome]:
    """Check that the files say of the state what any of these changes asks for."""
    state = checkpoint.state
    yield checkpoint.kind is Kind.EMPTY, refused, f"{setting}_nothing_planned"
    yield state is None and checkpoint.stateful is None, refused, "state_unknown"
    yield state is not None and state.provider is Provider.UNKNOWN, refused, "state_no_provider"
    yield state is None, nothing, ""


@dataclass(frozen=True, slots=True)
class ChangelogSwitch(Value):
    """A switch before it is made, or looked at afterwards."""

    inspection: Inspection
    to: Changelog
    outcome: Annotated[SwitchOutcome, "the last three with `--verify` only"]
    written: Annotated[tuple[Written, ...], "one per store and partition"] = ()
    ways: tuple[TwoWays, ...] = ()  # verified, and taken everywhere: what Spark can compare
    comparison: Comparison | None = None  # what it said; None where it was not asked
    warnings: tuple[Words, ...] = ()
    refused: Words | None = None

    @property
    def confs(self) -> Mapping[str, str]:
        """The settings that the session needs at every start from the switch on."""
        return {settings.CHANGELOG_CHECKPOINTING: str(self.to is Changelog.ON).lower()}

    @property
    def rewrite(self) -> Call | None:
        """The call that moves the state to RocksDB, where that is what is missing, and ckpt can."""
        checkpoint = self.inspection.checkpoint
        if checkpoint.state is None or checkpoint.state.provider is not Provider.HDFS:
            return None
        possible = is_rewritable(checkpoint, ToProvider.ROCKSDB)
        return rewrite_call(checkpoint.uri, ToProvider.ROCKSDB) if possible else None

    @property
    def next_version(self) -> int | None:
        """The state version that the next batch writes."""
        state = self.inspection.checkpoint.state
        return None if state is None or state.needed_version is None else state.needed_version + 1

    @property
    def since(self) -> int | None:
        """The version from which on every partition is written as wanted; None where one is not."""
        versions = [part.since for part in self.written]
        known = [version for version in versions if version is not None]
        return max(known) if known and len(known) == len(versions) else None


def switch_changelog(
    uri: str, to: Changelog, storage_options: Mapping[str, str] | None = None, *, verify: bool = False
) -> ChangelogSwitch:
    """Say what the files show of a switch, as ``ckpt.migrate_changelog`` does.

    Raises NotACheckpoint, NotFound, StorageError, UsageError.
    """
    inspection = inspect(as_checkpoint(uri, storage_options))
    checkpoint, changelog = inspection.checkpoint, to is Changelog.ON
    parts = tuple(find_written(checkpoint.listing, changelog=changelog))
    verdict = inspection.verdict[:1].lower() + inspection.verdict[1:]
    outcome, refused = _decide(_check_changelog(inspection, parts, verify=verify), verdict=verdict)
    if outcome in (SwitchOutcome.REFUSED, SwitchOutcome.NOTHING):
        return ChangelogSwitch(inspection, to, outcome, refused=refused)
    if not verify:
        warnings = tuple(_warn_of_switch(inspection, to, outcome))
        return ChangelogSwitch(inspection, to, outcome, parts, warnings=warnings)
    committed = checkpoint.commits.ids if outcome is SwitchOutcome.SWITCHED else ()
    ways = find_two_ways(checkpoint.listing, parts, committed, changelog=changelog)
    return ChangelogSwitch(inspection, to, outcome, parts, tuple(ways) if committed else ())


def _check_changelog(inspection: Inspection, parts: tuple[Written, ...], *, verify: bool) -> _Checks[SwitchOutcome]:
    checkpoint, state = inspection.checkpoint, inspection.checkpoint.state
    yield from _check_state(checkpoint, SwitchOutcome.REFUSED, SwitchOutcome.NOTHING, "changelog")
    on_hdfs = state is not None and state.provider is Provider.HDFS
    rewritable = on_hdfs and is_rewritable(checkpoint, ToProvider.ROCKSDB)
    yield rewritable, SwitchOutcome.REFUSED, "changelog_by_rewrite"
    yield on_hdfs, SwitchOutcome.REFUSED, "changelog_by_migration"
    starts = any(f.outcome.runs for f in inspection.counted if f.progress is Progress.SYNC)
    yield not verify and not starts, SwitchOutcome.REFUSED, "changelog_as_it_is"
    as_wanted = [part.since is not None for part in parts]
    everywhere = bool(parts) and all(as_wanted)
    yield everywhere, SwitchOutcome.SWITCHED if verify else SwitchOutcome.ALREADY, ""
    yield not verify, SwitchOutcome.READY, ""
    yield True, SwitchOutcome.PARTLY if any(as_wanted) else SwitchOutcome.NOT_YET, ""


def _warn_of_switch(inspection: Inspection, to: Changelog, outcome: SwitchOutcome) -> Iterator[Words]:
    checkpoint = inspection.checkpoint
    failing = sorted({f.spark for f in inspection.counted if f.progress is Progress.SYNC and not f.outcome.runs})
    if failing:
        yield BOOK.text("changelog_failing", versions=", ".join(failing), uri=checkpoint.uri)
    if inspection.written_by.oldest is None:
        yield BOOK.text("changelog_since")
    if outcome is SwitchOutcome.ALREADY:
        return
    latest = checkpoint.offsets.latest
    if latest is not None and latest not in checkpoint.commits:
        yield BOOK.text("changelog_planned", latest=latest)
    yield BOOK.text("changelog_on" if to is Changelog.ON else "changelog_off")
    if checkpoint.state is not None and checkpoint.state.format_version == 2:
        yield BOOK.text("changelog_format_2")


@dataclass(frozen=True, slots=True)
class OperatorMove:
    """The outcome of a move for one stateful operator."""

    operator: int
    name: Annotated[str | None, "Spark before 4.0 does not record it"]
    family: OperatorFamily | None  # None: the same query continues, whatever it is
    carry: Annotated[
        Transfer,
        "as-it-is: `ckpt rewrite` writes it, and the same query continues; goes-on: tests show that a new query gives "
        "the same results as the old one; state-only: its state can be loaded, the rest is not proven",
    ]
    why: Annotated[str, "for people; its words are not fixed"]


@dataclass(frozen=True, slots=True)
class ProviderMove(Value):
    """A move to another provider, before anybody makes it."""

    handoff: Handoff
    to: ToProvider
    outcome: MoveOutcome
    operators: tuple[OperatorMove, ...] = ()
    refused: Words | None = None
    rewritable: bool = False  # the same query can continue: ``ckpt rewrite``

    @property
    def provider(self) -> Provider | None:
        """The checkpoint's provider; None where there is no state."""
        state = self.handoff.inspection.checkpoint.state
        return None if state is None else state.provider

    @property
    def recorded(self) -> str | None:
        """The class that the latest offsets record, which no session overrules; None where they record none."""
        return self.handoff.inspection.checkpoint.conf.get(settings.PROVIDER_CLASS)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in their order; only where state can be taken."""
        return tuple(_list_steps(self)) if self.outcome is MoveOutcome.POSSIBLE else ()

    @property
    def remains(self) -> tuple[Step, ...]:
        """The alternatives; only where state cannot be taken."""
        return tuple(_list_alternatives(self)) if self.outcome is MoveOutcome.NO_WAY else ()

    @property
    def confs(self) -> Mapping[str, str]:
        """The settings that the new query's session needs before its first start."""
        return {settings.PROVIDER_CLASS: PROVIDER_CLASSES[Provider(self.to)]}


_CARRIES = {
    OperatorFamily.AGGREGATION: (Transfer.GOES_ON, "carries_buffers"),
    OperatorFamily.WINDOWS: (Transfer.GOES_ON, "carries_buffers"),
    OperatorFamily.GROUP_STATE: (Transfer.GOES_ON, "carries_group_state"),
    OperatorFamily.SESSIONS: (Transfer.STATE_ONLY, "carries_sessions"),
    OperatorFamily.DEDUPLICATION: (Transfer.STATE_ONLY, "carries_keys"),
    OperatorFamily.WITHIN_WATERMARK: (Transfer.STATE_ONLY, "carries_keys_and_expiry"),
    OperatorFamily.JOIN: (Transfer.NONE, "carries_no_join"),
    OperatorFamily.TRANSFORM: (Transfer.NONE, "carries_rocksdb_only"),
}


def migrate_provider(
    checkpoint: Location, *, to: ToProvider | str, storage_options: Mapping[str, str] | None = None
) -> ProviderMove:
    """Report what ``ckpt migrate provider`` reports. Reads only the checkpoint's small files; starts no JVM.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        to: The target provider: ``hdfs`` or ``rocksdb``.
        storage_options: For the file system of the URI.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> found = ckpt.migrate_provider("sample_checkpoints/aggregation-hdfs-4.2", to="rocksdb")
    >>> found.outcome.value, [operator.carry.value for operator in found.operators]
    ('possible', ['as-it-is'])
    """
    to = parse_choice(ToProvider, to, "to")
    continuation = handoff(checkpoint, storage_options=storage_options)
    opened = continuation.inspection.checkpoint
    outcome, refused = _decide(_check_provider(opened, to))
    if outcome is not MoveOutcome.POSSIBLE:
        return ProviderMove(continuation, to, outcome, refused=refused)
    if is_rewritable(opened, to):
        same = tuple(
            OperatorMove(shape.id, shape.name, None, Transfer.AS_IT_IS, "its rows are copied byte for byte")
            for shape in opened.operators
        )
        return ProviderMove(continuation, to, outcome, same, rewritable=True)
    question = StateRequest(opened.uri, RequestedPart(), all_units=True, batch=continuation.batch)
    try:
        shapes = [plan.shape for plan in plan_initial_states(question, storage_options)]
    except CkptError as error:
        why = words("its state cannot be loaded: {error}", error=error.words)
        return ProviderMove(continuation, to, MoveOutcome.REFUSED, refused=why)
    operators = tuple(_judge_moves(shapes, to))
    if any(operator.carry is Transfer.NONE for operator in operators):
        return ProviderMove(continuation, to, MoveOutcome.NO_WAY, operators)
    if continuation.refused is not None:
        why = words("its sources cannot continue: {why}", why=continuation.refused)
        return ProviderMove(continuation, to, MoveOutcome.REFUSED, operators, why)
    return ProviderMove(continuation, to, MoveOutcome.POSSIBLE, operators)


def is_rewritable(checkpoint: Checkpoint, to: ToProvider, version: int = 1) -> bool:
    """Tell whether ``ckpt rewrite`` writes this state for a provider, in a state store checkpoint format."""
    latest, state = checkpoint.offsets.newest, checkpoint.state
    if latest is None or latest.metadata is None or state is None:
        return False
    old, new = Form(state.provider, 0, state.format_version), Form(Provider(to), 0, version)
    if any(refuse_rewrite(state, checkpoint.conf, old, new)):
        return False
    newest = checkpoint.commits.latest or 0
    return all(contains(unit.readable_batches, newest) for unit in state_units(checkpoint))


def _check_provider(checkpoint: Checkpoint, to: ToProvider) -> _Checks[MoveOutcome]:
    yield from _check_state(checkpoint, MoveOutcome.REFUSED, MoveOutcome.NOTHING, "provider")
    yield checkpoint.state is not None and checkpoint.state.provider is Provider(to), MoveOutcome.ALREADY, ""
    yield True, MoveOutcome.POSSIBLE, ""


def _judge_moves(shapes: list[InitialShape], to: ToProvider) -> Iterator[OperatorMove]:
    for shape in shapes:
        family = family_of(shape)
        carry, why = _CARRIES[family]
        if len(shapes) > 1:
            carry, why = Transfer.NONE, "carries_alone"
        elif to is ToProvider.HDFS:
            carry, why = Transfer.NONE, why if family is OperatorFamily.TRANSFORM else "carries_on_hdfs"
        elif carry is Transfer.GOES_ON and not shape.keys:
            carry, why = Transfer.STATE_ONLY, "carries_no_key"
        yield OperatorMove(shape.operator, shape.operator_name, family, carry, str(BOOK.text(why)))


def _list_steps(move: ProviderMove) -> Iterator[Step]:
    checkpoint = move.handoff.inspection.checkpoint
    uri, latest = checkpoint.uri, checkpoint.offsets.latest
    if move.rewritable:
        new = name_beside(uri, f"on-{move.to}")
        yield from BOOK.advise("stop_query").steps
        yield run(rewrite_call(uri, move.to), BOOK.text("provider_rewrite"), writes=True)
        if latest != checkpoint.commits.latest:
            yield from BOOK.advise("provider_ask", new=new, latest=latest).steps
        yield from BOOK.advise("provider_start_same", new=new).steps
        return
    new = uri.rstrip("/").rpartition("/")[2] + f"-on-{move.to}"
    line, batch = f"python {quote_word(f'{new}/start.py')}", move.handoff.batch
    set_there = _name_settings(move)
    yield from BOOK.advise("provider_new_query", uri=uri, new=new, number=batch, settings=set_there, line=line).steps


def rewrite_call(path: str, to: ToProvider) -> Call:
    """The call that writes the state for the other provider."""
    return call("rewrite", path, name_beside(path, f"on-{to}"), provider=to)


def name_beside(path: str, ending: str) -> str:
    """A new checkpoint next to the old one: where a cluster finds the one, it finds the other."""
    path = path.rstrip("/")
    return f"{path}/../{ending}" if path.rpartition("/")[2] in {"", ".", ".."} else f"{path}-{ending}"


def _name_settings(move: ProviderMove) -> Setting:
    return Setting(" ".join(f"{key}={value}" for key, value in move.confs.items()))


def _list_alternatives(move: ProviderMove) -> Iterator[Step]:
    uri, number = move.handoff.inspection.checkpoint.uri, move.handoff.batch
    yield from BOOK.advise("provider_stay", provider=PROVIDER_NAMES[move.provider or Provider.UNKNOWN]).steps
    alone = [operator.family for operator in move.operators] if len(move.operators) == 1 else []
    if OperatorFamily.TRANSFORM not in alone:
        yield from BOOK.advise("provider_start_over", settings=_name_settings(move)).steps
    if OperatorFamily.TRANSFORM not in alone and move.handoff.refused is None:
        yield from BOOK.advise("provider_without_state", uri=uri, number=number).steps
    if move.to is ToProvider.HDFS and alone and OperatorFamily.JOIN not in alone:
        yield from BOOK.advise("provider_in_scala").steps


@dataclass(frozen=True, slots=True)
class RealTimeMove(Value):
    """A change to real-time mode, before anybody makes it."""

    inspection: Inspection  # of a start in real-time mode
    spark: Spark
    outcome: RealTimeOutcome
    refused: Words | None = None

    @property
    def forecast(self) -> Forecast:
        """The next start in real-time mode, as the checkpoint is."""
        return self.inspection.forecasts[0]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in their order."""
        if self.outcome in (RealTimeOutcome.NO_WAY, RealTimeOutcome.REFUSED):
            return ()
        uri = self.inspection.checkpoint.uri
        return BOOK.advise(f"real_time_{self.outcome}", uri=uri, new=name_beside(uri, "real-time")).steps

    @property
    def warnings(self) -> tuple[Words, ...]:
        """Effects of the change, a sentence each."""
        return tuple(_warn_of_real_time(self)) if self.steps else ()


def migrate_real_time(
    checkpoint: Location, *, spark: Spark | str = NEWEST, storage_options: Mapping[str, str] | None = None
) -> RealTimeMove:
    """Report what ``ckpt migrate real-time`` reports. Reads only the checkpoint's small files; starts no JVM.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        spark: The version to run the query in real-time mode.
        storage_options: For the file system of the URI.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> move = ckpt.migrate_real_time("sample_checkpoints/kafka-4.2")
    >>> move.outcome.value, [step.words for step in move.steps if step.words]
    ('commit', [('ckpt', 'repair', 'sample_checkpoints/kafka-4.2', '--choose', 'to-real-time', '--apply')])
    """
    version = parse_choice(Spark, spark, "spark")
    inspection = inspect(as_checkpoint(checkpoint, storage_options), (version,), Asked.REALTIME)
    start, uri = inspection.forecasts[0], inspection.checkpoint.uri
    ends = "cannot be predicted" if start.outcome is Outcome.UNKNOWN else outcome_words(start)
    outcome, refused = _decide(_check_real_time(inspection.checkpoint, start), uri=uri, ends=ends)
    if outcome is RealTimeOutcome.NO_WAY:
        refused = plain(start.because[0].detail)
    return RealTimeMove(inspection, version, outcome, refused)


def _check_real_time(checkpoint: Checkpoint, start: Forecast) -> _Checks[RealTimeOutcome]:
    yield checkpoint.kind is Kind.CONTINUOUS, RealTimeOutcome.REFUSED, "real_time_continuous"
    yield start.outcome is Outcome.REFUSED, RealTimeOutcome.NO_WAY, ""
    if any(finding.diagnosis is REAL_TIME_FORMAT for finding in start.because):
        without_state = checkpoint.state is None
        yield without_state and checkpoint.stateful is False, RealTimeOutcome.COMMIT, ""
        yield without_state, RealTimeOutcome.REFUSED, "state_unknown"
        yield is_rewritable(checkpoint, ToProvider.ROCKSDB, 2), RealTimeOutcome.REWRITE, ""
        yield True, RealTimeOutcome.REFUSED, "real_time_not_written"
    yield not start.outcome.runs, RealTimeOutcome.REFUSED, "real_time_as_it_is"
    yield True, RealTimeOutcome.ALREADY, ""


def _warn_of_real_time(move: RealTimeMove) -> Iterator[Words]:
    checkpoint = move.inspection.checkpoint
    latest, committed = checkpoint.offsets.latest, checkpoint.commits.latest
    if latest is not None and latest != committed:
        yield BOOK.text("real_time_planned", latest=latest)
    if move.outcome is not RealTimeOutcome.ALREADY:
        yield BOOK.text("real_time_older_spark")
    if checkpoint.state is None:
        yield BOOK.text("real_time_no_state")
    else:
        yield BOOK.text("real_time_output_mode")
        yield BOOK.text("real_time_go_back")
