"""Running two things by turns, and what each run cost."""

import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

Command = Sequence[str]


@dataclass(frozen=True)
class Run:
    """What one run of a command cost."""

    wall: float  # seconds
    cpu: float  # seconds, of the process and the children that it waited for
    rss: int = 0  # bytes at the peak; 0 where that is not measured


@dataclass(frozen=True)
class Pairs:
    """Runs of two things by turns: the one that is judged, and what it is compared with."""

    ours: tuple[Run, ...]
    theirs: tuple[Run, ...]

    @property
    def wall(self) -> float:
        """The middle one of the ratios of wall time."""
        return median(a.wall / b.wall for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def cpu(self) -> float:
        """The middle one of the ratios of CPU time."""
        return median(a.cpu / b.cpu for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the greatest of the ratios of wall time."""
        ratios = [a.wall / b.wall for a, b in zip(self.ours, self.theirs, strict=True)]
        return min(ratios), max(ratios)

    @property
    def seconds(self) -> tuple[float, float]:
        """The middle wall time and the middle CPU time of what is judged."""
        return median(run.wall for run in self.ours), median(run.cpu for run in self.ours)

    @property
    def least_cpu(self) -> tuple[float, float]:
        """The least CPU time that either took, in seconds: what is left without disturbance."""
        return min(run.cpu for run in self.ours), min(run.cpu for run in self.theirs)

    @property
    def rss(self) -> int:
        """The highest peak of memory, in bytes."""
        return max(run.rss for run in self.ours)


def by_turns(ours: Command, theirs: Command, times: int) -> Pairs:
    """Run two commands one after the other, ``times`` times; before more than one pair, one turn is not counted."""
    return alternated(partial(run, ours), partial(run, theirs), times)


def alternated(ours: Callable[[], Run], theirs: Callable[[], Run], times: int) -> Pairs:
    """The same for anything that says what it cost; each goes first in every other turn."""
    costs: dict[Callable[[], Run], list[Run]] = {ours: [], theirs: []}
    for turn in range(times + (times > 1)):
        for one in (ours, theirs) if turn % 2 else (theirs, ours):
            costs[one].append(one())
    return Pairs(tuple(costs[ours][-times:]), tuple(costs[theirs][-times:]))


def run(command: Command) -> Run:
    """Run a command to its end. Raises RuntimeError where it fails: 0 and 1 are answers of ``ckpt inspect``."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/")
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{command[0]} exited with {process.returncode}: {said.decode(errors='replace')[-2000:]}")
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def heading() -> str:
    """What stands above results: the circumstances, and what a ratio is."""
    how = "ratios of wall time and of CPU time: the middle one of several pairs of runs, taken by turns"
    return f"{circumstances()}\n{how}\n"


def circumstances() -> str:
    """When this is, on which machine, and how busy that is."""
    models = [line.partition(": ")[2] for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    processor = models[0] if models else platform.processor() or platform.machine()
    machine = f"{os.cpu_count()} x {processor}, {memory / 2**20:.0f} GiB, Python {platform.python_version()}"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine}, load {os.getloadavg()[0]:.1f}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
