"""What a run of ckpt costs."""

import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.conftest import Run, command
from tests.support.places import ROOT


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


def run_here(app: Any, words: list[str]) -> tuple[Run, Cost]:
    """Run ckpt in this process, with its output caught; where it ends otherwise than it should, the exit code is 70.

    Only Linux can tell the peak of a part of a process.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _instead({1: out, 2: err}):
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
        began, code = time.process_time(), 70
        try:
            app(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else code
        except BaseException:
            os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
        cpu_s = time.process_time() - began
        sys.stdout.flush()
        sys.stderr.flush()
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        stdout, stderr = map(_all_of, (out, err))
    return Run(code, stdout, stderr), Cost(cpu_s, int(peak[1]) / 1024 if peak else 0)


def _all_of(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


@contextmanager
def _instead(streams: Mapping[int, IO[bytes]]) -> Iterator[None]:
    """Let what this process writes to some of its files go to others."""
    saved = {number: os.dup(number) for number in streams}
    for number, stream in streams.items():
        os.dup2(stream.fileno(), number)
    try:
        yield
    finally:
        for number, one in saved.items():
            os.dup2(one, number)
            os.close(one)
