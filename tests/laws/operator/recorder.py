"""Runs seeds on the installed Spark and records what became of them; an interrupted run continues where it stopped.

`python -m tests.laws.operator.recorder [SEED ...] [--fresh] [--folder=FOLDER]`: in a named folder the queries
stay for the next run.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.laws.operator.counting import Outcome
from tests.laws.operator.obeying import Story, find_a_way, follow, suffer
from tests.laws.operator.queries import APP_ID, Kind, World
from tests.laws.operator.seeds import SEEDS, Seed, make_seed
from tests.live.kafka.cases import Broker

FILE = Path(__file__).with_name("recorded.jsonl")
MODES = ("bare", "asked")
"""Whether `ckpt inspect` is given source and sink."""
_HOPELESS = (Outcome.PERSON, Outcome.STOP, Outcome.LOOP, Outcome.STUCK, Outcome.TRACEBACK)


class Worlds:
    """Queries that have run, made once for each kind in a folder, and put back at the same path for each seed."""

    def __init__(self, spark: Any, folder: Path, start_broker: Callable[[], Broker]) -> None:
        self._spark, self._folder, self._start_broker = spark, folder, start_broker

    @cached_property
    def _broker(self) -> Broker:
        return self._start_broker()

    def fresh(self, kind: Kind) -> World:
        """The query after five batches; one from Kafka has run on a topic of its own."""
        place = self._folder / kind.name
        if kind.source == "kafka":
            shutil.rmtree(place, ignore_errors=True)
            world = World(self._spark, kind, place, self._broker, f"orders-{uuid.uuid4()}")
            world.make()
            return world
        kept, numbers = self._folder / "made" / kind.name, self._folder / "made" / f"{kind.name}.json"
        world = World(self._spark, kind, place)
        if not numbers.exists():
            for folder in (place, kept):
                shutil.rmtree(folder, ignore_errors=True)
            world.make()
            shutil.copytree(place, kept)
            numbers.write_text(json.dumps(world.added))
        world.added = json.loads(numbers.read_text())
        put_back(kept, world)
        return world


def put_back(kept: Path, world: World) -> None:
    """Replace a query's files by those of a copy."""
    world.checkpoint, world.app_id = world.folder / "checkpoint", APP_ID
    shutil.rmtree(world.folder, ignore_errors=True)
    shutil.copytree(kept, world.folder)


def tell(worlds: Worlds, seed: Seed, scratch: Path) -> dict[str, Any]:
    """What becomes of a seed, in each mode; other commands are tried where the operator comes to no end."""
    answer: dict[str, Any] = {}
    incident = Incident(worlds, seed, scratch)
    for mode in MODES:
        begun = time.monotonic()
        story = incident.follow(asked=mode == MODES[1])
        if story.outcome in _HOPELESS:
            story.ended_well = incident.find_a_way()
        answer[mode] = story.as_json()
        sys.stderr.write(f"{seed.number} {mode} {time.monotonic() - begun:.1f}s {story.outcome}\n")
    return answer


class Incident:
    """A query to which happened what a seed says, as often as it is needed."""

    def __init__(self, worlds: Worlds, seed: Seed, scratch: Path) -> None:
        self._worlds, self._seed, self._kept = worlds, seed, scratch / "asked-at"
        self._world: World | None = None
        self._story: Story | None = None
        self._way: str | None = None

    def follow(self, *, asked: bool) -> Story:
        """What becomes of it if ckpt is asked so; the second time only what differs is run."""
        self._story = follow(self._again(), asked=asked, known=self._story)
        return self._story

    def find_a_way(self) -> str:
        """Commands that were not named and end well; Kafka's records are not to be had again."""
        if self._way is None:
            self._way = "" if self._seed.kind.source == "kafka" else find_a_way(self._again(), self._kept)
        return self._way

    def _again(self) -> World:
        """The query as it was when ckpt was asked."""
        seed = self._seed
        if self._world is None or seed.kind.source == "kafka":
            self._world = self._worlds.fresh(seed.kind)
            suffer(self._world, seed)
            self._added, self._conf = [*self._world.added], {**self._world.conf}
            shutil.rmtree(self._kept, ignore_errors=True)
            shutil.copytree(self._world.folder, self._kept)
        else:
            put_back(self._kept, self._world)
            self._world.added, self._world.conf = [*self._added], {**self._conf}
        return self._world


def read(file: Path = FILE) -> dict[int, dict[str, Any]]:
    """Recorded answers, by seed."""
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return {line["seed"]: line for line in lines}


def tabulate() -> list[str]:
    """Rows of a table: how seeds end, by mode."""
    recorded = read().values()
    bare, asked = (Counter(answer[mode]["class"] for answer in recorded) for mode in MODES)
    return [
        f"| {outcome} | {bare[outcome]} | {asked[outcome]} |" for outcome in Outcome if bare[outcome] + asked[outcome]
    ]


def record(file: Path, tell: Callable[[Worlds, Seed, Path], dict[str, Any]], words: Sequence[str]) -> None:
    """Record into a file, a line a seed, those that are not recorded as the generator makes them now.

    Words of a command line are the seeds that are asked, ``--fresh`` to ask again, and ``--folder=FOLDER``.
    """
    from tests.support.services.kafka import connector_jars, kafka_broker
    from tests.support.spark import classes, live
    from tests.support.spark.queries import session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    classes.use()
    chosen = [int(word) for word in words if word.isdecimal()]
    kept = next((word.removeprefix("--folder=") for word in words if word.startswith("--folder=")), "")
    quick_first = sorted(map(make_seed, range(SEEDS)), key=lambda seed: (seed.kind.cost, seed.kind.name))
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(dir=memory)))
        jars = ",".join(map(str, connector_jars()))
        conf = live.settings(jars) | {"spark__sql__warehouse__dir": str(scratch / "warehouse")}
        spark = session("ckpt-operator", "local[1]", **conf)
        spark.sparkContext.setLogLevel("OFF")
        worlds = Worlds(spark, Path(kept or scratch), lambda: Broker(stack.enter_context(kafka_broker(scratch))))
        for seed in map(make_seed, chosen) if chosen else quick_first:
            answers, number = read(file), seed.number
            known = answers.get(number, {})
            if "--fresh" not in words and {**known, **seed.recipe} == known:
                continue
            try:
                answers[number] = {"seed": number, **seed.recipe, **tell(worlds, seed, scratch)}
            except Exception as error:  # a disaster that cannot happen: the menu is wrong
                sys.stderr.write(f"{number} {seed.recipe} FAILED {type(error).__name__}: {str(error)[:600]}\n")
                continue
            file.write_text("".join(f"{json.dumps(answer)}\n" for _, answer in sorted(answers.items())))
        spark.stop()


if __name__ == "__main__":
    record(FILE, tell, sys.argv[1:])
    sys.stdout.write("\n".join((f"{len(read())} incidents", *tabulate(), "")))
