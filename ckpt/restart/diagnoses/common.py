"""Words that several diagnoses share."""

from ckpt.restart.findings import Severity
from ckpt.restart.sinks import REMEMBERING

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR

_ONLY_THAT = (
    f"Put back nothing else: an older copy of the whole folder repeats batch ids, and {REMEMBERING} silently drops "
    "rows under ids that it has seen."
)
RESTORE = (
    "Stop the query and put {path} back from a copy of the checkpoint (object stores with versioning keep one). "
    f"{_ONLY_THAT} Then run `ckpt inspect {{checkpoint}}` again."
)
RESTORE_DEEP = RESTORE.replace("`ckpt inspect {checkpoint}`", "`ckpt inspect {checkpoint} --deep`")
"""For what shows only where every byte is read."""

REPAIR = (
    "`ckpt repair {checkpoint}` shows the fixes, and what each costs. If there is a copy of the checkpoint (object "
    f"stores with versioning keep one), you can instead stop the query and put {{path}} back from it. {_ONLY_THAT}"
)
