"""ckpt: what is wrong with a Structured Streaming checkpoint, what Spark will do, and how to get out.

``import ckpt`` imports what ``inspect`` needs; every other name is imported when it is asked for, and pyspark only by
what asks Spark. ``docs/api.md`` lists all of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ckpt.checkpoint import Checkpoint
from ckpt.errors import CkptError, NotFound, StorageError, UsageError
from ckpt.inspection import Inspection, inspect
from ckpt.reader import NotACheckpoint, open_checkpoint
from ckpt.state.units import StateUnit, state_units
from ckpt.version import __version__
from ckpt.versions import Spark

if TYPE_CHECKING:
    from ckpt.change.apply import Receipt
    from ckpt.export.choose import StateDamaged
    from ckpt.export.request import Action, ExportPart, ExportPlan, ExportRequest, StateExport, plan_export
    from ckpt.export.targets import Format, Mode, Shape
    from ckpt.handoff import Handoff, Language, hand_off, snippet
    from ckpt.migrate.changelog import Changelog, ChangelogSwitch, switch_changelog
    from ckpt.migrate.provider import ProviderMove, ToProvider, move_provider
    from ckpt.migrate.transform import Api, TransformMigration, TransformPlan
    from ckpt.relocate import RelocationPlan
    from ckpt.relocate import relocate as relocate_checkpoint
    from ckpt.repair import RepairPlan, Strategy, repair_async
    from ckpt.spark.api import read_changes, read_initial_state, read_state
    from ckpt.spark.calls import Session, export_state, migrate_to_transform_with_state, verify_changelog
    from ckpt.spark.needs import SparkMissing
    from ckpt.spark.trouble import SparkFailed

__all__ = [
    "Action",
    "Api",
    "Changelog",
    "ChangelogSwitch",
    "Checkpoint",
    "CkptError",
    "ExportPart",
    "ExportPlan",
    "ExportRequest",
    "Format",
    "Handoff",
    "Inspection",
    "Language",
    "Mode",
    "NotACheckpoint",
    "NotFound",
    "ProviderMove",
    "Receipt",
    "RelocationPlan",
    "RepairPlan",
    "Session",
    "Shape",
    "Spark",
    "SparkFailed",
    "SparkMissing",
    "StateDamaged",
    "StateExport",
    "StateUnit",
    "StorageError",
    "Strategy",
    "ToProvider",
    "TransformMigration",
    "TransformPlan",
    "UsageError",
    "__version__",
    "export_state",
    "hand_off",
    "inspect",
    "migrate_to_transform_with_state",
    "move_provider",
    "open_checkpoint",
    "plan_export",
    "read_changes",
    "read_initial_state",
    "read_state",
    "relocate_checkpoint",
    "repair_async",
    "snippet",
    "state_units",
    "switch_changelog",
    "verify_changelog",
]

_LATER = {
    "ckpt.change.apply": ("Receipt",),
    "ckpt.export.choose": ("StateDamaged",),
    "ckpt.export.request": ("Action", "ExportPart", "ExportPlan", "ExportRequest", "StateExport", "plan_export"),
    "ckpt.export.targets": ("Format", "Mode", "Shape"),
    "ckpt.handoff": ("Handoff", "Language", "hand_off", "snippet"),
    "ckpt.migrate.changelog": ("ChangelogSwitch", "Changelog", "switch_changelog"),
    "ckpt.migrate.provider": ("ProviderMove", "ToProvider", "move_provider"),
    "ckpt.migrate.transform": ("Api", "TransformMigration", "TransformPlan"),
    "ckpt.relocate": ("RelocationPlan",),
    "ckpt.repair": ("RepairPlan", "Strategy", "repair_async"),
    "ckpt.spark.api": ("read_changes", "read_initial_state", "read_state"),
    "ckpt.spark.calls": ("Session", "export_state", "migrate_to_transform_with_state", "verify_changelog"),
    "ckpt.spark.needs": ("SparkMissing",),
    "ckpt.spark.trouble": ("SparkFailed",),
}
_HOME = {name: (module, name) for module, names in _LATER.items() for name in names}
_HOME["relocate_checkpoint"] = ("ckpt.relocate", "relocate")  # ``ckpt.relocate`` is the package


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import what is not needed by ``inspect`` when it is asked for."""
    if name in _HOME:
        module, attribute = _HOME[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
