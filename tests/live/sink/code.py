"""Sinks that code writes to, by ``foreachBatch`` or ``foreach``: PostgreSQL, Cassandra and DynamoDB.

Run with queries as JSON, this starts each, and each hangs in batch 2 between its last write and the commit; then it
says ``ready``, and waits for its SIGKILL.
"""

import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import ckpt
from tests.support.services.sinks import clients

KILLED_IN = 2
BATCHES = 5
EACH = 4
"""Rows of a batch: batch 1 has the numbers 4 to 7."""
Row = tuple[int, int]  # the number of a row, or a key, and a value


class Table(Protocol):
    """A table of one sink, into which rows are written by key, or added."""

    def create(self) -> None:
        """Create it, empty."""

    def write(self, rows: Iterable[Row]) -> None:
        """Write some rows; they are there afterwards."""

    def read(self) -> list[Row]:
        """Read every row that it has, sorted."""


def _imported(name: str) -> Any:
    if (folder := str(clients())) not in sys.path:
        sys.path.append(folder)
    return __import__(name, fromlist=["*"])


@dataclass
class PostgresTable:
    """Rows come into a staging table first; one transaction moves them (so does the connector of Azure Synapse)."""

    address: str
    name: str
    by_key: bool

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with _imported("psycopg2").connect(self.address) as connection, connection.cursor() as cursor:
            yield cursor
        connection.close()

    def create(self) -> None:
        key = "primary key" * self.by_key
        with self._cursor() as cursor:
            cursor.execute(f"create table {self.name} (n bigint {key}, value bigint)")
            cursor.execute(f"create table {self.name}_staged (n bigint, value bigint)")

    def write(self, rows: Iterable[Row]) -> None:
        merge = " on conflict (n) do update set value = excluded.value" * self.by_key
        with self._cursor() as cursor:
            cursor.executemany(f"insert into {self.name}_staged values (%s, %s)", list(rows))
        with self._cursor() as cursor:
            cursor.execute(f"insert into {self.name} select * from {self.name}_staged{merge}")
            cursor.execute(f"truncate {self.name}_staged")

    def read(self) -> list[Row]:
        with self._cursor() as cursor:
            cursor.execute(f"select n, value from {self.name} order by n, value")
            return list(cursor.fetchall())


_SESSIONS: dict[str, Any] = {}


@dataclass
class CassandraTable:
    """An insert replaces the row of its primary key; to add rows, each gets an id of its own."""

    address: str
    name: str
    by_key: bool

    @property
    def _session(self) -> Any:
        if self.address not in _SESSIONS:
            driver, policies = _imported("cassandra.cluster"), _imported("cassandra.policies")
            profile = driver.ExecutionProfile(load_balancing_policy=policies.RoundRobinPolicy())
            profiles = {driver.EXEC_PROFILE_DEFAULT: profile}
            address = {"contact_points": ["127.0.0.1"], "port": int(self.address), "protocol_version": 5}
            never = {f"{kind}_event_refresh_window": -1 for kind in ("schema", "topology", "status")}
            _SESSIONS[self.address] = driver.Cluster(**address, **never, execution_profiles=profiles).connect()
        return _SESSIONS[self.address]

    def create(self) -> None:
        replicated = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        self._session.execute(f"create keyspace if not exists ckpt with replication = {replicated}")
        self._session.execute(f"create table ckpt.{self.name} (n bigint, id uuid, value bigint, primary key (n, id))")

    def write(self, rows: Iterable[Row]) -> None:
        insert = f"insert into ckpt.{self.name} (n, id, value) values (%s, %s, %s)"
        for n, value in rows:
            self._session.execute(insert, (n, uuid.UUID(int=0) if self.by_key else uuid.uuid4(), value))

    def read(self) -> list[Row]:
        rows = self._session.execute(f"select n, value from ckpt.{self.name}")
        return sorted((row.n, row.value) for row in rows)


