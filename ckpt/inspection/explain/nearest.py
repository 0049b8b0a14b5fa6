"""Known errors near to a line that none explains: shown only where much of a message is the same."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from ckpt.inspection.explain.catalog import KnownError, catalog

_SHOWN = 3
_FEWEST = 4  # words that have to be the same
_SHARE = 0.7  # of the words of a message, each with a weight: the fewer messages have it, the more it says
_SCATTERED = 3  # times as many words of a line as of the message
_WORD = re.compile(r"[A-Za-z][A-Za-z']+(?:\.[A-Za-z]+)*")
_PATH = re.compile(r"[^\s\"']*[/\\][^\s\"']*")  # its names are no words of a message
_GAP = re.compile(r"\{\w*\}")
_THROWN = re.compile(r".+(?:exception|error)")
_CLASS = re.compile(r"\[([A-Z][A-Z0-9_]{5,99})[.\]]")


@dataclass(frozen=True, slots=True)
class NearError:
    """A known error that a line resembles, which is no answer."""

    error: KnownError
    why: str  # what is the same: words for people


def find_nearest(line: str) -> tuple[NearError, ...]:
    """The errors whose error class has the same main class, or whose message has most words in the same order.

    >>> from ckpt.inspection.explain.nearest import find_nearest
    >>> [near.why for near in find_nearest("streaming state file of the store does not exist")]
    ['6 of the 7 words of "Error reading streaming state file of {} does not exist"']
    >>> find_nearest("ERROR: relation does not exist")
    ()
    """
    candidates = [*_find_by_class(line), *_find_by_words(line)]
    first = {near.error.id: near for near in reversed(candidates)}
    return tuple(near for near in candidates if first[near.error.id] is near)[:_SHOWN]


def _find_by_class(line: str) -> Iterator[NearError]:
    """Only where few entries share the class: one of many sub classes says nothing of the others."""
    for name in dict.fromkeys(_CLASS.findall(line)):
        same = [error for error in catalog() if name in {known.partition(".")[0] for known in error.classes}]
        if len(same) <= _SHOWN:
            yield from (NearError(error, f"the same error class {name}, another part of it") for error in same)


def _find_by_words(line: str) -> Iterator[NearError]:
    line_words = _split_words(line)
    ranked = []
    for error, text, words in _list_messages():
        same = _find_in_order(words, line_words)
        share = _weigh(same) / _weigh(words)
        if len(same) >= _FEWEST and share >= _SHARE:
            ranked.append((share, NearError(error, f'{len(same)} of the {len(words)} words of "{text}"')))
    yield from (near for _, near in sorted(ranked, key=lambda pair: -pair[0]))


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
    """Each message that can be resembled, long enough and not known by a path: entry, message, words."""
    texts = ((error, text) for error in catalog() for text in error.says if not _PATH.search(text))
    split = ((error, text, _split_words(_GAP.sub(" ", text))) for error, text in texts)
    return tuple(message for message in split if len(message[2]) >= _FEWEST)


@cache
def _count_words() -> Counter[str]:
    """In how many messages each word is."""
    return Counter(word for _, _, words in _list_messages() for word in set(words))
