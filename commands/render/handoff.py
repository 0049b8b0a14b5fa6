"""A hand-over: as a page for a tired person, and as the JSON document of the contract."""

import json
from collections.abc import Iterator

from ckpt.findings import Severity
from ckpt.handoff import Begin, Handoff, SourceStart
from ckpt.restart.forecast import SourceRange
from ckpt.shell import quoted_path
from ckpt.sources import advance

from .document import checkpoint_entry, range_entry, source_entry, tool
from .findings import COLOURS
from .layout import Page, for_standard_output
from .offsets import offset
from .page import title
from .text import instant, plural, printable

_SHOWN = 10  # how many sources, later batches and files are named
_BEGINS = {
    Begin.EXACT: "goes on exactly there",
    Begin.UNREAD: "nothing was read of it yet",
    Begin.FROM_ZERO: "BEGINS AGAIN",
    Begin.REFUSED: "REFUSED",
}


def handoff_document(found: Handoff, code: str | None) -> str:
    """The whole report, indented, keys in the order of the contract."""
    report = {
        "ckpt": tool(),
        "checkpoint": checkpoint_entry(found.inspection),
        "batch": found.batch,
        "exact": found.exact,
        "doubts": list(found.doubts),
        "possible": [list(span) for span in found.possible],
        "state_version": found.state_version,
        "watermark_ms": found.watermark_ms,
        "sources": [_source(start) for start in found.sources],
        "later": [
            {"batch": one.batch, "committed": one.committed, "sources": [_range(two) for two in one.sources]}
            for one in found.later
        ],
        "sinks": [{"kind": one.kind, "meaning": one.meaning} for one in found.sinks],
        "warnings": list(found.warnings),
        "refused": found.refused,
        "snippet": code,
    }
    return json.dumps(report, indent=2)


def _source(start: SourceStart) -> dict[str, object]:
    return {
        **source_entry(start.view),
        "begin": start.begin,
        "options": dict(start.options),
        "without": list(start.without),
        "seen": list(start.seen),
        "conditions": list(start.conditions),
        "refused": start.refused,
    }


def _range(reading: SourceRange) -> dict[str, object]:
    grown = None if reading.end is None else advance(reading.start, reading.end)
    amount, unit = (grown.amount, grown.unit) if grown else (None, None)
    return {**range_entry(reading), "amount": amount, "unit": unit}


def handoff_page(found: Handoff) -> str:
    """The whole report, for the terminal or pipe that standard output is."""
    layout = for_standard_output()
    parts = (_sources, _since, _watermark, _sinks, _mind, _next)
    told = ("\n".join(part(found, layout)) for part in parts)
    return "\n\n".join(text for text in (title(found.inspection, layout), _headline(found, layout), *told) if text)


def _headline(found: Handoff, layout: Page) -> str:
    if found.refused:
        said, colour = f"NO HAND-OVER: {printable(found.refused)}", COLOURS[Severity.ERROR]
    elif found.exact:
        said, colour = f"A NEW QUERY CAN GO ON exactly behind batch {found.batch}, the last that was planned", "32;1"
    else:
        begun = any(start.begin is Begin.FROM_ZERO for start in found.sources)
        but = "but NOT ALL SOURCES CAN: some begin again" if begun else "but MAY READ ROWS AGAIN"
        said, colour = f"A NEW QUERY CAN GO ON behind batch {found.batch}, {but}", "33;1"
    lines = [layout.paint(line, colour) for line in layout.wrap(said, 0).splitlines()]
    return "\n".join([*lines, *(layout.wrap(printable(doubt), 4, "  - ") for doubt in found.doubts)])


def _sources(found: Handoff, layout: Page) -> Iterator[str]:
    if not found.sources:
        return
    yield layout.heading("Sources", f"of the new query, to go on behind batch {found.batch}")
    for start in found.sources[:_SHOWN]:
        name = f" {printable(start.view.name)}" if start.view.name else ""
        where = printable(offset(start.view.offset))
        where = f"from zero (the old query stood at {where})" if start.begin is Begin.FROM_ZERO else where
        yield layout.wrap(f"{_BEGINS[start.begin]}: {where}", 24, f"  {start.view.index}  {start.view.type}{name}  ")
        for key, value in start.options.items():
            yield layout.wrap(printable(value), 7, f"     {key} = ")
        if start.options and start.without:
            yield layout.wrap(f"without {' and without '.join(start.without)}", 7)
        if start.begin is Begin.EXACT and not start.options:
            yield layout.wrap(f"leaves out {plural(len(start.seen), 'file')} that the old query had read:", 5)
            yield from (f"       {printable(path)}" for path in start.seen[:_SHOWN])
            if len(start.seen) > _SHOWN:
                yield f"       and {len(start.seen) - _SHOWN:,} more, which -o json names"
        for condition in start.conditions:
            yield layout.wrap(printable(condition), 7, "     - ")
    if len(found.sources) > _SHOWN:
        yield f"  and {len(found.sources) - _SHOWN} more, which -o json names"


def _since(found: Handoff, layout: Page) -> Iterator[str]:
    if found.refused:
        return
    if not found.later:
        yield layout.heading("Since", f"nothing was planned after batch {found.batch}")
        return
    yield layout.heading("Since", f"what the old query planned after batch {found.batch}")
    for later in found.later[:_SHOWN]:
        yield f"  batch {later.batch}   {'committed' if later.committed else 'NOT COMMITTED'}"
        for one in later.sources:
            grown = None if one.end is None else advance(one.start, one.end)
            count = f": {grown.amount:,} {grown.unit}" if grown and grown.amount is not None else ""
            end = "where nobody knows" if one.end is None else offset(one.end)
            yield layout.wrap(printable(f"from {offset(one.start)} to {end}{count}"), 7, f"    {one.index}  ")
    if len(found.later) > _SHOWN:
        yield f"  and {len(found.later) - _SHOWN} more, which -o json names"


def _watermark(found: Handoff, layout: Page) -> Iterator[str]:
    if found.watermark_ms:
        yield layout.heading(
            "Watermark",
            f"{instant(found.watermark_ms)} ({found.watermark_ms} ms) in the old query's next batch. A new query "
            "begins without one: drop rows with an earlier event time yourself, as the old query would have",
        )


def _sinks(found: Handoff, layout: Page) -> Iterator[str]:
    if found.sinks and not found.refused:
        yield layout.heading("Sinks", "what a new checkpoint means to them")
        for sink in found.sinks:
            yield layout.wrap(printable(sink.meaning), 4, f"  {sink.kind}: ")


def _mind(found: Handoff, layout: Page) -> Iterator[str]:
    if found.warnings and not found.refused:
        yield layout.heading("Mind")
        yield from (layout.wrap(printable(warning), 4, "  - ") for warning in found.warnings)


def _next(found: Handoff, layout: Page) -> Iterator[str]:
    path = quoted_path(found.inspection.checkpoint.uri)
    if found.refused:
        yield layout.wrap("see what is there", 10, "Next")
        yield f"          ckpt inspect {path}"
    else:
        yield layout.wrap("take the code that starts the sources there", 10, "Next")
        yield f"          ckpt handoff {path} --batch {found.batch} --snippet python"
