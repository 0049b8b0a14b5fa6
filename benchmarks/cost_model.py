"""The cost of a command by partition, batch and GB, fitted to what `benchmarks/scale.py` measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

DELAY = 50  # ms for each request
TOGETHER = {"inspect": 128, "scan": 128}
"""How many requests a command has under way at a time; the others read file by file in each process."""


class Size(NamedTuple):
    """How large a checkpoint is."""

    partitions: int
    batches: int  # in its logs
    gb: float  # of its state files, in S3


@dataclass(frozen=True)
class Cost:
    """Requests, CPU time and duration of a run."""

    requests: float
    cpu: float  # seconds
    wall: float = 0.0  # seconds


@dataclass(frozen=True)
class Model:
    """The cost of a command: of its beginning, and of each partition, batch and GB."""

    begin: Cost
    partition: Cost
    batch: Cost
    gb: Cost

    def predict(self, size: Size, together: int = 1) -> Cost:
        """Predict a run in one process; ``together`` requests are under way at a time."""

        def add(name: str) -> float:
            parts = zip(size, (self.partition, self.batch, self.gb), strict=True)
            return float(getattr(self.begin, name) + sum(count * getattr(cost, name) for count, cost in parts))

        requests, cpu = add("requests"), add("cpu")
        return Cost(requests, cpu, cpu + requests * DELAY / 1000 / together)


Point: TypeAlias = tuple[Size, Cost]


def fit(wider: Sequence[Point], longer: Sequence[Point], heavier: Sequence[Point]) -> Model:
    """Find the model of three pairs of measured sizes: with more partitions, with more batches, and with more GB."""
    gb, batch = _slope(heavier, 2), _slope(longer, 1)
    partition = _slope(wider, 0, gb)
    size, first = wider[0]
    parts = list(zip(size, (partition, batch, gb), strict=True))
    requests = first.requests - sum(count * cost.requests for count, cost in parts)
    return Model(Cost(requests, first.cpu - sum(count * cost.cpu for count, cost in parts)), partition, batch, gb)


def _slope(pair: Sequence[Point], axis: int, gb: Cost = Cost(0, 0)) -> Cost:
    """The cost of one more partition, batch or GB, without that of GB added with it; less than nothing is noise."""
    (less, before), (more, after) = pair
    step, added = more[axis] - less[axis], more.gb - less.gb
    slopes = (
        (getattr(after, name) - getattr(before, name) - added * getattr(gb, name)) / step
        for name in ("requests", "cpu")
    )
    return Cost(*(max(slope, 0.0) for slope in slopes))


TERABYTE = Size(10_000, 100, 1_000.0)
"""A checkpoint to which the model is extrapolated."""


def tabulate(record: Mapping[str, Any]) -> dict[str, list[str]]:
    """The tables of `docs/scale.md`: what a command costs, also with a terabyte, and how far that can be trusted."""
    commands = {name: costs for name, costs in record["commands"].items() if name not in TOGETHER}
    models = {
        name: Model(**{part: Cost(**cost) for part, cost in costs["model"].items()}) for name, costs in commands.items()
    }
    cost, terabyte, trusted = [], [], []
    for name, model in models.items():
        parts = (model.begin, model.partition, model.batch, model.gb)
        requests = " | ".join(f"{part.requests:,.0f}" for part in parts)
        cpu = f"{model.partition.cpu * 1000:.0f} ms | {model.gb.cpu:.0f} s"
        cost.append(f"| `{name}` | {requests} | {cpu} |")
        large = model.predict(TERABYTE)
        hours = large.wall / 3600
        cells = (
            f"{large.requests / 1e6:.2f} million | {large.cpu / 3600:.1f} h | {hours:.1f} h | {hours * 60 / 64:.0f} min"
        )
        terabyte.append(f"| `{name}` | {cells} |")
        costs = commands[name]
        ratios = (costs["measured"][part] / costs["predicted"][part] for part in ("requests", "cpu", "wall"))
        growth = costs["growth"].values()
        cells = " | ".join(f"{ratio:.2f}" for ratio in ratios) + " | " + " | ".join(f"{ratio:.1f}" for ratio in growth)
        whole = costs["measured"]
        ours = f"{costs['gb']:.2f} | {whole['requests']:,.0f} | {whole['wall']:.0f} s"
        trusted.append(f"| `{name}` | {ours} | {cells} |")
    return {"cost": cost, "terabyte": terabyte, "trusted": trusted}
