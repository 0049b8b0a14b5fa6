"""The public names of ckpt, each with the module that has it; ``ckpt.__getattr__`` imports it from there."""

from ckpt.changes.apply import Receipt as Receipt
from ckpt.changes.draft import Cost as Cost
from ckpt.changes.fixes.registry import WayName as WayName
from ckpt.changes.fixes.repair import Way as Way
from ckpt.changes.fixes.repair import WaysPlan as WaysPlan
from ckpt.changes.fixes.repair import repair_checkpoint as repair_checkpoint
from ckpt.changes.fixes.repair_async import RepairPlan as RepairPlan
from ckpt.changes.fixes.repair_async import Strategy as Strategy
from ckpt.changes.fixes.repair_async import repair_async as repair_async
from ckpt.changes.offsets.exchange import (
    ImportPlan as ImportPlan,
)
from ckpt.changes.offsets.exchange import (
    document_of as document_of,
)
from ckpt.changes.offsets.exchange import (
    export_offsets as export_offsets,
)
from ckpt.changes.offsets.exchange import (
    import_offsets as import_offsets,
)
from ckpt.changes.offsets.plan import OffsetsPlan as OffsetsPlan
from ckpt.changes.offsets.positions import Positions as Positions
from ckpt.changes.offsets.positions import show_offsets as show_offsets
from ckpt.changes.offsets.set_offsets import set_offsets as set_offsets
from ckpt.changes.prune.plan import PrunePlan as PrunePlan
from ckpt.changes.prune.prune import prune_checkpoint as prune_checkpoint
from ckpt.changes.prune.unneeded import Pruned as Pruned
from ckpt.changes.relocate.plan import RelocationPlan as RelocationPlan
from ckpt.changes.relocate.relocate import relocate_checkpoint as relocate_checkpoint
from ckpt.changes.rewind.plan import Replayed as Replayed
from ckpt.changes.rewind.plan import RewindPlan as RewindPlan
from ckpt.changes.rewind.plan import rewind as rewind
from ckpt.changes.run import How as How
from ckpt.changes.skip.plan import SkipPlan as SkipPlan
from ckpt.changes.skip.plan import skip as skip
from ckpt.checkpoint.checkpoint import Checkpoint as Checkpoint
from ckpt.checkpoint.reader import NotACheckpoint as NotACheckpoint
from ckpt.checkpoint.reader import open_checkpoint as open_checkpoint
from ckpt.checkpoint.state.rewritable import Form as Form
from ckpt.copies.copy.copy import CheckpointCopy as CheckpointCopy
from ckpt.copies.copy.copy import copy_checkpoint as copy_checkpoint
from ckpt.copies.fill.import_state import import_state as import_state
from ckpt.copies.fill.import_state import write_state as write_state
from ckpt.copies.rewrite.plan import Rewrite as Rewrite
from ckpt.copies.rewrite.plan import RewrittenUnit as RewrittenUnit
from ckpt.copies.rewrite.rewrite import rewrite_checkpoint as rewrite_checkpoint
from ckpt.errors import (
    CkptError as CkptError,
)
from ckpt.errors import (
    NotFound as NotFound,
)
from ckpt.errors import (
    StorageError as StorageError,
)
from ckpt.errors import (
    UsageError as UsageError,
)
from ckpt.inspection.checks.sink_outlook import SinkOutcome as SinkOutcome
from ckpt.inspection.checks.sink_outlook import SinkOutlook as SinkOutlook
from ckpt.inspection.explain.catalog import KnownError as KnownError
from ckpt.inspection.explain.explain import (
    ErrorMatch as ErrorMatch,
)
from ckpt.inspection.explain.explain import (
    Explanation as Explanation,
)
from ckpt.inspection.explain.explain import (
    explain_error as explain_error,
)
from ckpt.inspection.inspection import Inspection as Inspection
from ckpt.inspection.inspection import inspect as inspect
from ckpt.inspection.preflight import Readiness as Readiness
from ckpt.inspection.query import (
    DescribedOperator as DescribedOperator,
)
from ckpt.inspection.query import (
    DescribedSource as DescribedSource,
)
from ckpt.inspection.query import (
    QueryDescription as QueryDescription,
)
from ckpt.inspection.query import (
    read_query as read_query,
)
from ckpt.inspection.scan.rows import ScannedCheckpoint as ScannedCheckpoint
from ckpt.inspection.scan.rows import WorstFinding as WorstFinding
from ckpt.inspection.scan.scan import Scan as Scan
from ckpt.inspection.scan.scan import ScannedRoot as ScannedRoot
from ckpt.inspection.scan.scan import scan as scan
from ckpt.live.asking import ask_sources as ask_sources
from ckpt.live.options import source_options as source_options
from ckpt.live.records import LiveSource as LiveSource
from ckpt.live.sink.reader import read_sink as read_sink
from ckpt.live.sink.records import SinkKind as SinkKind
from ckpt.live.sink.records import SinkLog as SinkLog
from ckpt.live.sink.records import SinkWriter as SinkWriter
from ckpt.migrate.changelog import (
    Changelog as Changelog,
)
from ckpt.migrate.changelog import (
    ChangelogSwitch as ChangelogSwitch,
)
from ckpt.migrate.changelog import (
    switch_changelog as switch_changelog,
)
from ckpt.migrate.handoff.plan import Handoff as Handoff
from ckpt.migrate.handoff.plan import hand_off as hand_off
from ckpt.migrate.handoff.snippets import Language as Language
from ckpt.migrate.handoff.snippets import snippet as snippet
from ckpt.migrate.provider import ProviderMove as ProviderMove
from ckpt.migrate.provider import ToProvider as ToProvider
from ckpt.migrate.provider import move_provider as move_provider
from ckpt.migrate.transform import Api as Api
from ckpt.migrate.transform import TransformMigration as TransformMigration
from ckpt.migrate.transform import TransformPlan as TransformPlan
from ckpt.spark.api import (
    read_changes as read_changes,
)
from ckpt.spark.api import (
    read_initial_state as read_initial_state,
)
from ckpt.spark.api import (
    read_state as read_state,
)
from ckpt.spark.calls import (
    Session as Session,
)
from ckpt.spark.calls import (
    export_state as export_state,
)
from ckpt.spark.calls import (
    migrate_to_transform_with_state as migrate_to_transform_with_state,
)
from ckpt.spark.calls import (
    verify_changelog as verify_changelog,
)
from ckpt.spark.errors import SparkFailed as SparkFailed
from ckpt.spark.executors import on_spark as on_spark
from ckpt.spark.installed import SparkMissing as SparkMissing
from ckpt.spark.preflight import describe_query as describe_query
from ckpt.spark.preflight import preflight as preflight
from ckpt.state.export.request import (
    Action as Action,
)
from ckpt.state.export.request import (
    Engine as Engine,
)
from ckpt.state.export.request import (
    ExportPart as ExportPart,
)
from ckpt.state.export.request import (
    ExportPlan as ExportPlan,
)
from ckpt.state.export.request import (
    ExportRequest as ExportRequest,
)
from ckpt.state.export.request import (
    StateExport as StateExport,
)
from ckpt.state.export.request import (
    plan_export as plan_export,
)
from ckpt.state.export.targets import Format as Format
from ckpt.state.export.targets import Mode as Mode
from ckpt.state.native.api import read_state_arrow as read_state_arrow
from ckpt.state.native.api import read_state_batches as read_state_batches
from ckpt.state.native.diff import (
    Change as Change,
)
from ckpt.state.native.diff import (
    ChangedRow as ChangedRow,
)
from ckpt.state.native.diff import (
    StateDiff as StateDiff,
)
from ckpt.state.native.diff import (
    UnitDiff as UnitDiff,
)
from ckpt.state.native.diff import (
    diff_state as diff_state,
)
from ckpt.state.native.heavy import (
    HeavyKey as HeavyKey,
)
from ckpt.state.native.heavy import (
    PartitionSize as PartitionSize,
)
from ckpt.state.native.heavy import (
    StateSizes as StateSizes,
)
from ckpt.state.native.heavy import (
    measure_state as measure_state,
)
from ckpt.state.native.show import (
    StateCount as StateCount,
)
from ckpt.state.native.show import (
    StateCounts as StateCounts,
)
from ckpt.state.native.show import (
    StateRows as StateRows,
)
from ckpt.state.native.show import (
    count_state as count_state,
)
from ckpt.state.native.show import (
    show_state as show_state,
)
from ckpt.state.reading.choose import Part as Part
from ckpt.state.reading.choose import StateDamaged as StateDamaged
from ckpt.state.reading.columns import Shape as Shape
from ckpt.state.reading.units import StateUnit as StateUnit
from ckpt.state.reading.units import state_units as state_units
from ckpt.state.verify.verify import (
    Estimate as Estimate,
)
from ckpt.state.verify.verify import (
    StateVerification as StateVerification,
)
from ckpt.state.verify.verify import (
    verify_state as verify_state,
)
from ckpt.versions import Spark as Spark
from ckpt.versions import __version__ as __version__

__all__: list[str]
