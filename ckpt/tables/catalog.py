"""The checkpoints below some roots, read when a statement needs them, and each no further than it needs."""

import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, SOURCES, STATE
from ckpt.checkpoint.reader import look_beside, read_checkpoint
from ckpt.errors import CkptError, StorageError, UsageError
from ckpt.inspection.inspection import inspect
from ckpt.inspection.scan.rows import make_unreadable_row
from ckpt.inspection.scan.scan import discover
from ckpt.storage import Folder, Root, Storage, open_storage
from ckpt.storage.base import Listing, ReadRequest
from ckpt.tables.log_tables import TABLES, Needs, TableDeclaration, describe_checkpoint
from ckpt.texts import mask_secrets

_AT_ONCE = 8  # remote checkpoints that are read side by side


class _WithoutState(Storage):
    """A checkpoint's storage in which ``state/`` is neither listed nor read."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self.uri, self.local, self.whole_files = root.uri, root.local, root.whole_files

    def list_level(self, path: str = "") -> Folder:
        """List one folder."""
        return self._root.list_level(path)

    def list_tree(self, *, tolerant: bool = False) -> Listing:
        """List the logs, folder by folder; behind links the whole tree is listed, which says where they lead."""
        top = self._root.list_level()
        if top.links:
            whole = self._root.list_tree()
            folders = {path: files for path, files in whole.folders.items() if path.partition("/")[0] != STATE}
            return Listing(folders, whole.oddities, whole.links)
        listed: dict[str, Any] = {"": top.files}
        oddities, links = dict[str, Any](), set[str]()
        for part in (OFFSETS, COMMITS, SOURCES):
            if part in top.folders:
                inner = self._root.below(part).list_tree()
                listed |= {f"{part}/{path}".rstrip("/"): files for path, files in inner.folders.items()}
                oddities |= {f"{part}/{path}": oddity for path, oddity in inner.oddities.items()}
                links |= {f"{part}/{path}" for path in inner.links}
        return Listing(listed, oddities, links)

    def read_many(self, requests: Iterable[ReadRequest]) -> list[bytes | StorageError]:
        """Read as the storage itself does."""
        return self._root.read_many(requests)


@dataclass
class Catalog:
    """Roots, the checkpoints below them, and the rows that statements have read so far."""

    roots: tuple[str, ...]
    options: Mapping[str, str]
    depth: int | None = None
    problems: list[str] = field(default_factory=list)  # roots and checkpoints that could not be read
    failure: BaseException | None = None  # that ended the reading of a table
    _rows: dict[tuple[str, Needs], Mapping[str, Any]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @cached_property
    def checkpoints(self) -> Mapping[str, Root]:
        """The checkpoints by URI, with the secrets in it masked: listed when this is first asked for."""
        checkpoints: dict[str, Root] = {}
        for uri in self.roots:
            try:
                root = open_storage(uri, self.options)
                discovered = discover(root, self.depth)
            except CkptError as error:
                self._complain(str(error))
                continue
            if not discovered.checkpoints:
                self._complain(f"{uri}: there is no checkpoint here")
            for folder, why in discovered.unlisted:
                self._complain(f"{root.below(folder).uri}: {why}")
            for path in discovered.checkpoints:
                storage = root.below(path) if path else root
                checkpoints.setdefault(mask_secrets(storage.uri), storage)
        return checkpoints

    def find(self, name: str) -> str:
        """The URI of a checkpoint, from that or its last folders. Raises UsageError for another place."""
        if name in self.checkpoints:
            return name
        end = f"/{name.strip('/')}"
        fits = [uri for uri in self.checkpoints if uri.rstrip("/").endswith(end)]
        if len(fits) == 1:
            return fits[0]
        why = "several checkpoints have this name" if fits else "it is not among the checkpoints below the roots"
        raise UsageError(f"state('{mask_secrets(name)}'): {why}")

    def read_table(self, table: TableDeclaration, equal: Mapping[str, Any]) -> Iterator[Any]:
        """The record batches of a table, or of one checkpoint in it; ``equal`` are values by column."""
        only = equal["checkpoint"].as_py() if "checkpoint" in equal else None
        uris = [uri for uri in self.checkpoints if only in (None, uri)]
        if all(self.checkpoints[uri].local for uri in uris):
            yield from (self._read(uri, table) for uri in uris)
            return
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ckpt-sql") as pool:
            yield from pool.map(lambda uri: self._read(uri, table), uris)

    def _read(self, uri: str, table: TableDeclaration) -> Any:
        key = uri, table.needs
        if key not in self._rows:
            self._rows[key] = self._look(uri, table.needs)
        return self._rows[key][table.name]

    def _look(self, uri: str, needs: Needs) -> Mapping[str, Any]:
        """Read a checkpoint as far as is needed: the rows of each table that needs no more."""
        tables = [table for table in TABLES.values() if table.needs is needs]
        try:
            subject = _read_subject(self.checkpoints[uri], needs, self.options)
            return {table.name: table.batch(uri, subject) for table in tables}
        except Exception as error:  # whatever one checkpoint does to ckpt, the others are looked at
            known = isinstance(error, CkptError)
            why = str(error) if known else f"{uri}: ckpt failed ({type(error).__name__}: {error})"
            self._complain(why)
            row = (uri, *describe_checkpoint(make_unreadable_row(uri, why)))
            return {table.name: table.fill([row] if table.name == "checkpoints" else []) for table in tables}

    def _complain(self, why: str) -> None:
        with self._lock:
            if why not in self.problems:
                self.problems.append(why)


def _read_subject(root: Root, needs: Needs, options: Mapping[str, str]) -> Any:
    match needs:
        case Needs.NAMES:
            return root.list_tree()
        case Needs.LOGS:
            return read_checkpoint(_WithoutState(root), batches=0, look_only=True)
        case Needs.INSPECTION:
            return inspect(look_beside(read_checkpoint(root, look_only=True), options))


@dataclass(frozen=True)
class _Reader:
    """As much of a scanner of Arrow as DuckDB asks for."""

    projected_schema: Any
    batches: Iterator[Any]

    def to_reader(self) -> Any:
        """Read the batches as they are asked for."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.batches)


