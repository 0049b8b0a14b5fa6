"""Remedies that depend on which files exist: those of findings whose place matters.

Each follows from the rules of a restart (``ckpt.restart.rules``): once the files named here are gone, these let the
next start run. Where a stateful query goes back, the state files above have to go as well, or they are loaded later;
without them its counts were those of a query that never went back (measured on 3.5.9 and 4.2.0, HDFS-backed and RocksDB
stores, format 2 included).
"""

from collections.abc import Sequence

from ckpt import diagnoses
from ckpt.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.model import Unreadable
from ckpt.shell import quoted_path
from ckpt.sinks import DROPS_OR_REPEATS
from ckpt.storage.locations import local_path
from ckpt.versions import RULES

_PUT_BACK = (
    "Stop the query and put {path} back from a copy of the checkpoint (object stores with versioning keep one), and "
    "only that."
)
_REPAIR = "`ckpt repair-async {checkpoint}` plans a repair."
_AGAIN = "a sink that remembers batch ids keeps what it has of it, any other gets it again."
_BACK = f"{DROPS_OR_REPEATS}. So find the newest batch in the sink first."


def unreadable_log(checkpoint: Checkpoint, folder: str, batch_id: int) -> str:
    """For a file of the logs that a start reads and cannot."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    latest = offsets.latest
    if folder == COMMITS:
        again = f"Spark then runs batch {latest} again, over the same offsets: {_AGAIN}"
        return f"{_PUT_BACK} Without a copy, {_away([f'{COMMITS}/{batch_id}'])}; {again}"
    if batch_id != latest or (latest and not pair_below(checkpoint, latest)):
        return _PUT_BACK if checkpoint.stateful else f"{_REPAIR} Or: {_lower(_PUT_BACK)}"
    if not latest:
        return _PUT_BACK
    lower = _lower_offsets(checkpoint)
    if lower is not None:
        return f"{_PUT_BACK} Without a copy, {lower}"
    files = [f"{COMMITS}/{latest}"] if latest in commits else []
    away = _away([*files, f"{OFFSETS}/{latest}"]) + _state_above(checkpoint, latest)
    anew = f"Spark then plans batch {latest} anew, from the end of batch {latest - 1}, over another range: {_BACK}"
    return f"{_PUT_BACK} Without a copy, {away}; {anew}"


def pair_below(checkpoint: Checkpoint, latest: int) -> bool:
    """Whether a synchronous start finds what it looks for once the latest batch is not there."""
    wanted = (latest - 1, latest - 2) if latest > 1 else (latest - 1,)
    return all(checkpoint.offsets.readable(batch_id) is not None for batch_id in wanted)


def commit_without_ids(batch_id: int) -> str:
    """For a commit that does not name the state files of format 2: the one before names those that it began with."""
    away = _away([f"{COMMITS}/{batch_id}"])
    again = f"Spark then runs batch {batch_id} again, over the same offsets: {_AGAIN}"
    return f"{_PUT_BACK} Without a copy, {away}; {again}"


def no_predecessor(checkpoint: Checkpoint, latest: int) -> str | None:
    """For missing offsets, if asynchronous tracking is no remedy; None leaves it to the diagnosis."""
    committed = latest in checkpoint.commits
    if checkpoint.stateful and not committed:
        return (
            "Put {path} back from a copy of the checkpoint, or all of the checkpoint as it was before the loss: "
            f"the state holds what was read before batch {latest}, and where that batch begins is unknown. If all "
            f"of it is restored, batches run again under the same ids: {_BACK}"
        )
    if checkpoint.stateful or (not committed and latest - 1 in checkpoint.commits):
        return f"{_REPAIR} Or: {_lower(_PUT_BACK)}"
    return None


def commits_ahead(checkpoint: Checkpoint) -> str:
    """For commits of batches whose offsets are gone."""
    latest = checkpoint.offsets.latest
    lost = [i for i in checkpoint.commits.ids if latest is None or i > latest]
    restore = f"Stop the query and restore the offset files of {_batches(lost)} from a copy of the checkpoint."
    if latest is None:
        return restore
    lower = _lower_offsets(checkpoint)
    if lower is not None:
        return f"{restore} Without a copy, {lower}"
    away = _away(_paths(COMMITS, sorted(lost, reverse=True))) + _state_above(checkpoint, latest + 1)
    return f"{restore} Without a copy, {away}; sources are then read on from the end of batch {latest}: {_BACK}"


def restore_offsets(batch_ids: Sequence[int]) -> str:
    """For offset files that differ from those before them."""
    named = " and ".join(_paths(OFFSETS, batch_ids)) if len(batch_ids) < 3 else f"offsets/ of {_batches(batch_ids)}"
    return diagnoses.common.RESTORE.replace("{path}", named)


def topic_recreated(latest: int | None) -> str:
    """For the end of an uncommitted batch that is below its start: Kafka had fewer rows than had been read.

    A start that finds them gone fails, and has written the offsets that are there now (measured on 4.2.0).
    """
    return (
        f"Do not start the query with failOnDataLoss=false: batch {latest} would read no row, and the query would then "
        f"resume from its end, so that every row below that is never read. If the topic was recreated, "
        "`ckpt handoff {checkpoint}` starts a new query at the earliest rows of the topic, and loses none. If it was "
        f"not, put {OFFSETS}/{latest} back from a copy of the checkpoint, this file alone."
    )


def topic_was_recreated(before: int) -> str:
    """For a committed batch that ends below the one before: the query has already skipped what was there."""
    return (
        "If the topic was recreated, find out which of its rows below these offsets are missing in the sink: the query "
        f"has not read them. `ckpt handoff {{checkpoint}} --batch {before}` starts a new query at the earliest rows of "
        "the topic; it loses none, and reads those again that this query has read since."
    )


def never_run(checkpoint: Checkpoint, lost: Sequence[int]) -> str:
    """For planned batches that no start comes back to."""
    asked = (
        f"Find out from the sink or the driver log whether {_batches(lost)} had been written. If so, nothing is lost."
    )
    if checkpoint.stateful:
        return (
            f"{asked} If not, stop the query before it runs on, and put the whole checkpoint, with its state, back "
            f"from a copy of the time before {_batches(lost)}: {_BACK} Without a copy, start over from the sources' "
            "beginning."
        )
    lower = _lower_offsets(checkpoint)
    if lower is not None:
        return f"{asked} If not, stop the query and, before the next start, {lower}"
    newer = sorted((i for i in checkpoint.offsets.ids if i > lost[0]), reverse=True)
    away = _away(_paths(OFFSETS, newer))
    return (
        f"{asked} If not, stop the query and, before the next start, {away}; Spark then runs on from batch {lost[0]}: "
        f"{_BACK}"
    )


def _lower_offsets(checkpoint: Checkpoint) -> str | None:
    """Let a stateless query read again what may be missing, under batch ids that no sink has seen; None: no way.

    All batches after the newest finished one get its offsets, so they are empty, and all that comes after it is read by
    a batch that is new. Nothing is lost in any sink, as it would be if the batch number went back.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    ids = (*offsets.ids[-1:], *commits.ids[-1:])
    finished = [i for i in offsets.ids if commits.ids and i <= commits.ids[-1] and i < max(ids)]
    readable = [i for i in finished if not isinstance(offsets.entries.get(i), Unreadable)]
    if checkpoint.stateful or not readable:
        return None
    origin, top = readable[-1], max(ids)
    again = range(origin + 1, top + 1)
    targets = _paths(OFFSETS, again)
    named = " and ".join(targets) if len(targets) < 3 else f"each of {targets[0]} to {targets[-1]}"
    sidecars = f" (without {'its' if len(targets) == 1 else 'their'} hidden .crc file)" if checkpoint.local else ""
    return (
        f"copy {OFFSETS}/{origin} to {named}{sidecars}; Spark then takes {_batches(again)} for empty, and resumes from "
        f"the end of batch {origin} in batch {top + 1}: no sink loses a row, and rows of {_batches(again)} that are in "
        "the sink are written again."
    )


