"""What the versions of a Delta table add and take away, as a streaming query sees it: files, their rows, schemas.

Only actions with ``dataChange`` count (``DeltaSource``): compaction writes rows again that a query has read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from ckpt.formats.extract import fields_of, text_field
from ckpt.formats.text import Damaged, exact_json
from ckpt.model import Fault, Json


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A data file that a version added."""

    path: str  # as the file system spells it: below the table, or a URI
    rows: int | None  # by the statistics
    modified_ms: int


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The id and the columns of a table."""

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


def table_version(lines: Iterable[bytes]) -> TableVersion:
    """A version by the lines of its file. Raises Damaged."""
    added: list[AddedFile] = []
    rearranged: list[AddedFile] = []
    removed: list[str] = []
    takes_rows, found, written = False, None, None
    for line in lines:
        action = _action(line)
        if (add := action.get("add")) is not None:
            (added if fields_of(add).get("dataChange") is True else rearranged).append(added_file(add))
        elif (remove := action.get("remove")) is not None:
            removed.append(_path(fields_of(remove)))
            takes_rows = takes_rows or fields_of(remove).get("dataChange") is True
        elif (metadata := action.get("metaData")) is not None:
            found = table_metadata(metadata)
        elif (info := action.get("commitInfo")) is not None:
            time = fields_of(info).get("timestamp")
            written = time if isinstance(time, int) else None
    return TableVersion(tuple(added), tuple(rearranged), tuple(removed), takes_rows, found, written)


def _action(line: bytes) -> Mapping[str, Json]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(Fault.BAD_BINARY, f"byte {error.start} of a line is not UTF-8 text") from None
    return fields_of(exact_json(text)) if text.strip() else {}


def added_file(value: Json) -> AddedFile:
    """An ``add``. Raises Damaged."""
    fields = fields_of(value)
    modified = fields.get("modificationTime")
    return AddedFile(_path(fields), _rows(fields.get("stats")), modified if isinstance(modified, int) else 0)


def _path(fields: Mapping[str, Json]) -> str:
    return unquote(text_field(fields, "path") or "")


def _rows(stats: Json) -> int | None:
    try:
        rows = fields_of(exact_json(stats)).get("numRecords") if isinstance(stats, str) else None
    except Damaged:
        return None
    return rows if isinstance(rows, int) else None


def table_metadata(value: Json) -> TableMetadata:
    """A ``metaData``. Raises Damaged."""
    fields = fields_of(value)
    return TableMetadata(text_field(fields, "id") or "", exact_json(text_field(fields, "schemaString") or "{}"))


def reads_as(old: Json, new: Json) -> bool:
    """Whether a query with the columns of one version can read those of another: columns may come and get a wider type.

    None may go or get another name. Delta refuses the types that it cannot widen when the table is changed.

    >>> reads_as("integer", "long")
    True
    """
    if isinstance(old, str) or isinstance(new, str):
        return isinstance(old, str) and isinstance(new, str)
    before, after = fields_of(old), fields_of(new)
    if before.get("type") == after.get("type") == "struct":
        columns = {_name(one): one for one in _columns(after)}
        return all(_name(one) in columns and _column_reads_as(one, columns[_name(one)]) for one in _columns(before))
    kinds = ("type", "elementType", "keyType", "valueType")
    return all((kind in before) == (kind in after) for kind in kinds) and all(
        reads_as(before[kind], after[kind]) for kind in kinds if kind in before
    )


def _columns(struct: Mapping[str, Json]) -> Iterable[Mapping[str, Json]]:
    fields = struct.get("fields")
    return [one for one in fields if isinstance(one, dict)] if isinstance(fields, list) else []


def _name(column: Mapping[str, Json]) -> Json:
    name = column.get("name")
    return name.lower() if isinstance(name, str) else name


def _column_reads_as(old: Mapping[str, Json], new: Mapping[str, Json]) -> bool:
    return reads_as(old.get("type"), new.get("type"))
