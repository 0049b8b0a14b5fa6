"""Options of Spark's Delta reader that say what stops it."""

from collections.abc import Mapping

from ckpt.live.options import flag, whole
from ckpt.live.records import DeltaOption

KNOWN = {
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
"""Options under which a Delta source has the rules that ckpt knows, in lower case."""
CHANGE_FEED = {"readchangefeed", "readchangedata"}
"""The option for a table's change data feed, and its older name."""
OTHER_RULES = {*CHANGE_FEED, "schematrackinglocation", "schemalocation"}
"""Options under which a Delta source has other rules."""


def delta_options(given: Mapping[str, str]) -> tuple[frozenset[DeltaOption], int]:
    """What stops a reader with these options, and how many files it reads in a batch. Raises UsageError."""
    found = set() if flag(given, "failOnDataLoss", True) else {DeltaOption.LOSES}
    for one in (DeltaOption.SKIPS_CHANGES, DeltaOption.IGNORES_CHANGES, DeltaOption.IGNORES_DELETES):
        if flag(given, one.value, False):
            found.add(one)
    if flag(given, "ignoreFileDeletion", False):
        found.add(DeltaOption.IGNORES_CHANGES)
    return frozenset(found), whole(given, "maxFilesPerTrigger", 1000)
