"""Requests, bytes and seconds of copies and kept points in S3, each as a part of a full copy in the same run.

    python benchmarks/points.py [--quick]

A checkpoint with changelogs is made here and served by a counting S3, with 50 ms a request. Each command runs in a
process of its own, and the folder of points has one that is five batches older, as of before its last changelogs.
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.cost_model import DELAY
from benchmarks.generate import CHANGELOG, times_of_batches, wide_state
from benchmarks.measure import circumstances
from tests.support.services.counting import CountingS3, counting_s3

CKPT = Path(sys.executable).with_name("ckpt")
OLD, OLDER = "2026-11-01T00-00-00Z-batch-14", "2026-10-01T00-00-00Z-batch-14"
ROWS = {
    "a full copy": ("CHECKPOINT", "s3://new/full"),
    "a full copy of a local checkpoint": ("LOCAL", "s3://new/from-disk"),
    "--since a copy of five batches before": ("CHECKPOINT", "s3://new/since", "--since", f"s3://new/kept/{OLD}"),
    "--keep, a point more": ("CHECKPOINT", "s3://new/kept", "--keep", "last=4"),
    "--keep, a point more and one removed": ("CHECKPOINT", "s3://new/kept", "--keep", "last=3"),
}
"""Words of each command; the folder of points has two at first."""


@dataclass(frozen=True)
class Cost:
    """The requests, bytes and seconds of one command; bytes are those of the objects, without headers."""

    requests: Counter[str]
    down: int
    up: int
    seconds: float
    copied: int
    linked: int

    def describe(self, full: "Cost") -> Iterator[str]:
        """Say what it is, and what part of a full copy."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.requests.items()))
        yield f"    {self.requests.total()} requests ({self.requests.total() / full.requests.total():.2f}): {kinds}"
        down, up = self.down / full.down, self.up / full.up
        yield f"    {self.down / 1e6:.2f} MB down ({down:.2f}), {self.up / 1e6:.2f} MB up ({up:.2f})"
        linked = self.linked / self.copied
        yield f"    {self.seconds:.1f} s ({self.seconds / full.seconds:.2f}), {linked:.2f} of the bytes linked"


def run(s3: CountingS3, local: Path, *words: str) -> Cost:
    """Run ``ckpt copy``, and count what it asks for."""
    options = [word for name, value in s3.options.items() for word in ("--storage-options", f"{name}={value}")]
    places = {"CHECKPOINT": f"s3://{local.name}", "LOCAL": str(local)}
    command = [CKPT, "copy", *(places.get(word, word) for word in words), *options, "-o", "json"]
    s3.requests.clear()
    s3.sent = s3.received = 0
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    wall = time.perf_counter() - began
    if done.returncode not in (0, 1):
        raise RuntimeError(f"ckpt copy {' '.join(words)}: {done.returncode} {done.stderr[-2000:]}")
    made = json.loads(done.stdout)
    return Cost(Counter(s3.requests), s3.sent, s3.received, wall, made["bytes"], made["linked"])


def main() -> None:
    """Print what each command costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs")
    asked = parser.parse_args()
    partitions, keys, ms = (4, 20, 0) if asked.quick else (200, 2_000, DELAY)
    print(f"{circumstances()}\nin brackets: relative to the full copy; bytes are those of objects\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as name:
        local, written = Path(name, "served", "checkpoint"), Path(name, "written")
        written.mkdir()
        wide_state(CHANGELOG, local, partitions, 20, keys)
        times_of_batches(local)
        with counting_s3(local.parent, ms, written=written) as s3:
            s3.ms = 0
            for older in (OLDER, OLD):
                run(s3, local, "CHECKPOINT", f"s3://new/kept/{older}", "--batch", "14")
            s3.ms = ms
            costs: list[Cost] = []
            for row, words in ROWS.items():
                costs.append(run(s3, local, *words))
                time.sleep(1)  # a point is named after its second
                print(f"{row}, {partitions} partitions", *costs[-1].describe(costs[0]), sep="\n", flush=True)


if __name__ == "__main__":
    main()
