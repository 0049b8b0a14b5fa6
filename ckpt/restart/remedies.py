"""Advice that depends on which files exist: that of findings whose place matters.

What ``ckpt repair`` can plan is left to it: it knows every fix, what each costs, and changes all files that belong
together.
"""

import json
from collections.abc import Mapping, Sequence

from ckpt import settings
from ckpt.advice import CHECKPOINT, PATH, Advice, Do, Known, Words, advise, call, do, run, words
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs
from ckpt.checkpoint.sources.files import entry_at
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.formats.names import compactible_id
from ckpt.model import Json, StateDamage
from ckpt.restart.book import BOOK, put_back
from ckpt.storage.locations import local_path
from ckpt.texts import quote_path, span
from ckpt.versions import RULES

NO_BATCH_YET = advise(
    do(
        Do.DELETE,
        words(
            "No batch was planned. If the query has never run, delete {path}: the next start writes it. If it has run "
            "before, do NOT start it: the path is wrong or its batches were deleted, and every source would be read "
            "from its beginning."
        ),
        PATH,
    )
)
"""For a file of a source that was cut off before the first batch."""


def unreadable_log(checkpoint: Checkpoint, folder: str, batch_id: int) -> Advice | None:
    """For a file of the logs that a start reads and cannot; None leaves it to the diagnosis."""
    latest = checkpoint.offsets.latest
    if not latest:
        return advise(put_back())  # nothing is before it
    if folder == COMMITS or checkpoint.stateful:
        return None
    if batch_id != latest or (latest and not pair_below(checkpoint, latest)):
        return BOOK.advise("repair_async_or_put_back")
    return None


def unreadable_source_log(checkpoint: Checkpoint, path: str) -> Advice | None:
    """For an entry of a file source's log: no copy has one complete that no batch has read; None leaves it."""
    folder, _, name = path.rpartition("/")
    entry, newest = compactible_id(name), checkpoint.offsets.newest
    logs = file_source_logs(checkpoint.listing, newest)
    source = next((log.source for log in logs if log.folder == folder), None)
    last = entry_at(offset_of(newest, source)) if newest and source is not None else -1
    if entry is None or entry <= last:
        return None
    remove = words(
        "See the plan that removes the file: its write was cut off before a batch had read the entry, so no copy has "
        "it complete, and the next start writes it again."
    )
    return advise(run(call("repair", CHECKPOINT), remove))


def pair_below(checkpoint: Checkpoint, latest: int) -> bool:
    """Tell whether a synchronous start finds the entries it looks for once the latest batch is not there."""
    wanted = (latest - 1, latest - 2) if latest > 1 else (latest - 1,)
    return all(checkpoint.offsets.readable(batch_id) is not None for batch_id in wanted)


def no_predecessor(checkpoint: Checkpoint, latest: int) -> Advice | None:
    """For missing offsets, if asynchronous tracking does not help; None leaves it to the diagnosis.

    Without a committed batch to begin at, nothing can be repaired; but a query without state goes back to a pair, too.
    """
    committed = latest in checkpoint.commits
    readable = {batch for batch in checkpoint.offsets.ids if checkpoint.offsets.readable(batch) is not None}
    begins = any(batch in checkpoint.commits for batch in readable)
    if checkpoint.stateful and (not committed or latest != checkpoint.commits.latest):
        return BOOK.advise("repair") if begins else advise(put_back())
    if not begins and not any(batch == 0 or batch - 1 in readable for batch in readable):
        done = checkpoint.commits.latest or -1
        if any(batch <= done and batch < max(latest, done) for batch in readable):
            return BOOK.advise("repair")  # which reads again what comes after a finished batch
        return advise(put_back().or_(*BOOK.advise("asynchronous").steps))
    if checkpoint.stateful or (not committed and latest - 1 in checkpoint.commits):
        return BOOK.advise("repair_async_or_put_back")
    return None


def repair_offsets(batch_ids: Sequence[int]) -> Advice:
    """For offset files that differ from those before them."""
    which = span("batch", batch_ids[0], batch_ids[-1])
    named = f"offsets/ of {which}" if len(batch_ids) > 2 else " and ".join(f"{OFFSETS}/{i}" for i in batch_ids)
    paths = tuple(f"{OFFSETS}/{batch}" for batch in batch_ids)
    return BOOK.advise("repair", path=named).fill(Known(paths=paths))


