"""The cost of work on state in S3 by partition, batch and GB, and whether it predicts that of a larger checkpoint.

    python benchmarks/scale.py [--quick] [--record FILE]

Checkpoints are made here by ckpt and served by a counting S3. Each command runs in a process of its own. Three small
checkpoints and two with a large partition give the cost model, without a delay; one of 100 partitions, for commands
that read every byte of 10 GB, is predicted, and measured with 50 ms a request. ``--record`` writes all of it as JSON,
from which `docs/scale.md` has its figures.
"""

import sys

sys.path.pop(0)  # this folder: its inspect.py would hide the one of the standard library

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from benchmarks.cost_model import DELAY, TOGETHER, Cost, Size, fit
from benchmarks.generate import HDFS, times_of_batches
from benchmarks.measure import circumstances
from tests.support.services.counting import counting_s3

CKPT = Path(sys.executable).with_name("ckpt")
NEWEST = 1000  # batch
LOGS = 10  # deltas after the snapshot of each partition, as many as Spark lets pile up
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "inspect": ("inspect", "CHECKPOINT", "--batches", "10"),
    "inspect --deep": ("inspect", "CHECKPOINT", "--deep", "--jobs", "1"),
    "state verify": ("state", "verify", "CHECKPOINT", "--jobs", "1"),
    "state count": ("state", "count", "CHECKPOINT", "--jobs", "1"),
    "export-state": ("export-state", "CHECKPOINT", "--engine", "native", "--jobs", "1", "--to", "NEW"),
    "rewrite": ("rewrite", "CHECKPOINT", "NEW", "--provider", "rocksdb", "--jobs", "1"),
    "scan": ("scan", "CHECKPOINT", "--jobs", "1"),
}
"""Words of each command; with one process, so that its requests and its CPU time are those of the work."""
OF_BYTES = ("inspect --deep", "state verify")
"""Commands whose larger checkpoint is a hundredth of a terabyte; others would decode 500 million rows of it."""
_ODD = 0x1E3779B97F4A7C15  # multiples of it are spread over all integers of 64 bits


