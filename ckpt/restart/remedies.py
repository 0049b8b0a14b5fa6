"""Advice that depends on which files exist: that of findings whose place matters.

What ``ckpt repair`` can plan is left to it: it knows every fix, what each costs, and changes all files that belong
together.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from ckpt import settings
from ckpt.advice import Advice, Instruction, Words, advise
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.renamed import GZIPPED
from ckpt.checkpoint.sources.file_logs import file_source_logs
from ckpt.checkpoint.sources.files import entry_at
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.checkpoint.state.folders import SSTS
from ckpt.formats.names import compactible_id
from ckpt.formats.sidecars import shown_name, sidecar
from ckpt.model import Fault, Unreadable
from ckpt.restart.book import BOOK, put_back
from ckpt.restart.findings import Finding, Severity
from ckpt.storage.locations import is_of_one_host, local_path
from ckpt.texts import quote_path


def unreadable_log(checkpoint: Checkpoint, folder: str, batch_id: int) -> Advice | None:
    """For a file of the logs that a start reads and cannot; None leaves it to the diagnosis."""
    latest = checkpoint.offsets.latest
    if folder == OFFSETS and is_of_spark_2_0(checkpoint):
        return BOOK.advise("spark_2_0")
    if not latest:
        return advise(put_back())  # nothing is before it
    if folder == COMMITS or checkpoint.stateful:
        return None
    if batch_id != latest or (latest and not pair_below(checkpoint, latest)):
        return BOOK.advise("repair_async_or_put_back")
    return None


def is_of_spark_2_0(checkpoint: Checkpoint) -> bool:
    """Tell whether the latest offsets are in Java's serialization: Spark 2.0 wrote neither metadata nor commits."""
    entry = checkpoint.offsets.entries.get(-1 if checkpoint.offsets.latest is None else checkpoint.offsets.latest)
    return isinstance(entry, Unreadable) and entry.fault is Fault.JAVA_SERIALIZED


def unreadable_source_log(checkpoint: Checkpoint, path: str) -> Advice | None:
    """For an entry of a file source's log: no copy has one complete that no batch has read; None leaves it."""
    folder, _, name = path.rpartition("/")
    entry, newest = compactible_id(name), checkpoint.offsets.newest
    logs = file_source_logs(checkpoint.listing, newest)
    source = next((log.source for log in logs if log.folder == folder), None)
    last = entry_at(offset_of(newest, source)) if newest and source is not None else -1
    if entry is None or entry <= last:
        return None
    return BOOK.advise("remove_unread_entry")


def pair_below(checkpoint: Checkpoint, latest: int) -> bool:
    """Tell whether a synchronous start finds the entries it looks for once the latest batch is not there."""
    wanted = (latest - 1, latest - 2) if latest > 1 else (latest - 1,)
    return all(checkpoint.offsets.readable(batch_id) is not None for batch_id in wanted)


def no_predecessor(checkpoint: Checkpoint, latest: int) -> Advice | None:
    """For missing offsets, if asynchronous tracking does not help; None leaves it to the diagnosis.

    Without a committed batch to begin at, nothing can be repaired; but a query without state goes back to a pair, too.
    """
    committed, readable = latest in checkpoint.commits, checkpoint.offsets.records
    begins = any(batch in checkpoint.commits for batch in readable)
    if checkpoint.stateful and (not committed or latest != checkpoint.commits.latest):
        return BOOK.advise("repair") if begins else advise(put_back().or_(*BOOK.advise("new_checkpoint").steps))
    if not begins and not any(batch == 0 or batch - 1 in readable for batch in readable):
        done = checkpoint.commits.latest or -1
        if any(batch <= done and batch < max(latest, done) for batch in readable):
            return BOOK.advise("repair")  # which reads again what comes after a finished batch
        return advise(put_back().or_(*BOOK.advise("asynchronous").steps))
    if checkpoint.stateful or (not committed and latest - 1 in checkpoint.commits):
        return BOOK.advise("repair_async_or_put_back")
    return None


def name_renamed(finding: Finding, checkpoint: Checkpoint) -> Finding:
    """Say of a missing file which file has its bytes, as the checksums that stayed prove, in place of other advice.

    Of an error in a file with added white space, that a repair takes that off.
    """
    added = checkpoint.respaced.get(finding.path)
    if added is not None and added.read and finding.diagnosis.severity is Severity.ERROR:
        detail = f"{finding.detail}; it has {added.what}"
        return replace(finding, detail=detail, advice=BOOK.advise("take_white_space_off"))
    if not checkpoint.renamed:
        return finding
    folder, slash, name = finding.path.rpartition("/")
    missing = f"{folder}{slash}{shown_name(name)}"
    advice = finding.advice or finding.diagnosis.advice
    steps = advice.all_steps() if advice is not None else ()
    from_copy = {path for step in steps if isinstance(step.do, Instruction) for path in step.do.paths}
    wanted = {missing, *from_copy}  # files, or folders of which some are missing
    lost = next((path for path in checkpoint.renamed if path in wanted or path.rpartition("/")[0] in from_copy), None)
    if lost is None:
        return finding
    other, here = checkpoint.renamed[lost], local_path(checkpoint.uri)
    detail = f"{finding.detail}; {other} has the content of {lost}, as {sidecar(lost)} proves"
    parts = {"lost": lost, "other": other}
    if here is None:
        return replace(finding, detail=detail, advice=BOOK.advise("renamed", **parts))
    source, target = (quote_path(f"{here.rstrip('/')}/{path}") for path in (other, lost))
    way = "renamed_and_gzipped" if other.endswith(GZIPPED) else "renamed_here"
    return replace(finding, detail=detail, advice=BOOK.advise(way, **parts, source=source, target=target))


