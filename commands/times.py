"""Times as they are typed."""

import re
import time
from datetime import UTC, datetime

from ckpt.errors import UsageError, one_line

_AGO = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def moment(option: str, word: str) -> int:
    """An ISO 8601 time (UTC unless it says otherwise), or how long ago: ``15m``; in ms since 1970 UTC.

    Raises UsageError.
    """
    if ago := _AGO.fullmatch(word):
        return time.time_ns() // 1_000_000 - int(ago[1]) * _MS[ago[2]]
    try:
        parsed = datetime.fromisoformat(word)
    except ValueError:
        raise UsageError(f"{option} {one_line(word)}: write 2026-11-22T08:00:00Z, or 15m, 8h, 7d") from None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)
