"""Changes of the sources of a query, and what a checkpoint has to be given for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ckpt.query.description import DescribedOperator, DescribedSource, QueryDescription
from ckpt.versions import Spark
from tests.new.evolve.running import tag_of


@dataclass(frozen=True)
class Base:
    """An old query: its sources, and what each gets before each of its starts, which differs by source."""

    name: str
    words: tuple[str, ...]
    shape: str = "agg"
    runs: tuple[tuple[str, ...], ...] = ()
    planned: bool = False  # the last batch fails
    waiting: tuple[str, ...] = ("c", "c")  # what sources have that it does not read
    conf: tuple[tuple[str, str], ...] = ()  # at each start
    left_out: tuple[str, ...] = ()  # the sources of later starts, which leave some out
    left_out_runs: tuple[tuple[str, ...], ...] = ()

    @property
    def job(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    name: str
    base: Base
    words: tuple[str, ...]
    in_place: bool = False
    map_source: tuple[str, ...] = ()
    start: tuple[tuple[str, str], ...] = ()
    begins: tuple[tuple[str, int], ...] = ()  # how many ids of a source come before its start
    refused: str | None = None  # words of the refusal
    since: str = "3.5"
    needs: str = ""
    shape: str | None = None  # of the changed query, where it is another one
    store: str = "hdfs"
    from_now_on: bool = False  # rows that came before the change are not in what it puts out
    options: dict[str, dict[str, str]] = field(default_factory=dict, hash=False)

    def query(
        self, minor: str, inputs: str, topics: dict[str, str], operators: tuple[DescribedOperator, ...] | None
    ) -> QueryDescription:
        """Describe the changed query; without operators they are those of the old one."""
        sources = tuple(_describe(word, inputs, topics) for word in self.words)
        unplanned = "not planned here" if operators is None else None
        return QueryDescription(Spark(minor), "update", sources, operators, None, unplanned, {})

    @property
    def runs(self) -> list[list[str]]:
        """Return the sources that get rows before each start of the changed query; not the same ones each time."""
        tags = [tag_of(word) for word in self.words]
        return [tags, tags[:1], [*tags[1:], *tags]]


def _describe(word: str, inputs: str, topics: dict[str, str]) -> DescribedSource:
    tag, _, name = word.partition("@")
    if tag[0] == "r":
        return DescribedSource("rate-micro-batch", name=name or None)
    if tag[0] == "k":
        topic = topics.get(tag, f"{tag}-of-another-name")
        return DescribedSource("kafka", (topic,), name=name or None)
    if tag[0] in "di":
        return DescribedSource({"d": "delta", "i": "iceberg"}[tag[0]], name=name or None)
    return DescribedSource("file", path=f"{inputs}/{tag}", name=name or None)


def list_bases(words: tuple[str, ...], label: str, shapes: tuple[str, ...] = ("agg", "rows")) -> Iterator[Base]:
    tags = tuple(map(tag_of, words))
    uneven = (tags, tags[:1], (*tags[-1:], *tags))
    for shape in shapes:
        yield Base(f"{label} {shape}", words, shape, uneven)
        yield Base(f"{label} {shape} planned", words, shape, (*uneven, tags), planned=True)


_FILES = (
    ("add end", ("a", "b", "c")),
    ("add middle", ("a", "c", "b")),
    ("add first", ("c", "a", "b")),
    ("reorder", ("b", "a")),
    ("remove end", ("a",)),
    ("remove first", ("b",)),
    ("other folder", ("a", "c")),
    ("other folder first", ("c", "b")),
    ("other kind", ("a", "r")),
    ("add rate", ("a", "b", "r")),
    ("add rate first", ("r", "a", "b")),
    ("reorder and add", ("c", "b", "a")),
    ("remove and add", ("c", "b", "r")),
    ("same", ("a", "b")),
)
_ONE = (("one to two", ("a", "c")), ("one to two, first", ("c", "a")), ("one to three", ("r", "a", "c")))
_RATES = (
    ("rate: remove rate", ("a",), ()),
    ("rate: remove file", ("r",), ()),
    ("rate: reorder", ("r", "a"), ()),
    ("rate: add another", ("a", "r", "r2"), ("1=1", "-=2")),
    ("rate: add another first", ("r2", "a", "r"), ("1=2", "-=0")),
    ("rate: another from its start", ("a", "r2"), ("-=1",)),
    ("rate: seeded", ("a", "r", "r2"), ("1=1", "-=2")),
)
_GONE = "would never be read"
_NAMES = ("a@alpha", "b@beta")
_NAMED = (
    ("renamed", ("a@alef", "b@beta"), ("alpha=alef",)),
    ("names swapped", ("a@beta", "b@alpha"), ("0=0", "1=1")),
    ("other folder under the name", ("c@alpha", "b@beta"), ()),
    ("names taken away", ("a", "b"), ()),
    ("names taken away, reordered", ("b", "a"), ()),
    ("names taken away, added", ("c", "a", "b"), ()),
    ("names: added", ("c@gamma", "b@beta", "a@alpha"), ()),
    ("names: removed", ("b@beta",), ()),
)
_TO_NAMES = (
    ("names given", ("a@alpha", "b@beta")),
    ("names given, reordered", ("b@beta", "a@alpha")),
    ("names given, added", ("c@gamma", "a@alpha", "b@beta")),
)


def find_refusal(base: Base, words: tuple[str, ...]) -> str | None:
    """A source that leaves beside a planned batch is refused."""
    gone = {tag_of(word) for word in base.words} - {tag_of(word) for word in words}
    return _GONE if base.planned and gone else None


def _cases_of_files() -> Iterator[Case]:
    for base in list_bases(("a", "b"), "two files"):
        for label, words in _FILES:
            yield Case(f"{base.name}: {label}", base, words, refused=find_refusal(base, words))
            if base.shape == "rows":
                yield Case(f"{base.name}: {label}, in place", base, words, True, refused=find_refusal(base, words))
        for label, words in _TO_NAMES:
            yield Case(f"{base.name}: {label}", base, words, base.shape == "rows", since="4.2")
    for base in list_bases(("a",), "one file"):
        for label, words in _ONE:
            yield Case(f"{base.name}: {label}", base, words)
    first = Base("one batch", ("a",), "agg", (("a",),))
    yield Case("only batch 0: add", first, ("a", "c"))
    yield Case("only batch 0: add, in place", first, ("c", "a"), True)
    planned = Base("batch 0 planned", ("a",), "agg", (("a",),), planned=True)
    yield Case("batch 0 planned: add, in place", planned, ("a", "c"), True)


def _cases_of_rates() -> Iterator[Case]:
    for base in list_bases(("a", "r"), "file and rate"):
        for label, words, mapped in _RATES:
            seeded = label.endswith("seeded")
            start = (("2", '{"offset":20,"timestamp":5000}'),) if seeded else ()
            begins = (("r2", 20),) if seeded else ()
            refused = find_refusal(base, words)
            yield Case(f"{base.name}: {label}", base, words, False, mapped, start, begins, refused)


def _cases_of_two_rates() -> Iterator[Case]:
    """Rates whose options are not in ``query.json``: Spark starts swapped ones, and each goes on as the other."""
    base = next(list_bases(("r", "r7"), "two rates", ("agg",)))
    ask = "no file says which: map it with `map_source"
    for label, words, mapped in (
        ("swapped", ("r7", "r"), ("1=0", "0=1")),
        ("one more first", ("a", "r", "r7"), ("0=1", "1=2")),
        ("one more between, swapped", ("r7", "a", "r"), ("1=0", "0=2")),
        ("one less", ("r7",), ("1=0",)),
    ):
        yield Case(f"{base.name}: {label}", base, words, False, mapped)
        yield Case(f"{base.name}: {label}, not told", base, words, refused=ask)


def _cases_of_names() -> Iterator[Case]:
    for base in list_bases(_NAMES, "names"):
        for label, words, mapped in _NAMED:
            refused = find_refusal(base, words)
            yield Case(f"{base.name}: {label}", base, words, base.shape == "rows", mapped, refused=refused, since="4.2")
    away = (("b",), ("b", "b"))
    left = Base("names, one left out", _NAMES, "rows", (("a", "b"), ("a",)), left_out=("b@beta",), left_out_runs=away)
    yield Case("names: removed, added again", left, _NAMES, since="4.2")
    yield Case("names: removed, added again, in place", left, _NAMES, True, since="4.2")


def _cases_of_numbers() -> Iterator[Case]:
    conf = (("spark.sql.streaming.offsetLog.formatVersion", "2"),)
    for base in list_bases(("a", "b"), "offset log v2", ("agg",)):
        numbered = replace(base, conf=conf)
        for label, words in (*_FILES, *_TO_NAMES):
            yield Case(f"{base.name}: {label}", numbered, words, refused=find_refusal(base, words), since="4.2")


def _cases_of_topics() -> Iterator[Case]:
    for base in list_bases(("k1", "a"), "kafka and file"):
        more = replace(base, waiting=("c", "c", "k2", "k2"))
        for label, words in (
            ("add topic", ("k1", "a", "k2")),
            ("add topic first", ("k2", "k1", "a")),
            ("reorder", ("a", "k1")),
            ("remove topic", ("a",)),
            ("other topic", ("k2", "a")),
            ("add file", ("c", "k1", "a")),
        ):
            yield Case(f"{more.name}: {label}", more, words, refused=find_refusal(more, words), needs="kafka")


_SHAPES = (
    ("rows", "agg", True),
    ("rows", "dedup", True),
    ("rows", "dedup agg", True),
    ("agg", "rows", True),
    ("dedup", "rows", True),
    ("agg", "dedup agg", False),
    ("dedup agg", "agg", False),
    ("dedup agg", "rows", True),
)
STORES = ("hdfs", "rocksdb", "changelog", "format2")


def _cases_of_operators() -> Iterator[Case]:
    words = ("a", "b")
    for store in STORES:
        for old, new, anew in _SHAPES:
            if (store, old) == ("format2", "rows"):
                continue  # new state has format 1
            base = Base(f"{store} {old}", words, old, (("a", "b"), ("a",), ("b", "a", "b")))
            since = "4.2" if store == "format2" else "4.0"
            name = f"{store}: {old} to {new}"
            yield Case(name, base, words, shape=new, store=store, from_now_on=anew, since=since)
            if store in ("hdfs", "format2"):
                more = ("c", "b", "a")
                yield Case(f"{name}, source added", base, more, shape=new, store=store, from_now_on=anew, since=since)


CASES = (
    *_cases_of_operators(),
    *_cases_of_files(),
    *_cases_of_rates(),
    *_cases_of_names(),
    *_cases_of_numbers(),
    *_cases_of_topics(),
    *_cases_of_two_rates(),
)
