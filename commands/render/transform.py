"""A migration to transformWithState: as a runbook for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.migrate.generate.sources import seen_folder
from ckpt.migrate.generate.start import to_fill_in, too_many_for_code
from ckpt.migrate.generate.text import columns, simple
from ckpt.migrate.transform import (
    INITIAL_STATE,
    PROCESSOR,
    START,
    Api,
    TransformMigration,
    TransformRefused,
    warnings_of,
)
from ckpt.migrate.variables import Variable
from ckpt.state.export.targets import Format
from ckpt.storage.locations import spark_uri
from ckpt.texts import instant, quoted, quoted_path

from ..arguments import all_as_options, as_options
from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Line, Page, Tone, bullets, page_of
from .document import Document, ToolKeys, checkpoint_keys
from .page import title
from .text import plural


@dataclass(frozen=True, slots=True)
class TransformReport:
    """What ``ckpt migrate transform-with-state`` plans or wrote."""

    found: TransformMigration

    @property
    def exit(self) -> Exit:
        """A plan is something to be done."""
        return Exit.FOUND if self.found.keys is None else Exit.OK

    def document(self) -> Document:
        """All of it."""
        return _document(self.found)

    def page(self) -> Page:
        """A runbook."""
        parts = (_headline, _state, _files, _fill_in, _warnings, _next, _back)
        return page_of(title(self.found.plan.handoff.inspection), *(part(self.found) for part in parts))


def _document(found: TransformMigration) -> Document:
    plan = found.plan
    moment = plan.initial.moment
    return {
        "ckpt": ToolKeys(),
        "checkpoint": checkpoint_keys(plan.handoff.inspection),
        "action": "plan" if found.keys is None else "write",
        "to": found.target.name,
        "format": plan.format,
        "api": plan.api,
        "operator": {"id": plan.shape.operator, "name": plan.shape.operator_name},
        "family": plan.family,
        "batch": moment.batch,
        "state_version": moment.state_version,
        "exact": plan.handoff.exact,
        "key": [{"name": key.name, "type": simple(key.type)} for key in plan.shape.keys],
        "variables": [
            {"name": one.name, "form": one.form, "schema": columns(one.fields), "ttl": one.ttl}
            for one in plan.variables
        ],
        "time_mode": plan.time_mode,
        "output_mode": plan.output_mode,
        "watermark_ms": plan.watermark_ms,
        "keys": found.keys,
        "files": [INITIAL_STATE, PROCESSOR, START, *map(seen_folder, too_many_for_code(plan))],
        "fill_in": list(to_fill_in(plan)),
        "fill_in_ttl": [one.name for one in plan.variables if one.ttl],
        "warnings": all_as_options(warnings_of(plan)),
        "refused": None,
    }


@dataclass(frozen=True, slots=True)
class RefusalReport:
    """Why ``ckpt migrate transform-with-state`` writes nothing."""

    refused: TransformRefused
    to: str
    format: Format
    api: Api
    plans: bool

    @property
    def exit(self) -> Exit:
        """A refusal."""
        return Exit.FAILED

    def document(self) -> Document:
        """The keys of a plan, without what is not known."""
        handoff = self.refused.handoff
        return {
            "ckpt": ToolKeys(),
            "checkpoint": checkpoint_keys(handoff.inspection),
            "action": "plan" if self.plans else "write",
            "to": spark_uri(self.to),
            "format": self.format,
            "api": self.api,
            "operator": None,
            "family": None,
            "batch": handoff.batch,
            "state_version": None,
            "exact": False,
            "key": [],
            "variables": [],
            "time_mode": None,
            "output_mode": None,
            "watermark_ms": None,
            "keys": None,
            "files": [],
            "fill_in": [],
            "fill_in_ttl": [],
            "warnings": [],
            "refused": as_options(str(self.refused)),
        }

    def page(self) -> Page:
        """Why not."""
        return page_of(title(self.refused.handoff.inspection), [Headline(as_options(str(self.refused)), Tone.ERROR)])


def _headline(found: TransformMigration) -> Iterator[Block]:
    plan = found.plan
    how = "exactly after" if plan.handoff.exact else "after"
    where = f"a transformWithState query that continues {how} batch {plan.initial.moment.batch}"
    if found.keys is None:
        said = f"CAN BE WRITTEN, not written yet: {where}"
    else:
        said = f"WRITTEN: {where}, with the state of {plural(found.keys, 'key')}"
    yield Headline(said, Tone.GOOD if plan.handoff.exact else Tone.WARNING)


def _state(found: TransformMigration) -> Iterator[Block]:
    plan = found.plan
    name = f" ({plan.shape.operator_name})" if plan.shape.operator_name else ""
    yield Heading("State", f"operator {plan.shape.operator}{name}: {plan.family}")
    keys = ", ".join(f"{key.name} {simple(key.type)}" for key in plan.shape.keys) or "none, one group of all rows"
    yield Item(keys, 12, "  key")
    for one in plan.variables:
        yield Item(f"{one.name}: {_form(one)}", 12, "  variable")
    if any(kept.aggregate.name for kept in plan.aggregates):
        yield from (Item(kept.meaning, 12, "  aggregate") for kept in plan.aggregates)
    yield Line(f"  {'time mode':10}{plan.time_mode}, output mode {plan.output_mode}")
    if plan.watermark_ms:
        yield Line(f"  {'watermark':10}{instant(plan.watermark_ms)} ({plan.watermark_ms} ms)")


def _form(one: Variable) -> str:
    ttl = ", with a time to live" if one.ttl else ""
    key = f"({columns(one.key)}) to " if one.key else ""
    return f"{one.form} of {key}({columns(one.fields)}){ttl}"


def _files(found: TransformMigration) -> Iterator[Block]:
    rows = "one row per key" if found.keys is None else f"{plural(found.keys, 'row')}, one per key"
    yield Heading("Files", f"in {found.target.shown}")
    yield Line(f"  {INITIAL_STATE}/   the state as {found.plan.format}, {rows}")
    logic = "continues its aggregates" if found.plan.folds else "your logic goes into update and expired"
    yield Line(f"  {PROCESSOR}     loads it; {logic}")
    yield Line(f"  {START}         sources, guards, the query")
    for start in too_many_for_code(found.plan):
        yield Line(f"  {seen_folder(start)}/          {plural(len(start.seen), 'file')} that the old query has read")


def _fill_in(found: TransformMigration) -> Iterator[Block]:
    yield Heading("Fill in", "what no checkpoint records")
    names = ", ".join(to_fill_in(found.plan))
    yield Item(f"{names}; prepare(), the options of the sources, the sink", 16, f"  {START}")
    ttl = [one.name for one in found.plan.variables if one.ttl]
    if ttl:
        yield Item(f"TTL_MS of {', '.join(ttl)}", 16, f"  {PROCESSOR}")


def _warnings(found: TransformMigration) -> Iterator[Block]:
    warnings = all_as_options(warnings_of(found.plan))
    if warnings:
        yield Heading("Mind")
        yield from bullets(warnings)


def _next(found: TransformMigration) -> Iterator[Block]:
    plan = found.plan
    old = quoted_path(plan.initial.checkpoint)
    folder = quoted_path(found.target.shown)
    if found.keys is None:
        yield Item("stop the old query, then the same command without --plan", 10, "Next")
        return
    yield Heading("Next")
    latest = plan.handoff.inspection.checkpoint.offsets.latest
    text = f"Stop the old query. If its newest batch is no longer {latest} then, do all this again with another folder:"
    yield Item(text, 5, "  1.")
    yield Command(f"ckpt handoff {old}", 5)
    logic = "" if plan.folds else "put your logic into processor.py, "
    yield Item(f"Fill in the constants, {logic}and start it:", 5, "  2.")
    if found.target.name.startswith("file:"):
        yield Command(f"cd {folder} && python {START}", 5)
    else:
        yield Command(f"spark-submit --py-files {folder}/{PROCESSOR} {folder}/{START}", 5)
    text = (
        "Until the new checkpoint has its first commit, start it again in the same way: start.py passes the state "
        "as long as it has none, and never after that."
    )
    yield Item(text, 5, "  3.")
    variable = quoted(plan.variables[0].name)
    yield Item(f"Check that {plural(found.keys, 'key')} were loaded; new keys are added to them:", 5, "  4.")
    yield Command(f"ckpt export-state NEW_CHECKPOINT --variable {variable} --batch 0 --count", 5)
    yield Item(f"Then {INITIAL_STATE}/ is no longer needed.", 5, "  5.")


def _back(found: TransformMigration) -> Iterator[Block]:
    if found.keys is None:
        return
    text = (
        "Stop the new query, and start the old one on its checkpoint, which is unchanged. It then writes again "
        "what the new one has written to the sink."
    )
    yield Heading("Back", text)
