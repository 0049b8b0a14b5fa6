"""An inspection as HTML, as a page or a part of one; the one environment of the templates escapes every text."""

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ckpt.advice import Words
from ckpt.advice.words import is_quoted
from ckpt.errors import CkptError
from ckpt.extras import install_command
from ckpt.formats.types import type_name
from ckpt.inspection.inspection import Inspection, RatedFinding
from ckpt.inspection.verdict import outcome_words
from ckpt.model import Json, Operator, Store
from ckpt.restart.findings import Forecast, Outcome
from ckpt.texts import batch_ranges, escape_unprintable, instant, mask_json, mask_secrets, plural, size
from ckpt.versions import Progress, Spark, __version__
from ckpt.webpage.charts import chart_partitions, make_timeline

_PLACES = 5  # of one finding
_SOURCES = 20
_OFFSET = 400  # characters of an offset
_QUOTED = re.compile("`([^`]+)`")  # code in a sentence that is a text already
_PLOTTED = 12  # stores whose partitions are plotted


PAGE, SECTION, NOTEBOOK = "inspection.html", "inspection.part.html", "notebook.html"
"""An inspection as a page that needs nothing else, as a part of a document without style, and with its style."""


def show_inspection(
    inspection: Inspection, template: str, first: Sequence[dict[str, Any]], besides: Sequence[dict[str, Any]]
) -> str:
    """Fill a template with an inspection; ``first`` and ``besides`` are blocks, each its ``kind`` and its texts.

    Raises HtmlMissing where Jinja2 is not installed.
    """
    return fill_template(template, part="inspection", first=first, besides=besides, **_describe_inspection(inspection))


def _describe_inspection(inspection: Inspection) -> dict[str, Any]:
    checkpoint = inspection.checkpoint
    plotted = iter(range(_PLOTTED))
    return {
        "title": checkpoint.uri.rstrip("/").rpartition("/")[2] or checkpoint.uri,
        "inspection": inspection,
        "facts": _list_facts(inspection),
        "forecasts": _make_forecast_table(inspection.forecasts),
        "sources": [
            (source.index, source.type, source.name or "", _show_offset(source.offset))
            for source in inspection.sources[:_SOURCES]
        ],
        "more_sources": len(inspection.sources) - _SOURCES,
        "timeline": make_timeline(checkpoint, inspection.batches),
        "state": checkpoint.state,
        "operators": [
            {
                "operator": operator,
                "stores": [_show_store(store, plot=next(plotted, None) is not None) for store in operator.stores],
            }
            for operator in checkpoint.operators
        ],
        "sizes": _compare_sizes(checkpoint.operators),
        "findings": _group_findings((*inspection.troubles, *inspection.notes)),
    }


def _list_facts(inspection: Inspection) -> list[tuple[str, str]]:
    checkpoint = inspection.checkpoint
    latest = checkpoint.offsets.newest
    keeps = {True: "stateful", False: "no state/ folder", None: "stateful or not: unknown"}[checkpoint.stateful]
    facts = [
        ("Checkpoint", checkpoint.uri),
        ("Kind", f"{checkpoint.kind}, {keeps}"),
        ("Latest batch", "none" if checkpoint.offsets.latest is None else str(checkpoint.offsets.latest)),
        ("Planned", instant(latest.metadata.timestamp_ms) if latest and latest.metadata else ""),
        ("Latest commit", "none" if checkpoint.commits.latest is None else str(checkpoint.commits.latest)),
        ("Written by", inspection.written_by.versions),
        ("Query id", checkpoint.query_id or ""),
        ("Files", f"{checkpoint.listing.files:,}, {size(checkpoint.listing.bytes)}"),
        ("No start needs", size(inspection.space.known) if inspection.space.known else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _make_forecast_table(forecasts: tuple[Forecast, ...]) -> dict[str, Any]:
    """Make the table that the template takes: versions below one another, modes beside one another."""
    modes = [mode for mode in Progress if any(forecast.progress is mode for forecast in forecasts)]
    versions = [version for version in Spark if any(forecast.spark is version for forecast in forecasts)]
    cells = {
        (forecast.spark, forecast.progress): {"words": outcome_words(forecast), "tone": _choose_outcome_tone(forecast)}
        for forecast in forecasts
    }
    return {"modes": modes, "rows": [(version, [cells.get((version, mode)) for mode in modes]) for version in versions]}


def _choose_outcome_tone(forecast: Forecast) -> str:
    if forecast.outcome.runs:
        return "good"
    return "note" if forecast.outcome in (Outcome.REFUSED, Outcome.UNKNOWN) else "error"


def _show_store(store: Store, *, plot: bool) -> dict[str, Any]:
    sizes = [(partition.partition, partition.bytes) for partition in store.partitions]
    lags = [(partition.partition, partition.replay_versions) for partition in store.partitions]
    charts = (
        chart_partitions("Size by partition", sizes, size, "the largest"),
        chart_partitions("Versions that a load replays, by partition", lags, lambda n: f"{n:,}", "the most"),
    )
    return {
        "store": store,
        "charts": [chart for chart in charts if chart is not None] if plot else [],
        "key": type_name(store.key_schema) if store.key_schema else "",
        "value": type_name(store.value_schema) if store.value_schema else "",
        "readable": batch_ranges(store.readable_batches) if store.readable_batches else "no batch",
    }


def _compare_sizes(operators: tuple[Operator, ...]) -> list[tuple[str, int, float]]:
    """Each store with its bytes, and those as a part of the largest."""
    stores = [
        (f"operator {operator.id}, {store.name}", store.bytes) for operator in operators for store in operator.stores
    ]
    highest = max((count for _, count in stores), default=0) or 1
    return [(name, count, count / highest) for name, count in stores]


def _group_findings(findings: tuple[RatedFinding, ...]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[RatedFinding]] = {}
    for rated in findings:
        groups.setdefault((rated.finding.diagnosis.code, rated.severity), []).append(rated)
    return [
        {
            "first": same[0],
            "places": same[:_PLACES],
            "more": len(same) - _PLACES,
            "sentences": [*same[0].advice.sentences()] if same[0].advice else [],
        }
        for same in groups.values()
    ]


def _show_offset(value: Json) -> str:
    """As in the log; masked before it is cut, which could hide that something is a secret."""
    text = mask_json(json.dumps(value))
    return text if len(text) <= _OFFSET else f"{text[:_OFFSET]} ..."


class HtmlMissing(CkptError):
    """The package that fills templates is not installed."""


def fill_template(template: str, **values: Any) -> str:
    """Fill a template with its values. Raises HtmlMissing."""
    text: str = _make_environment().get_template(template).render(version=__version__, **values)
    return text


@cache
def _make_environment() -> Any:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ModuleNotFoundError:
        raise HtmlMissing(f"output as HTML needs the package jinja2: {install_command('html')}") from None
    environment = Environment(
        loader=FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_make_safe,
    )
    environment.filters |= {"size": size, "instant": instant, "counted": plural, "advice": split_advice}
    return environment


def _make_safe(value: Any) -> Any:
    """A text that may be from a checkpoint, without its secrets, and with what is not printable as escapes."""
    return "\n".join(map(escape_unprintable, mask_secrets(value).split("\n"))) if type(value) is str else value


def split_advice(text: str | Words) -> list[tuple[bool, str]]:
    """The parts of a sentence: whether each is code, and its text."""
    if isinstance(text, str):
        return [(bool(number % 2), part) for number, part in enumerate(_QUOTED.split(mask_secrets(text)))]
    return [(is_quoted(part), mask_secrets(shown)) for part, shown in text.segments()]
