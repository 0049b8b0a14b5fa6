"""How many of the recorded error conditions are explained, by family and version."""

import re
from collections import defaultdict
from functools import cache

from ckpt.inspection.explain.catalog import KnownError
from ckpt.inspection.explain.explain import explain
from tests.inspection.explain.classes import RUNTIME, Condition, conditions

OF_TEXT = {
    "BATCH_METADATA_NOT_FOUND": "file-sink-log-hole",
    "_LEGACY_ERROR_TEMP_2198": "rename-onto-existing",
    "_LEGACY_ERROR_TEMP_2200": "path-escaped-by-old-spark",
    "_LEGACY_ERROR_TEMP_2207": "rename-onto-existing",
    "_LEGACY_ERROR_TEMP_2256": "user-function",
    "_LEGACY_ERROR_TEMP_2258": "state-sizes",
    "_LEGACY_ERROR_TEMP_2260": "state-store-internal",
    "_LEGACY_ERROR_TEMP_2263": "path-escaped-by-old-spark",
}
"""Entries of conditions that are known by their words: those without a name yet are printed without their class."""
VALUES = {"batchMetadataFile": "/out/_spark_metadata/7"}
"""Values of a message that say which entry it is of."""
PLANNED = {"query-not-supported", "processor-misused", "stream-join-without-equality"}
"""The entries of those that are raised while a query is planned, or by a function of it."""


def fill_in(text: str) -> str:
    return re.sub(r"<(\w+)>|%\d+\$s", lambda match: VALUES.get(match[1], "7"), text)


def log_of(condition: Condition) -> str:
    text = fill_in(condition.text)
    return f"org.apache.spark.SparkException: [{condition.name}] {text}" if condition.has_class_in_a_log else text


@cache
def entry_of(condition: Condition) -> KnownError | None:
    """The entry that explains a message first, if it is the one of its class."""
    matches = explain(log_of(condition)).matches
    if not matches:
        return None
    error, name = matches[0].error, condition.name
    if name in OF_TEXT or name.startswith("_LEGACY"):
        expected = {OF_TEXT[name]} if name in OF_TEXT else PLANNED
        return error if error.id in expected else None
    return error if {name, name.partition(".")[0]} & {*error.classes} else None


def coverage(kind: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Family and version -> how many of its conditions are explained, of how many."""
    counts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for condition in conditions():
        if condition.family.kind == kind:
            for version in condition.versions:
                counts[condition.family.name, version].append(entry_of(condition) is not None)
    return {key: (sum(known), len(known)) for key, known in counts.items()}


def coverage_table() -> str:
    """The table of `docs/explain.md`: the conditions that a query can meet at run time, and which are not known."""
    table = coverage(RUNTIME)
    versions, families = (sorted({key[part] for key in table}) for part in (1, 0))
    rows = [
        [family, *("{} of {}".format(*table[family, minor]) if (family, minor) in table else "" for minor in versions)]
        for family in families
    ]
    lines = [["family", *versions], ["---"] * (len(versions) + 1), *rows]
    unknown = sorted({each.name for each in conditions() if each.family.kind == RUNTIME and entry_of(each) is None})
    named = ", ".join(f"`{name}`" for name in unknown) or "none"
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + f"\n\nNot known: {named}."