@dataclass
class DynamoTable:
    """`put_item` replaces the item of its key; to add items, each gets an id of its own."""

    address: str
    name: str
    by_key: bool

    @property
    def _client(self) -> Any:
        if self.address not in _SESSIONS:
            secrets = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
            _SESSIONS[self.address] = _imported("boto3").client("dynamodb", endpoint_url=self.address, **secrets)
        return _SESSIONS[self.address]

    def create(self) -> None:
        keys = (("n", "N", "HASH"), ("id", "S", "RANGE"))
        self._client.create_table(
            TableName=self.name,
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind, _ in keys],
            KeySchema=[{"AttributeName": name, "KeyType": role} for name, _, role in keys],
            BillingMode="PAY_PER_REQUEST",
        )

    def write(self, rows: Iterable[Row]) -> None:
        for n, value in rows:
            key = "-" if self.by_key else str(uuid.uuid4())
            item = {"n": {"N": str(n)}, "id": {"S": key}, "value": {"N": str(value)}}
            self._client.put_item(TableName=self.name, Item=item)

    def read(self) -> list[Row]:
        items = self._client.scan(TableName=self.name)["Items"]
        return sorted((int(item["n"]["N"]), int(item["value"]["N"])) for item in items)


def close_clients() -> None:
    for client in _SESSIONS.values():
        (client.cluster.shutdown if hasattr(client, "cluster") else client.close)()
    _SESSIONS.clear()


TABLES: dict[str, Callable[[str, str, bool], Table]] = {
    "postgresql": PostgresTable,
    "cassandra": CassandraTable,
    "dynamodb": DynamoTable,
}
BY_FOREACH = ("dynamodb",)


