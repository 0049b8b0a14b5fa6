"""ckpt: what is wrong with a Structured Streaming checkpoint, what Spark will do, and how to get out.

``import ckpt`` imports what ``inspect`` needs; every other name is imported when it is asked for, and pyspark only by
what asks Spark. ``docs/api.md`` lists all of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import NotACheckpoint, open_checkpoint
from ckpt.errors import CkptError, NotFound, StorageError, UsageError
from ckpt.inspection.checks.sink_outlook import SinkOutcome, SinkOutlook
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import InNotebook
from ckpt.versions import Spark, __version__

if TYPE_CHECKING:
    from ckpt.changes.apply import Receipt
    from ckpt.changes.draft import Cost
    from ckpt.changes.fixes.registry import WayName
    from ckpt.changes.fixes.repair import Way, WaysPlan, repair_checkpoint
    from ckpt.changes.fixes.repair_async import RepairPlan, Strategy, repair_async
    from ckpt.changes.offsets.exchange import ImportPlan, document_of, export_offsets, import_offsets
    from ckpt.changes.offsets.plan import OffsetsPlan
    from ckpt.changes.offsets.set_offsets import set_offsets
    from ckpt.changes.prune.plan import PrunePlan
    from ckpt.changes.prune.prune import prune as prune_checkpoint
    from ckpt.changes.prune.unneeded import Pruned
    from ckpt.changes.relocate.plan import RelocationPlan
    from ckpt.changes.relocate.relocate import relocate as relocate_checkpoint
    from ckpt.changes.rewind.plan import Replayed, RewindPlan, rewind
    from ckpt.changes.run import How
    from ckpt.changes.skip.plan import SkipPlan, skip
    from ckpt.checkpoint.state.rewritable import Form
    from ckpt.copies.copy.copy import CheckpointCopy, copy_checkpoint
    from ckpt.copies.fill.import_state import import_state, write_state
    from ckpt.copies.rewrite.plan import Rewrite, RewrittenUnit
    from ckpt.copies.rewrite.rewrite import rewrite_checkpoint
    from ckpt.inspection.explain.catalog import KnownError
    from ckpt.inspection.explain.explain import ErrorMatch, Explanation, explain_error
    from ckpt.inspection.preflight import Readiness
    from ckpt.inspection.query import DescribedOperator, DescribedSource, QueryDescription, read_query
    from ckpt.inspection.scan.rows import ScannedCheckpoint, WorstFinding
    from ckpt.inspection.scan.scan import Scan, ScannedRoot, scan
    from ckpt.live.asking import ask_sources
    from ckpt.live.options import source_options
    from ckpt.live.records import LiveSource
    from ckpt.live.sink.reader import read_sink
    from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
    from ckpt.migrate.changelog import Changelog, ChangelogSwitch, switch_changelog
    from ckpt.migrate.handoff.plan import Handoff, hand_off
    from ckpt.migrate.handoff.positions import Positions, show_offsets
    from ckpt.migrate.handoff.snippets import Language, snippet
    from ckpt.migrate.provider import ProviderMove, ToProvider, move_provider
    from ckpt.migrate.transform import Api, TransformMigration, TransformPlan
    from ckpt.spark.api import read_changes, read_initial_state, read_state
    from ckpt.spark.calls import Session, export_state, migrate_to_transform_with_state, verify_changelog
    from ckpt.spark.errors import SparkFailed
    from ckpt.spark.executors import on_spark
    from ckpt.spark.installed import SparkMissing
    from ckpt.spark.preflight import describe_query, preflight
    from ckpt.state.export.request import (
        Action,
        Engine,
        ExportPart,
        ExportPlan,
        ExportRequest,
        StateExport,
        plan_export,
    )
    from ckpt.state.export.targets import Format, Mode
    from ckpt.state.native.api import read_state_arrow, read_state_batches
    from ckpt.state.native.diff import Change, ChangedRow, StateDiff, UnitDiff, diff_state
    from ckpt.state.native.heavy import HeavyKey, PartitionSize, StateSizes, measure_state
    from ckpt.state.native.show import StateCount, StateCounts, StateRows, count_state, show_state
    from ckpt.state.reading.choose import Part, StateDamaged
    from ckpt.state.reading.columns import Shape
    from ckpt.state.reading.units import StateUnit, state_units
    from ckpt.state.verify.verify import Estimate, StateVerification, verify_state

__all__ = [
    "Action",
    "Api",
    "Change",
    "ChangedRow",
    "Changelog",
    "ChangelogSwitch",
    "Checkpoint",
    "CheckpointCopy",
    "CkptError",
    "Cost",
    "DescribedOperator",
    "DescribedSource",
    "Engine",
    "ErrorMatch",
    "Estimate",
    "Explanation",
    "ExportPart",
    "ExportPlan",
    "ExportRequest",
    "Form",
    "Format",
    "Handoff",
    "HeavyKey",
    "How",
    "ImportPlan",
    "Inspection",
    "KnownError",
    "Language",
    "LiveSource",
    "Mode",
    "NotACheckpoint",
    "NotFound",
    "OffsetsPlan",
    "Part",
    "PartitionSize",
    "Positions",
    "ProviderMove",
    "PrunePlan",
    "Pruned",
    "QueryDescription",
    "Readiness",
    "Receipt",
    "RelocationPlan",
    "RepairPlan",
    "Replayed",
    "RewindPlan",
    "Rewrite",
    "RewrittenUnit",
    "Scan",
    "ScannedCheckpoint",
    "ScannedRoot",
    "Session",
    "Shape",
    "SinkKind",
    "SinkLog",
    "SinkOutcome",
    "SinkOutlook",
    "SinkWriter",
    "SkipPlan",
    "Spark",
    "SparkFailed",
    "SparkMissing",
    "StateCount",
    "StateCounts",
    "StateDamaged",
    "StateDiff",
    "StateExport",
    "StateRows",
    "StateSizes",
    "StateUnit",
    "StateVerification",
    "StorageError",
    "Strategy",
    "ToProvider",
    "TransformMigration",
    "TransformPlan",
    "UnitDiff",
    "UsageError",
    "Way",
    "WayName",
    "WaysPlan",
    "WorstFinding",
    "__version__",
    "ask_sources",
    "copy_checkpoint",
    "count_state",
    "describe_query",
    "diff_state",
    "document_of",
    "explain_error",
    "export_offsets",
    "export_state",
    "hand_off",
    "import_offsets",
    "import_state",
    "inspect",
    "measure_state",
    "migrate_to_transform_with_state",
    "move_provider",
    "on_spark",
    "open_checkpoint",
    "plan_export",
    "preflight",
    "prune_checkpoint",
    "read_changes",
    "read_initial_state",
    "read_query",
    "read_sink",
    "read_state",
    "read_state_arrow",
    "read_state_batches",
    "relocate_checkpoint",
    "repair_async",
    "repair_checkpoint",
    "rewind",
    "rewrite_checkpoint",
    "scan",
    "set_offsets",
    "show_offsets",
    "show_state",
    "skip",
    "snippet",
    "source_options",
    "state_units",
    "switch_changelog",
    "verify_changelog",
    "verify_state",
    "write_state",
]

_LATER = {
    "ckpt.changes.apply": ("Receipt",),
    "ckpt.changes.fixes.repair_async": (
        "RepairPlan",
        "Strategy",
        "repair_async",
    ),
    "ckpt.changes.draft": ("Cost",),
    "ckpt.changes.fixes.registry": ("WayName",),
    "ckpt.changes.fixes.repair": (
        "Way",
        "WaysPlan",
        "repair_checkpoint",
    ),
    "ckpt.changes.offsets.exchange": (
        "ImportPlan",
        "document_of",
        "export_offsets",
        "import_offsets",
    ),
    "ckpt.changes.offsets.plan": ("OffsetsPlan",),
    "ckpt.changes.offsets.set_offsets": ("set_offsets",),
    "ckpt.changes.prune.plan": ("PrunePlan",),
    "ckpt.changes.prune.unneeded": ("Pruned",),
    "ckpt.changes.relocate.plan": ("RelocationPlan",),
    "ckpt.changes.rewind.plan": (
        "Replayed",
        "RewindPlan",
        "rewind",
    ),
    "ckpt.changes.run": ("How",),
    "ckpt.changes.skip.plan": (
        "SkipPlan",
        "skip",
    ),
    "ckpt.checkpoint.state.rewritable": ("Form",),
    "ckpt.copies.copy.copy": (
        "CheckpointCopy",
        "copy_checkpoint",
    ),
    "ckpt.copies.fill.import_state": (
        "import_state",
        "write_state",
    ),
    "ckpt.copies.rewrite.plan": (
        "Rewrite",
        "RewrittenUnit",
    ),
    "ckpt.copies.rewrite.rewrite": ("rewrite_checkpoint",),
    "ckpt.inspection.explain.catalog": ("KnownError",),
    "ckpt.inspection.explain.explain": (
        "ErrorMatch",
        "Explanation",
        "explain_error",
    ),
    "ckpt.inspection.preflight": ("Readiness",),
    "ckpt.inspection.query": (
        "DescribedOperator",
        "DescribedSource",
        "QueryDescription",
        "read_query",
    ),
    "ckpt.inspection.scan.rows": (
        "ScannedCheckpoint",
        "WorstFinding",
    ),
    "ckpt.inspection.scan.scan": (
        "Scan",
        "ScannedRoot",
        "scan",
    ),
    "ckpt.live.asking": ("ask_sources",),
    "ckpt.live.options": ("source_options",),
    "ckpt.live.records": ("LiveSource",),
    "ckpt.live.sink.reader": ("read_sink",),
    "ckpt.live.sink.records": (
        "SinkKind",
        "SinkLog",
        "SinkWriter",
    ),
    "ckpt.migrate.changelog": (
        "Changelog",
        "ChangelogSwitch",
        "switch_changelog",
    ),
    "ckpt.migrate.handoff.plan": (
        "Handoff",
        "hand_off",
    ),
    "ckpt.migrate.handoff.positions": (
        "Positions",
        "show_offsets",
    ),
    "ckpt.migrate.handoff.snippets": (
        "Language",
        "snippet",
    ),
    "ckpt.migrate.provider": (
        "ProviderMove",
        "ToProvider",
        "move_provider",
    ),
    "ckpt.migrate.transform": (
        "Api",
        "TransformMigration",
        "TransformPlan",
    ),
    "ckpt.spark.api": (
        "read_changes",
        "read_initial_state",
        "read_state",
    ),
    "ckpt.spark.calls": (
        "Session",
        "export_state",
        "migrate_to_transform_with_state",
        "verify_changelog",
    ),
    "ckpt.spark.errors": ("SparkFailed",),
    "ckpt.spark.executors": ("on_spark",),
    "ckpt.spark.installed": ("SparkMissing",),
    "ckpt.spark.preflight": (
        "describe_query",
        "preflight",
    ),
    "ckpt.state.export.request": (
        "Action",
        "Engine",
        "ExportPart",
        "ExportPlan",
        "ExportRequest",
        "StateExport",
        "plan_export",
    ),
    "ckpt.state.export.targets": (
        "Format",
        "Mode",
        "Shape",
    ),
    "ckpt.state.native.api": (
        "read_state_arrow",
        "read_state_batches",
    ),
    "ckpt.state.native.diff": (
        "Change",
        "ChangedRow",
        "StateDiff",
        "UnitDiff",
        "diff_state",
    ),
    "ckpt.state.native.heavy": (
        "HeavyKey",
        "PartitionSize",
        "StateSizes",
        "measure_state",
    ),
    "ckpt.state.native.show": (
        "StateCount",
        "StateCounts",
        "StateRows",
        "count_state",
        "show_state",
    ),
    "ckpt.state.reading.choose": (
        "Part",
        "StateDamaged",
    ),
    "ckpt.state.reading.units": (
        "StateUnit",
        "state_units",
    ),
    "ckpt.state.verify.verify": (
        "Estimate",
        "StateVerification",
        "verify_state",
    ),
}
_HOME = {name: (module, name) for module, names in _LATER.items() for name in names}
_HOME["prune_checkpoint"] = ("ckpt.changes.prune.prune", "prune")
_HOME["relocate_checkpoint"] = ("ckpt.changes.relocate.relocate", "relocate")


def _render_in_notebook(value: object) -> str | None:
    from ckpt.webpage.notebooks import make_part

    return make_part(value)


InNotebook.render = _render_in_notebook


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import what is not needed by ``inspect`` when it is asked for."""
    if name in _HOME:
        module, attribute = _HOME[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
