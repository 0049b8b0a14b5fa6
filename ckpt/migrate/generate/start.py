"""``start.py``: a runnable query with the sources, the guards, and what is to be filled in."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from ckpt import settings
from ckpt.migrate.generate import sources
from ckpt.migrate.generate.processor import describe_plan
from ckpt.migrate.handoff.starts import SourceStart
from ckpt.migrate.text import fill_code, literal, plain, quoted, simple
from ckpt.migrate.transform import INITIAL_STATE, NULL_IS_SAFE, TimeMode, TransformPlan
from ckpt.migrate.variables import WINDOW, OperatorFamily

_ALL = "everything"  # the key of an operator that has none
_LATENESS = {
    OperatorFamily.WINDOWS: ("the end of their window", 'F.col("window_end")'),
    OperatorFamily.SESSIONS: ("the end of a session of their own", 'F.col("session.end")'),
}
"""The clock by which a row is late, for each time mode: in words, and as code."""


def start_code(plan: TransformPlan, folder: str | None) -> str:
    """The whole file, with a line end at its end.

    ``folder`` is the folder that everything is written to, or None where the file finds it by its own path.
    """
    return fill_code("start.template", describe_plan(plan) | _collect_values(plan, folder))


def to_fill_in(plan: TransformPlan) -> tuple[str, ...]:
    """The names of constants in the file that may not stay empty."""
    facts = describe_plan(plan)
    names = ["CHECKPOINT", *(name for start in plan.handoff.sources for name in sources.to_fill_in(start))]
    names += ["EVENT_TIME"] * facts["dated"] + ["DELAY"] * facts["timed"] + ["WINDOW"] * facts["windows"]
    names += ["GAP"] * facts["sessions"]
    return (*names, *facts["blanks"])


def too_many_for_code(plan: TransformPlan) -> tuple[SourceStart, ...]:
    """The sources that have read more files than ``start.py`` names."""
    return tuple(start for start in plan.handoff.sources if len(start.seen) > sources.MOST_IN_CODE)


def _collect_values(plan: TransformPlan, folder: str | None) -> dict[str, Any]:
    """Collect what ``start.template`` shows of a plan besides ``describe_plan``."""

    def beside(name: str) -> str:
        """Write a path in the folder of the file, as code."""
        here = 'f"file:{Path(__file__).resolve().parent}/'
        return f'{here}{name}"' if folder is None else literal(f"{folder}/{name}")

    facts, starts = describe_plan(plan), plan.handoff.sources
    keys = [(key.name, simple(key.type)) for key in plan.shape.keys]
    own_keys = [key for key in keys if not (facts["windows"] and key[0] in WINDOW)]
    names = [f"rows_{start.view.index}" for start in starts] if len(starts) > 1 else ["rows"]
    filters = any(start.seen for start in starts)
    lateness, end = _LATENESS.get(plan.family, ("their event time", "F.col(EVENT_TIME)"))
    how = "as recorded" if plan.family is OperatorFamily.TRANSFORM else "a guess: None, ProcessingTime or EventTime"
    return {
        **{name: value for name, value in vars(settings).items() if name.isupper()},
        "ALL": _ALL,
        "logic": "" if plan.folds else "put your logic into processor.py, ",
        "facts": _write_facts(plan),
        "filters": filters,
        "column": "Column, " * filters,
        "source_constants": (line for start in starts for line in sources.constants(start, beside)),
        "output_mode": plan.output_mode,
        "initial_state": beside(INITIAL_STATE),
        "format": plan.format,
        "old_query": literal(plan.initial.moment.query_id or ""),
        "keyed": bool(keys),
        "keys": [f"    {literal(name)}: {literal(kind)}," for name, kind in keys or [(_ALL, "int")]],
        "why_time_mode": how,
        "time_mode": plan.time_mode,
        "watermark_ms": plan.watermark_ms,
        "shuffle_partitions": plan.shuffle_partitions,
        "needed": [f'    "{name}",' for name in to_fill_in(plan) if name not in facts["blanks"]],
        "readers": map(sources.reader, starts),
        "frames": ", ".join(f"{name}: DataFrame" for name in names),
        "needed_columns": (f"    - {plain(name)} {plain(kind)}" for name, kind in own_keys),
        "united": sources.unite(names, join=plan.family is OperatorFamily.JOIN),
        "rows": names[0],
        "lateness": lateness,
        "end": end,
        "state_columns": [f"        F.col({literal(quoted(column.name))})," for column in plan.shape.state],
        "null_is_safe": f"({', '.join(map(literal, NULL_IS_SAFE))})",
        "by_clock": plan.time_mode is TimeMode.PROCESSING_TIME,
        "sources": ", ".join(f"source_{start.view.index}(spark)" for start in starts),
        "in_pandas": "InPandas" * facts["pandas"],
    }


def _write_facts(plan: TransformPlan) -> Iterator[str]:
    facts = [*map(str, plan.handoff.doubts)]
    if plan.time_mode is TimeMode.EVENT_TIME:
        facts.insert(
            0,
            "A new query starts with watermark 0. start.py drops rows that the old query would have dropped as "
            "late; timers older than the old watermark fire as soon as the new watermark has passed them.",
        )
    if any(variable.ttl for variable in plan.variables):
        facts.insert(
            0,
            "Loading restarts the time to live: Spark cannot load the remaining time. The new query gives the "
            "results of the old one until the first value expires; expired values are not loaded.",
        )
    for fact in facts:
        yield from ("", *wrap(plain(fact), 88, break_long_words=False, break_on_hyphens=False))
