"""Compare a text with the checkpoint that was given with it: query, path and batch, where the text names them."""

import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.texts import span

_LONGEST = 2000  # characters of a line that are looked at
_FOLDER = re.compile(r"((?:[a-z][a-z0-9+.-]{0,20}:)?/[^\s'\",;()\[\]]+)/(?:offsets|commits|state|sources|metadata)\b")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]{0,20}:")
_BATCH = re.compile(r"\bbatch(?:Id| id)?[ =:]{1,3}(\d{1,18})\b|/(?:offsets|commits)/(\d{1,18})\b")


def contradictions(line: str, queries: Iterable[str], checkpoint: Checkpoint) -> Iterator[str]:
    """List what the text says of another query, checkpoint or batch than this one: sentences without a full stop.

    Args:
        line: The line that says the error.
        queries: The ids of the queries that ended in the text.
        checkpoint: What was given.

    """
    line = line[:_LONGEST]
    named = sorted(set(queries))
    if named and checkpoint.query_id is not None and checkpoint.query_id not in named:
        yield f"the text is of the query {' or '.join(named[:3])}, this checkpoint of {checkpoint.query_id}"
    folders = dict.fromkeys(_FOLDER.findall(line))
    if folders and not any(_may_be_same(folder, checkpoint.uri) for folder in folders):
        yield f"the text names {next(iter(folders))}, which is another path"
    batches, here = {int(number or other) for number, other in _BATCH.findall(line)}, checkpoint.offsets.ids
    if batches and here and not any(min(here) - 1 <= batch <= max(here) + 1 for batch in batches):
        yield f"the text names batch {min(batches)}, and offsets/ here has {span('batch', min(here), max(here))}"


def _may_be_same(folder: str, uri: str) -> bool:
    """Tell whether two spellings may be of one folder: one of them can have a host or a mount in front."""
    parts = _split_path(folder)
    spellings = (uri, *map(os.path.abspath, (uri, os.path.realpath(uri)))) if ":" not in uri else (uri,)
    return any(parts[-len(other) :] == other[-len(parts) :] for other in map(_split_path, spellings) if other)


def _split_path(path: str) -> list[str]:
    """A path, or a URI with its host, without its scheme."""
    return [unquote(part) for part in _SCHEME.sub("", path).split("/") if part not in ("", ".")]
