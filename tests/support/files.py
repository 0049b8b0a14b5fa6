"""Files of a checkpoint as a hand writes and edits them: what is edited loses its checksum."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.spark.mutations import crc_of


def write_files(top: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder, by their paths; the folder."""
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(content.encode() if isinstance(content, str) else content)
    return top


def rewrite(file: Path, change: Callable[[str], str]) -> None:
    """Change the text of a file."""
    file.write_text(change(file.read_text()))
    crc_of(file).unlink(missing_ok=True)


def edit_metadata(offsets: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the metadata in an offsets file, which is its second line."""
    version, line, *sources = offsets.read_text().split("\n")
    metadata = json.loads(line)
    change(metadata)
    rewrite(offsets, lambda _: "\n".join((version, json.dumps(metadata), *sources)))
