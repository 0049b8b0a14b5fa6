"""What work on state costs by partition, batch and GB in S3, and whether a larger checkpoint costs what that predicts.

    python benchmarks/scale.py [--quick] [--record FILE]

Checkpoints are made here by ckpt and served by a counting S3. Each command runs in a process of its own. Four small
checkpoints give the cost model, a larger one is predicted and measured. ``--record`` writes all of it as JSON, from which
`docs/scale.md` has its figures.
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
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from benchmarks.generate import HDFS, times_of_batches
from benchmarks.measure import circumstances
from tests.support.services.counting import counting_s3

CKPT = Path(sys.executable).with_name("ckpt")
DELAY = 50  # ms for each request
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
_TOGETHER = {"inspect": 128, "scan": 128}
"""How many requests a command has under way at a time; the others read file by file in each process."""


class Size(NamedTuple):
    """How large a checkpoint is."""

    partitions: int
    batches: int  # in its logs
    gb: float  # of its state files, in S3


@dataclass(frozen=True)
class Cost:
    """What a run took."""

    requests: float
    cpu: float  # seconds
    wall: float = 0.0  # seconds
    mb: float = 0.0  # at the peak, of one process
    kinds: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Model:
    """What a command costs: what it takes to begin, and for each partition, batch and GB."""

    begin: Cost
    partition: Cost
    batch: Cost
    gb: Cost

    def predict(self, size: Size, together: int = 1) -> Cost:
        """Predict a run in one process; ``together`` requests are under way at a time."""

        def add(name: str) -> float:
            each = size.partitions, size.batches, size.gb
            parts = zip(each, (self.partition, self.batch, self.gb), strict=True)
            return float(getattr(self.begin, name) + sum(count * getattr(cost, name) for count, cost in parts))

        requests, cpu = add("requests"), add("cpu")
        return Cost(requests, cpu, cpu + requests * DELAY / 1000 / together)


def fit(points: Mapping[Size, Cost]) -> Model:
    """Find the model that four measured sizes determine: the first, and one more of each kind."""
    (base, first), *others = points.items()
    slopes = []
    for axis, (size, cost) in enumerate(others):
        step = size[axis] - base[axis]
        rest = [(size[other] - base[other], other) for other in range(axis + 1, 3)]
        assert axis == 2 or all(abs(change) < 0.01 * max(base[other], 1) + 0.01 for change, other in rest), rest
        slopes.append(Cost((cost.requests - first.requests) / step, (cost.cpu - first.cpu) / step))
    begin = [
        getattr(first, name) - sum(base[axis] * getattr(slopes[axis], name) for axis in range(3))
        for name in ("requests", "cpu")
    ]
    return Model(Cost(*begin), *slopes)


def make(folder: Path, partitions: int, batches: int, keys: int) -> Size:
    """Make a checkpoint of so many keys with HDFS-backed state: a snapshot of each partition, and deltas after it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    import ckpt

    rows = ckpt.read_state_arrow(str(HDFS))
    numbers = pa.array(range(keys))
    values = [pc.multiply(numbers, 2 * place + 1).cast(field.type) for place, field in enumerate(rows.schema)]
    table = pa.table(values, schema=rows.schema)
    ckpt.write_state({"operator 0": table}, like=str(HDFS), into=str(folder), partitions=partitions)
    _let_batches_pass(folder, batches)
    times_of_batches(folder)
    return Size(partitions, batches, sum(path.stat().st_size for path in folder.glob("state/0/[0-9]*/*")) / 1e9)


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
            options = [word for name, value in s3.options.items() for word in ("--storage-option", f"{name}={value}")]
            places = {"CHECKPOINT": f"s3://{checkpoint.name}", "NEW": f"{new}/new"}
            words = [places.get(word, word) for word in COMMANDS[command]]
            began = time.perf_counter()
            process = subprocess.Popen([CKPT, *words, *options, "-o", "json"], stdout=-3, stderr=-1, cwd="/")
            assert process.stderr is not None
            said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in (0, 1):
                raise RuntimeError(f"ckpt {' '.join(words)}: {process.returncode} {said.decode()[-2000:]}")
            cpu, kinds = used.ru_utime + used.ru_stime, dict(sorted(s3.requests.items()))
            costs.append(Cost(s3.requests.total(), cpu, wall, used.ru_maxrss / 1024, kinds))
    return min(costs, key=lambda cost: cost.cpu)


def main() -> None:
    """Print the model of each command, and the larger checkpoint as predicted and as measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it runs")
    parser.add_argument("--record", metavar="FILE", help="write the results as JSON")
    asked = parser.parse_args()
    few, many, keys = (2, 4, 2_000) if asked.quick else (10, 40, 1_000_000)
    sizes = ((few, 20, few * 100), (many, 20, many * 100), (few, 120, few * 100), (few, 20, keys))
    tenth, hundredth = (
        ((few, 20, 1_000), (many, 20, 4_000)) if asked.quick else ((10, 100, 200_000), (100, 100, 2_000_000))
    )
    record: dict[str, Any] = {"when": circumstances(), "delay_ms": DELAY, "logs": LOGS, "commands": {}}
    print(record["when"], "\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="ckpt-benchmark-") as name:
        made = [
            (place, make(place, *wanted))
            for number, wanted in enumerate((*sizes, tenth, hundredth))
            for place in (_place(Path(name), number),)
        ]
        record["checkpoints"] = [size._asdict() for _, size in made]
        runs = 1 if asked.quick else 2
        wide = [(command, place) for command in COMMANDS for place, _ in made[4:]]
        with ThreadPoolExecutor(len(wide)) as pool:  # they mostly wait
            waited = dict(zip(wide, pool.map(lambda task: measure(task[1], task[0], DELAY), wide), strict=True))
        for command in COMMANDS:
            model = fit({size: measure(place, command, 0, runs) for place, size in made[:4]})
            of_tenth, of_all = (waited[command, place] for place, _ in made[4:])
            predicted = model.predict(made[5][1], _TOGETHER.get(command, 1))
            record["commands"][command] = {
                "model": asdict(model),
                "tenth": asdict(of_tenth),
                "measured": asdict(of_all),
                "predicted": asdict(predicted),
            }
            for line in _lines(command, model, of_tenth, of_all, predicted):
                print(line, flush=True)
            if asked.record:
                Path(asked.record).write_text(json.dumps(record, indent=1) + "\n")


def _place(folder: Path, number: int) -> Path:
    """A bucket of its own folder."""
    place = folder / f"served-{number}" / f"bucket{number}"
    place.parent.mkdir()
    return place


def _lines(command: str, model: Model, tenth: Cost, measured: Cost, predicted: Cost) -> Iterator[str]:
    yield f"{command}"
    for name in ("begin", "partition", "batch", "gb"):
        cost = getattr(model, name)
        yield f"    {name:10} {cost.requests:10.2f} requests {cost.cpu * 1000:10.2f} ms of CPU"
    for name in ("requests", "cpu", "wall"):
        ours, theirs, part = (getattr(cost, name) for cost in (measured, predicted, tenth))
        yield f"    {name:10} {ours:10.2f} measured {theirs:10.2f} predicted: {ours / theirs:.2f}; {ours / part:.1f} of a tenth"
    yield f"    {measured.mb:.0f} MB, {tenth.mb:.0f} MB with a tenth"


if __name__ == "__main__":
    main()