ReadRows: TypeAlias = Callable[[Mapping[str, Any]], Iterator[Any]]
"""Reads record batches of all columns; rows without the given values, by column, may be left out."""


class LazyTable(ds.Dataset):  # type: ignore[misc]
    """A dataset whose rows are read when somebody scans it, with the condition under which they are wanted."""

    def __init__(self, catalog: Catalog, schema: Any, read_rows: ReadRows) -> None:
        """Take the columns, for which DuckDB asks before it scans, and what reads the rows."""
        self._catalog, self._schema, self._read_rows = catalog, schema, read_rows

    @property
    def schema(self) -> Any:
        """The columns."""
        return self._schema

    def scanner(self, columns: Any = None, filter: Any = None, **how: Any) -> Any:
        """Answer as a scanner does, for DuckDB: with a reader that starts no threads, which would outlive it."""
        schema = self._schema if columns is None else pa.schema([self._schema.field(name) for name in columns])
        batches = self._watch(find_equalities(filter, self._schema))
        fitting = (batch if filter is None else batch.filter(filter) for batch in batches)
        return _Reader(schema, (batch.select(schema.names) for batch in fitting))

    def _watch(self, equal: Mapping[str, Any]) -> Iterator[Any]:
        """Remember why a reading failed: DuckDB has only a text of it."""
        try:
            yield from self._read_rows(equal)
        except BaseException as error:
            self._catalog.failure = error
            raise


_LEAF = re.compile(r'\(([^\s()"]+) (==|!=|<=|>=|<|>) (-?\d+|"[^"\\]*")\)|is_valid\(([^\s()"]+)\)')
_AND = " and "
_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find_equalities(condition: Any, schema: Any) -> dict[str, Any]:
    """The scalar that each column has to equal, as far as it is certain; none where the condition is not understood.

    Whole numbers and texts only: others are compared by DuckDB alone.
    """
    text, equal = str(condition), dict[str, Any]()  # of no condition a text that is none
    with suppress(ValueError, KeyError, RecursionError, pa.ArrowException):
        built, end = _build(text, 0, schema, equal)
        if end == len(text) and built.equals(condition):
            return equal
    return {}


def _build(text: str, at: int, schema: Any, equal: dict[str, Any]) -> tuple[Any, int]:
    """Build the expression that begins at a place of the text; also where it ends. Raises ValueError."""
    leaf = _LEAF.match(text, at)
    if leaf is not None:
        name, compare, literal, valid = leaf.groups()
        if valid is not None:
            return pc.field(valid).is_valid(), leaf.end()
        kind = schema.field(name).type
        quoted = literal.startswith('"')
        if not (pa.types.is_string(kind) if quoted else pa.types.is_integer(kind)):
            raise ValueError(name)
        value = pa.scalar(literal[1:-1] if quoted else int(literal), kind)
        if compare == "==":
            equal[name] = value
        return _COMPARE[compare](pc.field(name), value), leaf.end()
    if not text.startswith("(", at):
        raise ValueError(text)
    left, end = _build(text, at + 1, schema, equal)
    if not text.startswith(_AND, end):
        raise ValueError(text)
    right, end = _build(text, end + len(_AND), schema, equal)
    if not text.startswith(")", end):
        raise ValueError(text)
    return left & right, end + 1
