"""Prints what commands say as JSON, with the words of ckpt or with each of their literals replaced by an ``x``.

``python -m tests.laws.advice.documents FILE [--without-words]``: FILE has a list of command lines as JSON; a line of
standard output has the exit code and the document of each.
"""

import json
import string
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from zlib import crc32


class WithoutWords(string.Formatter):
    """Replaces each run of words of a template by ``x`` and a number; equal words get equal numbers."""

    def parse(self, format_string: Any) -> Iterator[Any]:
        for literal, *rest in super().parse(format_string):
            yield (f"x{crc32(literal.encode())}" if any(map(str.isalpha, literal)) else literal, *rest)


def main(file: str, *options: str) -> None:
    if options == ("--without-words",):
        module = import_module("ckpt.advice.words")  # its function has the same name
        module.Formatter = WithoutWords  # type: ignore[attr-defined]  # before any text is made
    from typer.testing import CliRunner

    (script,) = entry_points(group="console_scripts", name="ckpt")
    app = script.load()
    for words in json.loads(Path(file).read_text()):
        result = CliRunner().invoke(app, [*words, "-o", "json"], catch_exceptions=False)
        document = json.loads(result.stdout) if result.stdout else None
        print(json.dumps({"exit": result.exit_code, "document": document}), flush=True)  # noqa: T201


TEXTS = frozenset(
    ("what", "before", "meaning", "remedy", "warnings", "refused", "why", "does", "cause", "cure", "title", "words")
) | {"said", "says", "verdict", "notes", "parts", "doubts", "conditions", "no_option", "unknown"}
"""Keys whose texts are for people."""


def without_texts(document: Any, key: str = "") -> Any:
    """A document without the texts for people; their number stays."""
    match document:
        case str():
            return "" if key in TEXTS else document
        case list():
            return [without_texts(each, key) for each in document]
        case dict():
            return {name: without_texts(each, name) for name, each in document.items()}
    return document


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from differences(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{path}[{index}]")
    elif one != other:
        yield f"{path}: {one!r:.200} and {other!r:.200}"


def read_lines(text: str) -> Iterable[dict[str, Any]]:
    return map(json.loads, text.splitlines())


if __name__ == "__main__":
    main(*sys.argv[1:])
