"""Names of batch files in a folder, as Spark lists them.

``HDFSMetadataLog.isBatchFile`` (all versions) asks whether Java's ``Long.parseLong`` accepts the entire name,
and ``CompactibleFileStreamLog`` asks the same after taking ``.compact`` off its end. So ``007``, ``+5``,
``-1`` and digits of other scripts are batch ids to Spark, though ``batchIdToPath`` never writes such a name
and never opens one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import decimal

COMPACT = ".compact"
"""The ending of a compacted log file (``CompactibleFileStreamLog.COMPACT_FILE_SUFFIX``)."""

_MAX_LONG = 2**63 - 1
_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class OddName:
    """A name that Spark takes for a batch id and would never write or open itself."""

    name: str
    batch_id: int


@dataclass(frozen=True, slots=True)
class BatchNames:
    """The names of one log folder, sorted into what they are to Spark."""

    ids: tuple[int, ...]  # that have a file of exactly the name Spark writes; sorted
    odd: tuple[OddName, ...]  # counted as batches by Spark's listing, and never found when it opens them
    others: tuple[str, ...]  # hidden files, checksums, temporary and foreign files: not seen by the listing

    @property
    def listed(self) -> frozenset[int]:
        """Every batch id that Spark's listing yields, found or not."""
        return frozenset(self.ids) | {name.batch_id for name in self.odd}


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
    odd: list[OddName] = []
    others: list[str] = []
    for name in names:
        if name[:1] == ".":
            others.append(name)
            continue
        if name.isdigit() and name.isascii() and len(name) < 19 and (name[0] != "0" or name == "0"):
            ids.append(int(name))
            continue
        may_be_number = name.isdecimal() or name[:1] in ("+", "-")
        batch_id = parse_java_long(name) if may_be_number else None
        if batch_id is None:
            others.append(name)
        elif str(batch_id) == name:
            ids.append(batch_id)
        else:
            odd.append(OddName(name, batch_id))
    ids.sort()
    return BatchNames(tuple(ids), tuple(odd), tuple(others))


def compactible_id(name: str) -> int | None:
    """The batch id in a name of a compactible log, ``7`` or ``9.compact``; None for any other name."""
    return parse_java_long(name.removesuffix(COMPACT))
