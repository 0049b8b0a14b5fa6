"""What several diagnoses say."""

from ckpt.findings import Severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR

RESTORE = (
    "Stop the query, put {path} back from a copy of the checkpoint (object stores with versioning keep one), "
    "and run `ckpt inspect {checkpoint}` again."
)
