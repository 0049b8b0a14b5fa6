"""A handoff as code to paste: one function per source, in Python or Scala."""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from textwrap import wrap

from ckpt.checkpoint.sources.starts import StartingPoint
from ckpt.errors import CkptError
from ckpt.migrate.book import BOOK
from ckpt.migrate.handoff.starts import SourceStart
from ckpt.migrate.text import fill_code, literal, plain
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
        index, many = start.view.index, len(start.seen)
        if many > MOST_FILES:
            many_files = {"many": f"{many:,}", "most": f"{MOST_FILES:,}"}
            raise CkptError(BOOK.text("handoff_too_many_files", uri=uri, index=index, **many_files))
        if any(mask_secrets(path) != path for path in start.seen):
            raise CkptError(BOOK.text("handoff_path_hides", uri=uri, index=index))
    about = [
        f"Continues where the query of {_plain(uri)} stopped: after batch {batch}.",
        "",
        "Written by ckpt handoff. Give the new query its own checkpoint; `options` are those of the old reader.",
    ]
    if watermark_ms:
        limit = f"{instant(watermark_ms)} ({watermark_ms} ms)"
        about.append(f"The old query would have dropped rows with an event time before {limit} as late.")
    filters, readers = any(map(_is_filter, starts)), any(start.options for start in starts)
    values = {
        "title": about[0],
        "about": about[1:] if language is Language.PYTHON else [f" * {line}".rstrip() for line in about[1:]],
        "classes": ", ".join(["DataFrame"] * filters + ["SparkSession"] * readers),
        "filters": filters,
        "readers": readers,
        "sources": [_write_source(start, language, imports=filters or readers).removesuffix("\n") for start in starts],
    }
    return fill_code(f"handoff_{language}.template", values).rstrip()


def _write_source(start: SourceStart, language: Language, *, imports: bool) -> str:
    spell, comment = (literal, "# ") if language is Language.PYTHON else (json.dumps, "  // ")
    paths = [f"    {spell(path)}" for path in start.seen]
    values = {
        "imports": imports,
        "index": start.view.index,
        "type": start.view.type,
        "about": [comment + line for line in _describe_source(start)],
        "filter": _is_filter(start),
        "seen": [f"{line}," for line in paths] if language is Language.PYTHON else [",\n".join(paths)],
        "replaced": ", ".join(spell(key.lower()) for key in (*start.options, *start.without)),
        "chosen": "".join(f".option({spell(key)}, {spell(value)})" for key, value in start.options.items()),
    }
    return fill_code(f"handoff_{language}_source.template", values)


def _describe_source(start: SourceStart) -> Iterator[str]:
    index = str(start.view.index)
    name = f"{index} {start.view.name}" if start.view.name not in (None, "", index) else index
    yield f"Source {_plain(name)}: {start.view.type}."
    for condition in start.conditions:
        yield from wrap(_plain(condition), 100, initial_indent="- ", subsequent_indent="  ", break_long_words=False)


def _plain(text: str) -> str:
    """Return text that ends no comment or string, whatever a checkpoint holds."""
    return plain(text).replace("*/", "* /").replace("/*", "/ *")


def _is_filter(start: SourceStart) -> bool:
    return start.begin is StartingPoint.EXACT and not start.options
