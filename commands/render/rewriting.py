"""Reports of ``ckpt rewrite`` and ``ckpt import-state``: the new checkpoint, and how the query continues."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from ckpt.advice import UNKNOWN_ROWS, Do, Hole, call, do, run, words
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.migrate.switches import PROVIDER_NAMES
from ckpt.model import Json
from ckpt.restart.findings import Outcome
from ckpt.settings import CHECKPOINT_FORMAT
from ckpt.texts import instant, plural, size, span

from .blocks import Block, Heading, Headline, Item, Next, Page, Table, Tone, bullets, more, page_of, show_call
from .book import BOOK
from .document import Document, DocumentKeys
from .inspection import CheckpointKeys
from .keys import Keys, Span, derive, of
from .page import show_title
from .reports import Report
from .rows import UnitKeys

if TYPE_CHECKING:
    from ckpt.new.rewrite.plan import Rewrite, RewrittenUnit

_SHOWN = 5  # keys


_PLAN = "ckpt.new.rewrite.plan:"
_NEW = """checkpoint into batch provider partitions format_version query_id new_id planned_batch planned_state settings
starts_with stopped units refused written files bytes"""


class _NewUnit(Keys, record=f"{_PLAN}RewrittenUnit", keys="unit rows partitions"):
    unit: UnitKeys


class NewCheckpointDocument(DocumentKeys, record=f"{_PLAN}Rewrite", keys=_NEW):
    """The keys of both documents."""

    checkpoint: CheckpointKeys
    provider: Annotated[str, of("new.provider")]
    partitions: Annotated[int, of("new.partitions")]
    format_version: Annotated[int, of("new.version")]
    planned_batch: Annotated[int | None, of("planned")]
    settings: Annotated[Mapping[str, str], of("changed")]
    starts_with: tuple[str, ...]
    stopped: tuple[str, ...]
    units: tuple[_NewUnit, ...]
    refused: str | None


class _RewrittenUnit(_NewUnit, record=f"{_PLAN}RewrittenUnit", keys="dropped judged"):
    judged: Literal["key", "row"] | None


class _LostPartition(Keys, record="ckpt.state.native.salvage:LostPartition", keys="operator partition keys why"): ...


class _MergedCheckpoint(Keys):
    path: Annotated[str, of("inspection.checkpoint.uri")]
    query_id: Annotated[str | None, of("inspection.checkpoint.query_id")]
    batch: int


class _MergedSource(Keys, record="ckpt.new.rewrite.union:UnitedSource", keys="checkpoint source type"):
    source: Annotated[int, of("was")]
    type: Annotated[str, of("view.type")]


class _NewPart(Keys, record=f"{_PLAN}Rewrite", keys="into where query_id written files bytes units"):
    units: tuple[_RewrittenUnit, ...]


class RewriteDocument(NewCheckpointDocument):
    """The document of ``ckpt rewrite``."""

    merged: tuple[_MergedCheckpoint, ...]
    sources: Annotated[tuple[_MergedSource, ...], of("new_sources")]
    watermark_ms: Annotated[int | None, lambda rewrite: min(rewrite.union.watermarks_ms) if rewrite.union else None]
    watermarks_differ: Annotated[bool, lambda rewrite: rewrite.late_from_ms is not None]
    parts: tuple[_NewPart, ...]

    lost: Annotated[tuple[_LostPartition, ...], lambda rewrite: rewrite.salvage.lost if rewrite.salvage else ()]
    read_again: Annotated[Span | None, lambda rewrite: rewrite.salvage and rewrite.salvage.again]
    units: tuple[_RewrittenUnit, ...]
    unseen_keys: Annotated[tuple[Json, ...], of("unseen")]


class _ImportedUnit(_NewUnit, record=f"{_PLAN}RewrittenUnit", keys="exported"): ...


class ImportDocument(NewCheckpointDocument):
    """The document of ``ckpt import-state``."""

    units: tuple[_ImportedUnit, ...]
    export: str
    export_query_id: Annotated[str | None, of("exported_id")]


@dataclass(frozen=True)
class RewriteReport(Report["Rewrite"]):
    """A new checkpoint; ``source`` is the old one as it was typed."""

    source: str

    checked: ClassVar[str] = "read again, and equal"  # result of the second reading
    why_left_out: ClassVar[str] = "in checkpoint format 2 a start finds only state of committed batches"
    # why the new checkpoint has no state of the planned batch, although the old one has it

    @classmethod
    def of_value(cls, value: "Rewrite") -> "RewriteReport":
        source = value.inspection.checkpoint.uri
        imported = value.imported or any(unit.exported is not None for unit in value.units)
        return ImportReport(value, source, "the rows given") if imported else cls(value, source)

    def document(self) -> Document:
        parts = [derive(_NewPart, part, units=self._derive_units(part)) for part in self.record.parts]
        units = self._derive_units(self.record)
        return derive(RewriteDocument, self.record, checkpoint=self._checkpoint, units=units, parts=parts)

    def _derive_units(self, rewrite: "Rewrite") -> list[Document]:
        return [derive(_RewrittenUnit, unit, judged=self._name_judged(unit)) for unit in rewrite.units]

    def page(self) -> Page:
        title = show_title(self.record.inspection)
        if self.record.refused:
            headline = Headline("CANNOT BE WRITTEN by ckpt", Tone.ERROR)
            return page_of(title, [headline, *bullets([self.record.refused])], self._show_lost())
        parts = (
            self._show_headline,
            self._show_merged,
            self._show_versions,
            self._show_lost,
            self._show_planned,
            self._show_units,
            self._show_settings,
            self._show_conditions,
            self._show_next,
        )
        return page_of(title, *(part() for part in parts))

    def _show_headline(self) -> Iterator[Block]:
        for part in self.record.parts or (self.record,):
            form = f"{PROVIDER_NAMES[part.new.provider]}, {plural(part.new.partitions, 'partition')}"
            if part.written:
                how = f"{plural(part.files, 'file')}, {size(part.bytes)}; {self.checked}"
                yield Headline(f"WRITTEN to {part.into}: {self._state}, {form} ({how})", Tone.GOOD)
            else:
                yield Headline(f"PLANNED: {self._state} into {part.into}, {form}", Tone.WARNING)

    def _show_merged(self) -> Iterator[Block]:
        union, merged = self.record.union, self.record.merged
        if union is None:
            return
        yield Heading("Sources", "required in the new query, in this order, each with its own readStream")
        yield Table(
            tuple(
                (
                    f"{number}",
                    source.view.type,
                    f"source {source.was} of {merged[source.checkpoint].inspection.checkpoint.uri}",
                )
                for number, source in enumerate(union.sources)
            )
        )
        lowest = min(union.watermarks_ms)
        if self.record.late_from_ms is None:
            yield Heading("Watermark", instant(lowest) if lowest else "none")
            return
        both = " and ".join(map(instant, self.record.late_from_ms))
        yield Heading("Watermark", f"{instant(lowest)}, the lowest; they are {both}")
        yield Item(BOOK.text("no_longer_late"), 2)
        yield Item(BOOK.text("emitted_again"), 2)

    def _show_versions(self) -> Iterator[Block]:
        rewrite = self.record
        versions = f"Spark {', '.join(rewrite.starts_with)}" if rewrite.starts_with else "no known version"
        unknown = (f for f in rewrite.inspection.counted if f.outcome is Outcome.UNKNOWN)
        doubts = ", ".join(sorted({finding.diagnosis.code for f in unknown for finding in f.because}))
        if doubts and not rewrite.starts_with:
            text = f"It is unknown whether Spark can read its rows ({doubts}): start it with a separate sink first"
            yield Heading("Started by", text)
            return
        stopped = f"; no longer by Spark {', '.join(rewrite.stopped)}, which can start CHECKPOINT"
        yield Heading("Started by", versions + (stopped if rewrite.stopped else ""))

    @property
    def _checkpoint(self) -> Document:
        return derive(CheckpointKeys, self.record.inspection, path=self.source)

    @property
    def _state(self) -> str:
        """Name of the state that is written."""
        if self.record.merged:
            each = (f"batch {plan.batch} of {plan.inspection.checkpoint.uri}" for plan in self.record.merged)
            return f"the state of {' and of '.join(each)}"
        return f"the state of batch {self.record.batch}"

    def _show_lost(self) -> Iterator[Block]:
        salvage = self.record.salvage
        if salvage is None:
            return
        yield Heading("Salvage", f"as of batch {salvage.batch}: {salvage.costs or 'nothing is lost'}")
        for lost in salvage.lost[:_SHOWN]:
            keys = "number of keys not recorded" if lost.keys is None else plural(lost.keys, "key")
            yield Item(f"operator {lost.operator}, partition {lost.partition}: {keys}; {lost.why}", 4, "  - ")
        yield from more(len(salvage.lost) - _SHOWN)
        if salvage.lost:
            yield Item("these keys are new to the query: their next rows start with empty state", 2)

    def _show_planned(self) -> Iterator[Block]:
        planned = self.record.planned
        if planned is None:
            return
        yield Heading(f"Batch {planned}", "planned but not committed: a start runs it first, with the same offsets")
        match self.record.planned_state:
            case "written":
                as_before = "" if self.record.new_id else ", so a start does the same as on the old checkpoint"
                text = f"its state is there too{as_before}"
            case "none":
                nor = "" if self.record.salvage else "; a start on the old checkpoint would not find it either"
                text = f"its state is missing{nor}"
            case _:
                text = str(BOOK.text("state_not_there", why=self.why_left_out, planned=planned))
        yield Item(text, 2)

    def _show_units(self) -> Iterator[Block]:
        for part in self.record.parts or (self.record,):
            rows = [(rewritten.unit.label, self._describe_rows(rewritten)) for rewritten in part.units]
            if any(text for _, text in rows):
                yield Heading("State", f"of {part.into}, where {part.where}" if self.record.parts else "")
                yield Table(tuple(rows))
        if unseen := self.record.unseen:
            total = plural(len(self.record.keys), "key")
            verb = "is" if len(unseen) == 1 else "are"
            yield Item(f"{len(unseen):,} of the {total} to be left out {verb} in no row:", 2)
            yield from bullets((json.dumps(dict(key), ensure_ascii=False) for key in unseen), _SHOWN)

    def _describe_rows(self, rewritten: "RewrittenUnit") -> str:
        leaving = self.record.leaving.get(rewritten.unit.operator)
        if leaving is not None and not leaving.applies:
            kept = f"{'it has' if self.record.where else 'its key has'} no such columns: nothing is left out"
            return kept if rewritten.rows is None else f"{plural(rewritten.rows, 'row')}; {kept}"
        if rewritten.rows is None:
            judged = self._name_judged(rewritten)
            return f"the condition is checked for each {judged}" if self.record.where and judged else ""
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
            "recorded in the new checkpoint, regardless of the session" if rewrite.changed else "unchanged",
        )
        yield from bullets(f"{name} = {value}" for name, value in rewrite.changed.items() if name != CHECKPOINT_FORMAT)
        if CHECKPOINT_FORMAT in rewrite.changed or rewrite.new.version > 1:
            yield from bullets(
                [f"{CHECKPOINT_FORMAT} = {rewrite.new.version}: set it in the session; Spark does not record it"]
            )

    def _show_next(self) -> Iterator[Block]:
        rewrite = self.record
        if not rewrite.written:
            yield Next((do(Do.CHANGE, words("Repeat this call without {--plan}.")),))
            return
        inspect = call("inspect", rewrite.into)
        if rewrite.merged or rewrite.parts:
            start = BOOK.text("start_parts" if rewrite.parts else "start_merged")
            steps = [run(call("inspect", part.into), words("Check the others too.")) for part in rewrite.parts[1:]]
            yield Next((run(inspect, start), *steps))
            return
        since = f"after batch {rewrite.batch}" if rewrite.planned is None else "since"
        start = BOOK.text("start_written", since=since, sinks=self._describe_sinks())
        of_sink = inspect.but(sink=Hole.URI)
        if rewrite.salvage and rewrite.salvage.again:
            what = BOOK.text("ids_used_again", batches=span("batch", *rewrite.salvage.again))
        elif rewrite.planned is not None:
            what = BOOK.text("was_planned", planned=rewrite.planned)
        else:
            yield from show_call(of_sink if self._asks_sink else inspect, start)
            return
        yield Next((run(of_sink, what, rows=UNKNOWN_ROWS), do(Do.START, start)))

    def _show_conditions(self) -> Iterator[Block]:
        """Say what has to be true of the new query of several old ones, or of the new queries of one."""
        if not self.record.written or not (self.record.merged or self.record.parts):
            return
        yield Heading("Queries" if self.record.parts else "Query", "conditions on the queries to start")
        yield from bullets(self._list_of_parts() if self.record.parts else self._list_of_merged())

    def _list_of_merged(self) -> Iterator[str]:
        newest = max(self.record.merged, key=lambda plan: plan.batch)
        yield str(BOOK.text("own_id", batch=self.record.batch + 1))
        yield str(BOOK.text("folder_of_newest", newest=newest.inspection.checkpoint.uri))

    def _list_of_parts(self) -> Iterator[str]:
        inspection = self.record.inspection
        newest = inspection.checkpoint.offsets.newest
        yield str(BOOK.text("each_filters"))
        if any(source.type is SourceType.FILE for source in inspection.sources):
            yield "none may have the option cleanSource: one query would remove files before another reads them"
        if newest is not None and newest.metadata is not None and newest.metadata.watermark_ms:
            yield "if no row of a source passes the filter, that query's watermark does not advance"
        yield "each query has its own query id: a single Delta or Iceberg table accepts them all"
        yield "a foreachBatch that writes with a txnAppId needs a different txnAppId in each query"
        yield str(BOOK.text("one_continues_folder", batch=self.record.batch + 1))

    @property
    def _asks_sink(self) -> bool:
        """True if inspect compares the new checkpoint with its sink: where that may matter."""
        return self.record.planned is not None or self.record.new_id

    def _describe_sinks(self) -> str:
        """Describe how sinks take the new checkpoint."""
        if not self.record.new_id:
            return "It keeps the old query id, and its batch ids continue: sinks treat it as the same query."
        twice = f"; if the table has batch {self.record.planned} of the old query, that batch's rows are written again"
        own = "It has its own query id: a Delta or Iceberg table treats it as another query"
        return f"{own}{'' if self.record.planned is None else twice}."


@dataclass(frozen=True)
class ImportReport(RewriteReport):
    """A new checkpoint with rows that were given; ``source`` is the one that all else is from, as it was typed."""

    export: str

    checked = "every row was checked; the second read found the same count"
    why_left_out = "EXPORT is the state before it"

    def document(self) -> Document:
        return derive(ImportDocument, self.record, checkpoint=self._checkpoint, export=self.export)

    def _describe_rows(self, rewritten: "RewrittenUnit") -> str:
        edited = rewritten.exported is not None and rewritten.rows is not None and rewritten.exported != rewritten.rows
        return RewriteReport._describe_rows(self, rewritten) + (
            f"; the export had {rewritten.exported:,}" if edited else ""
        )

    def _describe_sinks(self) -> str:
        rewrite = self.record
        if rewrite.new_id or not rewrite.of_another_query:
            return RewriteReport._describe_sinks(self)
        exported = f" ({rewrite.exported_id})" if rewrite.exported_id else ""
        return str(BOOK.text("of_another_query", source=self.source, exported=exported, batch=rewrite.batch + 1))

    @property
    def _asks_sink(self) -> bool:
        return self.record.of_another_query or super()._asks_sink

    @property
    def _state(self) -> str:
        return f"the state in {self.export}, to continue after batch {self.record.batch}"
