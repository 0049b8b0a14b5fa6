"""Databases that code writes to: what a page says of rows with `--sink KIND` is what the table has in the end.

Each query is killed between what its sink writes and the commit, by SIGKILL of Python and the JVM.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.live.sink.code import BATCHES, INCIDENTS, Row, close_clients, find_query, put
from tests.support.services.process import Unavailable, kill_when_ready
from tests.support.services.sinks import SERVICES
from tests.support.spark.live import EVERY_CASE

pytestmark = [pytest.mark.spark, pytest.mark.service]
_IN_PART = {"postgresql": ("restarted", "rewound_by_key", "skipped"), "dynamodb": ("restarted", "rewound_by_key")}
ASKED = dict.fromkeys(("postgresql", "dynamodb", "cassandra"), tuple(INCIDENTS)) if EVERY_CASE else _IN_PART
"""The code of the three differs in how a row is written alone; DynamoDB by `foreach`, the others by `foreachBatch`."""


@dataclass(frozen=True)
class End:
    said: str  # what the page said
    rows: list[Row]  # that the table has


@pytest.fixture(scope="module")
def ended(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, End] | Unavailable]]:
    """The end of each incident by sink, or why there is no such sink."""
    folder, session = tmp_path_factory.mktemp("code"), spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    ends: dict[str, dict[str, End] | Unavailable] = {}
    asked: list[tuple[str, ...]] = []
    with ExitStack() as services:
        for sink, names in ASKED.items():
            (folder / sink / "service").mkdir(parents=True)
            for batch in range(BATCHES):
                put(folder / sink, batch)
            try:
                address = services.enter_context(SERVICES[sink](folder / sink / "service"))
            except Unavailable as reason:
                ends[sink] = reason
                continue
            asked += [(sink, address, str(folder / sink), name) for name in names]
        if asked:
            kill_when_ready([sys.executable, "-m", "tests.live.sink.code", json.dumps(asked)], folder / "errors")
        queries = [find_query(*words) for words in asked]
        said = [INCIDENTS[query.name].act(query.checkpoint, INCIDENTS[query.name].kind) for query in queries]
        for running in [query.start(session) for query in queries]:
            running.awaitTermination()
        for query, words in zip(queries, said, strict=True):
            of_sink = ends.setdefault(query.sink, {})
            assert not isinstance(of_sink, Unavailable)
            of_sink[query.name] = End(words, query.table.read())
        close_clients()
        yield ends


@pytest.mark.parametrize("sink", ASKED)
def test_the_table_has_what_was_announced(sink: str, ended: dict[str, dict[str, End] | Unavailable]) -> None:
    ends = ended[sink]
    if isinstance(ends, Unavailable):
        pytest.skip(f"no {sink}: {ends}")
    assert tuple(ends) == ASKED[sink]
    for name, end in ends.items():
        assert INCIDENTS[name].says in end.said, name
        assert end.rows == INCIDENTS[name].expect(), name
