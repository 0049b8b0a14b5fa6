"""Tables that are not streamed, such as the other side of a join: which one a plan reads, without opening it."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError

from ckpt.query.reader_options import digest
from ckpt.spark.planning import Planner

_HIDDEN = "rows?"
"""A table of rows that no plan has, or of a kind that ckpt does not know: whether two are the same cannot be told."""
_OBJECT = re.compile(r"@[0-9a-f]{4,}")  # ``Object.toString``: of an instance, another in each run


def identify_table(leaf: Any, kind: str, fields: Mapping[str, Any], planner: Planner) -> str:
    """Name the table that a leaf of a physical plan reads; with ``?`` where that cannot be told."""
    with suppress(Py4JError, AttributeError):
        match kind:
            case "FileSourceScanExec":
                return _identify_files(leaf, planner)
            case "BatchScanExec":
                return _spell(str(leaf.table().name()), "")
            case "RowDataSourceScanExec":
                return _spell(str(leaf.relation().toString()), "")
            case "HiveTableScanExec":
                return _spell(str(leaf.relation().tableMeta().identifier().unquotedString()), "")
            case "LocalTableScanExec":
                return _spell("rows", str(leaf.rows().mkString(" ")))  # the bytes of each
            case "RangeExec":
                own = fields["range"][0]
                return _spell("range", f"{own['start']} {own['end']} {own['step']}")
    return _HIDDEN


def _identify_files(leaf: Any, planner: Planner) -> str:
    relation, table = leaf.relation(), leaf.tableIdentifier()
    options = planner.read_map(relation.options())
    own = {name.lower(): value for name, value in options.items()}
    if table.isDefined():
        name = str(table.get().unquotedString())
    else:
        roots = relation.location().rootPaths()
        name = own.get("path") or " ".join(str(roots.apply(number)) for number in range(roots.size()))
        name = " ".join(part.removeprefix("file:").rstrip("/") for part in name.split(" "))
    kind = str(relation.fileFormat().getClass().getSimpleName())
    reader = planner.keep_reader(kind, own, json.loads(relation.dataSchema().json()))
    return _spell(name, json.dumps(reader, sort_keys=True))


def _spell(name: str, details: str) -> str:
    """The last part of a name if it is a plain word, and a digest of all."""
    if _OBJECT.search(name):
        return _HIDDEN
    last = re.split(r"[/.]", name)[-1]
    word = last if re.fullmatch(r"\w{1,40}", last) else "table"
    return f"{word} {digest(name + details)}"