def nobody_reads(version: int) -> bool:
    """Whether no known Spark version has log files with such a version line."""
    return version > max(max(rules.newest_offset_log, rules.newest_commit_log) for rules in RULES.values())


def newer_version(version: int) -> str:
    """For a version line that some Spark version, or none that is known, reads."""
    if not nobody_reads(version):
        return "Start the query with a Spark version for which `ckpt inspect {checkpoint}` forecasts a restart."
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
    above, there, place = (_verbatim(quoted_path(path)) for path in (old.rpartition("/")[0] or "/", here, old))
    link = f'`mkdir -p {above} && ln -s "$(realpath {there})" {place}`'
    return (
        f"`ckpt relocate {{checkpoint}}` makes it find them here. Or put it back to {place}, or make "
        f"that path lead here (first remove the empty folders that a failed start leaves there): {link}"
    )


def abandoned_state(first: int) -> str:
    """For state files above those that the logs account for; ``first`` is the lowest version of them."""
    return (
        f"If offsets or commits were removed by hand, stop the query and move away {_state_from(first)}. The batches "
        f"that were removed run again under the same ids: {_BACK}"
    )


def moved_and_lost(folder: str) -> str:
    """For schemas that are recorded under another path, and are not here either."""
    return (
        f"Put {folder} back from a copy of the checkpoint: it is gone from here as well. Then run "
        "`ckpt inspect {checkpoint}` again, which says what is to be done about the path."
    )


def _state_above(checkpoint: Checkpoint, version: int) -> str:
    """What else has to go so that a stateful query can go back to a version of its state."""
    return f", and with them {_state_from(version + 1)}" if checkpoint.stateful else ""


def _state_from(first: int) -> str:
    return (
        f"every state file of version {first} and above (in all folders below state/, names that begin with "
        f'"{first}." or "{first}_" and so on, each with its .crc files), or old state is loaded later'
    )


def _paths(folder: str, ids: Sequence[int]) -> list[str]:
    return [f"{folder}/{i}" for i in ids]


def _away(paths: Sequence[str]) -> str:
    """What to move away, newest first."""
    named = " and ".join(paths) if len(paths) < 3 else f"{paths[0]} down to {paths[-1]} ({len(paths)} files)"
    each = "" if len(paths) == 1 else "each "
    return f"move {named} away, {each}with its hidden .crc file"


def _batches(ids: Sequence[int]) -> str:
    return f"batch {ids[0]}" if len(ids) == 1 else f"batches {ids[0]} to {ids[-1]}"


def _verbatim(text: str) -> str:
    """Text from a checkpoint, in which no name of a place is filled in."""
    return text.replace("{", "{{")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
