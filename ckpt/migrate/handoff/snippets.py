"""A handoff as code to paste: one function per source, in Python or Scala."""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from textwrap import wrap

from ckpt.checkpoint.sources.starts import Begin
from ckpt.errors import CkptError
from ckpt.migrate.handoff.starts import SourceStart
from ckpt.texts import instant, mask_secrets

MOST_FILES = 5_000
"""How many files a snippet names: the JVM does not accept longer methods, and nobody reads longer lists."""


class Language(StrEnum):
    """The language of a snippet."""

    PYTHON = "python"
    SCALA = "scala"


def write_snippet(
    uri: str, batch: int | None, watermark_ms: int | None, starts: Sequence[SourceStart], language: Language
) -> str:
    """Write code that starts sources where the query of a checkpoint stopped, without a line end at its end.

    Raises CkptError where a source has read more than ``MOST_FILES`` files, or a path among them holds a secret.
    """
    for start in starts:
        if len(start.seen) > MOST_FILES:
            raise CkptError(
                f"{uri}: source {start.view.index} has read {len(start.seen):,} files, "
                f"more than a snippet names ({MOST_FILES:,}); take them from sources[].seen of -o json and anti-join"
            )
        if any(mask_secrets(path) != path for path in start.seen):
            raise CkptError(
                f"{uri}: no code, for it would hold a secret: it is in the path of a "
                f"file that source {start.view.index} has read"
            )
    about = [
        f"Continues where the query of {_plain(uri)} stopped: after batch {batch}.",
        "",
        "Written by ckpt handoff. Give the new query its own checkpoint; `options` are those of the old reader.",
    ]
    if watermark_ms:
        limit = f"{instant(watermark_ms)} ({watermark_ms} ms)"
        about.append(f"The old query would have dropped rows with an event time before {limit} as late.")
    write = _python if language is Language.PYTHON else _scala
    return "\n".join(write(about, starts)).rstrip()


def _describe_source(start: SourceStart) -> Iterator[str]:
    """Describe a source and its conditions, in lines of plain text."""
    index = str(start.view.index)
    name = f"{index} {start.view.name}" if start.view.name not in (None, "", index) else index
    yield f"Source {_plain(name)}: {start.view.type}."
    for condition in start.conditions:
        yield from wrap(_plain(condition), 100, initial_indent="- ", subsequent_indent="  ", break_long_words=False)


def _plain(text: str) -> str:
    """Return text that ends no comment or string, whatever a checkpoint holds."""
    shown = "".join(char if char.isprintable() else "?" for char in mask_secrets(text))
    return shown.replace("\\", "/").replace('"', "'").replace("*/", "* /").replace("/*", "/ *")


def _python(about: Sequence[str], starts: Sequence[SourceStart]) -> Iterator[str]:
    filters, readers = any(map(_is_filter, starts)), any(start.options for start in starts)
    yield from (f'"""{about[0]}', *about[1:], '"""', "")
    if filters or readers:
        yield f"from pyspark.sql import {', '.join(['DataFrame'] * filters + ['SparkSession'] * readers)}"
    if filters:
        yield "from pyspark.sql.functions import col"
    if readers:
        yield "from pyspark.sql.streaming import DataStreamReader"
    for start in starts:
        if filters or readers:
            yield from ("", "")
        yield from _python_source(start)


def _python_source(start: SourceStart) -> Iterator[str]:
    index = start.view.index
    yield from (f"# {line}" for line in _describe_source(start))
    if _is_filter(start):
        yield f"SEEN_{index} = ["
        yield from (f"    {_python_text(path)}," for path in start.seen)
        yield "]"
        yield ""
        yield ""
        yield f"def source_{index}(rows: DataFrame) -> DataFrame:"
        yield '    """Leave out the files that the old query had read; `rows` are what the reader loads."""'
        yield f'    return rows.where(~col("_metadata.file_path").isin(SEEN_{index}))'
    elif start.options:
        replaced = ", ".join(_python_text(key.lower()) for key in (*start.options, *start.without))
        yield f"def source_{index}(spark: SparkSession, options: dict[str, str]) -> DataStreamReader:"
        yield '    """The reader; call .load() or .table() on it."""'
        yield f"    replaced = {{{replaced}}}"
        yield "    kept = {key: value for key, value in options.items() if key.lower() not in replaced}"
        yield f'    reader = spark.readStream.format("{start.view.type}").options(**kept)'
        chosen = "".join(f".option({_python_text(key)}, {_python_text(value)})" for key, value in start.options.items())
        yield f"    return reader{chosen}"


def _is_filter(start: SourceStart) -> bool:
    return start.begin is Begin.EXACT and not start.options


def _python_text(text: str) -> str:
    """Return a literal, in double quotes where that needs no escape."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal and "\\'" not in literal else literal


def _scala(about: Sequence[str], starts: Sequence[SourceStart]) -> Iterator[str]:
    yield "/*"
    yield from (f" * {line}".rstrip() for line in about)
    yield " */"
    yield "import org.apache.spark.sql.{DataFrame, SparkSession}"
    yield "import org.apache.spark.sql.functions.col"
    yield "import org.apache.spark.sql.streaming.DataStreamReader"
    yield ""
    yield "object Handoff {"
    for start in starts:
        yield from _scala_source(start)
    yield "}"


def _scala_source(start: SourceStart) -> Iterator[str]:
    index = start.view.index
    yield from (f"  // {line}" for line in _describe_source(start))
    if _is_filter(start):
        yield f"  private val seen{index}: Seq[String] = Seq("
        yield ",\n".join(f"    {_scala_text(path)}" for path in start.seen)
        yield "  )"
        yield ""
        yield "  /** Leaves out the files that the old query had read; `rows` are what the reader loads. */"
        yield f"  def source{index}(rows: DataFrame): DataFrame ="
        yield f'    rows.where(!col("_metadata.file_path").isin(seen{index}: _*))'
    elif start.options:
        replaced = ", ".join(_scala_text(key.lower()) for key in (*start.options, *start.without))
        yield "  /** The reader; call load or table on it. */"
        yield f"  def source{index}(spark: SparkSession, options: Map[String, String]): DataStreamReader = {{"
        yield f"    val replaced = Set({replaced})"
        yield "    val kept = options.filter { case (key, _) => !replaced(key.toLowerCase) }"
        yield f'    val reader = spark.readStream.format("{start.view.type}").options(kept)'
        chosen = "".join(f".option({_scala_text(key)}, {_scala_text(value)})" for key, value in start.options.items())
        yield f"    reader{chosen}"
        yield "  }"
    yield ""


def _scala_text(text: str) -> str:
    """Return a literal; JSON's escapes are Scala's."""
    return json.dumps(text)
