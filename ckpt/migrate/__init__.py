"""From one way of keeping state to another (``ckpt migrate``): nothing here changes a checkpoint."""

from ckpt.migrate.changelog import ChangelogSwitch, Outcome, To, switch_changelog

__all__ = ["ChangelogSwitch", "Outcome", "To", "switch_changelog"]
