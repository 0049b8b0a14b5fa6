"""From one way of keeping state to another (``ckpt migrate``): nothing here changes a checkpoint."""

from ckpt.migrate.changelog import Changelog, ChangelogSwitch, SwitchOutcome, switch_changelog
from ckpt.migrate.comparison import Comparison, ComparisonVerdict
from ckpt.migrate.provider import MoveOutcome, ProviderMove, ToProvider, move_provider

__all__ = [
    "Changelog",
    "ChangelogSwitch",
    "Comparison",
    "ComparisonVerdict",
    "MoveOutcome",
    "ProviderMove",
    "SwitchOutcome",
    "ToProvider",
    "move_provider",
    "switch_changelog",
]
