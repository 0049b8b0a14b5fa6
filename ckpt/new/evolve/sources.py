"""Matches the sources of a changed query with those of a checkpoint, and finds where a new one begins."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import unquote

from ckpt.advice import Words, words
from ckpt.changes.plan import NoWay
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import sources
from ckpt.checkpoint.sources.ends import parse_json
from ckpt.checkpoint.sources.file_logs import is_read_twice, name_folder, source_folder
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView, decode, kind_named, kind_of, parse_offset
from ckpt.errors import UsageError, one_line
from ckpt.formats.names import CompactibleLog, compactible_log
from ckpt.formats.sourcelogs import parse_source_log
from ckpt.model import Unreadable
from ckpt.new.evolve.book import BOOK, ask_old
from ckpt.query.compare_checkpoint import find_new_topics, is_given_name, next_watermark_of
from ckpt.query.compare_queries import Knowledge, drops_late_rows, find_worst
from ckpt.query.description import DescribedSource, QueryDescription
from ckpt.query.reader_options import has_pattern
from ckpt.storage import Storage
from ckpt.storage.locations import is_inside
from ckpt.texts import instant

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names that Spark takes (``DataStreamReader.name``)."""


class PartChange(StrEnum):
    """The change of a source or an operator from a checkpoint to a query."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"  # to another place
    RENAMED = "renamed"  # it got a name, lost it, or has another one
    REPLACED = "replaced"  # by another folder, topic or kind of source
    CHANGED = "changed"  # it keeps its state, in other columns


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A source or a stateful operator, in the checkpoint and in the query."""

    change: PartChange
    old: int | None  # its number in the checkpoint
    new: int | None  # its number in the query
    verdict: Knowledge
    why: str | Words


def pair_kept(changes: "Sequence[QueryChange]") -> dict[int, int]:
    """Give the old number of each source or operator of the query that is one of the checkpoint."""
    stays = (change for change in changes if change.change is not PartChange.REPLACED)
    return {change.new: change.old for change in stays if change.old is not None and change.new is not None}


@dataclass(frozen=True, slots=True)
class SourceChange(QueryChange):
    """One source, in the checkpoint and in the query."""

    start: str | None = None  # the offset after which a new source begins; None: where its reader options say
    ignores_log: bool = False  # it begins there although an earlier run left a log of it
    unread: bool = False  # no batch has planned rows of it
    left_log: str | None = None  # the folder of the log that an earlier run left, from which it continues

    @property
    def is_new(self) -> bool:
        """True if the query begins to read it."""
        return self.change in (PartChange.ADDED, PartChange.REPLACED)

    @property
    def is_gone(self) -> bool:
        """True if the query reads a source of the checkpoint no longer."""
        return self.change in (PartChange.REMOVED, PartChange.REPLACED)


class Unclear(NoWay):
    """Raised if a source of the query fits several of the checkpoint; ``reason`` is the text without the question."""

    def __init__(self, reason: Words, ask: Words) -> None:
        """Put the question after the reason."""
        super().__init__(words("{reason}: {ask}", reason=reason, ask=ask))
        self.reason = reason