def topic_recreated(latest: int | None, source: int, beginning: Mapping[str, Json], *, alone: bool) -> Advice:
    """For the end of an uncommitted batch that is below its start: Kafka had fewer rows than had been read.

    A start that finds them gone fails, and has written the offsets that are there now (measured on 3.5 to 4.3).
    ``beginning`` has the offsets at which the new topic begins, and other topics go on; ``alone`` says that the query
    has no other source.
    """
    skip = words(
        "Do not start the query with failOnDataLoss=false: batch {latest} would read no row, the query would resume "
        "from the end of that batch, and no row below it would ever be read. If the topic was recreated, batch "
        "{latest} has read no row of the new one: count it as done.",
        latest=str(latest),
    )
    put_back = words(
        "If the topic was not recreated, put {file} back from a copy of the checkpoint, and only this file.",
        file=f"{OFFSETS}/{latest}",
    )
    others = words("See what batch {latest} had of other sources: a skip leaves that out.", latest=str(latest))
    show = run(call("offsets_show", CHECKPOINT), others)
    to = json.dumps(beginning, separators=(",", ":"))
    begin = words(
        "After the skip, begin at the earliest rows of the new topic: {offsets_set}",
        offsets_set=call("offsets_set", CHECKPOINT, source=source, to=to),
    )
    return advise(
        run(call("skip", CHECKPOINT), skip).or_(do(Do.PUT_BACK, put_back, f"{OFFSETS}/{latest}")),
        *(() if alone else (show,)),
        do(Do.CHANGE, begin),  # refused before the skip
    )


def offsets_reversed(latest: int | None) -> Advice:
    """For a batch of a source that refuses to read backwards."""
    file = f"{OFFSETS}/{latest}"
    put_back = words("Put {file} back from a copy of the checkpoint, and only this file.", file=file)
    repair = run(call("repair", CHECKPOINT), words("Without a copy, see the fixes, and what each costs."))
    return advise(do(Do.PUT_BACK, put_back, file).or_(repair))


def commit_planned(checkpoint: Checkpoint, query: str = "the query") -> Words:
    """For a planned batch that has to be committed first.

    With TTL, which is in processing time, a start with trigger availableNow may not end: each batch leads to another
    one that only looks for expired values (measured on 4.2.0). Other triggers run the planned batch at once, too.
    """
    if any(variable.ttl for operator in checkpoint.operators for variable in operator.variables):
        return words(
            "start {query} once with trigger processingTime='1 hour', and stop it when {committed} is there",
            query=query,
            committed=f"{COMMITS}/{checkpoint.offsets.latest}",
        )
    return words("start {query} once with trigger availableNow, which commits it", query=query)


def foreign_snapshot(batch: int) -> Advice:
    """For a snapshot of abandoned batches: ``batch`` is the newest whose state is loaded without any of them."""
    what = words(
        "Stop the query, and see the plan that goes back to the state before the snapshot, also where a start has "
        "loaded it since, and reads the rows again, and what the sink does with them."
    )
    return advise(run(call("rewind", CHECKPOINT, to_batch=batch), what))


def far_watermark(batch: int) -> Advice:
    """For a watermark in the future that the rows of a batch have brought."""
    find = words(
        "Let the query leave out such rows before withWatermark, or each of them does this again. To find the row, see "
        "what batch {number} read.",
        number=batch,
    )
    back = words(
        "To move a source with {offsets_set} does not help: that leaves the watermark. Stop the query, and see the "
        "plan that goes back to the state before and reads the rows again, and what the sink does with them.",
        offsets_set=call("offsets_set"),
    )
    return advise(
        run(call("offsets_show", CHECKPOINT, batch=batch), find),
        run(call("rewind", CHECKPOINT, to_batch=batch - 1), back),
    )


def offsets_moved_back(before: int) -> Advice:
    """For committed offsets of a source that only ever go forward, below those of batch ``before``."""
    back = words(
        "Unless somebody moved them back on purpose, the file was edited or restored by hand, and a start reads rows "
        "again that the query has read. See the plan that goes back to the state after batch {before} and reads on "
        "from there, and what the sink does with those rows.",
        before=before,
    )
    on_purpose = words("If they were moved back on purpose, start the query as usual.")
    return advise(run(call("rewind", CHECKPOINT, to_batch=before, replay="new"), back).or_(do(Do.START, on_purpose)))


def topic_was_recreated(before: int) -> Advice:
    """For a committed batch that ends below the one before: the query has already skipped what was there."""
    what = words(
        "If the topic was recreated, find out which of its rows below these offsets are missing in the sink: the query "
        "has not read them. See how a new query starts at the earliest rows of the topic: it loses no row, and reads "
        "again what this query has read since."
    )
    return advise(run(call("handoff", CHECKPOINT, batch=before), what))


