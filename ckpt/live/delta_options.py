"""Options of Spark's Delta reader that say what stops it."""

from collections.abc import Mapping

from ckpt.errors import UsageError
from ckpt.live.records import DeltaOption
from ckpt.storage.base import one_line

_KNOWN = {
    "excluderegex",
    "failondataloss",
    "ignorechanges",
    "ignoredeletes",
    "ignorefiledeletion",
    "maxbytespertrigger",
    "maxfilespertrigger",
    "path",
    "skipchangecommits",
    "startingtimestamp",
    "startingversion",
    "witheventtimeorder",
}
CHANGE_FEED = {"readchangefeed", "readchangedata"}
"""The option for a table's change data feed, and its older name."""
_NOT_KNOWN = {*CHANGE_FEED, "schematrackinglocation", "schemalocation"}
"""Options under which a Delta source has other rules."""


def lower(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a source that does not mind their case. Raises UsageError for one that is given twice."""
    found = {key.lower(): value for key, value in options.items()}
    if len(found) < len(options):
        raise UsageError("`source_options`: an option is given twice, in upper and in lower case")
    return found


def flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    """An option that is true or false. Raises UsageError."""
    text = options.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise UsageError(f"`source_options`: {name} is true or false")
    return text == "true"


def whole(options: Mapping[str, str], name: str, default: int) -> int:
    """An option that is a number. Raises UsageError."""
    text = options.get(name.lower(), str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise UsageError(f"`source_options`: {name} is a whole number")
    return int(text)


def other_rules(given: Mapping[str, str]) -> str | None:
    """An option, in lower case, under which nothing can be said. Raises UsageError for one that Delta does not have."""
    for key in given:
        if key not in _KNOWN | _NOT_KNOWN:
            raise UsageError(f"`source_options`: the Delta source has no option {one_line(key)}")
    return next((key for key in sorted(given) if key in _NOT_KNOWN), None)


def delta_options(given: Mapping[str, str]) -> tuple[frozenset[DeltaOption], int]:
    """What stops a reader with these options, and how many files it reads in a batch. Raises UsageError."""
    found = set() if flag(given, "failOnDataLoss", True) else {DeltaOption.LOSES}
    for one in (DeltaOption.SKIPS_CHANGES, DeltaOption.IGNORES_CHANGES, DeltaOption.IGNORES_DELETES):
        if flag(given, one.value, False):
            found.add(one)
    if flag(given, "ignoreFileDeletion", False):
        found.add(DeltaOption.IGNORES_CHANGES)
    return frozenset(found), whole(given, "maxFilesPerTrigger", 1000)
