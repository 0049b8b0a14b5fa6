"""The part of ``start.py`` that reads the sources from where the old query stopped."""

from collections.abc import Callable, Iterator, Sequence
from posixpath import basename, splitext
from textwrap import wrap

from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.starts import Begin
from ckpt.migrate.generate.text import explode, literal, plain
from ckpt.migrate.handoff.starts import SourceStart

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


def reader(start: SourceStart) -> Iterator[str]:
    """The function that reads one source."""
    index, kind, source_type = start.view.index, start.view.kind, start.view.type
    path = f"SOURCE_{index}_PATH" if kind.at_path else ""
    unnamed = kind.reads_files or source_type is SourceType.UNKNOWN
    named = f"SOURCE_{index}_FORMAT" if unnamed else literal(str(source_type))
    yield from ("", "", f"def source_{index}(spark: SparkSession) -> DataFrame:")
    yield f'    """{_begins(start)}"""'
    if start.options:
        replaced = [literal(key.lower()) for key in (*start.options, *start.without)]
        yield from explode("replaced = [", replaced, "]", 4)
        yield "    options = {"
        yield "        key: value"
        yield f"        for key, value in SOURCE_{index}_OPTIONS.items()"
        yield "        if key.lower() not in replaced"
        yield "    }"
        yield "    options |= {"
        yield from (f"        {literal(key)}: {literal(value)}," for key, value in start.options.items())
        yield "    }"
        yield f"    reader = spark.readStream.format({named}).options(**options)"
    else:
        yield f"    reader = spark.readStream.format({named}).options(**SOURCE_{index}_OPTIONS)"
    if kind.reads_files:
        yield f"    rows = reader.schema(SOURCE_{index}_SCHEMA).load({path})"
        unread = f"unread(spark, rows, {path}, SOURCE_{index}_SEEN)" if start.seen else "rows"
        yield f"    return {unread}"
    else:
        yield f"    return reader.load({path})"


def _begins(start: SourceStart) -> str:
    match start.begin:
        case Begin.EXACT:
            return "Continues exactly where the old query stopped."
        case Begin.EARLIEST:
            return "Reads a topic that was recreated from its earliest rows."
        case Begin.UNREAD:
            return "Starts as the old query did: it had read nothing from this source."
    return "Starts over: this source cannot continue where the old query stopped."


def prepare(
    starts: Sequence[SourceStart], keys: Sequence[tuple[str, str]], *, join: bool, event_time: bool
) -> Iterator[str]:
    """The function that makes rows of the new query from those of the sources."""
    names = [f"rows_{start.view.index}" for start in starts] if len(starts) > 1 else ["rows"]
    yield from ("", "", f"def prepare({', '.join(f'{name}: DataFrame' for name in names)}) -> DataFrame:")
    yield '    """Make rows with the key of the state, in its types, from what the sources return.'
    yield ""
    yield "    YOUR LOGIC: what the old query did before it grouped. Needed columns:"
    yield from (f"    - {plain(name)} {plain(kind)}" for name, kind in keys)
    if event_time:
        yield "    - EVENT_TIME timestamp"
    yield '    """'
    if len(names) == 1:
        yield "    return rows"
        return
    sides = ("left", "right") if join and len(names) == 2 else (None,) * len(names)
    for name, side in zip(names, sides, strict=True):
        if side:
            yield f'    {name} = {name}.withColumn("side", F.lit("{side}"))'
    for name in names[1:]:
        yield f"    {names[0]} = {names[0]}.unionByName({name}, allowMissingColumns=True)"
    yield f"    return {names[0]}"