@dataclass(frozen=True)
class Query:
    """A query that writes the numbers of files, or how many of each third there are, into a table."""

    sink: str
    address: str
    folder: Path
    name: str
    by_key: bool
    counts: bool = False
    half: bool = False  # of batch 2 only half of the rows are written, when it hangs

    @property
    def table(self) -> Table:
        """The table that it writes to."""
        return TABLES[self.sink](self.address, self.name, self.by_key)

    @property
    def checkpoint(self) -> str:
        return str(self.folder / self.name)

    def start(self, spark: Any, *, hang: bool = False) -> Any:
        """Start it, with what is there; with ``hang`` it hangs in batch 2 after it has written."""
        rows = spark.readStream.schema("n bigint").option("maxFilesPerTrigger", 1).json(str(self.folder / "input"))
        rows = rows.selectExpr("n % 3 as n").groupBy("n").count() if self.counts else rows.selectExpr("n", "n as value")
        writer = rows.coalesce(1).writeStream.outputMode("update").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", self.checkpoint)
        if self.sink in BY_FOREACH:
            return writer.foreach(Writer(self, hang)).start()
        return writer.foreachBatch(lambda frame, batch: self.write(map(tuple, frame.collect()), batch, hang)).start()

    def write(self, rows: Iterable[Row], batch: int, hang: bool) -> None:
        hangs = hang and batch == KILLED_IN
        written = sorted(rows)
        self.table.write(written[: EACH // 2] if hangs and self.half else written)
        if hangs:
            (self.folder / f"{self.name}.written").touch()
            while True:
                time.sleep(1)


class Writer:
    """Writes by ``foreach``: the rows of a partition together, as it closes."""

    def __init__(self, query: Query, hang: bool) -> None:
        self.query, self.hang = query, hang

    def open(self, partition: int, batch: int) -> bool:
        self.batch: int = batch
        self.rows: list[Row] = []
        return True

    def process(self, row: Any) -> None:
        self.rows.append(tuple(row))

    def close(self, error: Exception | None) -> None:
        if error is None:
            self.query.write(self.rows, self.batch, self.hang)


TWICE = "rows that it already has are then in it twice"
UNDER_KEYS = (
    "rows that it already has are written again under the same keys, with the query's current values, so no key is "
    "in it twice"
)
LATER = "Until then, keys may have values of earlier batches"


def _look(checkpoint: str, kind: str) -> str:
    sink = ckpt.inspect(checkpoint, sink=kind).sink
    assert sink is not None
    return sink.said


def _change(change: Callable[..., Any], **how: Any) -> Callable[[str, str], str]:
    """Carry a change out, with the options that its page says; gives what the page says of the sink and of attempts."""

    def act(checkpoint: str, kind: str) -> str:
        plan, receipt = change(checkpoint, sink=kind, grace=0, accept_replay=kind == "append", apply=True, **how)
        assert receipt.applied, (plan.refused, receipt.problem)
        return " ".join(text for text in map(str, plan.notices) if "sink" in text)

    return act


def _repair(checkpoint: str, kind: str) -> str:
    """The offsets of the batch were torn, too."""
    Path(checkpoint, "offsets", str(KILLED_IN)).write_bytes(b"")
    Path(checkpoint, "offsets", f".{KILLED_IN}.crc").unlink()
    return _change(ckpt.repair)(checkpoint, kind)


@dataclass(frozen=True)
class Incident:
    """An incident in batch 2, how it is treated, what the page says of rows, and what the table has in the end."""

    by_key: bool
    act: Callable[[str, str], str]
    says: str
    twice: tuple[int, ...] = ()  # batches whose rows are in the table twice
    lost: tuple[int, ...] = ()  # numbers that it does not have
    counts: bool = False
    half: bool = False

    @property
    def kind(self) -> str:
        return "upsert" if self.by_key else "append"

    def expect(self) -> list[Row]:
        if self.counts:
            numbers = range(BATCHES * EACH)
            return [(key, sum(n % 3 == key for n in numbers)) for key in range(3)]
        rows = [(n, n) for n in range(BATCHES * EACH) if n not in self.lost]
        return sorted(rows + [(n, n) for batch in self.twice for n in range(batch * EACH, (batch + 1) * EACH)])


_REWIND = _change(ckpt.rewind, to_batch=0)
_NEW = _change(ckpt.rewind, to_batch=0, replay="new")
_STAYS = f"Rows that an attempt at batch {KILLED_IN} wrote to a sink stay there"
INCIDENTS: dict[str, Incident] = {
    "restarted": Incident(False, _look, f"batch 2 runs again, and is written again: {TWICE}", twice=(2,)),
    "restarted_by_key": Incident(True, _look, f"batch 2 runs again, and is written again: {UNDER_KEYS}"),
    "rewound": Incident(False, _REWIND, f"batches from 1 on run again: {TWICE}.", twice=(1, 2)),
    "rewound_by_key": Incident(True, _NEW, f"batches from 1 on run again: {UNDER_KEYS}. {LATER}."),
    "skipped": Incident(False, _change(ckpt.skip), _STAYS, lost=(10, 11), half=True),
    "repaired": Incident(False, _repair, f"batches from 2 on run again: {TWICE}.", twice=(2,)),
    "counted": Incident(True, _REWIND, f"batches from 1 on run again: {UNDER_KEYS}. {LATER}.", counts=True),
}


def find_query(sink: str, address: str, folder: str, name: str) -> Query:
    """Find the query of an incident."""
    incident = INCIDENTS[name]
    return Query(sink, address, Path(folder), name, incident.by_key, incident.counts, incident.half)


def put(folder: Path, batch: int) -> None:
    path = folder / "input" / f"{batch}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(batch * EACH, (batch + 1) * EACH)))
    os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


def main(asked: str) -> None:
    """Start the queries of incidents, each named by its sink, address and folder and its own name."""
    from tests.support.spark.queries import session

    spark = session("code", spark__master="local[12]", spark__sql__shuffle__partitions="1")
    queries = [find_query(*words) for words in json.loads(asked)]
    for query in queries:
        query.table.create()
        query.start(spark, hang=True)
    while not all((query.folder / f"{query.name}.written").exists() for query in queries):
        time.sleep(0.1)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    from tests.live.sink import code  # Python workers unpickle what has a name there

    code.main(sys.argv[1])
