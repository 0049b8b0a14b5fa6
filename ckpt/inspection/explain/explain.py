"""The call behind ``ckpt explain``: what is known of a text, and whether a checkpoint shows it."""

import codecs
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from io import BytesIO
from itertools import chain
from typing import Annotated, BinaryIO
from urllib.parse import unquote

from ckpt.advice import Advice, Call, Known
from ckpt.checkpoint.checkpoint import SOURCES, Checkpoint
from ckpt.checkpoint.reader import open_to_look
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.unknown import NumberOffset
from ckpt.checkpoint.state.folders import STATE
from ckpt.inspection.explain.catalog import KnownError, catalog, list_calls
from ckpt.inspection.explain.forms import clean, unwrap
from ckpt.inspection.explain.search import Hit, Search
from ckpt.inspection.inspection import Inspection, RatedFinding, inspect
from ckpt.model import Location
from ckpt.settings import PROVIDER_CLASS
from ckpt.texts import mask_secrets, span
from ckpt.values import Value

_MOST = 3
_FEWEST = 4  # words that have to be the same
_SHARE = 0.7  # of the words of a message, each with a weight: the fewer messages have it, the more it says
_SCATTERED = 3  # times as many words of a line as of the message
_WORD = re.compile(r"[A-Za-z][A-Za-z']+(?:\.[A-Za-z]+)*")
_PATH = re.compile(r"[^\s\"']*[/\\][^\s\"']*")  # its names are no words of a message
_GAP = re.compile(r"\{\w*\}")
_THROWN = re.compile(r".+(?:exception|error)")


@dataclass(frozen=True, slots=True)
class NearError:
    """A known error that a line resembles, which is no answer."""

    error: KnownError
    why: Annotated[str, "shared words or classes; for people, its words are not fixed"]


def find_nearest(line: str) -> tuple[NearError, ...]:
    """The errors whose message has most words in the same order.

    >>> from ckpt.inspection.explain.explain import find_nearest
    >>> [near.why for near in find_nearest("streaming state file of the store does not exist")]
    ['6 of the 7 words of "Error reading streaming state file of {} does not exist"']
    >>> find_nearest("ERROR: relation does not exist")
    ()
    """
    line_words = _split_words(line)
    ranked = []
    for error, text, words in _list_messages():
        same = _find_in_order(words, line_words)
        if len(same) >= _FEWEST and (share := _weigh(same) / _weigh(words)) >= _SHARE:
            ranked.append((share, NearError(error, f'{len(same)} of the {len(words)} words of "{text}"')))
    nearest: dict[str, NearError] = {}
    for _, near in sorted(ranked, key=lambda pair: -pair[0]):
        nearest.setdefault(near.error.id, near)
    return tuple(nearest.values())[:_MOST]


def _find_in_order(words: tuple[str, ...], line_words: tuple[str, ...]) -> list[str]:
    """Return the words that stand in the line in the message's order, not scattered, together with the thrown class."""
    missing = set(words) - set(line_words)
    if len(words) - len(missing) < _FEWEST or any(map(_THROWN.fullmatch, missing)):
        return []
    blocks = SequenceMatcher(None, words, line_words, autojunk=False).get_matching_blocks()[:-1]
    length = blocks[-1].b + blocks[-1].size - blocks[0].b
    return [] if length > _SCATTERED * len(words) else [word for at in blocks for word in words[at.a : at.a + at.size]]


def _weigh(words: Iterable[str]) -> float:
    return sum(1 / _count_words()[word] for word in words)


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_PATH.sub(" ", text).lower()))


@cache
def _list_messages() -> tuple[tuple[KnownError, str, tuple[str, ...]], ...]:
    """Each message that can be resembled, long enough and not known by a path, of one cause: entry, message, words."""
    errors = (error for error in catalog() if not error.broad and error.twin is None)
    texts = ((error, text) for error in errors for text in error.says if not _PATH.search(text))
    split = ((error, text, _split_words(_GAP.sub(" ", text))) for error, text in texts)
    return tuple(message for message in split if len(message[2]) >= _FEWEST)


@cache
def _count_words() -> Counter[str]:
    return Counter(word for _, _, words in _list_messages() for word in set(words))


