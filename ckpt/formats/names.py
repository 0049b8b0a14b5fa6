"""Names of batch files in a folder, as Spark lists them.

``HDFSMetadataLog.isBatchFile`` (all versions) asks whether Java's ``Long.parseLong`` accepts the entire name,
and ``CompactibleFileStreamLog`` asks the same after taking ``.compact`` off its end. So ``007``, ``+5``,
``-1`` and digits of other scripts are batch ids to Spark, though ``batchIdToPath`` never writes such a name
and never opens one.

Compactible logs are ``sources/<k>`` of a file source and ``_spark_metadata`` of a file sink. Spark's
``CompactibleFileStreamLog`` writes one file for each entry and replaces all before it every so many entries by
``N.compact``. To restore the log (``allFiles``) it needs the newest compacted file and every one behind it. Older files
may or may not exist. From the number of entries between compacted files it derives the interval, and from the interval
which of the needed files must be a compacted one; so a lost ``.compact`` is a hole even if the plain file is there.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import isqrt
from typing import NamedTuple
from unicodedata import decimal

COMPACT = ".compact"
"""The ending of a compacted log file (``CompactibleFileStreamLog.COMPACT_FILE_SUFFIX``)."""

DEFAULT_INTERVAL = 10
"""``spark.sql.streaming.fileSource.log.compactInterval`` and ``...fileSink.log.compactInterval``."""

_MAX_LONG = 2**63 - 1
_MAX_INT = 2**31 - 1


class BatchNames(NamedTuple):
    """The names of one log folder, sorted into what they are to Spark."""

    ids: tuple[int, ...]  # that have a file of exactly the name Spark writes; sorted
    odd: Mapping[str, int]  # names that Spark takes for these batch ids, and would never write or open itself
    others: tuple[str, ...]  # hidden files, checksums, temporary and foreign files: not seen by the listing


def parse_java_long(text: str) -> int | None:
    """Parse a number as Java's ``Long.parseLong`` does; None where it throws ``NumberFormatException``.

    One sign, then only decimal digits, of any script within the Basic Multilingual Plane
    (``Character.digit(char)``).
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or max(digits) > "\uffff":
        return None
    value = 0
    for digit in digits:
        value = value * 10 + decimal(digit)
        if value > _MAX_LONG + 1:
            return None
    value = -value if text[0] == "-" else value
    return value if value <= _MAX_LONG else None


def parse_java_int(text: str) -> int | None:
    """Parse a number as Java's ``Integer.parseInt`` does; None where it throws."""
    value = parse_java_long(text)
    return value if value is not None and -_MAX_INT - 1 <= value <= _MAX_INT else None


def sort_batch_names(names: Iterable[str]) -> BatchNames:
    """Sort the names of the files in ``offsets/`` or ``commits/`` into batch ids, odd names and the rest.

    ``names`` are those of files: Spark does not take a folder for a batch.
    """
    ids: list[int] = []
    odd: dict[str, int] = {}
    others: list[str] = []
    for name in names:
        if name.isdigit() and name.isascii() and len(name) < 19 and (name[0] != "0" or name == "0"):
            ids.append(int(name))
            continue
        batch_id = parse_java_long(name)
        if batch_id is None:
            others.append(name)
        elif str(batch_id) == name:
            ids.append(batch_id)
        else:
            odd[name] = batch_id
    return BatchNames(tuple(sorted(ids)), odd, tuple(others))


def compactible_id(name: str) -> int | None:
    """The batch id in a name of a compactible log, ``7`` or ``9.compact``; None for any other name."""
    return parse_java_long(name.removesuffix(COMPACT))


class CompactibleLog(NamedTuple):
    """The names in the folder of a compactible log, by their meaning."""

    latest: int | None  # the newest entry; None: the log is empty
    interval: int  # entries from one compacted file to the next; 0 or less: Spark's assertion fails
    first_needed: int  # the newest compacted file, or 0
    missing: tuple[tuple[int, int], ...]  # needed entries without their file, as inclusive ranges

    @property
    def first_missing(self) -> str | None:
        """The name of the first file that Spark will not find."""
        return self.name_of(self.missing[0][0]) if self.missing else None

    def name_of(self, entry: int) -> str:
        """The file in which Spark looks for an entry (``batchIdToPath``)."""
        return f"{entry}{COMPACT}" if (entry + 1) % self.interval == 0 else str(entry)


def compactible_log(names: Iterable[str]) -> CompactibleLog:
    """Tell from the names of the files in its folder whether a compactible log can be restored.

    While there are fewer than two compacted files, the interval is taken to be the default one.
    """
    present = set(names)
    ids = {name: number for name in present if (number := compactible_id(name)) is not None}
    latest = max(ids.values(), default=-1)
    compacted = sorted((number for name, number in ids.items() if name.endswith(COMPACT)), reverse=True)
    interval = _interval(compacted)
    if latest < 0 or interval <= 0:
        return CompactibleLog(latest if latest >= 0 else None, interval, 0, ())
    first = max(0, (latest + 1) // interval * interval - 1)
    log = CompactibleLog(latest, interval, first, ())
    numbers = {number for number in ids.values() if first <= number <= latest and log.name_of(number) in present}
    bounds = [first - 1, *sorted(numbers), latest + 1]
    holes = tuple((before + 1, after - 1) for before, after in pairwise(bounds) if after - before > 1)
    return CompactibleLog(latest, interval, first, holes)


def _interval(compacted: list[int]) -> int:
    """``compactInterval``, from the ids of the compacted files, newest first.

    Of one alone (``deriveCompactInterval``), it divides the entries up to that file, and is at least the default.
    """
    if len(compacted) >= 2:
        return _as_int(compacted[0] - compacted[1])
    entries = _as_int(compacted[0]) + 1 if compacted else DEFAULT_INTERVAL
    if entries // 2 <= DEFAULT_INTERVAL:
        return entries
    small = [n for n in range(1, isqrt(entries) + 1) if entries % n == 0]
    divisors = sorted({*small, *(entries // n for n in small)})
    return next(n for n in divisors if n >= DEFAULT_INTERVAL)


def _as_int(number: int) -> int:
    """Scala's ``toInt``, which drops what exceeds 32 bits."""
    return (number + 2**31) % 2**32 - 2**31
