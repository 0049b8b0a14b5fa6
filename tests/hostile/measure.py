"""What a run of ckpt costs."""

import os
import subprocess
import tempfile
from typing import NamedTuple

from tests.conftest import Run, command
from tests.places import ROOT


class Cost(NamedTuple):
    """CPU seconds, and MiB of memory at the peak, start of Python included."""

    cpu_s: float
    peak_mib: float


def measured(*words: object) -> tuple[Run, Cost]:
    """Run ckpt as a process of its own."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([*command(), *map(str, words)], cwd=ROOT, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return Run(process.returncode, *texts), Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
