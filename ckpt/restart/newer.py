"""Signs of a Spark newer than all that ckpt knows, on which its query continues: what none of them writes."""

from collections.abc import Iterator

from ckpt.advice import Advice
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, STATE, Checkpoint
from ckpt.formats.names import parse_java_int
from ckpt.formats.operators import OPERATORS
from ckpt.formats.text import quoted, trimmed
from ckpt.model import Fault
from ckpt.restart.book import BOOK
from ckpt.settings import JOIN_FORMAT
from ckpt.versions import NEWEST, RECORDED

_OF_VENDORS = "spark.databricks."  # of which Spark 3.5.4 records one, too


def find_newer(checkpoint: Checkpoint) -> Iterator[str]:
    """Yield what no known Spark writes into a checkpoint: a newer one wrote it, or the file is damaged."""
    for folder, log in ((OFFSETS, checkpoint.offsets), (COMMITS, checkpoint.commits)):
        entry = log.entries.get(-1 if log.latest is None else log.latest)
        if entry is not None and newer_log(folder, entry.version or 0):
            yield f"{folder}/{log.latest} has version line v{entry.version}"
    values = (name for name, value in checkpoint.conf.items() if newer_value(name, value or ""))
    for name in (*find_unknown_settings(checkpoint), *values):
        yield f"{OFFSETS}/{checkpoint.offsets.latest} records {name_setting(checkpoint, name)}"
    for operator in checkpoint.operators:
        if operator.name is not None and operator.name not in OPERATORS:
            yield f"{STATE}/{operator.id} names operator {quoted(operator.name, 80)}"
    for file in checkpoint.state.unreadable if checkpoint.state else ():
        if file.fault is Fault.NEWER_VERSION:
            yield f"{file.path} has version line v{file.version}"


def newer_log(folder: str, version: int) -> bool:
    """Tell whether no known Spark version has files of a log with such a version line."""
    rules = NEWEST.rules
    return version > (rules.newest_offset_log if folder == OFFSETS else rules.newest_commit_log)


def newer_value(name: str, value: str) -> bool:
    """Tell whether a value, which no known Spark takes for a recorded setting, is one that a newer Spark may have.

    That is a higher number, or another word where there are more than true and false.
    """
    setting = next((each for each in RECORDED if each.name == name), None)
    if setting is not None and isinstance(setting.takes, range):
        newest = NEWEST.rules.newest_join_format if name == JOIN_FORMAT else setting.takes.stop - 1
        return (parse_java_int(trimmed(value)) or 0) > newest
    words = (setting.takes if setting else None) or ()
    word = trimmed(value).lower()
    return bool(words) and "true" not in words and word.isidentifier() and word not in words


def advise_newer(checkpoint: Checkpoint, what: str) -> Advice:
    """Advise what to do where a start fails over what no known version writes."""
    name = "newer_spark_or_repair" if checkpoint.offsets.latest else "newer_spark_or_put_back"  # nothing is before it
    return BOOK.advise(name, newest=NEWEST, what=what)


def find_unknown_settings(checkpoint: Checkpoint) -> list[str]:
    """The names of settings that the newest offsets record and no known Spark does; Databricks has others."""
    conf, known = checkpoint.conf, {setting.name for setting in RECORDED}
    if "sparkVersion" in conf or any((value or "").startswith("com.databricks.") for value in conf.values()):
        return []
    return sorted(name for name in conf.keys() - known if not name.startswith(_OF_VENDORS))


def name_setting(checkpoint: Checkpoint, name: str) -> str:
    """A recorded setting with its value, for a text."""
    return f"{quoted(name, 120)}={quoted(checkpoint.conf.get(name) or '', 80)}"
