"""Exit codes of every command."""

from enum import IntEnum


class Exit(IntEnum):
    """How a run ends, for whoever started it."""

    OK = 0  # nothing wrong, or done
    FOUND = 1  # something is wrong, or a change is planned and not applied
    USAGE = 2  # the request makes no sense
    FAILED = 3  # could not do it: refused, failed, or reverted
