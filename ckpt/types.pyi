"""Types that calls of ckpt return and take, each with the module that has it; ``ckpt.types.__getattr__`` imports it."""

from ckpt.changes.apply import ApplyOptions as ApplyOptions, ChangeResult as ChangeResult, Receipt as Receipt
from ckpt.changes.check_fix import Cost as Cost
from ckpt.changes.fixes.repair import Fix as Fix, FixName as FixName, RepairPlan as RepairPlan
from ckpt.changes.fixes.repair_async import AsyncRepairPlan as AsyncRepairPlan, Strategy as Strategy
from ckpt.changes.offsets.commit import CommittedGroup as CommittedGroup, OffsetsCommit as OffsetsCommit
from ckpt.changes.offsets.exchange import ImportPlan as ImportPlan, Positions as Positions
from ckpt.changes.offsets.move import MovePlan as MovePlan
from ckpt.changes.offsets.plan import OffsetsPlan as OffsetsPlan
from ckpt.changes.prune.plan import Pruned as Pruned, PrunePlan as PrunePlan
from ckpt.changes.relocate.plan import RelocationPlan as RelocationPlan
from ckpt.changes.rewind.plan import Replayed as Replayed, RewindPlan as RewindPlan
from ckpt.changes.skip.plan import SkipPlan as SkipPlan
from ckpt.checkpoint.reader import NotACheckpoint as NotACheckpoint
from ckpt.checkpoint.state.rewritable import Form as Form
from ckpt.inspection.checks.sink import SinkOutcome as SinkOutcome, SinkOutlook as SinkOutlook
from ckpt.inspection.explain.catalog import KnownError as KnownError
from ckpt.inspection.explain.explain import ErrorMatch as ErrorMatch, Explanation as Explanation
from ckpt.inspection.preflight import Readiness as Readiness
from ckpt.inspection.scan.rows import ScannedCheckpoint as ScannedCheckpoint, WorstFinding as WorstFinding
from ckpt.inspection.scan.scan import Scan as Scan, ScannedRoot as ScannedRoot
from ckpt.live.records import LiveSource as LiveSource
from ckpt.live.sink.records import SinkKind as SinkKind, SinkLog as SinkLog, SinkWriter as SinkWriter
from ckpt.migrate.handoff.plan import Handoff as Handoff
from ckpt.migrate.handoff.snippets import Language as Language
from ckpt.migrate.switches import (
    Changelog as Changelog,
    ChangelogSwitch as ChangelogSwitch,
    ProviderMove as ProviderMove,
    RealTimeMove as RealTimeMove,
)
from ckpt.migrate.transform import Api as Api, TransformMigration as TransformMigration, TransformPlan as TransformPlan
from ckpt.model import ToProvider as ToProvider
from ckpt.new.copy.copy import CheckpointCopy as CheckpointCopy
from ckpt.new.evolve.operators import OperatorChange as OperatorChange
from ckpt.new.evolve.plan import EvolvePlan as EvolvePlan
from ckpt.new.evolve.sources import PartChange as PartChange, SourceChange as SourceChange
from ckpt.new.rehearsal import (
    Rehearsal as Rehearsal,
    RehearsalEnd as RehearsalEnd,
    RehearsedBatch as RehearsedBatch,
    RehearsedQuery as RehearsedQuery,
)
from ckpt.new.request import Rewriting as Rewriting
from ckpt.new.rewrite.plan import (
    PlannedState as PlannedState,
    Rewrite as Rewrite,
    RewrittenUnit as RewrittenUnit,
)
from ckpt.query.compare_queries import Knowledge as Knowledge
from ckpt.query.description import (
    DescribedOperator as DescribedOperator,
    DescribedSource as DescribedSource,
    QueryDescription as QueryDescription,
)
from ckpt.spark.executors import Executors as Executors
from ckpt.spark.installed import Session as Session, SparkFailed as SparkFailed, SparkMissing as SparkMissing
from ckpt.state.export.request import (
    Action as Action,
    Engine as Engine,
    ExportOptions as ExportOptions,
    ExportPart as ExportPart,
    ExportPlan as ExportPlan,
    ExportRequest as ExportRequest,
    StateExport as StateExport,
)
from ckpt.state.export.targets import Format as Format, Mode as Mode
from ckpt.state.native.diff import (
    Change as Change,
    ChangedRow as ChangedRow,
    StateDiff as StateDiff,
    UnitDiff as UnitDiff,
)
from ckpt.state.native.history import (
    KeyChange as KeyChange,
    KeyEvent as KeyEvent,
    RemovalCause as RemovalCause,
    SourceRead as SourceRead,
    StateHistory as StateHistory,
)
from ckpt.state.native.show import (
    HeavyKey as HeavyKey,
    PartitionSize as PartitionSize,
    StateCount as StateCount,
    StateCounts as StateCounts,
    StateRows as StateRows,
    StateSizes as StateSizes,
)
from ckpt.state.reading.choose import Part as Part, StateDamaged as StateDamaged
from ckpt.state.reading.columns import Shape as Shape
from ckpt.state.reading.units import StateUnit as StateUnit
from ckpt.state.verify.verify import Estimate as Estimate, StateVerification as StateVerification
from ckpt.tables.answers import Answer as Answer, AnswerColumn as AnswerColumn

__all__: list[str]
