"""``metadata``: the id of the query (Spark class ``StreamMetadata``), one JSON object ``{"id":"<uuid>"}``.

``StreamMetadata`` wants ``id`` and nothing else: other keys are ignored, a number is taken as text, and it reads
ids that are no UUID; the query itself (``StreamExecution``) then wants a UUID. A file that is not UTF-8 is read with
replacement characters (``InputStreamReader``), unlike the logs.

``ckpt-first-start.json``: what ckpt leaves where it took back a batch whose rows every sink has. No log says that a
batch was once committed, so nothing else could tell the next reader. It is ckpt's own, and Spark looks at no file of
this name. It speaks of one plan of the batch only, by the time at which that was made.

``ckpt-skipped.json``: the batches that ``ckpt skip`` committed without their rows, each likewise as it was planned. The
log of the sink lacks them, and nothing else says that they are not to be written again.
"""

import json
import re
from collections.abc import Iterable

from ckpt.formats.extract import fields_of, long_field, text_field
from ckpt.formats.text import Damaged, json_of, tolerant
from ckpt.model import Fault, Json, PlannedBatch, QueryMetadata

_WHY = (
    "ckpt rewound this batch, and the sink has its rows. Before any other start, start the query once into the sink "
    "noop: it computes the state of the batch and writes no rows. `ckpt preflight` shows when that is done."
)

_WHY_SKIPPED = (
    "ckpt skip committed these batches without their rows, so the sink may lack them. Spark reads no such file."
)
_JAVA_UUID = re.compile(r"(?=.{9,36}$)[0-9a-fA-F]+(-[0-9a-fA-F]+){4}")  # java.util.UUID.fromString


@tolerant
def parse_metadata(raw: bytes) -> QueryMetadata:
    """Read ``metadata``."""
    text = raw.decode("utf-8", errors="replace")
    if not text.strip(" \t\r\n"):
        raise Damaged(Fault.EMPTY, "the file is empty", "No content to map due to end-of-input")
    query_id = text_field(fields_of(json_of(text)), "id")
    if query_id is None:
        raise Damaged(Fault.BAD_JSON, "the id in it is null")
    return QueryMetadata(query_id)


def is_query_id(text: str) -> bool:
    """Tell whether a query takes the id in ``metadata``."""
    return _JAVA_UUID.fullmatch(text) is not None


def build_metadata(query_id: str) -> bytes:
    """``metadata`` of a query, as Spark writes it."""
    return json.dumps({"id": query_id}, separators=(",", ":")).encode()


@tolerant
def parse_first_start(raw: bytes) -> PlannedBatch:
    """Read ``ckpt-first-start.json``."""
    return _planned_batch(json_of(raw.decode("utf-8", errors="replace")))


def build_first_start(mark: PlannedBatch) -> bytes:
    """The mark, with a word for people who find it."""
    return json.dumps({"batch": mark.batch, "planned_ms": mark.planned_ms, "first_start": "noop", "why": _WHY}).encode()


@tolerant
def parse_skipped(raw: bytes) -> tuple[PlannedBatch, ...]:
    """Read ``ckpt-skipped.json``."""
    listed = fields_of(json_of(raw.decode("utf-8", errors="replace"))).get("batches")
    if not isinstance(listed, list):
        raise Damaged(Fault.BAD_JSON, "its batches are not a list")
    return tuple(map(_planned_batch, listed))


def _planned_batch(value: Json) -> PlannedBatch:
    fields = fields_of(value)
    return PlannedBatch(long_field(fields, "batch"), long_field(fields, "planned_ms", 0))


def build_skipped(batches: Iterable[PlannedBatch]) -> bytes:
    """``ckpt-skipped.json``, with a word for people who find it."""
    listed = [{"batch": each.batch, "planned_ms": each.planned_ms} for each in batches]
    return json.dumps({"batches": listed, "why": _WHY_SKIPPED}).encode()
