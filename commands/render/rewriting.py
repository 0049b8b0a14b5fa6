"""What ``ckpt rewrite`` and ``ckpt import-state`` say: what is written, and how the query continues."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ckpt.migrate.provider import PROVIDER_NAMES
from ckpt.settings import CHECKPOINT_FORMAT
from ckpt.texts import quoted_path

from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Page, Table, Tone, bullets, more, page_of
from .document import Document, ToolKeys, checkpoint_keys
from .page import title
from .rows import unit_entry
from .text import plural, size

if TYPE_CHECKING:
    from ckpt.copies.rewrite.plan import Rewrite, RewrittenUnit

_SHOWN = 5  # keys


@dataclass(frozen=True, slots=True)
class RewriteReport:
    """A new checkpoint; ``source`` is the old one as it was typed."""

    found: "Rewrite"
    source: str

    @property
    def exit(self) -> Exit:
        """Whether it can be written."""
        return Exit.FAILED if self.found.refused else Exit.OK

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "checkpoint": replace(checkpoint_keys(found.inspection), path=self.source),
            "into": found.into,
            "batch": found.batch,
            "provider": found.new.provider,
            "partitions": found.new.partitions,
            "format_version": found.new.version,
            "query_id": found.query_id,
            "new_id": found.new_id,
            "settings": dict(found.changed),
            "units": [self._unit(one) for one in found.units],
            "refused": found.refused,
            "written": found.written,
            "files": found.files,
            "bytes": found.bytes,
            **self._own(),
        }

    def _unit(self, one: "RewrittenUnit") -> Document:
        return {**_unit(one), "dropped": one.dropped, "judged": self._judged(one)}

    def _own(self) -> Document:
        """What only this command says."""
        return {"unseen_keys": [dict(key) for key in self.found.unseen]}

    def page(self) -> Page:
        """What became of it, what there is, and what to do with it."""
        parts = (self._refused,) if self.found.refused else (self._headline, self._units, self._settings, self._next)
        return page_of(title(self.found.inspection), *(part() for part in parts))

    def _refused(self) -> Iterator[Block]:
        yield Headline("CANNOT BE WRITTEN by ckpt", Tone.ERROR)
        yield from bullets([self.found.refused or ""])

    def _headline(self) -> Iterator[Block]:
        found = self.found
        form = f"{PROVIDER_NAMES[found.new.provider]}, {plural(found.new.partitions, 'partition')}"
        if found.written:
            how = f"{plural(found.files, 'file')}, {size(found.bytes)}; {self._checked}"
            yield Headline(f"WRITTEN to {found.into}: {self._state}, {form} ({how})", Tone.GOOD)
        else:
            yield Headline(f"PLANNED: {self._state} into {found.into}, {form}", Tone.WARNING)

    @property
    def _state(self) -> str:
        """Which it is."""
        return f"the state of batch {self.found.batch}"

    @property
    def _checked(self) -> str:
        """What was seen when it was read again."""
        return "read again, and equal"

    def _units(self) -> Iterator[Block]:
        rows = [(one.unit.label, self._rows(one)) for one in self.found.units]
        if not any(told for _, told in rows):
            return
        yield Heading("State", "")
        yield Table(tuple(rows))
        if unseen := self.found.unseen:
            shown = [json.dumps(dict(key), ensure_ascii=False) for key in unseen[:_SHOWN]]
            yield Item(f"no row has {len(unseen):,} of the {plural(len(self.found.keys), 'key')} to be left out:", 2)
            yield from bullets(shown)
            yield from more(len(unseen) - _SHOWN)

    def _rows(self, one: "RewrittenUnit") -> str:
        leaving = self.found.leaving.get(one.unit.operator)
        if leaving is not None and not leaving.applies:
            kept = f"{self._without} such columns: nothing is left out"
            return kept if one.rows is None else f"{plural(one.rows, 'row')}; {kept}"
        if one.rows is None:
            judged = self._judged(one)
            return f"each {judged} is judged by the condition" if self.found.where and judged else ""
        return plural(one.rows, "row") + ("" if one.dropped is None else f", and {plural(one.dropped, 'row')} left out")

    @property
    def _without(self) -> str:
        """What an operator lacks that keeps all."""
        return "it has no" if self.found.where else "its key has no"

    def _judged(self, one: "RewrittenUnit") -> str | None:
        """What is left out or not as a whole: a key with all that is kept for it, or a row."""
        leaving = self.found.leaving.get(one.unit.operator)
        if leaving is None or not leaving.applies:
            return None
        return "key" if leaving.of_keys else "row"

    def _settings(self) -> Iterator[Block]:
        found = self.found
        yield Heading(
            "Settings", "recorded in the new checkpoint, whatever the session says" if found.changed else "as they were"
        )
        yield from bullets(f"{name} = {value}" for name, value in found.changed.items() if name != CHECKPOINT_FORMAT)
        if CHECKPOINT_FORMAT in found.changed or found.new.version > 1:
            yield from bullets(
                [f"{CHECKPOINT_FORMAT} = {found.new.version}: set it in the session, Spark does not record it"]
            )

    def _next(self) -> Iterator[Block]:
        found = self.found
        if not found.written:
            yield Item("the same without --plan", 10, "Next")
            return
        sinks = (
            "It has a query id of its own: a Delta table takes it for another query."
            if found.new_id
            else "It has the query id of the old one, and batch ids continue: sinks take it for the same query."
        )
        yield Item(
            f"start the query with this checkpointLocation, and never on the old one again. If it has run on the old "
            f"one after batch {found.batch}, write this one anew first: sinks that remember batch ids would drop rows. "
            f"{sinks}",
            10,
            "Next",
        )
        yield Command(f"ckpt inspect {quoted_path(found.into)}")


@dataclass(frozen=True, slots=True)
class ImportReport(RewriteReport):
    """A new checkpoint with rows that were given; ``source`` is the one that all else is from, as it was typed."""

    export: str

    def _unit(self, one: "RewrittenUnit") -> Document:
        return {**_unit(one), "exported": one.exported}

    def _rows(self, one: "RewrittenUnit") -> str:
        edited = one.exported is not None and one.rows is not None and one.exported != one.rows
        return RewriteReport._rows(self, one) + (f"; the export had {one.exported:,}" if edited else "")

    def _own(self) -> Document:
        return {"export": self.export}

    @property
    def _state(self) -> str:
        return f"the state in {self.export}, to continue after batch {self.found.batch}"

    @property
    def _checked(self) -> str:
        return "every row checked; read again, and as many"


def _unit(one: "RewrittenUnit") -> Document:
    return {"unit": unit_entry(one.unit), "rows": one.rows, "partitions": one.partitions}
