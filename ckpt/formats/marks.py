"""``ckpt-first-start.json``: what ckpt leaves where it took back a batch whose rows every sink has.

No log says that a batch was once committed, so nothing else could tell the next reader. It is ckpt's own, and Spark
looks at no file of this name. It speaks of one plan of the batch only, by the time at which that was made.
"""

import json

from ckpt.formats.extract import fields_of, long_field
from ckpt.formats.text import json_of, tolerant
from ckpt.model import FirstStart

_WHY = (
    "ckpt took this batch back, and the sink has its rows. Before any other start, start the query once into the sink "
    "noop: it computes the state of the batch and writes no row. `ckpt preflight` says when that is done."
)


@tolerant
def parse_first_start(raw: bytes) -> FirstStart:
    """Read the mark."""
    fields = fields_of(json_of(raw.decode("utf-8", errors="replace")))
    return FirstStart(long_field(fields, "batch"), long_field(fields, "planned_ms", 0))


def build_first_start(mark: FirstStart) -> bytes:
    """The mark, with a word for people who find it."""
    return json.dumps({"batch": mark.batch, "planned_ms": mark.planned_ms, "first_start": "noop", "why": _WHY}).encode()
