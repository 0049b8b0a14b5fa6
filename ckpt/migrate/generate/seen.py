"""What the names of the files say that a file source has read."""

from collections.abc import Sequence
from posixpath import basename, splitext

_COMPRESSED = (".gz", ".bz2", ".snappy", ".zst", ".lz4", ".deflate", ".xz")
_FORMATS = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".orc": "orc",
    ".avro": "avro",
    ".txt": "text",
    ".xml": "xml",
}


def format_of(files: Sequence[str]) -> str:
    """The format of the reader, where the names of all files agree; otherwise empty."""
    found = {_FORMATS.get(_extension(file)) for file in files}
    return next(iter(found)) or "" if len(found) == 1 else ""


def _extension(file: str) -> str:
    name, extension = splitext(basename(file).lower())
    return splitext(name)[1] if extension in _COMPRESSED else extension
