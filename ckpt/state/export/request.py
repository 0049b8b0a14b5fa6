"""An export of state as it is asked for, planned without a JVM, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypedDict

from ckpt.advice import Words
from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import UsageError, parse_choice
from ckpt.state.book import BOOK
from ckpt.state.export.targets import ExportTarget, Format, Mode, check_place, check_types, choose_target
from ckpt.state.reading.choose import RequestedPart, StateDamaged
from ckpt.state.reading.columns import Columns, Shape, columns_of, top_columns
from ckpt.state.reading.initial import InitialPlan, plan_initial_states
from ckpt.state.reading.reading import Reading, StateRequest, plan_readings
from ckpt.values import Value
from ckpt.versions import NEWEST, Spark

if TYPE_CHECKING:
    from ckpt.state.native.salvage import Salvage


class Action(StrEnum):
    """The ways to deal with the state that is asked for."""

    PLAN = "plan"  # nothing is read: say what would be, and how; starts no JVM
    EXPORT = "export"


class Engine(StrEnum):
    """Who reads state, and writes it."""

    AUTO = "auto"  # ckpt itself, where it is certain to do what Spark does; otherwise Spark
    NATIVE = "native"  # ckpt itself, or nobody
    SPARK = "spark"


class ExportOptions(TypedDict, total=False):
    """The fields of an ``ExportRequest`` but the checkpoint, as arguments of ``export_state``."""

    to: str | None
    table: str | None
    format: Format | str
    mode: Mode | str
    shape: Shape | str
    batch: BatchOrTime | None
    changes_from: BatchOrTime | None
    operator: int | None
    store: str | None
    side: str | None
    variable: str | None
    timers: bool
    all_units: bool
    partition_id: bool
    plan: bool
    engine: Engine | str
    jobs: int | None
    salvage: bool
    accept_loss: bool
    schema: str | None


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The state to export, its form, and its target.

    A checkpoint that has only one unit of state needs no ``operator``, ``store``, ``side``, ``variable`` or ``timers``;
    ``ckpt.state_units`` lists the units there are.
    """

    checkpoint: str  # a local path, or any URI that ``open_checkpoint`` opens
    to: str | None = None  # a folder, local or remote
    table: str | None = None  # or a table of the session's catalog
    format: Format = Format.PARQUET
    mode: Mode = Mode.ERROR  # what becomes of data that is there already
    shape: Shape = Shape.FLAT
    batch: BatchOrTime | None = None  # the state as of this batch; None is the newest committed
    changes_from: BatchOrTime | None = None  # what the batches from this one to ``batch`` changed, instead of the state
    operator: int | None = None
    store: str | None = None  # of a join
    side: str | None = None  # of a join: left or right
    variable: str | None = None  # of transformWithState
    timers: bool = False  # of transformWithState
    all_units: bool = False  # every unit, in a folder of its own
    partition_id: bool = False  # keep the state partition of each row
    plan: bool = False  # only say what would be read, and how; starts no JVM
    engine: Engine = Engine.AUTO
    jobs: int | None = None  # processes of the engine native at a time; None is one for each core
    salvage: bool = False  # of damaged state what can be read; only without Spark
    accept_loss: bool = False  # what a salvage loses; without it nothing is exported
    schema: str | None = None  # a file with the schemas of state that keeps none; only without Spark

    def __post_init__(self) -> None:
        """Take the values of enumerations as texts too. Raises UsageError."""
        kinds = {"format": Format, "mode": Mode, "shape": Shape, "engine": Engine}
        for name, kind in kinds.items():
            object.__setattr__(self, name, parse_choice(kind, getattr(self, name), name))

    @property
    def action(self) -> Action:
        """The action that the options ask for."""
        return Action.PLAN if self.plan else Action.EXPORT

    @property
    def wanted(self) -> RequestedPart:
        """The unit that is asked for."""
        return RequestedPart(self.operator, self.store, self.side, self.variable, self.timers, self.schema)

    @property
    def question(self) -> StateRequest:
        """The state that is to be read."""
        return StateRequest(self.checkpoint, self.wanted, self.all_units, self.batch, self.changes_from)


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """How state is to be read, and where it goes; ``unseen`` says why a remote target could not be looked at."""

    request: ExportRequest
    target: ExportTarget
    readings: tuple[Reading | InitialPlan, ...]
    unseen: str | None = None
    salvage: "Salvage | None" = None  # where what is damaged is left out

    @property
    def parts(self) -> tuple["ExportPart", ...]:
        """The facts that are known before anything is read, with the columns that the files promise."""
        return tuple(
            ExportPart(reading.together, reading.columns)
            if isinstance(reading, InitialPlan)
            else ExportPart(reading, self._find_columns(reading))
            for reading in self.readings
        )

    def _find_columns(self, reading: Reading) -> Columns | None:
        if self.request.shape is Shape.RAW or reading.schema is None:
            return None
        return columns_of(reading.unit, reading.schema, partition_id=self.request.partition_id)


