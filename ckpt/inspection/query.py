"""Read ``query.json``: the query's expectations of its checkpoint, which ``describe_query`` writes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ckpt.errors import UsageError, one_line
from ckpt.model import Json
from ckpt.storage.local import read_text
from ckpt.values import Value
from ckpt.versions import Spark

SCHEMA = 1  # of ``query.json``


@dataclass(frozen=True, slots=True)
class DescribedSource:
    """A streaming source of a query. Of its options only those that are named here are kept, so no secret is."""

    kind: str  # kafka, delta, file, rate, rate-micro-batch, or another name
    topics: tuple[str, ...] | None = None  # of Kafka: subscribed or assigned; None where a pattern says which
    fail_on_data_loss: bool = True
    path: str | None = None  # of files
    recursive: bool = False  # recursiveFileLookup
    partitions: bool = False  # its folder has folders such as ``day=1``


@dataclass(frozen=True, slots=True)
class DescribedFamily:
    """A column family, or the whole of a store that has none, with schemas as Spark writes them in JSON."""

    name: str
    key: Json
    value: Json


@dataclass(frozen=True, slots=True)
class DescribedStore:
    """A state store of an operator."""

    name: str
    families: tuple[DescribedFamily, ...]


@dataclass(frozen=True, slots=True)
class DescribedOperator:
    """A stateful operator, named as in operator metadata; without stores where this Spark does not describe them."""

    name: str
    stores: tuple[DescribedStore, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)  # of transformWithState: name to kind
    time_mode: str | None = None
    output_mode: str | None = None


@dataclass(frozen=True, slots=True)
class QueryDescription(Value):
    """The query's expectations of its checkpoint, as ``describe_query`` finds them."""

    spark: Spark  # that planned it
    output_mode: str
    sources: tuple[DescribedSource, ...]  # in the order of the offset log
    operators: tuple[DescribedOperator, ...] | None  # by their ids; None where Spark could not plan the query
    unsupported: str | None  # why Spark refuses the query with any checkpoint
    unplanned: str | None  # why Spark could not plan it with these settings
    settings: Mapping[str, str]  # that the plan depends on, as it was made with them

    def to_json(self) -> str:
        """Write the content of ``query.json``, the same for the same query, so that a change shows in a diff."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, sort_keys=True) + "\n"

    def write(self, path: str) -> None:
        """Write ``query.json``. Raises UsageError where the file cannot be written."""
        try:
            Path(path).write_text(self.to_json(), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{one_line(path)} cannot be written: {error.strerror}") from error

    @staticmethod
    def read(path: str) -> "QueryDescription":
        """Read what ``write`` wrote. Raises UsageError.

        >>> query = ckpt.types.QueryDescription.read("docs/query.json")
        >>> query.spark.value, query.output_mode, [operator.name for operator in query.operators]
        ('4.2', 'update', ['stateStoreSave'])

        """
        try:
            text = read_text(path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise UsageError(f"{one_line(path)} cannot be read: {why}") from error
        try:
            return parse_query(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{one_line(path)} is no description of a query as `describe_query` writes it") from error


def parse_query(value: Any) -> QueryDescription:
    """Build the record of a parsed ``query.json``. Raises KeyError, TypeError, AttributeError or ValueError."""
    if value["schema"] != SCHEMA:
        raise ValueError("another schema")
    operators = value["operators"]
    return QueryDescription(
        spark=Spark(value["spark"]),
        output_mode=str(value["output_mode"]),
        sources=tuple(_parse_source(part) for part in value["sources"]),
        operators=None if operators is None else tuple(_parse_operator(part) for part in operators),
        unsupported=value["unsupported"],
        unplanned=value.get("unplanned"),
        settings={str(name): str(setting) for name, setting in value["settings"].items()},
    )


def _parse_source(value: Any) -> DescribedSource:
    return DescribedSource(
        str(value["kind"]),
        None if value["topics"] is None else tuple(map(str, value["topics"])),
        value["fail_on_data_loss"] is not False,
        value["path"],
        value.get("recursive") is True,
        value.get("partitions") is True,
    )


def _parse_operator(value: Any) -> DescribedOperator:
    stores = tuple(DescribedStore(str(store["name"]), _parse_families(store)) for store in value["stores"])
    variables = {str(name): str(kind) for name, kind in value["variables"].items()}
    return DescribedOperator(str(value["name"]), stores, variables, value["time_mode"], value["output_mode"])


def _parse_families(store: Any) -> tuple[DescribedFamily, ...]:
    return tuple(DescribedFamily(str(part["name"]), part["key"], part["value"]) for part in store["families"])
