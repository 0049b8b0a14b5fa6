"""How much CPU ``ckpt scan`` takes for each of many small checkpoints, beside a bare walk of the same tree.

    python benchmarks/scan.py [--checkpoints N] [--pairs N]

Both run by turns, each in its own process: `ckpt scan` with one process and with two, and `os.scandir` with a `stat`
of each file.
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import shutil
import tempfile

from benchmarks.measure import by_turns, heading

SAMPLES = Path(__file__).resolve().parent.parent / "sample_checkpoints"
CKPT = Path(sys.executable).with_name("ckpt")
WALK = """
import os, sys
pending = [sys.argv[1]]
while pending:
    with os.scandir(pending.pop()) as entries:
        for entry in entries:
            if entry.is_dir():
                pending.append(entry.path)
            else:
                entry.stat()
"""


def main() -> None:
    """Print one row for each kind of checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    print(heading())
    for sample in ("stateless-4.2", "aggregation-hdfs-4.2"):
        with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as folder:
            for number in range(asked.checkpoints):
                shutil.copytree(SAMPLES / sample, Path(folder, f"team-{number % 10}", f"query-{number}"))
            _row(sample, folder, asked.checkpoints, asked.pairs)


def _row(sample: str, folder: str, count: int, pairs: int) -> None:
    def scan(*words: str) -> list[str]:
        return [str(CKPT), "scan", folder, "--quiet", "-o", "jsonl", *words]

    found = by_turns(scan("--jobs", "2"), [sys.executable, "-c", WALK, folder], pairs)
    both = by_turns(scan("--jobs", "2"), scan("--jobs", "1"), pairs)
    alone = by_turns([str(CKPT), "scan", str(SAMPLES / sample)], [str(CKPT), "--version"], pairs).seconds[1]
    files = sum(path.is_file() for path in (SAMPLES / sample).rglob("*"))
    wall, cpu = found.seconds
    each, without = 1e3 * cpu / count, 1e3 * (cpu - alone) / count
    print(f"{count:,} checkpoints of {files} files ({sample}), against a bare walk")
    print(f"    wall {found.wall:.2f}, CPU {found.cpu:.2f}; {wall:.2f} s; peak {found.rss / 2**20:,.0f} MB")
    print(f"    ms of CPU per checkpoint {each:.2f}, without start-up {without:.2f}; at most 5")
    print(f"    in two processes wall {both.wall:.2f} of that in one", flush=True)


if __name__ == "__main__":
    main()
