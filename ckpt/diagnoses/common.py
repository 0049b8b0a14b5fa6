"""What several diagnoses say."""

from ckpt.findings import Severity
from ckpt.sinks import REMEMBERING

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR

RESTORE = (
    "Stop the query, put {path} back from a copy of the checkpoint (object stores with versioning keep one), and only "
    f"that: under older logs {REMEMBERING} drops rows. Then run `ckpt inspect {{checkpoint}}` again."
)
