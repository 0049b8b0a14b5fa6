"""What happens to a query that was stopped: a menu of disasters, as they come from disks, people and other systems."""

from __future__ import annotations

from tests.laws.operator.disasters import logs, settings, sinks, sources, state
from tests.laws.operator.disasters.harm import Disaster

MENU: dict[str, Disaster] = logs.MENU | state.MENU | sources.MENU | sinks.MENU | settings.MENU
"""In an order that must stay as it is: a seed takes the disaster of its number."""
