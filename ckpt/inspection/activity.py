"""Look whether a query seems to be writing to a checkpoint. Quiet is not proof: an idle query writes nothing."""

import math
import time
from collections.abc import Collection, Iterator

from ckpt.advice import Option, words
from ckpt.errors import CkptError, UsageError
from ckpt.storage import FileInfo, Listing, Storage

LOOKS_APART_S = 3.0  # seconds between two looks


class Refused(CkptError):
    """Ckpt will not change this checkpoint now; the text says why, and what would help."""


def must_be_seconds(grace: float) -> None:
    """Raise UsageError for what is no time to wait: nothing is ever older than ``inf``, and everything than ``nan``."""
    if not (math.isfinite(grace) and grace >= 0):
        raise UsageError(words("{given} is not a number of seconds: give 0 or more", given=Option("grace", grace)))


def must_be_quiet(storage: Storage, first_look: Listing, grace: float, exempt: Collection[str] = ()) -> Listing:
    """Wait for a second look, which is returned, and refuse a checkpoint that is or was just written to.

    ``grace`` is how many seconds old the youngest file must be; 0 looks again at once. ``exempt`` are paths that do
    not count. Raises Refused where a file is too young, or the two looks differ.
    """
    written = [(info.mtime_ms, path) for path, info in _list_files(first_look, exempt) if info.mtime_ms is not None]
    youngest, path = max(written, default=(0, ""))
    age = time.time() - youngest / 1000
    if written and grace and age < grace:
        wait = f"try again in {grace - age:.0f} s" if age > -1 else "its time is in the future: check the clocks"
        text = words(
            "{path} was written {age} s ago: is the query still running? Make sure that it is "
            "stopped (a change by ckpt counts too), and {wait} ({grace})",
            path=path,
            age=f"{max(age, 0):.0f}",
            wait=wait,
            grace=Option("grace", grace),
        )
        raise Refused(text)
    now, changed = look_again(storage, first_look, min(grace, LOOKS_APART_S), exempt)
    if changed is not None:
        raise Refused(f"{changed} changed while ckpt was checking: a query is writing here. Stop it, and try again")
    return now


def look_again(
    storage: Storage, first_look: Listing, wait_s: float, exempt: Collection[str] = ()
) -> tuple[Listing, str | None]:
    """Look again after ``wait_s`` seconds; return the second look, and the first path that differs."""
    time.sleep(wait_s)
    now = storage.list_tree(tolerant=True)
    differing = {path for path, _ in set(_list_files(first_look, exempt)) ^ set(_list_files(now, exempt))}
    return now, min(differing, default=None)


def measure_age_s(first_look: Listing) -> float | None:
    """Measure how many seconds ago the youngest file was written; None where that is not known. Clocks may differ."""
    times = [info.mtime_ms for _, info in first_look.walk() if info.mtime_ms is not None]
    return time.time() - max(times) / 1000 if times else None


def _list_files(listing: Listing, exempt: Collection[str]) -> Iterator[tuple[str, FileInfo]]:
    return ((path, info) for path, info in listing.walk() if path not in exempt)
