"""``start.py``: a runnable query with the sources, from where the old query stopped, guards, and what to fill in."""

from collections.abc import Callable, Iterator, Sequence
from posixpath import basename, splitext
from textwrap import wrap
from typing import Any

from ckpt import settings
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.starts import StartingPoint
from ckpt.migrate.book import BOOK
from ckpt.migrate.generate.processor import describe_plan
from ckpt.migrate.handoff.starts import SourceStart
from ckpt.migrate.text import explode, fill_code, literal, plain, quoted, simple
from ckpt.migrate.transform import INITIAL_STATE, NULL_IS_SAFE, TimeMode, TransformPlan
from ckpt.migrate.variables import WINDOW, OperatorFamily

MOST_IN_CODE = 300
"""How many files ``start.py`` names itself; more are written as Parquet beside it."""
_COMPRESSED = (".gz", ".bz2", ".snappy", ".zst", ".lz4", ".deflate", ".xz")
_FORMAT_OF = {f".{name}": name for name in ("json", "csv", "parquet", "orc", "avro", "xml")}
_FORMAT_OF |= {".jsonl": "json", ".ndjson": "json", ".txt": "text"}
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
    constants = ((start.view.index, each) for start in plan.handoff.sources for each in _list_constants(start))
    names = ["CHECKPOINT", *(f"SOURCE_{index}_{name}" for index, (name, known, _) in constants if not known)]
    names += ["EVENT_TIME"] * facts["dated"] + ["DELAY"] * facts["timed"] + ["WINDOW"] * facts["windows"]
    names += ["GAP"] * facts["sessions"]
    return (*names, *facts["blanks"])


def too_many_for_code(plan: TransformPlan) -> tuple[SourceStart, ...]:
    """The sources that have read more files than ``start.py`` names."""
    return tuple(start for start in plan.handoff.sources if len(start.seen) > MOST_IN_CODE)


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
        "source_constants": (line for start in starts for line in _declare_source(start, beside)),
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
        "readers": map(_read_source, starts),
        "frames": ", ".join(f"{name}: DataFrame" for name in names),
        "needed_columns": (f"    - {plain(name)} {plain(kind)}" for name, kind in own_keys),
        "united": _unite(names, join=plan.family is OperatorFamily.JOIN),
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
    facts = [BOOK.text("code_ttl_restarts")] if any(variable.ttl for variable in plan.variables) else []
    facts += [BOOK.text("code_from_zero")] if plan.time_mode is TimeMode.EVENT_TIME else []
    for fact in (*facts, *plan.handoff.doubts):
        yield from ("", *wrap(plain(str(fact)), 88, break_long_words=False, break_on_hyphens=False))


def _declare_source(start: SourceStart, beside: Callable[[str], str]) -> Iterator[str]:
    """The gaps to fill in for one source; ``beside`` spells a path beside the file as code."""
    index, kind, reads_files = start.view.index, start.view.type, start.view.kind.reads_files
    name = f" {plain(start.view.name)}" if start.view.name else ""
    yield ""
    yield f"# Source {index}{name}: {kind}. Its options, as the old query's reader had them; what says where it"
    yield "# begins is added below."
    for condition in start.conditions if not reads_files else ():  # unread() sees to those
        for line in wrap(plain(condition), 84, initial_indent="- ", subsequent_indent="  ", break_long_words=False):
            yield f"# {line}"
    yield from (f'SOURCE_{index}_{name} = "{known}"{comment}' for name, known, comment in _list_constants(start))
    options = [f"{literal(key)}: {literal(value)}" for key, value in start.view.reader_options.items()]
    if options:
        yield from explode(f"SOURCE_{index}_OPTIONS: dict[str, str] = {{", options, "}", 0)
    else:
        yield f"SOURCE_{index}_OPTIONS: dict[str, str] = {{}}"
    if start.seen:
        yield "# Files that the old query has read, as _metadata.file_path names them."
        if len(start.seen) > MOST_IN_CODE:
            yield f"SOURCE_{index}_SEEN = {beside(seen_folder(start))}"
        else:
            yield from explode(f"SOURCE_{index}_SEEN = [", [literal(path) for path in start.seen], "]", 0)


def _choose_format(files: Sequence[str]) -> str:
    """The format of the reader, where the names of all files agree; otherwise empty."""
    formats = {_FORMAT_OF.get(_extension_of(file)) for file in files}
    return next(iter(formats)) or "" if len(formats) == 1 else ""


def _extension_of(file: str) -> str:
    name, extension = splitext(basename(file).lower())
    return splitext(name)[1] if extension in _COMPRESSED else extension


def seen_folder(start: SourceStart) -> str:
    """The folder beside ``start.py`` that holds the names of files, where they are too many for code."""
    return f"seen_{start.view.index}"


def _list_constants(start: SourceStart) -> Iterator[tuple[str, str, str]]:
    """List constants of a source that may not stay empty, each with what is known of it and a comment."""
    kind = start.view.kind
    if kind.reads_files or (start.begin is StartingPoint.UNREAD and start.view.type is SourceType.UNKNOWN):
        known = _choose_format(start.seen)
        yield "FORMAT", known, "  # by the names of the files" if known else ""
    if kind.reads_files:
        yield "SCHEMA", "", '  # DDL: "id BIGINT, name STRING"'
    if kind.at_path:
        yield "PATH", "", ""


def _read_source(start: SourceStart) -> str:
    index, kind, source_type = start.view.index, start.view.kind, start.view.type
    unnamed = kind.reads_files or source_type is SourceType.UNKNOWN
    replaced = [literal(key.lower()) for key in (*start.options, *start.without)] if start.options else []
    values = {
        "index": index,
        "begins": BOOK.text(f"code_{start.begin}"),
        "format": f"SOURCE_{index}_FORMAT" if unnamed else literal(str(source_type)),
        "path": f"SOURCE_{index}_PATH" if kind.at_path else "",
        "replaced": replaced and list(explode("replaced = [", replaced, "]", 4)),
        "options": [f"        {literal(key)}: {literal(value)}," for key, value in start.options.items()],
        "reads_files": kind.reads_files,
        "seen": start.seen,
    }
    return fill_code("source.template", values).removesuffix("\n")


def _unite(names: Sequence[str], *, join: bool) -> Iterator[str]:
    sides = ("left", "right") if join and len(names) == 2 else ()
    for name, side in zip(names, sides, strict=False):
        yield f'    {name} = {name}.withColumn("side", F.lit("{side}"))'
    for name in names[1:]:
        yield f"    {names[0]} = {names[0]}.unionByName({name}, allowMissingColumns=True)"