@dataclass(frozen=True, slots=True)
class ExportPart:
    """One unit of state; None where something was not asked for."""

    reading: Reading
    columns: Columns | None = None  # that were read, or will be; None for the raw shape, and where no file tells
    rows: int | None = None  # as they were counted
    place: str | None = None  # the folder or table that was written


@dataclass(frozen=True, slots=True)
class StateExport(Value):
    """The parts that were planned or written: at least one.

    ``engine`` did it, or would; ``not_native`` says why it is Spark, where either could have been.
    """

    plan: ExportPlan
    parts: tuple[ExportPart, ...]
    engine: Engine = Engine.SPARK
    not_native: Words | None = None


def plan_export(
    request: ExportRequest, storage_options: Mapping[str, str] | None = None, spark: Spark = NEWEST
) -> ExportPlan:
    """Plan an export, and refuse one that cannot be, as ``ckpt.export_state`` does; starts no JVM.

    ``spark`` is the version that will read. Raises UsageError, StateDamaged, NotACheckpoint, NotFound,
    StorageError.
    """
    to = choose_target(request.to, request.table, request.format, request.mode, request.checkpoint)
    _check(request, to)
    options = storage_options or {}
    read = plan_initial_states if request.shape is Shape.INITIAL_STATE else plan_readings
    salvaged = _find_salvage(request, options) if request.salvage else None
    plan = ExportPlan(request, to, read(salvaged.question if salvaged else request.question, options, spark))
    plan = replace(plan, salvage=salvaged)
    for part in plan.parts:
        promised = part.columns.kept if part.columns is not None else top_columns(part.reading.schema)
        check_types(promised, to.format, request.shape)
    return replace(plan, unseen=check_place(to, request.checkpoint, options))


def _find_salvage(request: ExportRequest, options: Mapping[str, str]) -> "Salvage":
    """Find what can be read of damaged state. Raises StateDamaged for a loss that is not accepted, UsageError."""
    from ckpt.state.native.salvage import find_salvage

    if not request.all_units or request.wanted != RequestedPart() or request.batch is not None:
        raise UsageError(BOOK.text("salvage_takes_all"))
    salvaged = find_salvage(request.checkpoint, options)
    if salvaged.costs and not request.accept_loss and not request.plan:
        raise StateDamaged(BOOK.text("salvage_costs", uri=request.checkpoint, costs=salvaged.costs))
    return salvaged


def _check(request: ExportRequest, to: ExportTarget) -> None:
    if request.shape is Shape.INITIAL_STATE and request.partition_id:
        raise UsageError(BOOK.text("initial_no_partition"))
    if not request.plan and not to.name:
        raise UsageError(BOOK.text("export_where_to"))
    if not request.all_units:
        return
    if request.table is not None or request.changes_from is not None:
        raise UsageError(BOOK.text("all_units_folders"))
    if request.wanted != RequestedPart(request.operator, schema=request.schema):
        raise UsageError(BOOK.text("all_units_every_part"))
