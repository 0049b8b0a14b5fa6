"""The gaps that are repaired, as data: which sample is damaged how. In the language of the oracle's own cases."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from tests.restart.oracle.cases import random_gaps
from tests.restart.oracle.cases.as_made import relocated
from tests.restart.oracle.cases.logs import END, V2_OFFSETS
from tests.restart.oracle.cases.model import (
    SAMPLES,
    Case,
    Mutation,
    copy,
    delete,
    delete_logs,
    latest,
    mkdir,
    replace,
    truncate,
    write,
)
from tests.support.spark import samples

PLAIN = "stateless-3.5"  # batches 0 to L, all committed
L = 5
ASYNC = "async-3.5"  # left by asynchronous tracking, all committed
ASYNC_IDS = (0, 1, 4, 11, 19, 25, 32, 39, 46)
ASYNC_42 = "async-4.2"
ASYNC_42_IDS = (0, 7, 14, 21, 28, 35, 42)
SEED = 20261122

_MADE = {sample.name: sample for sample in samples.SAMPLES}


def _case(name: str, sample: str, *mutations: Mutation) -> Case:
    made = _MADE[sample]
    return Case(name, sample, (*relocated(made), *mutations), made.query, sync_only=True)


def _shapes() -> Iterator[Case]:
    """Logs as asynchronous tracking leaves them, with commits and offsets missing here and there."""
    for sample, ids in ((ASYNC, ASYNC_IDS), (ASYNC_42, ASYNC_42_IDS)):
        *_, older, old, last = ids
        damages: dict[str, list[Mutation]] = {
            "whole": [],
            "uncommitted": delete_logs(commits=[last]),
            "without-latest": delete_logs([last], [last]),
            "uncommitted-in-between": delete_logs(commits=[old, last]),
            "two-uncommitted-in-between": delete_logs(commits=[older, old, last]),
            "old-uncommitted-in-between": delete_logs(commits=[old]),
            "commits-far-behind": delete_logs(commits=ids[3:]),
            "commits-ahead": delete_logs([last]),
            "commits-ahead-by-two": delete_logs([old, last]),
            "commits-ahead-old-uncommitted": delete_logs([last], [old]),
            "latest-alone": delete_logs(ids[:-1], ids[:-1]),
            "latest-alone-other-commits-kept": delete_logs(ids[:-1]),
            "latest-alone-uncommitted": delete_logs(ids[:-1], ids),
            "no-commits": delete_logs(commits=ids),
            "only-the-first-committed": delete_logs(commits=ids[1:]),
        }
        for name, damage in damages.items():
            yield _case(f"{sample}-{name}", sample, *damage)
    far = [copy(f"{log}/46", f"{log}/20046") for log in ("offsets", "commits")]
    yield _case("async-far-gap", ASYNC, *far)
    yield _case("async-far-gap-uncommitted", ASYNC, far[0])


def _consecutive() -> Iterator[Case]:
    """Logs of a synchronous query that lost some of its files."""
    damages = {
        "predecessor-missing": delete_logs([L - 1]),
        "predecessor-missing-uncommitted": delete_logs([L - 1], [L]),
        "predecessor-missing-both-logs": delete_logs([L - 1], [L - 1]),
        "predecessor-missing-both-logs-uncommitted": delete_logs([L - 1], [L - 1, L]),
        "two-predecessors-missing-uncommitted": delete_logs([L - 2, L - 1], [L - 2, L - 1, L]),
        "two-predecessors-missing-but-committed": delete_logs([L - 2, L - 1], [L]),
        "commits-ahead-predecessor-missing": delete_logs([L - 2, L]),
        "alone": delete_logs(range(L), range(L)),
        "alone-uncommitted": delete_logs(range(L), range(L + 1)),
        "alone-commits-kept-uncommitted": delete_logs(range(L), [L]),
        "first-two-and-latest": delete_logs([2, 3, 4], [2, 3, 4]),
        "first-two-and-latest-uncommitted": delete_logs([2, 3, 4], [2, 3, 4, 5]),
        "first-lost-uncommitted": delete_logs([0, 4], [4, 5]),
    }
    for name, damage in damages.items():
        yield _case(name, PLAIN, *damage)
    yield _case("killed-predecessor-missing", "stateless-killed-3.5", *delete_logs([3], [3]))
    yield _case("killed-predecessor-missing-but-committed", "stateless-killed-3.5", *delete_logs([3]))


def _unreadable() -> Iterator[Case]:
    uncommitted = delete_logs(commits=[L])
    before = f"offsets/{L - 1}"
    forms = {
        "empty": write(before, ""),
        "empty-stale-crc": write(before, "", keep_crc=True),
        "truncated": truncate(before, 150),
        "garbage": write(before, "the disk was full"),
        "of-a-later-version": replace(before, "v1\n", "v9\n"),
    }
    for name, damage in forms.items():
        yield _case(f"predecessor-{name}", PLAIN, damage)
        yield _case(f"predecessor-{name}-uncommitted", PLAIN, damage, *uncommitted)
    empty = write("offsets/46", "")
    yield _case("latest-empty", ASYNC, empty)
    yield _case("latest-empty-uncommitted", ASYNC, empty, *delete_logs(commits=[46]))
    yield _case("latest-truncated", ASYNC, truncate("offsets/46", 150))
    yield _case("latest-truncated-before-uncommitted", ASYNC, truncate("offsets/46", 150), *delete_logs(commits=[39]))
    yield _case("latest-two-empty", ASYNC, empty, write("offsets/39", ""))
    yield _case("nearest-earlier-empty", ASYNC, write("offsets/39", ""), *delete_logs(commits=[46]))
    yield _case("commit-unreadable", ASYNC, write("commits/46", ""))
    yield _case("commit-of-predecessor-unreadable", ASYNC, write("commits/39", ""), *delete_logs(commits=[46]))


def _traps() -> Iterator[Case]:
    """Checksums without a file or of another, leftovers and folders where files are to be written."""
    orphans = {
        "offsets-predecessor": [copy("offsets/.39.crc", "offsets/.45.crc")],
        "offsets-next": [copy("offsets/.39.crc", "offsets/.47.crc")],
        "offsets-later": [copy("offsets/.39.crc", "offsets/.48.crc")],
        "commits-next": [copy("commits/.39.crc", "commits/.47.crc")],
        "commits-later": [copy("commits/.39.crc", "commits/.48.crc")],
        "commits-latest": delete("commits/46", keep_crc=True),
        "both-latest": delete("offsets/46", "commits/46", keep_crc=True),
        "commits-ahead": [*delete("offsets/46", keep_crc=True), *delete("offsets/39")],
    }
    for name, damage in orphans.items():
        yield _case(f"orphan-crc-{name}", ASYNC, *damage)
    yield _case("stale-crc-latest", ASYNC, replace("offsets/46", '"timestamp"', ' "timestamp"') | {"keep_crc": True})
    yield _case("no-crc-at-all", ASYNC, *delete("offsets/.*.crc", "commits/.*.crc"))
    yield _case("leftover-temporary-files", ASYNC, write("offsets/.45.0a1b2c3d.tmp", "v1"), write("offsets/47.tmp", ""))
    yield _case("folder-in-the-way-of-predecessor", ASYNC, mkdir("offsets/45"))
    yield _case("folder-in-the-way-of-next", ASYNC, mkdir("offsets/47"))
    yield _case("metadata-missing", ASYNC, *delete("metadata"))


def _other_queries() -> Iterator[Case]:
    """Several sources, files as source, and the second version of the offset log."""
    for sample in ("two-sources-3.5", "two-sources-offsets-v2-4.2", "named-sources-4.2"):
        yield _case(f"{sample}-gap", sample, *delete_logs([2], [2]))
        yield _case(f"{sample}-gap-uncommitted", sample, *delete_logs([2], [2, 3]))
    for sample in ("file-source-3.5", "file-source-4.2"):
        last = latest(sample)
        yield _case(f"{sample}-gap", sample, *delete_logs([last - 1]))
        yield _case(f"{sample}-gap-uncommitted", sample, *delete_logs([last - 2, last - 1], [last - 2, last - 1, last]))
    other = replace("offsets/39", '"spark.sql.shuffle.partitions":"2"', '"spark.sql.shuffle.partitions":"3"')
    yield _case("other-shuffle-partitions", ASYNC, other)
    yield _case("other-shuffle-partitions-uncommitted", ASYNC, other, *delete_logs(commits=[46]))
    yield _case("two-sources-predecessor-empty", "two-sources-3.5", write("offsets/2", ""), *delete_logs(commits=[3]))
    newer = write(f"offsets/{L}", _second_version(L, END))
    older = write("offsets/3", _second_version(3, '{"offset":40,"timestamp":1700000004000}'))
    gap, uncommitted = delete_logs([L - 1], [L - 1]), delete_logs(commits=[L])
    for name, damage in {"v2-after-v1": newer, "v1-after-v2": older}.items():
        yield _case(name, "stateless-4.2", damage, *gap)
        yield _case(f"{name}-uncommitted", "stateless-4.2", damage, *gap, *uncommitted)


def _second_version(batch: int, end: str) -> str:
    """A batch of the sample as version 2 of the offset log, planned when it was planned."""
    planned = json.loads((SAMPLES / "stateless-4.2" / "offsets" / str(batch)).read_text().splitlines()[1])
    return V2_OFFSETS.replace(END, end).replace("1700000000000", str(planned["batchTimestampMs"]))


def _stateful() -> Iterator[Case]:
    """The predecessor lost, as copying or a lifecycle rule does it; the latest batch committed or not."""
    for sample in (
        "aggregation-hdfs-3.5",
        "aggregation-rocksdb-3.5",
        "aggregation-changelog-4.0",
        "aggregation-format2-4.2",
        "windowed-aggregation-hdfs-4.2",
        "join-hdfs-3.5",
        "dedup-hdfs-4.0",
    ):
        yield _case(f"{sample}-gap", sample, *delete_logs([latest(sample) - 1]))
    last = latest("aggregation-hdfs-3.5")
    yield _case("stateful-gap-uncommitted", "aggregation-hdfs-3.5", *delete_logs([last - 1], [last]))
    yield _case("stateful-alone", "aggregation-hdfs-3.5", *delete_logs(range(last), range(last)))
    yield _case("stateful-commits-ahead", "aggregation-hdfs-3.5", *delete_logs([last - 2, last]))
    yield _case(
        "stateful-delta-missing", "aggregation-hdfs-3.5", *delete_logs([last - 1]), *delete("state/0/0/3.delta")
    )


def _random() -> Iterator[Case]:
    """Pseudo-random files lost; a fixed seed keeps the cases the same."""
    everything = range(L + 1)
    for number, (offsets, commits) in enumerate(random_gaps.subsets(SEED, 60, everything)):
        left = set(everything) - set(offsets)
        if max(left) and max(left) - 1 not in left:
            yield _case(f"random-{number:02}", PLAIN, *delete_logs(offsets, commits))
    rng = random.Random(SEED)
    for number in range(12):
        offsets, commits = ([i for i in ASYNC_IDS[1:] if rng.random() < share] for share in (0.3, 0.4))
        yield _case(f"random-async-{number:02}", ASYNC, *delete_logs(offsets, commits))


def _all() -> Iterator[Case]:
    for part in (_shapes, _consecutive, _unreadable, _traps, _other_queries, _stateful, _random):
        yield from part()


CASES: tuple[Case, ...] = tuple(_all())

ASYNC_TOO = tuple(
    f"{sample}-{shape}"
    for sample in (ASYNC, ASYNC_42)
    for shape in (
        "whole",
        "uncommitted",
        "uncommitted-in-between",
        "commits-far-behind",
        "commits-ahead",
        "latest-alone",
    )
)
"""Cases of which a copy, filled, is started with asynchronous tracking too: somebody switches it on again."""
