"""Each item of a description, changed alone: it is judged, or is one that decides no rows. None is passed over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import ckpt
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.query.description import QueryDescription, parse_query
from tests.inspection.preflight.test_signatures import archive, described
from tests.support.spark.live import EVERY_CASE

BASES = ("chain", "counted", "counts", "dedup", "join", "limit", "messages", "priced", "session", "union", "window")
_EACH = 8
"""Of the items of a query one of so many is changed, of the next query others: most queries have most items."""
DECIDE_NO_ROWS = {
    r"operators.aggregates.(buffers.(empty|empty_known|nullable)|declarative|function|result)": "`sql` says it",
    r"operators.(window.column|join.\w+.sources(.less)?)": "`sql` of a key says it",
    r"operators.(filters|conditions)(.less|.order)?": "`conditions` are compared, in any order",
    r"operators.(aggregates|keys|join.\w+.keys).name": "a name",
    r"operators.stores.families.key.fields.name": "a name",
    r"operators.(keys.type|stores.families.(key|value)).*nullable": "Spark takes it, or finds it itself",
    r"operators.stores.families.value.*": "of a deduplication, which has no value, and metadata, which the key has too",
    r"operators.stores.families.key.fields.(metadata.spark.\w+|order)": "expressions of the keys say it",
    r"operators.(metadata_version|stores.(prefix_columns|schema_version))": "how state is stored",
    r"operators.stores.(families.)?(name|less|order)": "which stores an operator has: no plan has others",
    r"output_mode": "where nothing is evicted, or update and append, which evict the same",
    r"session.spark.sql.(ansi.enabled|legacy.timeParserPolicy|session.timeZone)": "expressions say it",
    r"settings.*": "the offset log has it, and Spark keeps that; or how state is stored",
    r"sources.fail_on_data_loss": "the start itself says what is lost",
    r"sources.options.timezone": "where no time is used",
    r"sources.partitions": "the folder says it",
    r"sources.schema.*": "columns that are used are compared",
    r"spark": "plans are compared",
    r"watermarks.order": "an order that does not count",
}
"""Patterns of items that may change without a judgement, and why."""
GIVEN = {"filter": "(v@0 < 1)", "condition": "(v@0 < 1)"}
"""Items that most queries have not, and get."""


def describe(base: str) -> dict[str, Any]:
    """Return the description of a query that Spark 4.2 ran, as a later ckpt describes it."""
    query = json.loads(described("4.2", base).to_json())
    for number, operator in enumerate(query["operators"]):
        operator["inputs"] = [*range(number + 1, len(query["operators"]))]
        operator["conditions"] = [*(operator["conditions"] or ()), "v@0 IS NOT NULL"]
    return dict(query)


def change(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Change each item below a value alone: its path, and the whole with the change."""
    parts = list(value.items()) if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else None
    if parts is None:
        other = GIVEN.get(path[-1]) if value is None else _change_one(value)  # else it is of another kind of operator
        if other is not None:
            yield path, other
        return
    for name, part in parts:
        for own, other in change(part, (*path, str(name))):
            if isinstance(value, dict):
                yield own, {**value, name: other}
            else:
                yield own, [*value[:name], other, *value[name + 1 :]]
    if isinstance(value, list) and value:
        yield (*path, "less"), value[:-1]
    if isinstance(value, list) and len(value) > 1:
        yield (*path, "order"), value[::-1]


def _change_one(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 60_000_000
    if isinstance(value, str):
        types = {"long": "string", "integer": "string", "string": "long", "timestamp": "long", "true": "false"}
        other = {
            "4.2": "4.3",
            "false": "true",
            "update": "append",
            "append": "complete",
            "complete": "update",
            "Inner": "LeftOuter",
        }
        return (types | other).get(value, f"{value}x")
    return value


def name_item(path: tuple[str, ...]) -> str:
    """Name an item, whatever its number."""
    return re.sub(r"\.\d+", "", ".".join(path))


def ask(checkpoint: str, place: Path, old: QueryDescription, new: QueryDescription) -> tuple[Any, ...]:
    """Return what preflight and evolve say of a query, without what they call its columns."""
    ready = judge_start(ckpt.open_checkpoint(checkpoint), PlannedStart(query=new, old=old))
    found = [(rated.finding.diagnosis.code, rated.finding.path) for rated in (*ready.holds, *ready.warnings)]
    plan, _ = ckpt.evolve(checkpoint, str(place), to=new, from_query=old, accept_from_now_on=True, plan=True)
    parts = [
        (part.kind, part.old, part.new, part.verdict, part.silent)
        for operator in plan.operators
        for part in operator.parts
    ]
    said = plan.verdict, plan.refused is None, len(plan.steps), [part.verdict for part in plan.parts]
    return ready.go, found, len(ready.unknown), *said, parts


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_each_item_is_judged_or_decides_no_rows(base: str, tmp_path: Path) -> None:
    archive("4.2").extractall(tmp_path)
    checkpoint = str(tmp_path / "bases" / base)
    old = parse_query(describe(base))
    plain = ask(checkpoint, tmp_path / "new", old, old)
    items: dict[str, bool] = {}
    for path, other in change(describe(base)):
        item = name_item(path)
        if item in ("schema", "operators.less", "operators.inputs") or items.get(item):
            continue
        if EVERY_CASE or (crc32(item.encode()) + BASES.index(base)) % _EACH == 0:
            items[item] = ask(checkpoint, tmp_path / "new", old, parse_query(other)) != plain
    passed_over = [item for item, judged in items.items() if not judged]
    assert [item for item in passed_over if not any(re.fullmatch(one, item) for one in DECIDE_NO_ROWS)] == []
    assert len(passed_over) < len(items)