def never_run(checkpoint: Checkpoint, lost: Sequence[int]) -> Advice:
    """For planned batches that no start comes back to."""
    question = words(
        "Find out from the sink or the driver log whether {which} had been written. If so, nothing is lost.",
        which=span("batch", lost[0], lost[-1]),
    )
    if checkpoint.commits.ids:
        stop = words("If not, stop the query before it continues, and see the plan that reads their rows again.")
        return advise(do(Do.FIND_OUT, question), run(call("repair", CHECKPOINT), stop))
    back = words("If not, put commits/ back from a copy of the checkpoint before the start, and only that.")
    return advise(do(Do.FIND_OUT, question), do(Do.PUT_BACK, back, COMMITS))


def nobody_reads(version: int) -> bool:
    """Tell whether no known Spark version has log files with such a version line."""
    return version > max(max(rules.newest_offset_log, rules.newest_commit_log) for rules in RULES.values())


def newer_version(version: int, checkpoint: Checkpoint) -> Advice:
    """For a version line that some Spark version, or none that is known, reads."""
    if not nobody_reads(version):
        return BOOK.advise("other_version")
    newer = words(
        "No Spark version up to {newest} writes v{version}: if a newer one wrote this checkpoint, start the query with "
        "that one.",
        newest=str(list(RULES)[-1]),
        version=version,
    )
    if not checkpoint.offsets.latest:  # nothing is before it
        return advise(do(Do.START, newer).or_(put_back(instead=True)))
    damaged = words("If not, the file is damaged. See the fixes, and what each costs.")
    return advise(do(Do.START, newer).or_(run(call("repair", CHECKPOINT), damaged)))


def contradicting_setting(checkpoint: Checkpoint) -> str | None:
    """The setting of stateful operators that offsets record several values of, if any."""
    for name in (settings.SHUFFLE_PARTITIONS, settings.PROVIDER_CLASS):
        logs = checkpoint.offsets.records.values()
        recorded = {log.metadata.conf.get(name) for log in logs if log.metadata is not None}
        if len(recorded) > 1:
            return name
    return None


def lost_state(checkpoint: Checkpoint, damage: StateDamage, contradicting: str | None) -> Advice | None:
    """For a folder of state that is missing, with ``contradicting_setting``; None leaves it to the diagnosis.

    No batch has all of its state, so a handoff has to be told after which one a new query continues.
    """
    if contradicting:
        edited = words(
            "Offsets record different values of {setting}. If nobody moved the state on purpose, the newest were "
            "edited. See the fixes, and what each costs.",
            setting=contradicting,
        )
        was_moved = words("If the state was moved, put {path} back from a copy of the checkpoint.")
        return advise(run(call("repair", CHECKPOINT), edited).or_(do(Do.PUT_BACK, was_moved, PATH)))
    if damage.path.count("/") < 2:
        return None  # nothing of the operator is left
    others = BOOK.advise("salvage").steps if _has_schemas(checkpoint, int(damage.path.split("/")[1])) else ()
    newest = next((batch for batch in reversed(checkpoint.commits.ids) if checkpoint.offsets.readable(batch)), None)
    if newest is not None:
        others = (*others, *BOOK.advise("hand_off_after", newest=newest).steps)
    return advise(put_back().or_(*others, *BOOK.advise("new_checkpoint").steps))


def _has_schemas(checkpoint: Checkpoint, operator: int) -> bool:
    """Tell whether every store of an operator has its schema, which is in partition 0: without it no row is read."""
    stores = [store for each, store in checkpoint.stores() if each.id == operator]
    return bool(stores) and all(store.key_schema is not None or store.column_families for store in stores)


def moved(recorded: str, operator: int, checkpoint: Checkpoint) -> Advice | None:
    """For schemas that are recorded under another path; None where one of the two is not on this machine."""
    root = recorded.rpartition(f"/state/{operator}/_stateSchema/")[0]
    scheme, colon, path = root.partition(":")
    here = local_path(checkpoint.uri)
    if (colon and scheme != "file") or here is None:
        return None
    old = "/" + (path if colon else root).lstrip("/")
    above, there, old_path = map(quote_path, (old.rpartition("/")[0] or "/", here, old))
    link = words(
        "Remove the empty folders that a failed start leaves at {old}, and link that path to this one.", old=old_path
    )
    return advise(
        run(call("relocate", CHECKPOINT), words("Let the query find its schemas here.")).or_(
            do(Do.MOVE, words("Move the checkpoint back to {old}.", old=old_path), ""),
            do(Do.CHANGE, link, line=f'mkdir -p {above} && ln -s "$(realpath {there})" {old_path}'),
        )
    )


def moved_and_lost(folder: str) -> Advice:
    """For schemas that are recorded under another path, and are not here either."""
    back = words("Put {folder} back from a copy of the checkpoint: it is missing here too.", folder=folder)
    again = words("Look again: the report then says what to do about the path.")
    return advise(do(Do.PUT_BACK, back, folder), run(call("inspect", CHECKPOINT), again))
