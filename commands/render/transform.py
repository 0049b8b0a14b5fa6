"""A migration to transformWithState: as a runbook for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from ckpt.advice import Do, do, words
from ckpt.migrate.generate.start import seen_folder, to_fill_in, too_many_for_code
from ckpt.migrate.text import columns, simple
from ckpt.migrate.transform import (
    INITIAL_STATE,
    PROCESSOR,
    START,
    Api,
    TimeMode,
    TransformMigration,
    TransformRefused,
    warnings_of,
)
from ckpt.migrate.variables import Variable, VariableForm
from ckpt.state.export.targets import Format
from ckpt.storage.locations import spark_uri
from ckpt.texts import instant, plural, quote_path

from .blocks import Block, Heading, Headline, Item, Line, Next, Page, Tone, page_of, show_warnings
from .book import BOOK
from .document import Document, DocumentKeys
from .inspection import CheckpointKeys
from .keys import Keys, Sentences, derive, key_types, of
from .page import show_title
from .reports import Exit, Report


class _Operator(Keys):
    id: Annotated[int, of("operator")]
    name: Annotated[str | None, of("operator_name")]


class _Key(Keys):
    name: str
    type: Annotated[str, lambda key: simple(key.type)]


class _Variable(Keys):
    name: str
    form: VariableForm
    schema: Annotated[str, lambda variable: columns(variable.fields)]
    ttl: bool


def _list_files(migration: TransformMigration) -> list[str]:
    return [INITIAL_STATE, PROCESSOR, START, *map(seen_folder, too_many_for_code(migration.plan))]


class TransformDocument(DocumentKeys):
    """The document of ``ckpt migrate transform-with-state``; the defaults are those of a refusal."""

    checkpoint: Annotated[CheckpointKeys, of("plan.handoff.inspection")]
    action: Annotated[Literal["plan", "write"], lambda migration: "plan" if migration.keys is None else "write"]
    to: Annotated[str, of("target.name")]
    format: Annotated[Literal["parquet", "delta"], of("plan.format")]
    api: Annotated[Api, of("plan.api")]
    operator: Annotated[_Operator | None, of("plan.shape")] = None
    family: Annotated[str | None, of("plan.family")] = None
    batch: Annotated[int | None, of("plan.initial.moment.batch")]
    state_version: Annotated[int | None, of("plan.initial.moment.state_version")] = None
    exact: Annotated[bool, of("plan.handoff.exact")] = False
    key: Annotated[tuple[_Key, ...], of("plan.shape.keys")] = ()
    variables: Annotated[tuple[_Variable, ...], of("plan.variables")] = ()
    time_mode: Annotated[TimeMode | None, of("plan.time_mode")] = None
    output_mode: Annotated[str | None, of("plan.output_mode")] = None
    watermark_ms: Annotated[int | None, of("plan.watermark_ms")] = None
    keys: int | None = None
    files: Annotated[tuple[str, ...], _list_files] = ()
    fill_in: Annotated[tuple[str, ...], lambda migration: list(to_fill_in(migration.plan))] = ()
    fill_in_ttl: Annotated[
        tuple[str, ...], lambda migration: [variable.name for variable in migration.plan.variables if variable.ttl]
    ] = ()
    warnings: Annotated[Sentences, lambda migration: tuple(warnings_of(migration.plan))] = ()
    refused: Annotated[str | None, lambda _: None]


class TransformReport(Report[TransformMigration]):
    """Report of ``ckpt migrate transform-with-state``."""

    keys = TransformDocument

    @property
    def exit(self) -> Exit:
        return Exit.FOUND if self.record.keys is None else Exit.OK

    def page(self) -> Page:
        parts = (_show_headline, _show_state, _show_files, _show_fill_in)
        warnings = show_warnings(warnings_of(self.record.plan))
        back = [] if self.record.keys is None else [Heading("Back", str(BOOK.text("back_to_old")))]
        end = (warnings, _show_next(self.record), back)
        return page_of(show_title(self.record.plan.handoff.inspection), *(part(self.record) for part in parts), *end)


@dataclass(frozen=True)
class RefusalReport(Report[TransformRefused]):
    """Why ``ckpt migrate transform-with-state`` writes nothing."""

    to: str
    format: Format
    api: Api
    plans: bool

    @property
    def exit(self) -> Exit:
        return Exit.FAILED

    def document(self) -> Document:
        handoff, defaults = self.record.handoff, vars(TransformDocument)
        return derive(
            TransformDocument,
            self.record,
            **{name: defaults[name] for name in key_types(TransformDocument) if name in defaults},
            checkpoint=handoff.inspection,
            action="plan" if self.plans else "write",
            to=spark_uri(self.to),
            format=self.format,
            api=self.api,
            batch=handoff.batch,
            refused=str(self.record),
        )

    def page(self) -> Page:
        return page_of(show_title(self.record.handoff.inspection), [Headline(str(self.record), Tone.ERROR)])


def _show_headline(migration: TransformMigration) -> Iterator[Block]:
    plan = migration.plan
    how = "exactly after" if plan.handoff.exact else "after"
    where = f"a transformWithState query that continues {how} batch {plan.initial.moment.batch}"
    if migration.keys is None:
        text = f"PLANNED: {where}"
    else:
        text = f"WRITTEN: {where}, with the state of {plural(migration.keys, 'key')}"
    yield Headline(text, Tone.GOOD if plan.handoff.exact else Tone.WARNING)


def _show_state(migration: TransformMigration) -> Iterator[Block]:
    plan = migration.plan
    name = f" ({plan.shape.operator_name})" if plan.shape.operator_name else ""
    yield Heading("State", f"operator {plan.shape.operator}{name}: {plan.family}")
    keys = ", ".join(f"{key.name} {simple(key.type)}" for key in plan.shape.keys) or "none, one group of all rows"
    yield Item(keys, 12, "  key")
    for variable in plan.variables:
        yield Item(f"{variable.name}: {_describe_form(variable)}", 12, "  variable")
    if any(kept.aggregate.name for kept in plan.aggregates):
        yield from (Item(kept.meaning, 12, "  aggregate") for kept in plan.aggregates)
    yield Line(f"  {'time mode':10}{plan.time_mode}, output mode {plan.output_mode}")
    if plan.watermark_ms:
        yield Line(f"  {'watermark':10}{instant(plan.watermark_ms)} ({plan.watermark_ms} ms)")


def _describe_form(variable: Variable) -> str:
    ttl = ", with a time to live" if variable.ttl else ""
    key = f"({columns(variable.key)}) to " if variable.key else ""
    return f"{variable.form} of {key}({columns(variable.fields)}){ttl}"


def _show_files(migration: TransformMigration) -> Iterator[Block]:
    rows = "one row per key" if migration.keys is None else f"{plural(migration.keys, 'row')}, one per key"
    yield Heading("Files", f"in {migration.target.shown}")
    yield Line(f"  {INITIAL_STATE}/   the state as {migration.plan.format}, {rows}")
    logic = "continues its aggregates" if migration.plan.folds else "put your logic into update() and expired()"
    yield Line(f"  {PROCESSOR}     loads it; {logic}")
    yield Line(f"  {START}         sources, guards, the query")
    for start in too_many_for_code(migration.plan):
        yield Line(f"  {seen_folder(start)}/          {plural(len(start.seen), 'file')} that the old query has read")


def _show_fill_in(migration: TransformMigration) -> Iterator[Block]:
    yield Heading("Fill in", "values that no checkpoint records")
    names = ", ".join(to_fill_in(migration.plan))
    yield Item(f"{names}; prepare(), the source options and the sink", 16, f"  {START}")
    ttl = [variable.name for variable in migration.plan.variables if variable.ttl]
    if ttl:
        yield Item(f"TTL_MS of {', '.join(ttl)}", 16, f"  {PROCESSOR}")


def _show_next(migration: TransformMigration) -> Iterator[Block]:
    plan = migration.plan
    folder = quote_path(migration.target.shown)
    if migration.keys is None:
        stop = words("Stop the old query.")
        yield Next((do(Do.CHANGE, words("Repeat this call without {--plan}."), before=[stop]),))
        return
    start = f"spark-submit --py-files {folder}/{PROCESSOR} {folder}/{START}"
    if migration.target.name.startswith("file:"):
        start = f"cd {folder} && python {START}"
    steps = BOOK.advise(
        "transform_folding" if plan.folds else "transform",
        uri=plan.initial.checkpoint,
        latest=plan.handoff.inspection.checkpoint.offsets.latest,
        processor=PROCESSOR,
        start=start,
        variable=plan.variables[0].name,
        keys=plural(migration.keys, "key"),
        folder=f"{INITIAL_STATE}/",
    )
    yield Next(steps.steps, numbered=True)
