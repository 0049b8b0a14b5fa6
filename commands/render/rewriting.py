"""Reports of ``ckpt rewrite`` and ``ckpt import-state``: the new checkpoint, and how the query continues."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from ckpt.inspection.next_steps import NextStep
from ckpt.migrate.provider import PROVIDER_NAMES
from ckpt.model import Json
from ckpt.settings import CHECKPOINT_FORMAT
from ckpt.texts import plural, quote_path, size

from .blocks import Block, Heading, Headline, Item, Next, Page, Table, Tone, bullets, more, page_of, show_command
from .document import CheckpointKeys, DocumentKeys
from .keys import Keys, derive, of
from .page import show_title
from .reports import Exit, Report
from .rows import UnitKeys

if TYPE_CHECKING:
    from ckpt.copies.rewrite.plan import Rewrite, RewrittenUnit  # noqa: F401  (named by a base)

_SHOWN = 5  # keys


class _NewUnit(Keys):
    unit: UnitKeys
    rows: Annotated[int | None, "that the new one has; null if nothing was written"]
    partitions: int


class NewCheckpointDocument(DocumentKeys):
    """The keys of both documents."""

    checkpoint: Annotated[CheckpointKeys, "the old one"]
    into: Annotated[str, "as given"]
    batch: Annotated[int, "whose state the new one has"]
    provider: Annotated[str, "`hdfs` or `rocksdb`", of("new.provider")]
    partitions: Annotated[int, of("new.partitions")]
    format_version: Annotated[int, "state store checkpoint format", of("new.version")]
    query_id: Annotated[str | None, "of the new one"]
    new_id: bool
    settings: Annotated[Mapping[str, str], "the settings that are not as they were, name to new value", of("changed")]
    units: tuple[_NewUnit, ...]
    refused: Annotated[str | None, "why it cannot be written; for people, its words are not fixed"]
    written: bool
    files: Annotated[int, "written"]
    bytes: int


class _RewrittenUnit(_NewUnit):
    dropped: Annotated[
        int | None,
        "rows that were left out; null if nothing was written, or if no key or condition applies to this unit",
    ]
    judged: Annotated[
        Literal["key", "row"] | None,
        "what is left out as a whole: a key with everything that is kept for it, or a row; null if no key or "
        "condition applies",
    ]


class RewriteDocument(NewCheckpointDocument):
    """The document of ``ckpt rewrite``."""

    units: tuple[_RewrittenUnit, ...]
    unseen_keys: Annotated[
        tuple[Annotated[Json, "columns and values, as given"], ...],
        "keys of `--drop-keys` that no row had; empty if nothing was written",
        of("unseen"),
    ]


class _ImportedUnit(_NewUnit):
    rows: Annotated[int | None, "that the new one has; null if it is refused"]
    exported: Annotated[int | None, "that the export had as it was written; null if its manifest does not say so"]


class ImportDocument(NewCheckpointDocument):
    """The document of ``ckpt import-state``."""

    checkpoint: Annotated[CheckpointKeys, "CHECKPOINT"]
    batch: Annotated[int, "after which the query continues"]
    units: tuple[_ImportedUnit, ...]
    export: Annotated[str, "as given"]


@dataclass(frozen=True)
class RewriteReport(Report["Rewrite"]):
    """A new checkpoint; ``source`` is the old one as it was typed."""

    source: str

    checked: ClassVar[str] = "read again, and equal"  # result of the second reading

    @property
    def exit(self) -> Exit:
        return Exit.FAILED if self.record.refused else Exit.OK

    def document(self) -> NewCheckpointDocument:
        units = [derive(_RewrittenUnit, unit, judged=self._name_judged(unit)) for unit in self.record.units]
        return derive(RewriteDocument, self.record, checkpoint=self._checkpoint, units=units)

    def page(self) -> Page:
        title = show_title(self.record.inspection)
        if self.record.refused:
            headline = Headline("CANNOT BE WRITTEN by ckpt", Tone.ERROR)
            return page_of(title, [headline, *bullets([self.record.refused])])
        parts = (self._show_headline, self._show_units, self._show_settings, self._show_next)
        return page_of(title, *(part() for part in parts))

    def _show_headline(self) -> Iterator[Block]:
        rewrite = self.record
        form = f"{PROVIDER_NAMES[rewrite.new.provider]}, {plural(rewrite.new.partitions, 'partition')}"
        if rewrite.written:
            how = f"{plural(rewrite.files, 'file')}, {size(rewrite.bytes)}; {self.checked}"
            yield Headline(f"WRITTEN to {rewrite.into}: {self._state}, {form} ({how})", Tone.GOOD)
        else:
            yield Headline(f"PLANNED: {self._state} into {rewrite.into}, {form}", Tone.WARNING)

    @property
    def _checkpoint(self) -> CheckpointKeys:
        return replace(derive(CheckpointKeys, self.record.inspection), path=self.source)

    @property
    def _state(self) -> str:
        """Name of the state that is written."""
        return f"the state of batch {self.record.batch}"

    def _show_units(self) -> Iterator[Block]:
        rows = [(rewritten.unit.label, self._describe_rows(rewritten)) for rewritten in self.record.units]
        if not any(text for _, text in rows):
            return
        yield Heading("State", "")
        yield Table(tuple(rows))
        if unseen := self.record.unseen:
            shown = [json.dumps(dict(key), ensure_ascii=False) for key in unseen[:_SHOWN]]
            total = plural(len(self.record.keys), "key")
            verb = "is" if len(unseen) == 1 else "are"
            yield Item(f"{len(unseen):,} of the {total} to be left out {verb} in no row:", 2)
            yield from bullets(shown)
            yield from more(len(unseen) - _SHOWN)

    def _describe_rows(self, rewritten: "RewrittenUnit") -> str:
        leaving = self.record.leaving.get(rewritten.unit.operator)
        if leaving is not None and not leaving.applies:
            kept = f"{'it has' if self.record.where else 'its key has'} no such columns: nothing is left out"
            return kept if rewritten.rows is None else f"{plural(rewritten.rows, 'row')}; {kept}"
        if rewritten.rows is None:
            judged = self._name_judged(rewritten)
            return f"each {judged} is judged by the condition" if self.record.where and judged else ""
        return plural(rewritten.rows, "row") + (
            "" if rewritten.dropped is None else f", and {plural(rewritten.dropped, 'row')} left out"
        )

    def _name_judged(self, rewritten: "RewrittenUnit") -> str | None:
        """Unit of the condition: a key with all its rows, or a row; None where all is kept."""
        leaving = self.record.leaving.get(rewritten.unit.operator)
        if leaving is None or not leaving.applies:
            return None
        return "key" if leaving.of_keys else "row"

    def _show_settings(self) -> Iterator[Block]:
        rewrite = self.record
        yield Heading(
            "Settings",
            "recorded in the new checkpoint, whatever the session says" if rewrite.changed else "as they were",
        )
        yield from bullets(f"{name} = {value}" for name, value in rewrite.changed.items() if name != CHECKPOINT_FORMAT)
        if CHECKPOINT_FORMAT in rewrite.changed or rewrite.new.version > 1:
            yield from bullets(
                [f"{CHECKPOINT_FORMAT} = {rewrite.new.version}: set it in the session, Spark does not record it"]
            )

    def _show_next(self) -> Iterator[Block]:
        rewrite = self.record
        if not rewrite.written:
            yield Next((NextStep("the same without --plan"),))
            return
        sinks = (
            "It has its own query id: to a Delta table it is another query."
            if rewrite.new_id
            else "It keeps the query id of the old one, and its batch ids continue: to sinks it is the same query."
        )
        start = (
            f"start the query with this checkpointLocation, and never on the old one again. If it has run on the old "
            f"one after batch {rewrite.batch}, write this one again first: sinks that remember batch ids would drop "
            f"rows. {sinks}"
        )
        yield from show_command(start, f"ckpt inspect {quote_path(rewrite.into)}")


@dataclass(frozen=True)
class ImportReport(RewriteReport):
    """A new checkpoint with rows that were given; ``source`` is the one that all else is from, as it was typed."""

    export: str

    checked = "every row checked; read again, and as many"

    def document(self) -> ImportDocument:
        return derive(ImportDocument, self.record, checkpoint=self._checkpoint, export=self.export)

    def _describe_rows(self, rewritten: "RewrittenUnit") -> str:
        edited = rewritten.exported is not None and rewritten.rows is not None and rewritten.exported != rewritten.rows
        return RewriteReport._describe_rows(self, rewritten) + (
            f"; the export had {rewritten.exported:,}" if edited else ""
        )

    @property
    def _state(self) -> str:
        return f"the state in {self.export}, to continue after batch {self.record.batch}"
