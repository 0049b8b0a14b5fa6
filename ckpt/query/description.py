"""Records what a query expects of its checkpoint: ``query.json``, which ``describe_query`` writes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ckpt.advice import Code, words
from ckpt.errors import UsageError, one_line
from ckpt.formats.types import fields_of
from ckpt.model import Json
from ckpt.storage.local import read_text
from ckpt.values import Value, parse_record
from ckpt.versions import Spark

SCHEMA = 1  # of ``query.json``
NOT_DESCRIBED = (
    "user code, the content of tables, random numbers and the clock, session settings that are not described, the "
    "trigger, and the sink with its options"
)
"""Parts of a query that decide rows or values, and are in no description."""


@dataclass(frozen=True, slots=True)
class DescribedSource:
    """A streaming source of a query. Of its options only those are kept that decide what it reads, so no secret is."""

    kind: str  # kafka, delta, file, rate, rate-micro-batch, or another name
    topics: tuple[str, ...] | None = None  # of Kafka: subscribed or assigned; None where a pattern says which
    fail_on_data_loss: bool = True
    path: str | None = None  # of files
    recursive: bool = False  # recursiveFileLookup
    partitions: bool = False  # its folder has folders such as ``day=1``
    name: str | None = None  # Spark 4.2 or later: of ``DataStreamReader.name``
    schema: Json = None  # its columns, as Spark writes a StructType in JSON; None: an old file
    start: Mapping[str, str] = field(default_factory=dict)  # such as ``startingoffsets``: names in small letters
    options: Mapping[str, str] = field(default_factory=dict)  # that decide rows and values (``reader_options.py``)
    limits: tuple[str, ...] = ()  # options that real-time mode refuses: ``maxoffsetspertrigger``, ``minpartitions``


@dataclass(frozen=True, slots=True)
class DescribedFamily:
    """A column family, or the whole of a store that has none, with schemas as Spark writes them in JSON."""

    name: str
    key: Json
    value: Json
    key_encoder: Json = None  # keyStateEncoderSpec, schema file v3
    user_key: Json = None  # of a map variable, schema file v3


@dataclass(frozen=True, slots=True)
class DescribedStore:
    """A state store of an operator."""

    name: str
    families: tuple[DescribedFamily, ...]
    prefix_columns: int | None = None  # how many columns of the key are its prefix (``numColsPrefixKey``)
    schema_version: int | None = None  # of its schema file: 2 or 3


@dataclass(frozen=True, slots=True)
class DescribedExpression:
    """An expression over the columns of sources, whatever they are called in between.

    ``sql`` names a column with the number of its source, ``amount@0``. ``{0: amount@0 | 1: price@1}`` is a column of a
    union. A string literal is a digest, and ``?`` stands for what cannot be compared, such as user code. Brackets have
    what else decides values: options of a reader of texts, a time zone, or which table is read.
    """

    sql: str
    type: Json  # of its values, as Spark writes it in JSON
    name: str | None = None  # in the query


@dataclass(frozen=True, slots=True)
class DescribedBuffer:
    """A column of state that an aggregate function keeps."""

    name: str  # as in the value schema
    type: Json
    nullable: bool
    empty: Json = None  # before the first row, as Spark computes it: bytes as hexadecimal text, a decimal as text
    empty_known: bool = True


@dataclass(frozen=True, slots=True)
class DescribedAggregate:
    """An aggregate function, in the order of the value schema."""

    function: str  # Spark's class: ``Sum``
    sql: str  # as in ``DescribedExpression``, without DISTINCT and FILTER
    distinct: bool
    filter: str | None  # FILTER (WHERE ...)
    name: str | None  # of the result column that is this aggregate; None where it is part of an expression
    buffers: tuple[DescribedBuffer, ...]
    declarative: bool | None = None  # its buffers are computed by expressions of Spark SQL; None: an old file
    kept: str | None = None  # as ``sql``, without arguments that only its result depends on; None: it has none
    result: Json = None  # the type of its result; None: an old file


@dataclass(frozen=True, slots=True)
class DescribedWindow:
    """A time window that groups rows; times in microseconds, as Spark has them."""

    column: str  # the time, as in ``DescribedExpression.sql``
    length_us: int
    slide_us: int
    offset_us: int


@dataclass(frozen=True, slots=True)
class DescribedWatermark:
    """``withWatermark``."""

    column: str  # the time, as in ``DescribedExpression.sql``
    delay_ms: int


@dataclass(frozen=True, slots=True)
class DescribedSide:
    """A side of a stream-stream join."""

    sources: tuple[int, ...]
    keys: tuple[DescribedExpression, ...]  # that have to be equal to those of the other side
    columns: tuple[DescribedExpression, ...]  # that its state keeps, in the order of the value schema


@dataclass(frozen=True, slots=True)
class DescribedJoin:
    """A stream-stream join."""

    how: str  # Inner, LeftOuter, ...
    left: DescribedSide
    right: DescribedSide
    condition: str | None  # besides equality


@dataclass(frozen=True, slots=True)
class DescribedOperator:
    """A stateful operator, named as in operator metadata; without stores where this Spark does not describe them.

    What is None is not known (an old file, or a plan that ckpt does not understand) or does not belong to this kind.
    """

    name: str
    stores: tuple[DescribedStore, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)  # of transformWithState: name to kind
    time_mode: str | None = None
    output_mode: str | None = None
    properties: Json = None  # operatorPropertiesJson, parsed
    metadata_version: int | None = None  # of its operator metadata: 1 or 2
    keys: tuple[DescribedExpression, ...] | None = None  # of groups, or the columns of a deduplication
    aggregates: tuple[DescribedAggregate, ...] | None = None
    window: DescribedWindow | None = None
    gap: str | None = None  # of session windows: as Spark writes an interval, or an expression
    join: DescribedJoin | None = None
    limit: int | None = None  # of the operator ``globalLimit``
    filters: tuple[str, ...] | None = None  # conditions that rows have passed before it, sorted
    conditions: tuple[str, ...] | None = None  # likewise, as the query has them: with ``IS NOT NULL`` and generators
    inputs: tuple[int, ...] | None = None  # ids of the stateful operators whose rows it gets; None: an old file


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
    watermarks: tuple[DescribedWatermark, ...] | None = None  # sorted; None: an old file
    session: Mapping[str, str] | None = None  # settings that decide values and are in no log; None: an old file

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
        except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            no_description = words(
                "{path} is not a query description written by {describe}",
                path=one_line(path),
                describe=Code("ckpt.describe_query"),
            )
            raise UsageError(no_description) from error


def read_query(query: QueryDescription | str | None) -> QueryDescription | None:
    """Read a description that was given as a file. Raises UsageError."""
    return QueryDescription.read(query) if isinstance(query, str) else query


def parse_query(value: Any) -> QueryDescription:
    """Build the record of a parsed ``query.json``. Raises KeyError, TypeError, AttributeError or ValueError."""
    if value["schema"] != SCHEMA:
        raise ValueError("another schema")
    description: QueryDescription = parse_record(QueryDescription, {"unplanned": None, **value})
    return description


def list_fields(schema: Json) -> list[dict[str, Json]]:
    """List the fields of a StructType in Spark's JSON."""
    return [field for field in fields_of(schema) or () if isinstance(field, dict)]


def spell_schema(schema: Json) -> str:
    """Spell a schema in one line: ``struct<key: long not null, count: long>``."""
    if not isinstance(schema, dict):
        return str(schema)
    match schema.get("type"):
        case "struct":
            columns = (
                f"{field.get('name')}: {spell_schema(field.get('type'))}"
                + (" not null" if field.get("nullable") is False else "")
                for field in list_fields(schema)
            )
            return f"struct<{', '.join(columns)}>"
        case "array":
            return f"array<{spell_schema(schema.get('elementType'))}>"
        case "map":
            return f"map<{spell_schema(schema.get('keyType'))}, {spell_schema(schema.get('valueType'))}>"
    return str(schema.get("class") or schema.get("type"))
