"""``ckpt migrate provider``: from one state store provider to another, which takes a new checkpoint.

Spark continues with the provider that the offset log records, whatever the session says (class ``OffsetSeqMetadata``,
``setSessionConf``; measured in both directions on 4.2), and has nothing that turns the files of one into those of the
other. ``ckpt rewrite`` does, and the same query continues. State that it does not write can only come into a new query,
as initial state of transformWithState, which runs on RocksDB only (``TransformWithStateExec``). What a way is called
here follows from what the tests of this project show.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from ckpt.advice import Call, Setting, Step, Words, call, run, words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.state.ranges import contains
from ckpt.checkpoint.state.rewritable import Form, refuse_rewrite
from ckpt.errors import CkptError, parse_choice
from ckpt.migrate.book import BOOK
from ckpt.migrate.handoff.plan import Handoff, handoff
from ckpt.migrate.variables import OperatorFamily, family_of
from ckpt.model import Kind, Location, Provider, ToProvider
from ckpt.settings import PROVIDER_CLASS
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.confs import PROVIDER_CLASSES
from ckpt.state.reading.initial import InitialShape, plan_initial_states
from ckpt.state.reading.reading import Question
from ckpt.state.reading.units import state_units
from ckpt.texts import quote_word
from ckpt.values import Value

PROVIDER_NAMES = {
    Provider.HDFS: "HDFS-backed",
    Provider.ROCKSDB: "RocksDB",
    Provider.UNKNOWN: "of an unknown provider",
}


class MoveOutcome(StrEnum):
    """A move to the other provider, as far as the files foretell it."""

    ALREADY = "already"  # the checkpoint is of that provider
    NOTHING = "nothing"  # there is no state
    POSSIBLE = "possible"  # state can be handed over to a new query
    NO_WAY = "no-way"  # it cannot; the alternatives are named
    REFUSED = "refused"  # ckpt could not tell


class Carry(StrEnum):
    """How far state of an operator can be taken to the other provider."""

    AS_IT_IS = "as-it-is"  # ckpt writes it for the other provider, and the same query continues with it
    GOES_ON = "goes-on"  # a new query continues with it; shown by tests against an uninterrupted query
    STATE_ONLY = "state-only"  # it can be loaded; whether a new query then answers the same is not shown
    NONE = "none"


@dataclass(frozen=True, slots=True)
class OperatorMove:
    """The outcome of a move for one stateful operator."""

    operator: int
    name: Annotated[str | None, "Spark before 4.0 does not record it"]
    family: OperatorFamily | None  # None: the same query continues, whatever it is
    carry: Annotated[
        Carry,
        "as-it-is: `ckpt rewrite` writes it, and the same query continues; goes-on: tests show that a new query gives "
        "the results that the old one would have given; state-only: its state can be loaded, the rest is not proven",
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
        return self.handoff.inspection.checkpoint.conf.get(PROVIDER_CLASS)

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
        return {PROVIDER_CLASS: PROVIDER_CLASSES[Provider(self.to)]}


_BUFFERS = (Carry.GOES_ON, "its buffers are loaded; you write what the aggregate functions did")
_SEEN = "the keys seen can be loaded; you write how their rows are dropped"
_CARRIES: dict[OperatorFamily, tuple[Carry, str]] = {
    OperatorFamily.AGGREGATION: _BUFFERS,
    OperatorFamily.WINDOWS: _BUFFERS,
    OperatorFamily.GROUP_STATE: (Carry.GOES_ON, "state and timeouts are loaded; you move the body of the function"),
    OperatorFamily.SESSIONS: (
        Carry.STATE_ONLY,
        "its open sessions can be loaded; you write how they merge with new rows",
    ),
    OperatorFamily.DEDUPLICATION: (Carry.STATE_ONLY, _SEEN),
    OperatorFamily.WITHIN_WATERMARK: (Carry.STATE_ONLY, f"{_SEEN}, and expiry"),
    OperatorFamily.JOIN: (
        Carry.NONE,
        "a join takes no initial state, and it is not proven that transformWithState can join as Spark's operator does",
    ),
    OperatorFamily.TRANSFORM: (Carry.NONE, "transformWithState keeps its state in RocksDB only"),
}
_ON_HDFS = "only transformWithState takes initial state from Python, and that runs on RocksDB only"
_ALONE = "a new query takes initial state in one operator, and the others would start empty"


def migrate_provider(
    checkpoint: Location, *, to: ToProvider | str, storage_options: Mapping[str, str] | None = None
) -> ProviderMove:
    """All that ``ckpt migrate provider`` says; reads the checkpoint's small files, and starts no JVM.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        to: The provider that is wanted: ``hdfs`` or ``rocksdb``.
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
    refused = None
    if opened.kind is Kind.EMPTY:
        refused = words("nothing was planned here yet: set the provider when the query starts for the first time")
    elif opened.state is None and opened.stateful is None:
        refused = words("the files do not say whether the query keeps state")
    elif opened.state is not None and opened.state.provider is Provider.UNKNOWN:
        refused = words("neither the logs nor the files say which state store provider wrote the state")
    if refused is not None:
        return ProviderMove(continuation, to, MoveOutcome.REFUSED, refused=refused)
    if opened.state is None:
        return ProviderMove(continuation, to, MoveOutcome.NOTHING)
    if opened.state.provider is Provider(to):
        return ProviderMove(continuation, to, MoveOutcome.ALREADY)
    if is_rewritable(opened, to):
        same = tuple(
            OperatorMove(shape.id, shape.name, None, Carry.AS_IT_IS, "its rows are taken over byte for byte")
            for shape in opened.state.operators
        )
        return ProviderMove(continuation, to, MoveOutcome.POSSIBLE, same, rewritable=True)
    question = Question(opened.uri, RequestedPart(), all_units=True, batch=continuation.batch)
    try:
        shapes = [plan.shape for plan in plan_initial_states(question, storage_options)]
    except CkptError as error:
        why = words("its state cannot be loaded: {error}", error=error.words)
        return ProviderMove(continuation, to, MoveOutcome.REFUSED, refused=why)
    operators = tuple(_judge_moves(shapes, to))
    if any(operator.carry is Carry.NONE for operator in operators):
        return ProviderMove(continuation, to, MoveOutcome.NO_WAY, operators)
    if continuation.refused is not None:
        why = words("its sources cannot be continued: {why}", why=continuation.refused)
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


def _judge_moves(shapes: list[InitialShape], to: ToProvider) -> Iterator[OperatorMove]:
    for shape in shapes:
        family = family_of(shape)
        carry, why = _CARRIES[family]
        if len(shapes) > 1:
            carry, why = Carry.NONE, _ALONE
        elif to is ToProvider.HDFS:
            carry, why = Carry.NONE, why if family is OperatorFamily.TRANSFORM else _ON_HDFS
        elif carry is Carry.GOES_ON and not shape.keys:
            carry, why = Carry.STATE_ONLY, "it has no grouping key, and transformWithState needs one: choose a constant"
        yield OperatorMove(shape.operator, shape.operator_name, family, carry, why)


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
