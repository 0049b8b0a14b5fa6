"""Ways out that depend on which files there are: the remedies of findings whose place matters.

Each follows from the rules of a restart (``ckpt.restart.rules``): once the files named here are gone, these let the
next start run. A stateful query is left to restoring, for its state files would have to go back as well.
"""

import shlex
from collections.abc import Sequence

from ckpt.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.restart.versions import RULES
from ckpt.storage.uri import local_path

RESTORE = "Stop the query and put {path} back from a copy of the checkpoint (object stores with versioning keep one)."
_AGAIN = "what it had written is written again, and a sink that skips batch ids it has seen may drop rows."


def unreadable_log(checkpoint: Checkpoint, folder: str, batch_id: int) -> str:
    """For a file of the logs that a start reads and cannot."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    latest = offsets.latest
    if folder == COMMITS:
        away = f"{_away([f'{COMMITS}/{batch_id}'])}; Spark then runs batch {latest} again: {_AGAIN}"
        return f"{RESTORE} Without a copy, {away}" if not checkpoint.stateful else RESTORE
    if batch_id != latest:
        return f"ckpt repair-async {{checkpoint}} plans a way out. Or: {_lower(RESTORE)}"
    predecessor = latest - 1 in offsets and (latest == 1 or latest - 2 in offsets)
    if latest and not predecessor:
        return f"ckpt repair-async {{checkpoint}} plans a way out. Or: {_lower(RESTORE)}"
    files = [f"{COMMITS}/{latest}"] if latest in commits else []
    if not latest or (files and checkpoint.stateful):
        return RESTORE
    anew = f"Spark then plans batch {latest} anew, from the end of batch {latest - 1}: {_AGAIN}"
    return f"{RESTORE} Without a copy, {_away([*files, f'{OFFSETS}/{latest}'])}; {anew}"


def commits_ahead(checkpoint: Checkpoint) -> str:
    """For commits of batches whose offsets are gone."""
    latest = checkpoint.offsets.latest
    lost = [i for i in checkpoint.commits.ids if latest is None or i > latest]
    restore = f"Stop the query and restore the offset files of {_batches(lost)} from a copy of the checkpoint."
    if checkpoint.stateful or latest is None:
        return restore
    away = _away(_paths(COMMITS, sorted(lost, reverse=True)))
    return f"{restore} Without a copy, {away}; sources are then read on from the end of batch {latest}: {_AGAIN}"


def never_run(checkpoint: Checkpoint, lost: Sequence[int]) -> str:
    """For planned batches that no start comes back to."""
    asked = (
        f"Find out from the sink or the driver log whether {_batches(lost)} had been written. If so, nothing is lost."
    )
    if checkpoint.stateful:
        return asked
    newer = sorted((i for i in checkpoint.offsets.ids if i > lost[0]), reverse=True)
    away = _away(_paths(OFFSETS, newer))
    return (
        f"{asked} If not, stop the query and, before the next start, {away}; Spark then runs on from batch {lost[0]}."
    )


def newer_version(version: int) -> str:
    """For a version line that some Spark version, or none that is known, reads."""
    known = max(max(rules.newest_offset_log, rules.newest_commit_log) for rules in RULES.values())
    if version <= known:
        return "Start the query with a Spark version for which ckpt inspect {checkpoint} promises a restart."
    return (
        f"No Spark version up to {list(RULES)[-1]} writes v{version}: if a newer one wrote this checkpoint, start the "
        "query with that one; otherwise the file is damaged: put {path} back from a copy of the checkpoint."
    )


def moved(recorded: str, operator: int, checkpoint: Checkpoint) -> str | None:
    """For schemas that are recorded under another path; None where one of the two is not on this machine."""
    root = recorded.rpartition(f"/state/{operator}/_stateSchema/")[0]
    scheme, colon, path = root.partition(":")
    here = local_path(checkpoint.uri)
    if (colon and scheme != "file") or here is None:
        return None
    old = "/" + (path if colon else root).lstrip("/")
    link = f'ln -s "$(realpath {shlex.quote(here)})" {shlex.quote(old)}'
    return f"ckpt relocate {{checkpoint}} makes it find them here. Or put it back to {shlex.quote(old)}, or: {link}"


def _paths(folder: str, ids: Sequence[int]) -> list[str]:
    return [f"{folder}/{i}" for i in ids]


def _away(paths: Sequence[str]) -> str:
    """What to move away, newest first."""
    named = " and ".join(paths) if len(paths) < 3 else f"{paths[0]} down to {paths[-1]} ({len(paths)} files)"
    each = "" if len(paths) == 1 else "each "
    return f"move {named} away, {each}with its hidden .crc file"


def _batches(ids: Sequence[int]) -> str:
    return f"batch {ids[0]}" if len(ids) == 1 else f"batches {ids[0]} to {ids[-1]}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
