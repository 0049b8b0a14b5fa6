"""Kafka offsets, with a broker whose topics `orders` and `renamed` have offsets 0 to 99 in each of two partitions."""

from __future__ import annotations

from collections.abc import Iterator

from .model import SAMPLES, Case, Mutation, delete, delete_logs, write

SAMPLE = "kafka-4.2"
L = 5
OLD, NEW = '{"orders":{"0":50,"1":50}}', '{"renamed":{"0":30,"1":20}}'
LONGER, SHORTER = '{"orders":{"0":500,"1":400}}', '{"orders":{"0":20,"1":20}}'

_ONLY_0 = delete_logs(range(1, L + 1), range(L + 1))
_ONLY_0_AND_1 = delete_logs(range(2, L + 1), range(2, L + 1))
_CUTS = {
    "topic": '{"ord',
    "partitions": '{"orders":',
    "number": '{"orders":{"0":5',
    "last-brace": '{"orders":{"0":51,"1":49}',
}


def _planned(batch: int, offsets: str) -> Mutation:
    metadata = (SAMPLES / SAMPLE / "offsets" / str(batch)).read_text().split("\n")[1]
    return write(f"offsets/{batch}", f"v1\n{metadata}\n{offsets}")


def _case(name: str, *damage: Mutation, query: str = "kafka", sync_only: bool = False) -> Case:
    return Case(f"kafka-{name}", SAMPLE, tuple(damage), query, sync_only=sync_only)


def cases() -> Iterator[Case]:
    yield _case("whole")
    yield _case("uncommitted", *delete_logs(commits=[L]))
    yield _case("batch-0-uncommitted", *_ONLY_0)
    yield _case("batch-0-began-later", *_ONLY_0, write("sources/0/0", b'\0v1\n{"orders":{"0":4,"1":0}}'))
    yield _case("batch-0-beginning-unknown", *_ONLY_0, *delete("sources/0/0"))
    no_topic = _planned(0, "{}"), _planned(1, OLD)
    yield _case("no-topic-yet", *_ONLY_0_AND_1, *no_topic)
    yield _case("no-topic-yet-uncommitted", *_ONLY_0_AND_1, *no_topic, *delete_logs(commits=[1]))
    switched = (*_ONLY_0_AND_1, _planned(0, OLD), _planned(1, NEW), *delete_logs(commits=[1]))
    shrunk = (*_ONLY_0_AND_1, _planned(0, LONGER), _planned(1, SHORTER), *delete_logs(commits=[1]))
    longer = (*delete_logs([L], [L]), _planned(L - 1, LONGER))
    for suffix in ("", "-lenient"):
        yield _case(f"another-topic-uncommitted{suffix}", *switched, query=f"kafka-renamed{suffix}")
        yield _case(f"backwards-uncommitted{suffix}", *shrunk, query=f"kafka{suffix}")
        # asynchronous tracking would wait for rows above what there is
        yield _case(f"topic-shorter{suffix}", *longer, query=f"kafka{suffix}", sync_only=bool(suffix))
    for name, text in _CUTS.items():
        yield _case(f"latest-cut-in-{name}", _planned(L, text))
        yield _case(f"latest-cut-in-{name}-uncommitted", _planned(L, text), *delete_logs(commits=[L]))
        yield _case(f"predecessor-cut-in-{name}-uncommitted", _planned(L - 1, text), *delete_logs(commits=[L]))
