"""Databases that code writes to: what a page says of rows with `--sink KIND` is what the table has in the end.

Each query is killed between what its sink writes and the commit, by SIGKILL of Python and the JVM.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.live.sink.code import BATCHES, INCIDENTS, KILLED_IN, Query, Row, put
from tests.support.places import ROOT
from tests.support.services.fixtures import or_skip
from tests.support.services.sinks import SERVICES
from tests.support.spark.live import EVERY_CASE

pytestmark = [pytest.mark.spark, pytest.mark.service]
ASKED = {
    "postgresql": tuple(INCIDENTS),
    "dynamodb": tuple(INCIDENTS) if EVERY_CASE else ("restarted", "rewound_by_key", "skipped"),
    "cassandra": tuple(INCIDENTS) if EVERY_CASE else ("restarted", "rewound_by_key"),
}
"""The code of the three differs in how a row is written alone; DynamoDB by `foreach`, the others by `foreachBatch`."""


@contextmanager
def killed(sink: str, folder: Any) -> Iterator[list[Query]]:
    """The queries of some incidents, killed in batch 2, and the sink, which has what they had written."""
    (folder / "service").mkdir()
    for batch in range(BATCHES):
        put(folder, batch)
    with SERVICES[sink](folder / "service") as address:
        command = [sys.executable, "-m", "tests.live.sink.code", sink, address, str(folder), *ASKED[sink]]
        with (folder / "errors").open("w") as errors:
            running = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
            with running:
                said = running.stdout.readline() if running.stdout else ""
                os.killpg(running.pid, signal.SIGKILL)
        assert said == "ready\n", (folder / "errors").read_text()[-3000:]
        yield [INCIDENTS[name].query(name, sink, address, folder) for name in ASKED[sink]]


@pytest.fixture(scope="module", params=ASKED)
def ended(request: Any, spark: Any, tmp_path_factory: Any) -> Iterator[dict[str, tuple[str, list[Row]]]]:
    """What the page said of each incident, and the rows in the end."""
    folder = tmp_path_factory.mktemp(request.param)
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    with or_skip(request.param), killed(request.param, folder) as queries:
        said = {query.name: INCIDENTS[query.name].act(query.checkpoint, INCIDENTS[query.name].kind) for query in queries}
        running = [query.start(session) for query in queries]
        for each in running:
            each.awaitTermination()
        yield {query.name: (said[query.name], query.table.read()) for query in queries}


def test_the_table_has_what_was_announced(ended: dict[str, tuple[str, list[Row]]]) -> None:
    assert len(ended) >= 2
    for name, (said, rows) in ended.items():
        incident = INCIDENTS[name]
        assert incident.says in said, name
        assert rows == incident.expect(), (name, KILLED_IN)
