"""A start of a query: how it ended. Nothing here imports ckpt."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def finish(handle: Any, wait: Callable[[], object]) -> tuple[str | None, list[dict[str, Any]]]:
    """Wait until a query has read what there is, and stop it: what it failed with, and the report of each batch."""
    error = None
    try:
        wait()
    except Exception as problem:
        error = str(problem)
    finally:
        with contextlib.suppress(Exception):
            handle.stop()
    return error, [json.loads(one.json) if hasattr(one, "json") else one for one in handle.recentProgress]


def newest_offsets(checkpoint: Path) -> int | None:
    """The number of the newest offsets file."""
    return max((int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*")), default=None)