def match_sources(
    checkpoint: Checkpoint, query: QueryDescription, mapped: Sequence[str] = (), starts: Mapping[str, str] | None = None
) -> tuple[SourceChange, ...]:
    """Match the sources of a query with those of a checkpoint, in the order of the query; those that left come last.

    ``mapped`` are ``OLD=NEW``, each a number or a name, or ``-`` for none; ``starts`` offsets by source of the query.
    Raises NoWay where two would fit, or a source is what ckpt does not know; UsageError for a wrong word.
    """
    there, newest = sources(checkpoint), checkpoint.offsets.newest
    assert newest is not None
    for source in query.sources:
        if source.name is not None and not _NAME.fullmatch(source.name):
            raise UsageError(f"{one_line(source.name)} is not a name that Spark accepts for a source")
    old_of, gone = _read_mapping(mapped, there, query.sources)
    for new, wants in enumerate(query.sources):
        if new not in old_of:
            taken = {*old_of.values(), *gone}
            old_of[new] = _find_old(wants, new, query.sources, [view for view in there if view.index not in taken])
    if is_read_twice(checkpoint.listing, newest) and [*old_of.items()] != [(view.index, view.index) for view in there]:
        raise NoWay(BOOK.text("evolve_one_reader"))
    seeds = {_find_number(name, query.sources, "the query"): text for name, text in (starts or {}).items()}
    left = {view.index for view in there} - {*old_of.values()}
    changes: list[SourceChange] = []
    for new, wants in enumerate(query.sources):
        old = old_of[new]
        if old is None:
            changes.append(_describe_new(wants, new, new if new in left else None, seeds.get(new)))
        elif new in seeds:
            raise UsageError(BOOK.text("evolve_continues", new=new, uri=checkpoint.uri, old=old))
        else:
            changes.append(_describe_kept(there[old], wants, new))
    left -= {new for new, old in old_of.items() if old is None}  # which are replaced
    why = "its offset is left out"
    changes += (SourceChange(PartChange.REMOVED, old, None, Knowledge.FULL, why) for old in sorted(left))
    unread = {view.index for view in there if view.offset is None}
    changes = [_judge_change(replace(change, unread=change.old in unread), checkpoint) for change in changes]
    watermark_ms = next_watermark_of(checkpoint)
    if not drops_late_rows(query, watermark_ms):
        return tuple(changes)
    views = {view.index: view for view in there}
    return tuple(_judge_late_rows(change, query, views, watermark_ms) for change in changes)


def _judge_late_rows(
    change: SourceChange, query: QueryDescription, there: Mapping[int, SourceView], watermark_ms: int
) -> SourceChange:
    """Say of rows that the query has not read yet that those older than the watermark are dropped."""
    has = None if change.old is None or change.is_new else there[change.old]
    more = frozenset[str]() if change.new is None else find_new_topics(query.sources[change.new], has)
    if not (change.is_new or more):
        return change
    what = f"of {', '.join(sorted(more))}" if more else "of it"
    why = BOOK.text("evolve_late_rows", why=change.why, what=one_line(what), watermark=instant(watermark_ms))
    return replace(change, verdict=find_worst((change.verdict, Knowledge.FROM_NOW_ON)), why=why)


def resume_sources(
    storage: Storage, checkpoint: Checkpoint, query: QueryDescription, changes: Sequence[SourceChange]
) -> Iterator[SourceChange]:
    """Continue a new source that was read once before, and left out for a while, where it stopped.

    Spark leaves its folder. With that log and no offset, the source would read every file of the log again. Raises
    StorageError.
    """
    for change in changes:
        if not change.is_new or change.start is not None or change.ignores_log or change.new is None:
            yield change
            continue
        wants, folder = query.sources[change.new], name_folder(change.new, query.sources[change.new].name)
        text = _find_last_offset(checkpoint, wants.name)
        if wants.kind == SourceType.FILE:
            log = compactible_log(checkpoint.listing.in_folder(folder))
            files, path = _read_last_files(storage, folder, log), wants.path
            inside = path is not None and bool(files) and all(is_inside(unquote(file), path) for file in files)
            text = (text or f'{{"logOffset":{log.latest}}}') if inside and _is_left(checkpoint, folder) else None
        elif text is not None and wants.topics is not None:
            offset = parse_offset(text.encode())
            text = None if kind_of(offset).find_topics(offset) - set(wants.topics) else text
        if text is None:
            yield change
        else:
            why = BOOK.text("evolve_read_before", offset=one_line(text), start={str(change.new): "null"})
            yield replace(change, start=text, left_log=folder, why=why)


def _find_last_offset(checkpoint: Checkpoint, name: str | None) -> str | None:
    """Find the newest offset of a name that the newest offsets lack."""
    logs = (checkpoint.offsets.readable(batch) for batch in reversed(checkpoint.offsets.ids))
    lines = (source for log in logs if log is not None and name is not None for source in log.sources)
    return next((line.text for line in lines if line.name == name and line.text is not None), None)


