"""A migration to transformWithState: as a runbook for a tired person, and as the JSON document of the contract."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.export.targets import Target
from ckpt.migrate.generate import to_fill_in
from ckpt.migrate.generate.text import columns, simple
from ckpt.migrate.transform import INITIAL_STATE, PROCESSOR, START, TransformPlan, mind
from ckpt.migrate.variables import Variable
from ckpt.shell import quoted, quoted_path

from .document import checkpoint_entry, tool
from .layout import Page, for_standard_output
from .page import title
from .text import instant, plural, printable


@dataclass(frozen=True, slots=True)
class Migration:
    """A plan, where it goes, and how many keys were written; None where nothing was."""

    plan: TransformPlan
    target: Target
    given: str  # the target as it was asked for
    keys: int | None = None


def transform_document(found: Migration) -> str:
    """The whole report, indented, keys in the order of the contract."""
    plan = found.plan
    moment = plan.initial.moment
    report = {
        "ckpt": tool(),
        "checkpoint": checkpoint_entry(plan.handoff.inspection),
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
        "files": [INITIAL_STATE, PROCESSOR, START],
        "fill_in": list(to_fill_in(plan)),
        "fill_in_ttl": [one.name for one in plan.variables if one.ttl],
        "warnings": list(mind(plan)),
    }
    return json.dumps(report, indent=2)


def transform_page(found: Migration) -> str:
    """The whole report, for the terminal or pipe that standard output is."""
    layout = for_standard_output()
    parts = (_state, _files, _fill_in, _mind, _next)
    told = ("\n".join(part(found, layout)) for part in parts)
    head = (title(found.plan.handoff.inspection, layout), _headline(found, layout))
    return "\n\n".join(text for text in (*head, *told) if text)


def _headline(found: Migration, layout: Page) -> str:
    plan = found.plan
    how = "exactly behind" if plan.handoff.exact else "behind"
    where = f"a transformWithState query that goes on {how} batch {plan.initial.moment.batch}"
    if found.keys is None:
        said = f"CAN BE WRITTEN, nothing is yet: {where}"
    else:
        said = f"WRITTEN: {where}, with the state of {plural(found.keys, 'key')}"
    colour = "32;1" if plan.handoff.exact else "33;1"
    return "\n".join(layout.paint(line, colour) for line in layout.wrap(said, 0).splitlines())


def _state(found: Migration, layout: Page) -> Iterator[str]:
    plan = found.plan
    name = f" ({printable(plan.shape.operator_name)})" if plan.shape.operator_name else ""
    yield layout.heading("State", f"operator {plan.shape.operator}{name}: {plan.family}")
    keys = ", ".join(f"{key.name} {simple(key.type)}" for key in plan.shape.keys) or "none, one group of all rows"
    yield layout.wrap(printable(keys), 12, "  key")
    for one in plan.variables:
        yield layout.wrap(printable(f"{one.name}: {_form(one)}"), 12, "  variable")
    yield f"  {'time mode':10}{plan.time_mode}, output mode {plan.output_mode}"
    if plan.watermark_ms:
        yield f"  {'watermark':10}{instant(plan.watermark_ms)} ({plan.watermark_ms} ms)"


def _form(one: Variable) -> str:
    ttl = ", with a time to live" if one.ttl else ""
    key = f"({columns(one.key)}) to " if one.key else ""
    return f"{one.form} of {key}({columns(one.fields)}){ttl}"


def _files(found: Migration, layout: Page) -> Iterator[str]:
    rows = "one row a key" if found.keys is None else f"{plural(found.keys, 'row')}, one a key"
    yield layout.heading("Files", printable(f"in {found.given}"))
    yield f"  {INITIAL_STATE}/   the state as {found.plan.format}, {rows}"
    yield f"  {PROCESSOR}     loads it; your logic goes into update and expired"
    yield f"  {START}         sources, guards, the query"


def _fill_in(found: Migration, layout: Page) -> Iterator[str]:
    yield layout.heading("Fill in", "what no checkpoint records")
    names = ", ".join(to_fill_in(found.plan))
    yield layout.wrap(f"{names}; prepare(), the options of the sources, the sink", 16, f"  {START}")
    ttl = [one.name for one in found.plan.variables if one.ttl]
    if ttl:
        yield layout.wrap(printable(f"TTL_MS of {', '.join(ttl)}"), 16, f"  {PROCESSOR}")


def _mind(found: Migration, layout: Page) -> Iterator[str]:
    warnings = list(mind(found.plan))
    if warnings:
        yield layout.heading("Mind")
        yield from (layout.wrap(printable(warning), 4, "  - ") for warning in warnings)


def _next(found: Migration, layout: Page) -> Iterator[str]:
    plan = found.plan
    old = quoted_path(plan.initial.checkpoint)
    folder = quoted_path(found.given)
    if found.keys is None:
        yield layout.wrap("stop the old query, then the same command without --plan", 10, "Next")
        return
    yield layout.heading("Next")
    latest = plan.handoff.inspection.checkpoint.offsets.latest
    told = f"Stop the old query. If its newest batch is no longer {latest} then, do all this anew into another folder:"
    yield layout.wrap(told, 5, "  1.")
    yield f"     ckpt handoff {old}"
    yield layout.wrap("Fill in the constants, put your logic into processor.py, and start it:", 5, "  2.")
    if found.target.name.startswith("file:"):
        yield f"     cd {folder} && python {START}"
    else:
        yield f"     spark-submit --py-files {folder}/{PROCESSOR} {folder}/{START}"
    told = (
        "Until the new checkpoint has its first commit, start it again in the same way: start.py hands over the state "
        "as long as it has none, and never after."
    )
    yield layout.wrap(told, 5, "  3.")
    variable = quoted(plan.variables[0].name)
    yield layout.wrap(f"See that {plural(found.keys, 'key')} were loaded; keys that are new come on top:", 5, "  4.")
    yield f"     ckpt export-state NEW_CHECKPOINT --variable {variable} --batch 0 --count"
    yield layout.wrap(f"Then {INITIAL_STATE}/ is not needed any more.", 5, "  5.")
    yield ""
    told = (
        "Stop the new query, and start the old one on its checkpoint, which nothing has touched. What the new one has "
        "written to the sink is then written again."
    )
    yield layout.heading("Back", told)
