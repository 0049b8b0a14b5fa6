"""The log of a Delta table: which files make its newest version, and which transaction each writer has there last.

A version is ``_delta_log/<20 digits>.json``, a line of JSON for each action. A checkpoint has the actions of all
versions up to its own, as Parquet, in one file or in several, or (v2) also as JSON; older ``.json`` files are deleted
in time. ``txn`` is what ``DeltaSink.addBatch`` writes in each batch: ``appId`` is the query id, ``version`` the batch.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf
from typing import NamedTuple

from ckpt.formats.extract import fields_of, long_field, object_field, text_field
from ckpt.formats.text import Damaged, exact_json
from ckpt.model import Fault, Json

_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint(?:\.([0-9]{10})\.([0-9]{10}))?\.parquet")
_CHECKPOINT_V2 = re.compile(r"([0-9]{20})\.checkpoint\.[0-9a-fA-F-]{36}\.(?:json|parquet)")
_WANTED = (b'"txn"', b'"metaData"', b'"RESTORE"')
RETENTION = "delta.setTransactionRetentionDuration"
"""The property of a table that lets it forget transactions; not set by default."""

_VECTOR = ("storageType", "pathOrInlineDv", "offset")  # that make the id of a deletion vector
_EARLIER = 50  # versions in which a RESTORE is looked for: Delta writes a checkpoint right after it
_SECONDS = {"week": 604800.0, "day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0}
_UNITS = {**_SECONDS, "millisecond": 1e-3, "microsecond": 1e-6}
_AMOUNT = re.compile(r"\s+(-?[0-9]+(?:\.[0-9]+)?)\s+([a-z]+?)s?(?=\s|$)")


class Segment(NamedTuple):
    """The files that together say what the newest version of a table is."""

    checkpoint: tuple[str, ...]  # the files of the newest complete one; none: all versions have their own
    commits: tuple[str, ...]  # of the versions after it, in order
    version: int  # the newest
    earlier: tuple[str, ...]  # the newest versions that the checkpoint has, as far as they are still there


class Transaction(NamedTuple):
    """The last transaction of one writer (Delta class ``SetTransaction``)."""

    app_id: str  # of a streaming query its id, of a foreachBatch with txnAppId what that says
    version: int  # the batch id, or txnVersion
    updated_ms: int | None


class TableSettings(NamedTuple):
    """The part of a table's metadata that is about transactions."""

    retention: str | None  # how long they count, in Delta's words; None: forever
    created_ms: int | None = None  # when the table was created, or replaced (``Metadata.createdTime``)


class Restore(NamedTuple):
    """The table was taken back; transactions stay as they are."""

    to_version: int | None  # None: a time was named, not a version


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows that a version adds to a table or removes from it."""

    path: str
    vector: str  # of deleted rows; empty: none
    added: bool


class Commit(NamedTuple):
    """Who wrote a version, and how (Delta class ``CommitInfo``)."""

    version: int
    operation: str | None = None  # such as STREAMING UPDATE, WRITE, RESTORE; None: it does not say so
    query_id: str | None = None  # of the streaming query that wrote it
    restored: int | None = None  # of a RESTORE to a version: that one
    time_ms: int | None = None  # when it was written, where the table keeps that (``inCommitTimestamp``)


Action = Transaction | TableSettings | Restore
"""Actions of a line of the log that ckpt reads."""


def choose_segment(names: Iterable[str]) -> Segment:
    """Choose among the names in ``_delta_log``. Raises Damaged where versions are missing."""
    listed = sorted(names)
    commits = {int(match[1]): name for name in listed if (match := _COMMIT.fullmatch(name))}
    begin, files = max(_checkpoints(listed).items(), default=(-1, ()))
    version = max((begin, *commits))
    if version < 0:
        raise Damaged(Fault.INCOMPLETE, "it has no version")
    gap = next((number for number in range(begin + 1, version + 1) if number not in commits), None)
    if gap is not None:
        raise Damaged(Fault.INCOMPLETE, f"it lacks version {gap}, and has no later checkpoint")
    earlier = [commits[number] for number in takewhile(commits.__contains__, range(begin, begin - _EARLIER, -1))]
    later = tuple(commits[number] for number in range(begin + 1, version + 1))
    return Segment(files, later, version, tuple(reversed(earlier)))


def _checkpoints(names: Iterable[str]) -> Mapping[int, tuple[str, ...]]:
    """The complete checkpoints, by version."""
    checkpoints: dict[int, tuple[str, ...]] = {}
    parts: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if match := _CHECKPOINT_V2.fullmatch(name):
            checkpoints[int(match[1])] = (name,)
        elif match := _CHECKPOINT.fullmatch(name):
            if match[2] is None:
                checkpoints[int(match[1])] = (name,)
            else:
                parts.setdefault((int(match[1]), int(match[3])), []).append(name)
    checkpoints |= {version: tuple(same) for (version, count), same in parts.items() if len(same) == count}
    return checkpoints


def decode_action(line: bytes) -> Mapping[str, Json]:
    """Decode the JSON of a line of a version; an empty line has no action. Raises Damaged."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(Fault.BAD_BINARY, f"byte {error.start} of a line is not UTF-8 text") from None
    return fields_of(exact_json(text)) if text.strip() else {}