def make(folder: Path, partitions: int, batches: int, keys: int) -> Size:
    """Make a checkpoint of so many keys with HDFS-backed state: a snapshot of each partition, and deltas after it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    import ckpt

    rows = ckpt.read_state_arrow(str(HDFS))
    numbers = pa.array(range(keys))
    spread = pc.multiply(numbers, _ODD)  # so that values hardly compress
    values = [(spread if column else numbers).cast(field.type) for column, field in enumerate(rows.schema)]
    table = pa.table(values, schema=rows.schema)
    ckpt.write_state({"operator 0": table}, str(folder), like=str(HDFS), partitions=partitions)
    _let_batches_pass(folder, batches)
    times_of_batches(folder)
    return Size(partitions, batches, sum(path.stat().st_size for path in folder.glob("state/0/[0-9]*/*")) / 1e9)


def _enlarge(checkpoint: Path, large: Path, size: Size) -> Size:
    """Put the snapshot of another checkpoint with one partition into each partition, as hard links."""
    (snapshot,) = large.glob("state/0/0/*.snapshot")
    for own in checkpoint.glob("state/0/[0-9]*/*.snapshot"):
        own.unlink()
        os.link(snapshot, own)
    return size._replace(gb=size.partitions * snapshot.stat().st_size / 1e9)


def _let_batches_pass(checkpoint: Path, batches: int) -> None:
    """Give it the logs of so many batches up to ``NEWEST``, and deltas without rows, as idle partitions have."""
    newest = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    idle = (HDFS.with_name("dedup-aggregation-hdfs-4.2") / "state/0/0/4.delta").read_bytes()
    for partition in (checkpoint / "state/0").glob("[0-9]*"):
        (snapshot,) = partition.glob("*.snapshot")
        snapshot.rename(partition / f"{NEWEST + 1 - LOGS}.snapshot")
        for version in range(NEWEST + 2 - LOGS, NEWEST + 2):
            (partition / f"{version}.delta").write_bytes(idle)
    for log in ("offsets", "commits"):
        text = (checkpoint / log / str(newest)).read_bytes()
        for path in (checkpoint / log).iterdir():
            path.unlink()
        for batch in range(NEWEST + 1 - batches, NEWEST + 1):
            (checkpoint / log / str(batch)).write_bytes(text)


def measure(checkpoint: Path, command: str, ms: float, runs: int = 1) -> Cost:
    """Run a command on a checkpoint in S3; the CPU time is the least of so many runs."""
    costs = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(dir=checkpoint.parent.parent) as new, counting_s3(checkpoint.parent, ms) as s3:
            options = [word for name, value in s3.options.items() for word in ("--storage-options", f"{name}={value}")]
            locations = {"CHECKPOINT": f"s3://{checkpoint.name}", "NEW": f"{new}/new"}
            words = [locations.get(word, word) for word in COMMANDS[command]]
            began = time.perf_counter()
            process = subprocess.Popen([CKPT, *words, *options, "-o", "json"], stdout=-3, stderr=-1, cwd="/")
            assert process.stderr is not None
            said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in (0, 1):
                raise RuntimeError(f"ckpt {' '.join(words)}: {process.returncode} {said.decode()[-2000:]}")
            costs.append(Cost(s3.requests.total(), used.ru_utime + used.ru_stime, wall))
    return min(costs, key=lambda cost: cost.cpu)


def main() -> None:
    """Print the model of each command, and the larger checkpoint as predicted and as measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs")
    parser.add_argument("--record", metavar="FILE", help="write the results as JSON")
    asked = parser.parse_args()
    few, many, keys = (2, 4, 2_000) if asked.quick else (10, 40, 5_300_000)  # 100 MB, as a partition of the terabyte
    all_keys = 200 if asked.quick else 2_000_000
    runs, ms = (1, 0) if asked.quick else (2, DELAY)
    record: dict[str, Any] = {"when": circumstances(), "delay_ms": DELAY, "logs": LOGS, "commands": {}}
    print(record["when"], "\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as name:
        wanted = {
            **{"base": (few, 20, few * 100), "wider": (many, 20, few * 100), "longer": (few, 120, few * 100)},
            **{"100 MB": (1, 20, keys), "200 MB": (1, 20, 2 * keys)},
            **{"a tenth": (few, 20, all_keys // 10), "all": (10 * few, 20 if asked.quick else 100, all_keys)},
            **{"a tenth of 100 MB": (few, 20, few * 100), "all of 100 MB": (10 * few, 100, few * 100)},
        }
        buckets = {what: _make_bucket(Path(name), number) for number, what in enumerate(wanted)}
        made = {what: make(buckets[what], *size) for what, size in wanted.items()}
        for what in ("a tenth of 100 MB", "all of 100 MB"):
            made[what] = _enlarge(buckets[what], buckets["100 MB"], made[what])
        record["checkpoints"] = [size._asdict() for size in made.values()]
        waiting = [command for command in COMMANDS if command not in TOGETHER]
        pool = ThreadPoolExecutor(len(waiting))  # they mostly wait, while the others are measured
        large = {command: " of 100 MB" if command in OF_BYTES else "" for command in COMMANDS}
        waited = {command: pool.submit(measure, buckets[f"all{large[command]}"], command, ms) for command in waiting}
        for command in COMMANDS:
            points = {what: (made[what], measure(buckets[what], command, 0, runs)) for what in [*wanted][:5]}
            of, together = large[command], TOGETHER.get(command, 1)
            tenth, whole = (measure(buckets[what + of], command, 0, 1 if of else runs) for what in ("a tenth", "all"))
            wider = (points["100 MB"], (made[f"a tenth{of}"], tenth)) if of else (points["base"], points["wider"])
            model = fit(wider, (points["base"], points["longer"]), (points["100 MB"], points["200 MB"]))
            bucket, size = buckets[f"all{of}"], made[f"all{of}"]
            costs = {
                "predicted": model.predict(size, together),
                "measured": waited[command].result() if command in waited else measure(bucket, command, ms),
            }
            growth = {"requests": whole.requests / tenth.requests, "cpu": whole.cpu / tenth.cpu}
            own = {"gb": size.gb, "model": asdict(model), "growth": growth}
            record["commands"][command] = own | {name: asdict(cost) for name, cost in costs.items()}
            print("\n".join(_describe(command, record["commands"][command])), flush=True)
    if asked.record:
        Path(asked.record).write_text(json.dumps(record, indent=1) + "\n")


def _make_bucket(folder: Path, number: int) -> Path:
    """Name a bucket of its own folder, in which a checkpoint is made."""
    bucket = folder / f"served-{number}" / f"bucket{number}"
    bucket.parent.mkdir()
    return bucket


def _describe(command: str, costs: Mapping[str, Any]) -> Iterator[str]:
    yield command
    for name, cost in costs["model"].items():
        yield f"    {name:10} {cost['requests']:10.2f} requests {cost['cpu'] * 1000:10.2f} ms of CPU"
    for name in ("requests", "cpu", "wall"):
        ours, theirs = (costs[which][name] for which in ("measured", "predicted"))
        yield f"    {name:10} {ours:10.2f} measured {theirs:10.2f} predicted: {ours / theirs:.2f}"
    yield "    of a tenth: requests {requests:.1f}, CPU {cpu:.1f}".format(**costs["growth"])


if __name__ == "__main__":
    main()
