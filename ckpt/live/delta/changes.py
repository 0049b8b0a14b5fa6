"""Versions of a Delta table as a streaming query sees them: files that they add and take away, rows, schemas.

Only actions with ``dataChange`` count (``DeltaSource``): compaction writes rows again that a query has read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from ckpt.formats.deltalog import decode_action
from ckpt.formats.extract import fields_of, text_field
from ckpt.formats.text import Damaged, exact_json
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class AddedFile:
    """Data file that a version added."""

    path: str  # as the file system spells it: below the table, or a URI
    rows: int | None  # by the statistics
    modified_ms: int


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """Id and columns of a table."""

    id: str
    columns: Json  # the StructType as Spark writes it


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version, as far as it changes rows."""

    added: tuple[AddedFile, ...] = ()  # in the order in which a query counts them
    rearranged: tuple[AddedFile, ...] = ()  # which hold rows of earlier files
    removed: tuple[str, ...] = ()  # all, also those whose rows are in other files
    takes_rows: bool = False
    metadata: TableMetadata | None = None
    written_ms: int | None = None


def parse_version(lines: Iterable[bytes]) -> TableVersion:
    """Parse a version from the lines of its file. Raises Damaged."""
    added: list[AddedFile] = []
    rearranged: list[AddedFile] = []
    removed: list[str] = []
    takes_rows, newest, written_ms = False, None, None
    for line in lines:
        action = decode_action(line)
        if (add := action.get("add")) is not None:
            (added if fields_of(add).get("dataChange") is True else rearranged).append(parse_added_file(add))
        elif (remove := action.get("remove")) is not None:
            removed.append(_decode_path(fields_of(remove)))
            takes_rows = takes_rows or fields_of(remove).get("dataChange") is True
        elif (metadata := action.get("metaData")) is not None:
            newest = parse_metadata(metadata)
        elif (info := action.get("commitInfo")) is not None:
            time = fields_of(info).get("timestamp")
            written_ms = time if isinstance(time, int) else None
    return TableVersion(tuple(added), tuple(rearranged), tuple(removed), takes_rows, newest, written_ms)


def parse_added_file(value: Json) -> AddedFile:
    """Parse an ``add``. Raises Damaged."""
    fields = fields_of(value)
    modified = fields.get("modificationTime")
    return AddedFile(
        _decode_path(fields), _parse_rows(fields.get("stats")), modified if isinstance(modified, int) else 0
    )


def _decode_path(fields: Mapping[str, Json]) -> str:
    return unquote(text_field(fields, "path") or "")


def _parse_rows(stats: Json) -> int | None:
    try:
        rows = fields_of(exact_json(stats)).get("numRecords") if isinstance(stats, str) else None
    except Damaged:
        return None
    return rows if isinstance(rows, int) else None


def parse_metadata(value: Json) -> TableMetadata:
    """Parse a ``metaData``. Raises Damaged."""
    fields = fields_of(value)
    return TableMetadata(text_field(fields, "id") or "", exact_json(text_field(fields, "schemaString") or "{}"))


def reads_as(old: Json, new: Json) -> bool:
    """Tell whether a query with the columns of a version can read those of another: they may come, or get a wider type.

    None may go or get another name. Delta refuses the types that it cannot widen when the table is changed.

    >>> reads_as("integer", "long")
    True
    """
    if isinstance(old, str) or isinstance(new, str):
        return isinstance(old, str) and isinstance(new, str)
    before, after = fields_of(old), fields_of(new)
    if before.get("type") == after.get("type") == "struct":
        columns = {_lower_name(column): column for column in _list_columns(after)}
        return all(
            _lower_name(column) in columns and reads_as(column.get("type"), columns[_lower_name(column)].get("type"))
            for column in _list_columns(before)
        )
    kinds = ("type", "elementType", "keyType", "valueType")
    return all((kind in before) == (kind in after) for kind in kinds) and all(
        reads_as(before[kind], after[kind]) for kind in kinds if kind in before
    )


def _list_columns(struct: Mapping[str, Json]) -> Iterable[Mapping[str, Json]]:
    fields = struct.get("fields")
    return [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []


def _lower_name(column: Mapping[str, Json]) -> Json:
    name = column.get("name")
    return name.lower() if isinstance(name, str) else name
