"""Times as text."""

from datetime import UTC, datetime


def instant(ms: int | None) -> str:
    """A time in ms since 1970 as ISO 8601 in UTC, to the second; in ms where no calendar has it."""
    if ms is None:
        return "unknown"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
