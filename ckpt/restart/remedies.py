"""Remedies that depend on which files exist: those of findings whose place matters.

What ``ckpt repair`` can plan is left to it: it knows every fix, what each costs, and changes all files that belong
together.
"""

import json
from collections.abc import Mapping, Sequence

from ckpt import settings
from ckpt.advice import CHECKPOINT, Advice, Hole, advise, call, run, words
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs
from ckpt.checkpoint.sources.files import entry_at
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.formats.names import compactible_id
from ckpt.model import Json, StateDamage
from ckpt.restart import diagnoses
from ckpt.storage.locations import local_path
from ckpt.texts import quote_path, quote_word, span
from ckpt.versions import RULES

_PUT_BACK = (
    "stop the query and put {path} back from a copy of the checkpoint (object stores with versioning keep one), and "
    "only that."
)
_REPAIR = f"`ckpt repair-async {{checkpoint}}` plans a repair. Or: {_PUT_BACK}"
NO_BATCH_YET = (
    "No batch was planned. If the query has never run, delete {path}: the next start writes it. If it has run before, "
    "do NOT start it: the path is wrong or its batches were deleted, and every source would be read from its beginning."
)
"""For a file of a source that was cut off before the first batch."""


def unreadable_log(checkpoint: Checkpoint, folder: str, batch_id: int) -> str | None:
    """For a file of the logs that a start reads and cannot; None leaves it to the diagnosis."""
    latest = checkpoint.offsets.latest
    if folder == OFFSETS and not latest:
        return diagnoses.common.RESTORE  # nothing is before it
    if folder == COMMITS or checkpoint.stateful:
        return None
    if batch_id != latest or (latest and not pair_below(checkpoint, latest)):
        return _REPAIR
    return None


def unreadable_source_log(checkpoint: Checkpoint, path: str) -> str | None:
    """For an entry of a file source's log: no copy has one complete that no batch has read; None leaves it."""
    folder, _, name = path.rpartition("/")
    entry, newest = compactible_id(name), checkpoint.offsets.newest
    logs = file_source_logs(checkpoint.listing, newest)
    source = next((log.source for log in logs if log.folder == folder), None)
    last = entry_at(offset_of(newest, source)) if newest and source is not None else -1
    if entry is None or entry <= last:
        return None
    return (
        "`ckpt repair {checkpoint}` plans to remove the file: its write was cut off before a batch had read the entry, "
        "so no copy has it complete, and the next start writes it again."
    )


def pair_below(checkpoint: Checkpoint, latest: int) -> bool:
    """Tell whether a synchronous start finds the entries it looks for once the latest batch is not there."""
    wanted = (latest - 1, latest - 2) if latest > 1 else (latest - 1,)
    return all(checkpoint.offsets.readable(batch_id) is not None for batch_id in wanted)


def no_predecessor(checkpoint: Checkpoint, latest: int) -> str | None:
    """For missing offsets, if asynchronous tracking is no remedy; None leaves it to the diagnosis."""
    committed = latest in checkpoint.commits
    if checkpoint.stateful and not committed:
        return diagnoses.common.REPAIR
    if checkpoint.stateful or (not committed and latest - 1 in checkpoint.commits):
        return _REPAIR
    return None


def repair_offsets(batch_ids: Sequence[int]) -> Advice:
    """For offset files that differ from those before them."""
    which = span("batch", batch_ids[0], batch_ids[-1])
    named = f"offsets/ of {which}" if len(batch_ids) > 2 else " and ".join(f"{OFFSETS}/{i}" for i in batch_ids)
    return diagnoses.common.repair(*(f"{OFFSETS}/{batch}" for batch in batch_ids), named=words("{files}", files=named))


def topic_recreated(latest: int | None, source: int, beginning: Mapping[str, Json], *, alone: bool) -> str:
    """For the end of an uncommitted batch that is below its start: Kafka had fewer rows than had been read.

    A start that finds them gone fails, and has written the offsets that are there now (measured on 3.5 to 4.3).
    ``beginning`` has the offsets at which the new topic begins, and other topics go on; ``alone`` says that the query
    has no other source.
    """
    to = quote_word(json.dumps(beginning, separators=(",", ":")))
    others = "" if alone else " What that batch had of other sources is left out: `ckpt offsets show {checkpoint}`."
    return (
        f"Do not start the query with failOnDataLoss=false: batch {latest} would read no row, the query would "
        "resume from the end of that batch, and no row below it would ever be read. If the topic was recreated, "
        f"`ckpt skip {{checkpoint}}` counts batch {latest} as done (it has read no row of the new topic); then "
        f"`ckpt offsets set {{checkpoint}} --source {source} --to {to}` shows the plan to begin at the earliest rows "
        f"of the new topic; apply it.{others} If the topic was not recreated, put {OFFSETS}/{latest} back from a copy "
        "of the checkpoint, and only this file."
    )


def offsets_reversed(latest: int | None) -> str:
    """For a batch of a source that refuses to read backwards."""
    return (
        f"Put {OFFSETS}/{latest} back from a copy of the checkpoint, and only this file. Without a copy, `ckpt repair "
        "{checkpoint}` shows the fixes, and what each costs."
    )


def commit_planned(checkpoint: Checkpoint, query: str = "the query") -> str:
    """For a planned batch that has to be committed first.

    With TTL, which is in processing time, a start with trigger availableNow may not end: each batch leads to another
    one that only looks for expired values (measured on 4.2.0). Other triggers run the planned batch at once, too.
    """
    if any(variable.ttl for operator in checkpoint.operators for variable in operator.variables):
        committed = f"{COMMITS}/{checkpoint.offsets.latest}"
        return f"start {query} once with trigger processingTime='1 hour', and stop it when {committed} is there"
    return f"start {query} once with trigger availableNow, which commits it"