def _is_left(checkpoint: Checkpoint, folder: str) -> bool:
    newest = checkpoint.offsets.newest
    number = len(newest.sources) if newest else 0
    return folder not in {source_folder(checkpoint.listing, newest, index) for index in range(number)}


def _read_last_files(storage: Storage, folder: str, log: CompactibleLog) -> tuple[str, ...]:
    if log.latest is None or log.interval <= 0:
        return ()
    path = f"{folder}/{log.name_of(log.latest)}"
    entries = parse_source_log(path, storage.read(path))
    return () if isinstance(entries, Unreadable) else tuple(file.path for file in entries)


def _find_number(word: str, sources: Sequence[SourceView | DescribedSource], where: str | Words) -> int:
    names = [source.name for source in sources]
    if word in names:
        return names.index(word)
    if word.isascii() and word.isdecimal() and int(word) < len(names):
        return int(word)
    parts = {"word": one_line(word), "count": len(names)}
    raise UsageError.of("{where} has no source {word}; it has {count}, from 0 on", where=where, **parts)


def _read_mapping(
    mapped: Sequence[str], there: Sequence[SourceView], wanted: Sequence[DescribedSource]
) -> tuple[dict[int, int | None], set[int]]:
    """Read ``OLD=NEW``: the old source of each new one, and old ones that leave. Raises UsageError, NoWay."""
    old_of: dict[int, int | None] = {}
    gone: set[int] = set()
    for word in mapped:
        has, _, wants = word.rpartition("=")
        if not (has and wants):
            raise UsageError.of("{--map-source}: write it as OLD=NEW, numbers or names of sources; - is none")
        old = None if has == "-" else _find_number(has, there, words("{--map-source}: the checkpoint"))
        if wants == "-":
            gone |= set() if old is None else {old}
            continue
        new = _find_number(wants, wanted, "the query")
        if new in old_of or (old is not None and old in old_of.values()):
            raise UsageError.of("{--map-source} names source {new} of the query, or its old one, twice", new=new)
        old_of[new] = old
        if old is not None:
            _check_pair(there[old], wanted[new], new)
    return old_of, gone


def _check_pair(has: SourceView, wants: DescribedSource, new: int) -> None:
    """Refuse to continue from an offset that the new source cannot read. Raises NoWay."""
    if has.offset is not None and has.type != SourceType.UNKNOWN and has.type != wants.kind:
        raise NoWay(f"source {new} of the query is {wants.kind}, source {has.index} of the checkpoint {has.type}")
    lost = has.topics - set(wants.topics) if wants.topics is not None else frozenset()
    if lost:
        parts = {"lost": one_line(", ".join(sorted(lost))), "index": has.index, "map_source": f"-={new}"}
        raise NoWay(BOOK.text("evolve_topics_lost", new=new, **parts))


def _find_old(
    wants: DescribedSource, new: int, wanted: Sequence[DescribedSource], free: Sequence[SourceView]
) -> int | None:
    """Find the source of the checkpoint from which one of the query continues; None: it is new. Raises NoWay."""
    if wants.name is not None and any(view.name == wants.name for view in free):
        named = next(view for view in free if view.name == wants.name)
        return named.index if _may_be(named, wants) else None
    read = [view for view in free if view.offset is not None]  # where it is not, it is as good as new
    names = {source.name for source in wanted} - {None}
    fitting = [view for view in read if _may_be(view, wants) and view.name not in names]
    certain = [view for view in fitting if _is_certain(view, wants)]
    if len(certain) == 1:
        return certain[0].index
    alike = [number for number, other in enumerate(wanted) if any(_may_be(view, other) for view in fitting)]
    if len(certain or fitting) == 1 and alike == [new]:
        return (certain or fitting)[0].index
    if not fitting:
        return next((view.index for view in free if view.offset is None and view.index == new), None)
    numbers = ", ".join(str(view.index) for view in fitting)
    reason = BOOK.text("evolve_which_source", new=new, kind=wants.kind, numbers=numbers)
    raise Unclear(reason, ask_old("map_source", new))