_LONGEST = 2000  # characters of a line in which paths, batches and exceptions are looked for
_FOLDER = re.compile(r"((?:[a-z][a-z0-9+.-]{0,20}:)?/[^\s'\",;()\[\]]+)/(?:offsets|commits|state|sources|metadata)\b")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]{0,20}:")
_BATCH = re.compile(r"\bbatch(?:Id| id)?[ =:]{1,3}(\d{1,18})\b|/(?:offsets|commits)/(\d{1,18})\b")
_SHOWN = 500  # characters of a line
_WRAPPED = "terminated with exception: "
_NOT_FOUND = "java.lang.ClassNotFoundException: "
_LOADER = "org.apache.spark.sql.execution.streaming.state.StateStoreProvider$.create"
_JAVA_CLASS = re.compile(r"(?:[A-Za-z_][\w$]*\.)+[A-Za-z_][\w$]*")
_EXCEPTION = re.compile(r"(?:(?<=: )|^)(?:[A-Za-z_][\w$]*\.)*[A-Z]\w*(?:Exception|Error)(?=: |:?\s*$)")


@dataclass(frozen=True, slots=True)
class ErrorMatch:
    """A known error that a text holds."""

    error: KnownError
    matched: Annotated[str, "the line that shows it, without secrets, at most 504 characters"]
    times: Annotated[int, "how many lines show it"]
    innermost: Annotated[
        str | None,
        "for an error that only says that other code failed: the line of the innermost cause, without secrets, at most "
        "504 characters; null if the text has none",
    ]
    cure: Advice  # as of the error, with the checkpoint's location where one was given
    command: Call | None  # the same
    shown: tuple[RatedFinding, ...]  # findings of the checkpoint that are of its codes


@dataclass(frozen=True, slots=True)
class Explanation(Value):
    """The known errors in a text; without a match, what comes near it, which is no answer."""

    matches: tuple[ErrorMatch, ...]  # the cause first
    seen: str  # the line that was taken for the error: what was thrown last, or the first line
    nearest: tuple[NearError, ...]  # none where something matches
    inspection: Inspection | None
    contradictions: tuple[str, ...] = ()  # what the text says of another query, path or batch than the checkpoint's