def parse_action(line: bytes) -> Action | None:
    """Parse a line of a version that is about transactions; None for every other action. Raises Damaged."""
    if not any(word in line for word in _WANTED):
        return None
    action = decode_action(line)
    if action.get("txn") is not None:
        return read_transaction(action["txn"])
    if action.get("metaData") is not None:
        return read_settings(action["metaData"])
    return _restore(action["commitInfo"]) if action.get("commitInfo") is not None else None


def version_of(name: str) -> int | None:
    """The version that a file of the log alone is; None for every other file."""
    match = _COMMIT.fullmatch(name)
    return int(match[1]) if match else None


def names_until(names: Iterable[str], version: int) -> Iterator[str]:
    """The names of those files of the log that are of a version or one before it."""
    return (name for name in names if not name[:20].isdecimal() or int(name[:20]) <= version)


def read_commit_info(version: int, line: bytes) -> Commit | None:
    """A line of a version, if it says who wrote that. Raises Damaged."""
    info = decode_action(line).get("commitInfo")
    if info is None:
        return None
    fields = fields_of(info)
    operation, time_ms = fields.get("operation"), fields.get("inCommitTimestamp")
    query_id = fields_of(fields.get("operationParameters") or {}).get("queryId")
    restore = _restore(info)
    return Commit(
        version,
        operation if isinstance(operation, str) else None,
        query_id if isinstance(query_id, str) else None,
        None if restore is None else restore.to_version,
        time_ms if isinstance(time_ms, int) else None,
    )


def _restore(value: Json) -> Restore | None:
    """A ``commitInfo``, if it is that of a RESTORE; one to a time does not say which version that is."""
    fields = fields_of(value)
    if fields.get("operation") != "RESTORE":
        return None
    version = str(fields_of(fields.get("operationParameters") or {}).get("version"))
    return Restore(int(version) if version.isdecimal() else None)


def parse_data_file(line: bytes) -> DataFile | None:
    """Parse a line of a version that adds or removes a file of rows; None for every other. Raises Damaged."""
    if b'"add"' not in line and b'"remove"' not in line:
        return None
    action = decode_action(line)
    for name in ("add", "remove"):
        if action.get(name) is not None:
            fields = fields_of(action[name])
            vector = fields_of(fields.get("deletionVector") or {})
            id_ = "|".join(str(vector[part]) for part in _VECTOR if vector.get(part) is not None)
            return DataFile(text_field(fields, "path") or "", id_, name == "add")
    return None


def find_restored(restored: Iterable[DataFile], before: Iterable[tuple[int, Iterable[DataFile]]]) -> int | None:
    """Find the version to which a RESTORE took a table, by the files that it adds and removes.

    ``before`` are the versions before it, the newest first. Of several with the rows it is the newest; None: of none.
    """
    wanted, steps = set(restored), set[DataFile]()  # steps: from the newest version back to an earlier one
    for version, files in before:
        if steps == wanted:
            return version
        for file in files:
            if file in steps:
                steps.remove(file)
            else:
                steps.add(replace(file, added=not file.added))
    return None


def read_transaction(value: Json) -> Transaction:
    """A ``txn``. Raises Damaged."""
    fields = fields_of(value)
    updated = fields.get("lastUpdated")
    return Transaction(
        text_field(fields, "appId") or "", long_field(fields, "version"), updated if isinstance(updated, int) else None
    )


def read_settings(value: Json) -> TableSettings:
    """A ``metaData``; of a checkpoint its configuration may be a list of pairs. Raises Damaged."""
    fields = fields_of(value)
    listed = fields.get("configuration")
    pairs = listed if isinstance(listed, list) else [*object_field(fields, "configuration").items()]
    retention = next((pair[1] for pair in pairs if isinstance(pair, tuple) and pair[0] == RETENTION), None)
    created_ms = fields.get("createdTime")
    return TableSettings(
        retention if isinstance(retention, str) else None, created_ms if isinstance(created_ms, int) else None
    )


def parse_retention_ms(text: str) -> float | None:
    """A duration such as ``interval 1 day 2 hours`` in ms (``CalendarInterval``); None if it is not understood.

    >>> [parse_retention_ms(text) for text in ("interval 30 days", "1 second", "a while")]
    [2592000000.0, 1000.0, None]
    """
    words = " " + re.sub(r"^\s*interval\b", "", text.lower()).strip()
    amounts = list(_AMOUNT.finditer(words))
    if "".join(match[0] for match in amounts) != words or {match[2] for match in amounts} - _UNITS.keys():
        return None
    total = sum(float(match[1]) * _UNITS[match[2]] for match in amounts)
    return total * 1000 if -inf < total < inf else None