def foreign_snapshot(batch: int) -> str:
    """For a snapshot of abandoned batches: ``batch`` is the newest whose state is loaded without any of them."""
    return (
        f"Stop the query. `ckpt rewind {{checkpoint}} --to-batch {batch}` plans to go back to the state before the "
        "snapshot, also where a start has loaded it since, reads the rows again, and says what the sink does with them."
    )


def far_watermark(batch: int) -> str:
    """For a watermark in the future that the rows of a batch have brought."""
    return (
        f"Find the row: `ckpt offsets show {{checkpoint}} --batch {batch}` says what batch {batch} read. Let the query "
        "leave out such rows before withWatermark, or each of them does this again. Then stop it: `ckpt rewind "
        f"{{checkpoint}} --to-batch {batch - 1}` plans to go back to the state before, reads the rows again, and says "
        "what the sink does with them. To move a source with `ckpt offsets` does not help: that leaves the watermark."
    )


def offsets_moved_back(before: int) -> str:
    """For committed offsets of a source that only ever go forward, below those of batch ``before``."""
    return (
        "Unless somebody moved them back on purpose, the file was edited or restored by hand, and a start reads rows "
        f"again that the query has read. `ckpt rewind {{checkpoint}} --to-batch {before} --replay new` plans to go "
        f"back to the state after batch {before} and read on from there, and says what the sink does with those rows. "
        "If they were moved back on purpose, start the query as usual."
    )


def topic_was_recreated(before: int) -> str:
    """For a committed batch that ends below the one before: the query has already skipped what was there."""
    return (
        "If the topic was recreated, find out which of its rows below these offsets are missing in the sink: the query "
        f"has not read them. `ckpt handoff {{checkpoint}} --batch {before}` starts a new query at the earliest rows of "
        "the topic: it loses no row, and reads again what this query has read since."
    )


def never_run(checkpoint: Checkpoint, lost: Sequence[int]) -> str:
    """For planned batches that no start comes back to."""
    which = span("batch", lost[0], lost[-1])
    question = f"Find out from the sink or the driver log whether {which} had been written. If so, nothing is lost."
    if not checkpoint.commits.ids:
        return f"{question} If not, put commits/ back from a copy of the checkpoint before the start, and only that."
    return (
        f"{question} If not, stop the query before it continues: `ckpt repair {{checkpoint}}` plans how their rows are "
        "read again."
    )


def nobody_reads(version: int) -> bool:
    """Tell whether no known Spark version has log files with such a version line."""
    return version > max(max(rules.newest_offset_log, rules.newest_commit_log) for rules in RULES.values())


def newer_version(version: int) -> str:
    """For a version line that some Spark version, or none that is known, reads."""
    if not nobody_reads(version):
        return "Start the query with a Spark version for which `ckpt inspect {checkpoint}` forecasts a restart."
    return (
        f"No Spark version up to {list(RULES)[-1]} writes v{version}: if a newer one wrote this checkpoint, start the "
        "query with that one. Otherwise the file is damaged: `ckpt repair {checkpoint}` shows the fixes, and what each "
        "costs."
    )


def contradicting_setting(checkpoint: Checkpoint) -> str | None:
    """The setting of stateful operators that offsets record several values of, if any."""
    for name in (settings.SHUFFLE_PARTITIONS, settings.PROVIDER_CLASS):
        logs = checkpoint.offsets.records.values()
        recorded = {log.metadata.conf.get(name) for log in logs if log.metadata is not None}
        if len(recorded) > 1:
            return name
    return None


def lost_state(damage: StateDamage, contradicting: str | None) -> Advice | str | None:
    """For a folder of state that is missing, with ``contradicting_setting``; None leaves it to the diagnosis."""
    if contradicting:
        return (
            f"Offsets record different values of {contradicting}. If nobody moved the state on purpose, the newest "
            "were edited, and `ckpt repair {checkpoint}` shows the fixes, and what each costs. If the state was moved, "
            "put {path} back from a copy of the checkpoint."
        )
    if damage.path.count("/") < 2:
        return None  # nothing of the operator is left
    salvage = call("rewrite", CHECKPOINT, Hole.NEW, salvage=True)
    how_much = words("Without a copy, see how much of the state is left.")
    rest = words("Write what is left to NEW; lost keys start from nothing.")
    alternatives = (run(salvage.but(plan=True), how_much), run(salvage.but(accept_loss=True), rest, writes=True))
    return advise(diagnoses.common.put_back().or_(*alternatives, *diagnoses.common.NEW_STATE))


def moved(recorded: str, operator: int, checkpoint: Checkpoint) -> str | None:
    """For schemas that are recorded under another path; None where one of the two is not on this machine."""
    root = recorded.rpartition(f"/state/{operator}/_stateSchema/")[0]
    scheme, colon, path = root.partition(":")
    here = local_path(checkpoint.uri)
    if (colon and scheme != "file") or here is None:
        return None
    old = "/" + (path if colon else root).lstrip("/")
    paths = (old.rpartition("/")[0] or "/", here, old)
    above, there, old_path = (quote_path(path).replace("{", "{{") for path in paths)  # in which nothing is filled in
    link = f'`mkdir -p {above} && ln -s "$(realpath {there})" {old_path}`'
    return (
        f"`ckpt relocate {{checkpoint}}` makes the query find its schemas here. Or move the checkpoint back to "
        f"{old_path}, or link that path to this one (first remove the empty folders that a failed start leaves): {link}"
    )


def moved_and_lost(folder: str) -> str:
    """For schemas that are recorded under another path, and are not here either."""
    return (
        f"Put {folder} back from a copy of the checkpoint: it is missing here too. Then run `ckpt inspect "
        "{checkpoint}` again, which says what to do about the path."
    )