def can_rewind(checkpoint: Checkpoint, batch: int) -> bool:
    """Tell whether by names `ckpt rewind` goes back to a batch."""
    stores = (store.readable_batches for _, store in checkpoint.stores())
    loadable = all(any(first <= batch <= last for first, last in ranges) for ranges in stores)
    there = batch == 0 or checkpoint.offsets.readable(batch - 1) is not None
    return loadable and there and batch in checkpoint.commits


def topic_switch_planned(checkpoint: Checkpoint, before: int | None, gone: str) -> Advice | None:
    """For a batch of another topic that was planned and not committed: a query with the old one leaves it out."""
    if before is None or not can_rewind(checkpoint, before):
        return None
    return BOOK.advise("topic_switch_planned", before=before, gone=gone)


def commit_planned(checkpoint: Checkpoint, query: str = "the query") -> Words:
    """For a planned batch that has to be committed first.

    With TTL, which is in processing time, a start with trigger availableNow may not end: each batch leads to another
    one that only looks for expired values (measured on 4.2.0). Other triggers run the planned batch at once, too.
    """
    if any(variable.ttl for operator in checkpoint.operators for variable in operator.variables):
        return BOOK.text("commit_planned_with_ttl", query=query, committed=f"{COMMITS}/{checkpoint.offsets.latest}")
    return BOOK.text("commit_planned", query=query)


def lost_state(checkpoint: Checkpoint) -> Callable[[str], Advice | None]:
    """For the paths of folders of state that are missing; None leaves it to the diagnosis.

    No batch has all of its state, so a handoff has to be told after which one a new query continues. Without the
    schemas of an operator, which are in partition 0, no row of it is read.
    """
    recorded = [log.metadata.conf for log in checkpoint.offsets.records.values() if log.metadata is not None]
    of_operators = (settings.SHUFFLE_PARTITIONS, settings.PROVIDER_CLASS)
    setting = next((name for name in of_operators if len({conf.get(name) for conf in recorded}) > 1), None)
    newest = next((batch for batch in reversed(checkpoint.commits.ids) if checkpoint.offsets.readable(batch)), None)
    has_schemas: dict[str, bool] = {}
    for operator, store in checkpoint.stores():
        has_schema = store.key_schema is not None or bool(store.column_families)
        readable = has_schema and bool(store.partitions)  # those with files: of the others nothing can be salvaged
        has_schemas[str(operator.id)] = readable and has_schemas.get(str(operator.id), True)

    @cache
    def advise_partition(*, salvages: bool, whole: bool) -> Advice:
        others = BOOK.advise("salvage").steps if salvages else ()
        if newest is not None:
            others = (*others, *BOOK.advise("hand_off_after", newest=newest).steps)
        if whole and is_of_one_host(checkpoint.uri):
            others = (*BOOK.advise("on_hosts").steps, *others)
        return advise(put_back().or_(*others, *BOOK.advise("new_checkpoint").steps))

    def advise_folder(path: str) -> Advice | None:
        if setting:
            return BOOK.advise("edited_or_moved", setting=setting)
        folders = path.split("/")
        if len(folders) < 3:
            return None  # nothing of the operator is left
        whole = len(folders) == 3 and not checkpoint.listing.has_folder(f"{path}/{SSTS}")
        return advise_partition(salvages=has_schemas.get(folders[1], False), whole=whole)

    return advise_folder


def moved(recorded: str, operator: int, checkpoint: Checkpoint) -> Advice | None:
    """For schemas that are recorded under another path; None where one of the two is not on this machine."""
    root = recorded.rpartition(f"/state/{operator}/_stateSchema/")[0]
    scheme, colon, path = root.partition(":")
    here = local_path(checkpoint.uri)
    if (colon and scheme != "file") or here is None:
        return None
    old = "/" + (path if colon else root).lstrip("/")
    above, there, old_path = map(quote_path, (old.rpartition("/")[0] or "/", here, old))
    return BOOK.advise("schemas_elsewhere", above=above, there=there, old=old_path)
