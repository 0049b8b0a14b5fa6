"""What a run of ckpt costs."""

import subprocess
import sys
import tempfile
from typing import NamedTuple

from tests.conftest import Run, command
from tests.places import ROOT


class Cost(NamedTuple):
    """CPU seconds, and MiB of memory at the peak, start of Python included."""

    cpu_s: float
    peak_mib: float


_LAUNCHER = """
import os, sys
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(child, 0)
with open(sys.argv[1], "w") as cost:
    cost.write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss}")
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Between the tests and ckpt: Linux counts the memory of the process that starts another one as the other's peak."""


def measured(*words: object) -> tuple[Run, Cost]:
    """Run ckpt as a process of its own."""
    with tempfile.NamedTemporaryFile("r") as cost:
        launch = [sys.executable, "-S", "-E", "-c", _LAUNCHER, cost.name, *command(), *map(str, words)]
        done = subprocess.run(launch, cwd=ROOT, capture_output=True, text=True, check=False)
        cpu_s, peak_kib = cost.read().split()
    return Run(done.returncode, done.stdout, done.stderr), Cost(float(cpu_s), int(peak_kib) / 1024)
