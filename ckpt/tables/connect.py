"""``ckpt.connect`` and ``run_sql``: a connection of DuckDB that has checkpoints as tables, and nothing else."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import fspath
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from ckpt.errors import CkptError, UsageError
from ckpt.model import Location
from ckpt.state.reading.choose import RequestedPart
from ckpt.tables.catalog import Catalog, LazyTable
from ckpt.tables.engine import first_line, import_duckdb, lock, open_engine
from ckpt.tables.log_tables import TABLES

if TYPE_CHECKING:
    import duckdb

_PURPOSE = "SQL over checkpoints"
_NAME = "ckpt_state_name"
_ARGUMENTS = {"operator": "INTEGER", "store": "VARCHAR", "batch": "BIGINT", "side": "VARCHAR", "variable": "VARCHAR"}
_STATE = f"""CREATE MACRO state(checkpoint, {", ".join(f"{name} := NULL" for name in _ARGUMENTS)}, timers := false)
    AS TABLE SELECT * FROM query_table({_NAME}(checkpoint::VARCHAR,
    {", ".join(f"{name}::{kind}" for name, kind in _ARGUMENTS.items())}, timers::BOOLEAN))"""
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:ANALYZE\s+)?(?:\(\s*(?:ANALYZE|FORMAT)\b[^()]*\)\s*)?", re.IGNORECASE)
_ONLY = "one statement at a time: SELECT, FROM, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN"

_Wanted = tuple[str | None, int | None, RequestedPart]  # a checkpoint, a batch, and the part of its state


@dataclass
class _Session:
    """A connection, what it reads, and the state that its statements have named."""

    catalog: Catalog
    states: dict[_Wanted, str] = field(default_factory=dict)  # the name of a view for each
    registered: set[str] = field(default_factory=set)

    def name_state(
        self,
        checkpoint: str | None,
        operator: int | None,
        store: str | None,
        batch: int | None,
        side: str | None,
        variable: str | None,
        timers: bool | None,
    ) -> str:
        """Name the view of a state: DuckDB asks while it plans a statement, before there may be one."""
        wanted = checkpoint, batch, RequestedPart(operator, store, side, variable, bool(timers))
        return self.states.setdefault(wanted, f"ckpt_state_{len(self.states)}")

    def forget_missing(self) -> None:
        """Forget what was named and is not there: a statement that failed, or that another way than ``run_sql`` ran."""
        self.states = {wanted: view for wanted, view in self.states.items() if view in self.registered}

    def register_states(self, connection: Any) -> bool:
        """Open what was named and is not there yet; False where nothing was."""
        missing = {view: wanted for wanted, view in self.states.items() if view not in self.registered}
        for view, (name, batch, part) in missing.items():
            from ckpt.tables.state import StateTable  # needs the packages of ``native``, which no other table does

            try:
                table = StateTable(self.catalog, self.catalog.find(name or ""), batch, part)
            except BaseException:
                self.forget_missing()
                raise
            connection.register(view, table)
            self.registered.add(view)
        return bool(missing)


_SESSIONS: WeakKeyDictionary[Any, _Session] = WeakKeyDictionary()


def connect(
    *roots: Location, storage_options: Mapping[str, str] | None = None, depth: int | None = None
) -> "duckdb.DuckDBPyConnection":
    """Open a DuckDB connection whose tables show the checkpoints below some roots. Only reads; starts no JVM.

    Roots are searched as by ``ckpt.scan`` when a statement first names a table. Only the files that the table needs are
    read: ``batches``, ``offsets``, ``commits``, ``sources`` and ``settings`` open no state file. Results are kept for
    the life of the connection: connect again to see later batches. ``run_sql`` runs statements with
    ``state(...)``. The connection reads no file and no address, and its settings are locked.

    Args:
        roots: Local paths or URIs, of a checkpoint or of any folder above checkpoints.
        storage_options: For the file system of the URIs.
        depth: How many levels below a root to search; 0 is only the root, None is all.

    Returns:
        A ``duckdb.DuckDBPyConnection``.

    Raises:
        UsageError: No root, or a ``depth`` below 0.
        CkptError: DuckDB is not installed.

    >>> connection = ckpt.connect("sample_checkpoints/kafka-4.2")
    >>> connection.execute("SELECT partition, end_offset FROM offsets WHERE batch = 5 ORDER BY ALL").fetchall()
    [(0, 51), (1, 49)]
    """
    if depth is not None and depth < 0:
        raise UsageError.of("{--depth} must be at least 0")
    if not roots:
        raise UsageError("name a checkpoint, or a folder above checkpoints")
    catalog = Catalog(tuple(dict.fromkeys(fspath(root) for root in roots)), storage_options or {}, depth)
    session = _Session(catalog)
    connection = open_engine(_PURPOSE, {})
    for table in TABLES.values():
        connection.register(table.name, LazyTable(catalog, table.schema, partial(catalog.read_table, table)))
    kinds = ["VARCHAR", *_ARGUMENTS.values(), "BOOLEAN"]
    connection.create_function(_NAME, session.name_state, kinds, "VARCHAR", null_handling="special")
    connection.execute(_STATE)
    lock(connection)
    _SESSIONS[connection] = session
    return connection


def run_sql(connection: "duckdb.DuckDBPyConnection", statement: str) -> "duckdb.DuckDBPyRelation":
    """Run one statement on a connection of ``connect``. Returns a DuckDB relation, read when it is fetched.

    ``state(checkpoint, operator, store, batch)`` is a table in it: the rows of a unit of state as in
    ``ckpt.read_state_batches``, with ``partition_id``. Arguments are constants; those after the first may be left out
    or named (``batch := 7``; also ``side``, ``variable``, ``timers``).

    Args:
        connection: A connection of ``connect``, of this process.
        statement: SQL in DuckDB's dialect.

    Raises:
        UsageError: It is not one statement, is wrong, or uses a file, an address or an extension.
        CkptError: State cannot be read; as of ``ckpt.read_state_batches``.

    >>> connection = ckpt.connect("sample_checkpoints/aggregation-hdfs-4.2")
    >>> question = "SELECT value_count FROM state('aggregation-hdfs-4.2', batch := 9) WHERE key_key = 3"
    >>> ckpt.run_sql(connection, question).fetchall()
    [(14,)]
    """
    duckdb, session = import_duckdb(_PURPOSE), find_session(connection)
    if not _is_question(_extract(connection, statement)) and not _is_question(
        _extract(connection, _EXPLAIN.sub("", statement, count=1))
    ):
        raise UsageError(_ONLY)
    session.forget_missing()
    while True:
        session.catalog.failure = None
        try:
            return connection.sql(statement)
        except duckdb.CatalogException as error:
            if not session.register_states(connection):
                raise UsageError(first_line(error)) from None
        except duckdb.Error as error:
            raise explain_failure(session.catalog, error) from None


def split_statements(connection: Any, text: str) -> list[str]:
    """Split a text into its statements. Raises UsageError where it cannot be read."""
    return [statement.query.strip() for statement in _extract(connection, text)]


def _extract(connection: Any, text: str) -> list[Any]:
    try:
        return list(connection.extract_statements(text))
    except import_duckdb(_PURPOSE).Error as error:
        raise UsageError(f"the statement cannot be read: {first_line(error)}") from None


def _is_question(statements: list[Any]) -> bool:
    """Tell whether it is one SELECT. EXPLAIN may have any statement below it, and runs that with ANALYZE."""
    try:
        return [statement.type.name for statement in statements] == ["SELECT"]
    except ValueError:  # a kind that the Python package of DuckDB has no name for
        return False


def find_session(connection: Any) -> _Session:
    """The session of a connection. Raises UsageError for a connection of somebody else."""
    try:
        return _SESSIONS[connection]
    except (KeyError, TypeError):
        raise UsageError("the connection does not come from ckpt.connect") from None


def list_problems(connection: Any) -> tuple[str, ...]:
    """Roots and checkpoints that could not be read so far, one line each."""
    return tuple(find_session(connection).catalog.problems)


def read_results(connection: Any, relation: Any, *, even_empty: bool = False) -> Iterator[Any]:
    """The record batches of a relation of ``run_sql``, with ``even_empty`` at least one. Raises as ``run_sql``."""
    duckdb, catalog = import_duckdb(_PURPOSE), find_session(connection).catalog
    try:
        reader = (getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch)()
        if even_empty:
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
        yield from reader
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise explain_failure(catalog, error) from None


def explain_failure(catalog: Catalog, error: Exception) -> CkptError:
    """The error of ckpt behind one of DuckDB, or what DuckDB says."""
    if isinstance(catalog.failure, CkptError):
        return catalog.failure
    return UsageError(first_line(error))