def explain(
    text: str | BinaryIO,
    *,
    checkpoint: Location | Inspection | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Explanation:
    """Find the cause in an error message, a traceback or a whole driver log of any size. Works offline.

    A code of a finding, such as CKPT411, is explained too.

    Args:
        text: The text, or a binary file with it, which may be compressed by gzip.
        checkpoint: The query's checkpoint, to find out which of its findings cause the error: a path, a URI, a
            ``Checkpoint``, or the result of ``inspect``.
        storage_options: For the file system of the checkpoint.

    Raises:
        OSError: the file cannot be read.
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> found = ckpt.explain("java.lang.IllegalStateException: batch 4 doesn't exist")
    >>> found.matches[0].error.title, found.matches[0].error.codes
    ('The offsets of an earlier batch are missing', ('CKPT201', 'CKPT202', 'CKPT403', 'CKPT407'))
    >>> ckpt.explain("java.lang.IllegalStateException: it does not work").matches
    ()
    """
    inspection = (
        checkpoint
        if checkpoint is None or isinstance(checkpoint, Inspection)
        else inspect(open_to_look(checkpoint, storage_options, batches=10))
    )
    if isinstance(text, str) and (provider := _find_provider(text, inspection)) is not None:
        text = f"{_NOT_FOUND}{provider}\n\tat {_LOADER}"
    search = _search(text, None if inspection is None else inspection.checkpoint.query_id)
    hits = [hit for hit in search.found() if inspection is None or _may_say(hit.error, inspection.checkpoint)]
    thrown = search.thrown[1] if search.thrown else ""
    matches = _put_likelier_first(tuple(_match(hit, thrown, inspection) for hit in hits), inspection)
    line = thrown or search.first
    message = _shorten(line)
    near = () if matches else find_nearest(message)
    if inspection is None:
        return Explanation(matches, message, near, None)
    elsewhere = _find_contradictions(hits[0].line if hits else line, search.queries, inspection.checkpoint)
    return Explanation(matches, message, near, inspection, tuple(map(mask_secrets, elsewhere)))


def _search(text: str | BinaryIO, query: str | None) -> Search:
    """Search a text; one of a screen, whose lines are perhaps cut at its edge, joined as well if that says more."""
    search = Search(query)
    first: list[str] | None = None
    chunks = 0
    for lines in read_chunks(text):
        search.add(lines)
        first, chunks = lines, chunks + 1
    if first is None or chunks > 1 or len(first) == 1 or any(not hit.error.broad for hit in search.found()):
        return search
    for spaces in (False, True):
        joined = Search(query)
        joined.add(unwrap(first, spaces=spaces))
        if any(not hit.error.broad or not search.hits for hit in joined.found()):
            return joined
    return search


def _find_provider(text: str, inspection: Inspection | None) -> str | None:
    """Find a state store provider that is the whole message: Spark says no more of a class that is not there."""
    name = text.strip().rpartition(_WRAPPED)[2].removeprefix(_NOT_FOUND)
    if len(name) > _LONGEST or not _JAVA_CLASS.fullmatch(name):
        return None
    recorded = inspection.checkpoint.conf.get(PROVIDER_CLASS) if inspection is not None else None
    return name if name == recorded or name.endswith("Provider") else None


def _may_say(error: KnownError, checkpoint: Checkpoint) -> bool:
    """Tell whether a query of the checkpoint can have raised an error; what is not known does not speak against it."""
    names = {operator.name for operator in checkpoint.operators}
    named = bool(names) and None not in names and "any" not in error.keeps
    if error.keeps and (checkpoint.stateful is False or (named and names.isdisjoint(error.keeps))):
        return False
    if not error.reads:
        return True
    from ckpt.checkpoint.history import sources

    views, folders = sources(checkpoint), checkpoint.listing.folders
    alone = {view.index for view in views if isinstance(view.record, NumberOffset)}  # a socket keeps no log
    kinds = {str(view.type) for view in views if view.index not in alone or f"{SOURCES}/{view.index}" in folders}
    return not views or SourceType.UNKNOWN in kinds or not kinds.isdisjoint(error.reads)


def _match(hit: Hit, thrown: str, inspection: Inspection | None) -> ErrorMatch:
    error, line = hit.error, _shorten(hit.line)
    innermost = _shorten(_cut_to_cause(mask_secrets(hit.innermost or thrown))) if error.wraps else ""
    innermost = innermost if innermost != line else ""
    if inspection is None:
        return ErrorMatch(error, line, hit.times, innermost or None, error.cure, error.command, ())
    known = _list_known(error, inspection.checkpoint)
    shown = tuple(rated for rated in inspection.findings if rated.code in error.codes)
    command = error.command and error.command.fill(known)
    return ErrorMatch(error, line, hit.times, innermost or None, error.cure.fill(known), command, shown)


def _cut_to_cause(line: str) -> str:
    """Cut a line that wraps one exception in the words of another to the last of them."""
    text = line.rpartition(_WRAPPED)[2]
    return text[max((match.start() for match in _EXCEPTION.finditer(text[:_LONGEST])), default=0) :].strip()


def _put_likelier_first(matches: tuple[ErrorMatch, ...], inspection: Inspection | None) -> tuple[ErrorMatch, ...]:
    """Of the causes of one text, put first what the checkpoint shows, then what no checkpoint can show."""
    if inspection is None:
        return matches
    texts = [match.error.twin or match.error.id for match in matches]

    def rank(match: ErrorMatch) -> tuple[int, int]:
        text = texts.index(match.error.twin or match.error.id)
        return text, 0 if match.shown else 1 if not match.error.codes else 2

    return tuple(sorted(matches, key=rank))


def _list_known(error: KnownError, checkpoint: Checkpoint) -> Known:
    """List what fills the blanks of an error: the location, and the options that asking the sources needs."""
    uri = checkpoint.uri.rstrip("/") or checkpoint.uri
    calls = (*list_calls(error.cure), error.command)
    if not any(call is not None and "sources" in dict(call.options) for call in calls):
        return Known(uri)
    from ckpt.live.asking import list_missing_options  # what asks nobody imports nothing of it

    return Known(uri, source_options=list_missing_options(checkpoint))


def _shorten(line: str) -> str:
    """A line as a report shows it; masked before it is cut, which could hide that something is a secret."""
    text = mask_secrets(line.strip())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."


def _find_contradictions(line: str, queries: Iterable[str], checkpoint: Checkpoint) -> Iterator[str]:
    """List what the text says of another query, checkpoint or batch than this one: sentences without a full stop.

    ``line`` says the error, ``queries`` are the ids of those that ended in the text.
    """
    line = line[:_LONGEST]
    named = sorted(set(queries))
    if named and checkpoint.query_id is not None and checkpoint.query_id not in named:
        yield f"the text belongs to query {' or '.join(named[:3])}, this checkpoint to {checkpoint.query_id}"
    folders = dict.fromkeys(_FOLDER.findall(line))
    moved = checkpoint.state.moved_schemas if checkpoint.state else ()
    locations = (checkpoint.uri, *(path.rpartition(f"/{STATE}/")[0] for path in moved))
    if folders and not any(_may_be_same(folder, location) for folder in folders for location in locations):
        yield f"the text names {next(iter(folders))}, which is another path"
    batches, here = {int(number or other) for number, other in _BATCH.findall(line)}, checkpoint.offsets.ids
    if batches and here and not any(min(here) - 1 <= batch <= max(here) + 1 for batch in batches):
        yield f"the text names batch {min(batches)}, but offsets/ here has {span('batch', min(here), max(here))}"


def _may_be_same(folder: str, uri: str) -> bool:
    """Tell whether two spellings may be of one folder: one of them can have a host or a mount in front."""
    parts = _split_path(folder)
    spellings = (uri, *map(os.path.abspath, (uri, os.path.realpath(uri)))) if ":" not in uri else (uri,)
    return any(parts[-len(other) :] == other[-len(parts) :] for other in map(_split_path, spellings) if other)


def _split_path(path: str) -> list[str]:
    """A path, or a URI with its host, without its scheme."""
    return [unquote(part) for part in _SCHEME.sub("", path).split("/") if part not in ("", ".")]


_CHUNK = 1 << 20
_LONGEST_READ = 1 << 16  # characters of a line that are searched for errors
_GZIP = b"\x1f\x8b"
_OF_GZIP = 31  # the wbits of zlib for data in gzip format
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # how PowerShell writes what it redirects
_BLANK = re.compile(r"\n[ \t\r\n]*\n")


def read_chunks(source: str | BinaryIO) -> Iterator[list[str]]:
    """The lines of a text, or of a file that may be compressed by gzip, about a mebibyte at a time; few blank ones.

    A file is UTF-8, or UTF-16 with a byte order mark. Raises OSError, also where the compressed data is damaged.
    """
    stream = BytesIO(source.encode("utf-8", "replace")) if isinstance(source, str) else source
    held = b""
    for block in _recode(_read_blocks(stream)):
        held += block
        if len(held) >= _CHUNK:
            complete, end, held = held.rpartition(b"\n")
            if end:
                yield _split_lines(complete)
            held = held[:_CHUNK]  # of a line that does not end, only the beginning is kept
    if held:
        yield _split_lines(held)


def _recode(blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(blocks, b"")
    if not first.startswith(_UTF_16):
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in chain((first,), blocks):
        yield decoder.decode(block).encode("utf-8", "replace")


def _read_blocks(stream: BinaryIO) -> Iterator[bytes]:
    block = stream.read(_CHUNK)
    packed = block.startswith(_GZIP)
    member, whole = zlib.decompressobj(_OF_GZIP), True
    while block:
        if packed:
            try:
                yield member.decompress(block, _CHUNK)
            except zlib.error as error:
                raise OSError("its compressed data is damaged") from error
            block = member.unconsumed_tail or member.unused_data
            whole = member.eof
            if whole:
                member = zlib.decompressobj(_OF_GZIP)
        else:
            yield block
            block = b""
        block = block or stream.read(_CHUNK)
    if not whole:
        raise OSError("its compressed data ends early")


def _split_lines(raw: bytes) -> list[str]:
    return [line[:_LONGEST_READ] for line in clean(_BLANK.sub("\n", raw.decode("utf-8", "replace")))]
