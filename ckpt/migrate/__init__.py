"""From one way of keeping state to another (``ckpt migrate``): nothing here changes a checkpoint."""

from ckpt.migrate.changelog import Changelog, ChangelogSwitch, SwitchOutcome, switch_changelog
from ckpt.migrate.provider import MoveOutcome, ProviderMove, ToProvider, move_provider
from ckpt.migrate.two_ways import Comparison, ComparisonVerdict

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
