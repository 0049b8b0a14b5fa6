"""The metadata of an Iceberg table: which file has the newest, and what its snapshots say.

A commit is a snapshot. Its summary says what it did to rows, and of a streaming query which batch it was
(``SparkWrite.BaseStreamingWrite``). A table of a Hadoop catalog numbers its files (``v3.metadata.json``) and names one
in ``version-hint.text``; any other catalog keeps the name of the current one (``00003-<uuid>.metadata.json``) itself.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ckpt.formats.extract import fields_of, whole_number
from ckpt.formats.limits import LARGEST_ACTION
from ckpt.formats.text import Damaged, exact_json
from ckpt.model import Fault, Json
from ckpt.settings import ICEBERG_BATCH, ICEBERG_QUERY

VERSION_HINT = "version-hint.text"
_ENDING = r"(?:\.gz)?\.metadata\.json(?:\.gz)?"
_OF_HADOOP = re.compile(rf"v([0-9]{{1,9}}){_ENDING}")
_OF_A_CATALOG = re.compile(rf"([0-9]{{1,9}})-[0-9A-Za-z-]+{_ENDING}")
_OF_GZIP = 31  # the wbits of zlib for data in gzip format


class IcebergSnapshot(NamedTuple):
    """One commit (Iceberg class ``IcebergSnapshot``)."""

    id: int
    parent: int | None  # None: it is the first
    written_ms: int
    operation: str | None  # append, replace, overwrite or delete; None: not recorded
    added_files: int | None  # data files; None: not recorded
    added_rows: int | None
    query_id: str | None = None  # of the streaming query that wrote it
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table as a metadata file describes it."""

    id: str  # table-uuid
    current: int | None  # None: it has no snapshot
    snapshots: Mapping[int, IcebergSnapshot]  # also such as are no ancestor of the current one

    def ancestors(self) -> Iterator[IcebergSnapshot]:
        """The current snapshot and those before it, the newest first, as far back as they are there."""
        visited: set[int] = set()
        at = self.current
        while at is not None and at not in visited and at in self.snapshots:
            visited.add(at)
            yield self.snapshots[at]
            at = self.snapshots[at].parent


def is_metadata(name: str) -> bool:
    """Tell whether a file has the name of a metadata file."""
    return re.fullmatch(rf"[^/]+{_ENDING}", name) is not None


def choose_newest_metadata(names: Iterable[str], hint: bytes | None) -> str:
    """Choose among the names in ``metadata`` (``HadoopTableOperations``). Raises Damaged where only a catalog can.

    ``hint`` is what ``version-hint.text`` has; None where there is none.
    """
    listed = sorted(names)
    numbered = {int(match[1]): name for name in listed if (match := _OF_HADOOP.fullmatch(name))}
    others = [(int(match[1]), name) for name in listed if (match := _OF_A_CATALOG.fullmatch(name))]
    if numbered and others:
        raise Damaged(Fault.BAD_JSON, "it has metadata files of a Hadoop table and of another catalog")
    if numbered:
        return numbered[_version(numbered, hint)]
    if not others:
        raise Damaged(Fault.INCOMPLETE, "it has no metadata file")
    newest = max(number for number, _ in others)
    same = [name for number, name in others if number == newest]
    if len(same) > 1:
        raise Damaged(Fault.BAD_JSON, f"{len(same)} metadata files have the number {newest}")
    return same[0]


def _version(numbered: Mapping[int, str], hint: bytes | None) -> int:
    text = (hint or b"").strip()
    at = int(text) if text.isdigit() and len(text) < 10 else max(numbered)
    if at not in numbered:
        raise Damaged(Fault.INCOMPLETE, f"{VERSION_HINT} names version {at}, which does not exist")
    while at + 1 in numbered:
        at += 1
    return at


def parse_iceberg_table(raw: bytes) -> IcebergTable:
    """A metadata file, which may be compressed by gzip. Raises Damaged."""
    try:
        fields = fields_of(exact_json(_unzip(raw).decode("utf-8")))
    except UnicodeDecodeError as error:
        raise Damaged(Fault.BAD_BINARY, f"byte {error.start} is not UTF-8 text") from None
    listed = fields.get("snapshots", [])
    if whole_number(fields.get("format-version")) is None:
        raise Damaged(Fault.BAD_JSON, "it has no format-version, so it is not Iceberg metadata")
    if not isinstance(listed, list):
        raise Damaged(Fault.BAD_JSON, "its snapshots are not a list")
    snapshots = {snapshot.id: snapshot for snapshot in map(_snapshot, listed)}
    current = whole_number(fields.get("current-snapshot-id"))
    if current == -1:
        current = None
    if current is not None and current not in snapshots:
        raise Damaged(Fault.INCOMPLETE, f"its current snapshot {current} is not in it")
    return IcebergTable(str(fields.get("table-uuid") or ""), current, snapshots)


def _unzip(raw: bytes) -> bytes:
    if raw[:2] == b"\x1f\x8b":
        unpacking = zlib.decompressobj(_OF_GZIP)
        try:
            raw = unpacking.decompress(raw, LARGEST_ACTION + 1)
        except zlib.error as error:
            raise Damaged(Fault.BAD_BINARY, f"it cannot be unpacked: {error}") from None
    if len(raw) > LARGEST_ACTION:
        raise Damaged(Fault.TOO_LARGE, f"it has more than {LARGEST_ACTION:,} bytes")
    return raw


def _snapshot(value: Json) -> IcebergSnapshot:
    fields = fields_of(value)
    number, written = whole_number(fields.get("snapshot-id")), whole_number(fields.get("timestamp-ms"))
    if number is None or written is None:
        raise Damaged(Fault.BAD_JSON, "a snapshot has no id, or no time")
    summary = fields_of(fields.get("summary") or {})
    batch, query = _parse_count(summary.get(ICEBERG_BATCH)), summary.get(ICEBERG_QUERY)
    operation = summary.get("operation")
    return IcebergSnapshot(
        number,
        whole_number(fields.get("parent-snapshot-id")),
        written,
        operation if isinstance(operation, str) else None,
        _parse_count(summary.get("added-data-files"), none=operation),
        _parse_count(summary.get("added-records"), none=operation),
        query if isinstance(query, str) and batch is not None else None,
        batch,
    )


def _parse_count(value: Json, none: Json = None) -> int | None:
    """A number as summaries spell it; what is 0 is left out of a summary that says what was done."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        return int(value)
    return 0 if value is None and none is not None else None