def _may_be(has: SourceView, wants: DescribedSource) -> bool:
    """Tell whether a source may be the one of the checkpoint, by its kind, topics and folder."""
    if has.offset is not None and has.type not in (wants.kind, SourceType.UNKNOWN):
        return False
    if wants.topics is not None and has.topics - set(wants.topics):
        return False
    return not (has.kind.reads_files and has.files and wants.path is not None) or _reads_in(has, wants.path)


def _is_certain(has: SourceView, wants: DescribedSource) -> bool:
    """Tell whether its topics or its folder show that a source is the one of the checkpoint."""
    if has.topics and wants.topics is not None:
        return has.topics <= set(wants.topics)
    return bool(has.files) and wants.path is not None and "*" not in wants.path and _reads_in(has, wants.path)


def _reads_in(has: SourceView, folder: str) -> bool:
    return has_pattern(folder) or all(is_inside(unquote(path), folder) for path in has.files)


def _describe_kept(has: SourceView, wants: DescribedSource, new: int) -> SourceChange:
    change = PartChange.SAME
    if has.index != new and not (has.name and has.name == wants.name):
        change = PartChange.MOVED
    if wants.name != (has.name if is_given_name(has.name) else None):
        change = PartChange.RENAMED
    return SourceChange(change, has.index, new, Knowledge.FULL, "continues from its current position")


def _judge_change(change: SourceChange, checkpoint: Checkpoint) -> SourceChange:
    """Say of a source that leaves a query with state that its rows stay in it."""
    if not change.is_gone or change.unread or checkpoint.stateful is False:
        return change
    what = "the old source" if change.is_new else "it"
    why = words("{why}; rows of {what} in the state cannot be removed", why=change.why, what=what)
    return replace(change, verdict=Knowledge.IMPOSSIBLE, why=why)


def _judge_start(wants: DescribedSource) -> tuple[Knowledge, str]:
    """Tell which rows a new source begins with, by the options of its reader."""
    if wants.kind not in (SourceType.KAFKA, SourceType.DELTA):
        known = wants.kind in (SourceType.FILE, SourceType.RATE, SourceType.RATE_MICRO_BATCH)
        return Knowledge.FULL if known else Knowledge.UNKNOWN, "starts where its reader options say"
    if wants.schema is None:  # a description that does not have the options
        return Knowledge.UNKNOWN, "starts where its reader options say"
    begins = ", ".join(f"{name}={one_line(value)}" for name, value in wants.start.items())
    if wants.kind == SourceType.KAFKA:
        begins = "" if begins == "startingoffsets=earliest" else begins or "startingoffsets=latest, the default"
    if begins:
        return Knowledge.FROM_NOW_ON, f"starts where its reader options say ({begins})"
    return Knowledge.FULL, "starts with its first row"


def _describe_new(wants: DescribedSource, new: int, replaced: int | None, seed: str | None) -> SourceChange:
    change = PartChange.ADDED if replaced is None else PartChange.REPLACED
    verdict, why = _judge_start(wants)
    if seed is None:
        return SourceChange(change, replaced, new, verdict, why)
    what = words("{--start} {new}", new=new)
    kind, value = kind_named(wants.kind), parse_json(seed, what)
    if value is None:
        return SourceChange(change, replaced, new, verdict, why, ignores_log=True)
    if kind.reads_files or not kind.settable:
        raise UsageError.of(
            "{what}: a {kind} source cannot be given a position: it starts where its reader options say",
            what=what,
            kind=wants.kind,
        )
    end = kind.parse_end(value, what)
    topics = kind.find_topics(decode(end.value))
    if wants.topics is not None and topics - set(wants.topics):
        raise UsageError.of("{what} has a topic to which the source does not subscribe", what=what)
    why = "only knows rows after its start"
    return SourceChange(change, replaced, new, Knowledge.FROM_NOW_ON, why, start=end.text)
