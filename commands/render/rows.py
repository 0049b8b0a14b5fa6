"""What the commands of ``ckpt state`` that read rows say."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ckpt.formats.sqltypes import sql_type
from ckpt.state.reading.units import StateUnit, UnitKind

from ..exits import Exit
from .blocks import Block, Headline, Line, Page, Table, Tone, TooWide, page_of
from .document import Document, ToolKeys
from .text import plural

if TYPE_CHECKING:
    from ckpt.state.native.diff import StateDiff, UnitDiff
    from ckpt.state.native.heavy import StateSizes
    from ckpt.state.native.show import StateCounts, StateRows


@dataclass(frozen=True, slots=True)
class RowsReport:
    """Some rows."""

    found: "StateRows"

    @property
    def exit(self) -> Exit:
        """Looking finds nothing wrong; what cannot be read is an error."""
        return Exit.OK

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "checkpoint": {"path": found.checkpoint, "query_id": found.moment.query_id},
            "unit": unit_entry(found.unit),
            "batch": found.moment.batch,
            "columns": [{"name": one.name, "type": sql_type(one.type)} for one in found.columns],
            "rows": list(found.rows),
            "more": found.more,
            "partition": found.partition,
        }

    def page(self) -> Page:
        """What they are of, and the rows."""
        return page_of(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        found = self.found
        where = "" if found.partition is None else f", in partition {found.partition}"
        yield Headline(f"{_name(found.unit)}, batch {found.moment.batch}{where}", Tone.PLAIN)
        if not found.rows:
            yield Line("  no rows")
            return
        heads = tuple(found.rows[0])
        yield Table(tuple(tuple(map(_cell, row.values())) for row in found.rows), heads, TooWide.STACK)
        if found.more:
            yield Line("  there are more: see --limit")


@dataclass(frozen=True, slots=True)
class CountsReport:
    """How many rows there are."""

    found: "StateCounts"

    @property
    def exit(self) -> Exit:
        """Counting finds nothing wrong; what cannot be read is an error."""
        return Exit.OK

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "checkpoint": {"path": found.checkpoint, "query_id": found.moment.query_id},
            "batch": found.moment.batch,
            "units": [{"unit": unit_entry(one.unit), "rows": one.rows} for one in found.units],
        }

    def page(self) -> Page:
        """A line for each part."""
        found = self.found
        total = sum(one.rows for one in found.units)
        rows = tuple((_name(one.unit), f"{one.rows:,}") for one in found.units)
        return page_of((Headline(f"{plural(total, 'row')} as of batch {found.moment.batch}", Tone.PLAIN), Table(rows)))


@dataclass(frozen=True, slots=True)
class DiffReport:
    """What changed between two states."""

    found: "StateDiff"

    @property
    def exit(self) -> Exit:
        """Whether anything did."""
        return Exit.FOUND if any(one.added or one.removed or one.changed for one in self.found.units) else Exit.OK

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "checkpoint": {"path": found.checkpoint, "query_id": found.before.query_id},
            "other": {"path": found.other, "query_id": found.after.query_id},
            "from_batch": found.before.batch,
            "to_batch": found.after.batch,
            "units": [
                {
                    "unit": unit_entry(one.unit),
                    "added": one.added,
                    "removed": one.removed,
                    "changed": one.changed,
                    "rows": [asdict(row) for row in one.rows],
                }
                for one in found.units
            ],
        }

    def page(self) -> Page:
        """Each part: counts, then some rows."""
        return page_of(*(self._unit(one) for one in self.found.units))

    def _unit(self, one: "UnitDiff") -> Iterator[Block]:
        span = f"batch {self.found.before.batch} to {self.found.after.batch}"
        counts = f"{one.added:,} added, {one.removed:,} removed, {one.changed:,} changed"
        yield Headline(f"{_name(one.unit)}, {span}: {counts}", Tone.PLAIN)
        if one.rows:
            rows = tuple(
                (str(row.change), *(_fields(some) for some in (row.key, row.before, row.after))) for row in one.rows
            )
            yield Table(rows, ("", "key", "before", "after"), TooWide.STACK)
        if one.added + one.removed + one.changed > len(one.rows):
            yield Line("  there are more: see --limit")


@dataclass(frozen=True, slots=True)
class SizesReport:
    """Heavy keys, or how the rows are spread."""

    found: "StateSizes"
    skew: bool

    @property
    def exit(self) -> Exit:
        """Measuring finds nothing wrong; what cannot be read is an error."""
        return Exit.OK

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "checkpoint": {"path": found.checkpoint, "query_id": found.moment.query_id},
            "unit": unit_entry(found.unit),
            "batch": found.moment.batch,
            "columns": [{"name": one.name, "type": sql_type(one.type)} for one in found.columns],
            "keys": [asdict(one) for one in found.keys],
            "partitions": [asdict(one) for one in found.partitions],
        }

    def page(self) -> Page:
        """What was measured, and one of the two tables."""
        found = self.found
        rows, size = sum(one.rows for one in found.partitions), sum(one.bytes for one in found.partitions)
        head = f"{_name(found.unit)}, batch {found.moment.batch}: {plural(rows, 'row')}, values of {size:,} bytes"
        if self.skew:
            cells = [
                (str(one.partition), f"{one.keys:,}", f"{one.rows:,}", f"{one.bytes:,}", _share(one.bytes, size))
                for one in found.partitions
            ]
            table = Table(tuple(cells), ("partition", "keys", "rows", "bytes", "share"))
        else:
            cells = [
                (f"{one.bytes:,}", f"{one.rows:,}", _share(one.bytes, size), str(one.partition), _fields(one.key))
                for one in found.keys
            ]
            table = Table(tuple(cells), ("bytes", "rows", "share", "partition", "key"), TooWide.STACK)
        return page_of((Headline(head, Tone.PLAIN), table if cells else Line("  no rows")))


def _share(part: int, size: int) -> str:
    return f"{100 * part / size:.1f} %" if size else "-"


def _fields(row: dict[str, Any] | None) -> str:
    return "-" if not row else " ".join(f"{name}={_cell(value)}" for name, value in row.items())


def unit_entry(unit: StateUnit) -> Document:
    """A unit as every document names it."""
    return {
        "operator": unit.operator,
        "store": unit.stores[0] if unit.kind is UnitKind.STORE else None,
        "side": unit.side,
        "variable": unit.variable,
        "timers": unit.kind is UnitKind.TIMERS,
    }


def _name(unit: StateUnit) -> str:
    return unit.label + (f" ({unit.operator_name})" if unit.operator_name else "")


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
