"""The part of ``start.py`` that reads the sources from where the old query stopped."""

from collections.abc import Callable, Iterator, Sequence
from posixpath import basename, splitext
from textwrap import wrap

from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.starts import Begin
from ckpt.migrate.handoff.starts import SourceStart
from ckpt.migrate.text import explode, fill_code, literal, plain

MOST_IN_CODE = 300
"""How many files ``start.py`` names itself; more are written as Parquet beside it."""
_COMPRESSED = (".gz", ".bz2", ".snappy", ".zst", ".lz4", ".deflate", ".xz")
_FORMAT_OF = {f".{name}": name for name in ("json", "csv", "parquet", "orc", "avro", "xml")}
_FORMAT_OF |= {".jsonl": "json", ".ndjson": "json", ".txt": "text"}


def constants(start: SourceStart, beside: Callable[[str], str]) -> Iterator[str]:
    """The gaps to fill in for one source; ``beside`` spells a path beside the file as code."""
    index, kind, reads_files = start.view.index, start.view.type, start.view.kind.reads_files
    name = f" {plain(start.view.name)}" if start.view.name else ""
    yield ""
    yield f"# Source {index}{name}: {kind}. Its options, as the old query's reader had them; what says where it"
    yield "# begins is added below."
    for condition in start.conditions if not reads_files else ():  # unread() sees to those
        for line in wrap(plain(condition), 84, initial_indent="- ", subsequent_indent="  ", break_long_words=False):
            yield f"# {line}"
    if reads_files or (start.begin is Begin.UNREAD and kind is SourceType.UNKNOWN):
        known = _choose_format(start.seen)
        yield f'SOURCE_{index}_FORMAT = "{known}"' + ("  # by the names of the files" if known else "")
    if reads_files:
        yield f'SOURCE_{index}_SCHEMA = ""  # DDL: "id BIGINT, name STRING"'
    if start.view.kind.at_path:
        yield f'SOURCE_{index}_PATH = ""'
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


def to_fill_in(start: SourceStart) -> Iterator[str]:
    """The names of constants that may not stay empty."""
    index, kind = start.view.index, start.view.kind
    is_unknown = start.begin is Begin.UNREAD and start.view.type is SourceType.UNKNOWN
    if is_unknown or (kind.reads_files and not _choose_format(start.seen)):
        yield f"SOURCE_{index}_FORMAT"
    if kind.reads_files:
        yield f"SOURCE_{index}_SCHEMA"
    if kind.at_path:
        yield f"SOURCE_{index}_PATH"


def reader(start: SourceStart) -> str:
    """The function that reads one source."""
    index, kind, source_type = start.view.index, start.view.kind, start.view.type
    unnamed = kind.reads_files or source_type is SourceType.UNKNOWN
    replaced = [literal(key.lower()) for key in (*start.options, *start.without)] if start.options else []
    values = {
        "index": index,
        "begins": _begins(start),
        "format": f"SOURCE_{index}_FORMAT" if unnamed else literal(str(source_type)),
        "path": f"SOURCE_{index}_PATH" if kind.at_path else "",
        "replaced": replaced and list(explode("replaced = [", replaced, "]", 4)),
        "options": [f"        {literal(key)}: {literal(value)}," for key, value in start.options.items()],
        "reads_files": kind.reads_files,
        "seen": start.seen,
    }
    return fill_code("source.template", values).removesuffix("\n")


def _begins(start: SourceStart) -> str:
    match start.begin:
        case Begin.EXACT:
            return "Continues exactly where the old query stopped."
        case Begin.EARLIEST:
            return "Reads a topic that was recreated from its earliest rows."
        case Begin.UNREAD:
            return "Starts as the old query did: it had read nothing from this source."
    return "Starts over: this source cannot continue where the old query stopped."


def unite(names: Sequence[str], *, join: bool) -> Iterator[str]:
    """The lines that bring the rows of several sources together."""
    sides = ("left", "right") if join and len(names) == 2 else ()
    for name, side in zip(names, sides, strict=False):
        yield f'    {name} = {name}.withColumn("side", F.lit("{side}"))'
    for name in names[1:]:
        yield f"    {names[0]} = {names[0]}.unionByName({name}, allowMissingColumns=True)"
