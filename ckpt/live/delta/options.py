"""Options of Spark's Delta reader that say what stops it."""

from collections.abc import Mapping

from ckpt.live.options import read_flag, read_number
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


def read_options(values: Mapping[str, str]) -> tuple[frozenset[DeltaOption], int]:
    """Read which options decide what stops a reader, and how many files it reads in a batch. Raises UsageError."""
    options = set() if read_flag(values, "failOnDataLoss", True) else {DeltaOption.LOSES}
    for option in (DeltaOption.SKIPS_CHANGES, DeltaOption.IGNORES_CHANGES, DeltaOption.IGNORES_DELETES):
        if read_flag(values, option.value, False):
            options.add(option)
    if read_flag(values, "ignoreFileDeletion", False):
        options.add(DeltaOption.IGNORES_CHANGES)
    return frozenset(options), read_number(values, "maxFilesPerTrigger", 1000)
