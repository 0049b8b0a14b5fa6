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
    from ckpt.changes.async_gap import RepairPlan, Strategy, repair_async
    from ckpt.changes.fixes.choices import Cost, WayName
    from ckpt.changes.fixes.repair import Way, WaysPlan, repair_checkpoint
    from ckpt.changes.offsets import ImportPlan, OffsetsPlan, document_of, export_offsets, import_offsets, set_offsets
    from ckpt.changes.prune import Pruned, PrunePlan
    from ckpt.changes.prune import prune as prune_checkpoint
    from ckpt.changes.relocate import RelocationPlan
    from ckpt.changes.relocate import relocate as relocate_checkpoint
    from ckpt.changes.rewind.plan import Replayed, RewindPlan, rewind
    from ckpt.changes.run import How
    from ckpt.changes.skip.plan import SkipPlan, skip
    from ckpt.copies.copy import CheckpointCopy, copy_checkpoint
    from ckpt.copies.fill import import_state, write_state
    from ckpt.copies.rewrite import Form, Rewrite, RewrittenUnit, rewrite_checkpoint
    from ckpt.inspection.explain import ErrorMatch, Explanation, KnownError, explain_error
    from ckpt.inspection.preflight import Readiness
    from ckpt.inspection.query import DescribedOperator, DescribedSource, QueryDescription, read_query
    from ckpt.inspection.scan import Scan, ScannedCheckpoint, ScannedRoot, WorstFinding, scan
    from ckpt.live.asking import ask_sources
    from ckpt.live.options import source_options
    from ckpt.live.records import LiveSource
    from ckpt.live.sink.reader import read_sink
    from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
    from ckpt.migrate.changelog import Changelog, ChangelogSwitch, switch_changelog
    from ckpt.migrate.handoff import Handoff, Language, Positions, hand_off, show_offsets, snippet
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
    from ckpt.state.export.targets import Format, Mode, Shape
    from ckpt.state.native.api import read_state_arrow, read_state_batches
    from ckpt.state.native.diff import Change, ChangedRow, StateDiff, UnitDiff, diff_state
    from ckpt.state.native.heavy import HeavyKey, PartitionSize, StateSizes, measure_state
    from ckpt.state.native.show import StateCount, StateCounts, StateRows, count_state, show_state
    from ckpt.state.reading.choose import Part, StateDamaged
    from ckpt.state.reading.units import StateUnit, state_units
    from ckpt.state.verify import Estimate, StateVerification, verify_state

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
    "ckpt.changes.run": ("How",),
    "ckpt.copies.copy": ("CheckpointCopy", "copy_checkpoint"),
    "ckpt.inspection.explain": ("ErrorMatch", "Explanation", "KnownError", "explain_error"),
    "ckpt.state.reading.choose": ("Part", "StateDamaged"),
    "ckpt.state.export.request": (
        "Action",
        "Engine",
        "ExportPart",
        "ExportPlan",
        "ExportRequest",
        "StateExport",
        "plan_export",
    ),
    "ckpt.state.export.targets": ("Format", "Mode", "Shape"),
    "ckpt.inspection.scan": ("Scan", "ScannedCheckpoint", "ScannedRoot", "WorstFinding", "scan"),
    "ckpt.migrate.handoff": ("Handoff", "Language", "Positions", "hand_off", "show_offsets", "snippet"),
    "ckpt.live.asking": ("ask_sources",),
    "ckpt.live.options": ("source_options",),
    "ckpt.live.records": ("LiveSource",),
    "ckpt.migrate.changelog": ("ChangelogSwitch", "Changelog", "switch_changelog"),
    "ckpt.migrate.provider": ("ProviderMove", "ToProvider", "move_provider"),
    "ckpt.migrate.transform": ("Api", "TransformMigration", "TransformPlan"),
    "ckpt.state.native.api": ("read_state_arrow", "read_state_batches"),
    "ckpt.state.native.diff": ("Change", "ChangedRow", "StateDiff", "UnitDiff", "diff_state"),
    "ckpt.state.native.heavy": ("HeavyKey", "PartitionSize", "StateSizes", "measure_state"),
    "ckpt.state.native.show": ("StateCount", "StateCounts", "StateRows", "count_state", "show_state"),
    "ckpt.changes.prune": ("PrunePlan", "Pruned"),
    "ckpt.inspection.query": ("DescribedOperator", "DescribedSource", "QueryDescription", "read_query"),
    "ckpt.inspection.preflight": ("Readiness",),
    "ckpt.changes.relocate": ("RelocationPlan",),
    "ckpt.changes.async_gap": ("RepairPlan", "Strategy", "repair_async"),
    "ckpt.copies.fill": ("import_state", "write_state"),
    "ckpt.copies.rewrite": ("Form", "Rewrite", "RewrittenUnit", "rewrite_checkpoint"),
    "ckpt.live.sink.reader": ("read_sink",),
    "ckpt.live.sink.records": ("SinkKind", "SinkLog", "SinkWriter"),
    "ckpt.spark.api": ("read_changes", "read_initial_state", "read_state"),
    "ckpt.spark.calls": ("Session", "export_state", "migrate_to_transform_with_state", "verify_changelog"),
    "ckpt.spark.installed": ("SparkMissing",),
    "ckpt.spark.executors": ("on_spark",),
    "ckpt.spark.preflight": ("describe_query", "preflight"),
    "ckpt.spark.errors": ("SparkFailed",),
    "ckpt.state.reading.units": ("StateUnit", "state_units"),
    "ckpt.changes.offsets": (
        "ImportPlan",
        "OffsetsPlan",
        "document_of",
        "export_offsets",
        "import_offsets",
        "set_offsets",
    ),
    "ckpt.changes.fixes.choices": ("Cost", "WayName"),
    "ckpt.changes.fixes.repair": ("Way", "WaysPlan", "repair_checkpoint"),
    "ckpt.state.verify": ("Estimate", "StateVerification", "verify_state"),
    "ckpt.changes.rewind.plan": ("Replayed", "RewindPlan", "rewind"),
    "ckpt.changes.skip.plan": ("SkipPlan", "skip"),
}
_HOME = {name: (module, name) for module, names in _LATER.items() for name in names}
_HOME["prune_checkpoint"] = ("ckpt.changes.prune", "prune")
_HOME["relocate_checkpoint"] = ("ckpt.changes.relocate", "relocate")  # ``ckpt.changes.relocate`` is the package


def _render_in_notebook(value: object) -> str | None:
    from ckpt.webpage.notebooks import part_of

    return part_of(value)


InNotebook.render = _render_in_notebook


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import what is not needed by ``inspect`` when it is asked for."""
    if name in _HOME:
        module, attribute = _HOME[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
