"""Each incident under ``ckpt preflight --fix safe``: the fixes that were applied, and the rows after the start.

`python -m tests.laws.operator.unattended [SEED ...] [--folder=FOLDER]` records it, as `recorder` does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ckpt.inspection import activity
from tests.laws.next_obeyed import run
from tests.laws.operator.obeying import follow, suffer
from tests.laws.operator.recorder import Worlds
from tests.laws.operator.seeds import SEEDS, make_seed
from tests.live.kafka.cases import Broker

FILE = Path(__file__).with_name("unattended.jsonl")


def read() -> dict[int, dict[str, Any]]:
    """Read the recorded answers, by seed."""
    lines = (json.loads(line) for line in FILE.read_text().splitlines()) if FILE.exists() else ()
    return {line["seed"]: line for line in lines}


def tell(worlds: Worlds, number: int) -> dict[str, Any]:
    """Let an incident happen, ask for safe fixes, and if any was applied let the operator start and count."""
    seed = make_seed(number)
    world = worlds.fresh(seed.kind)
    suffer(world, seed)
    answer: dict[str, Any] = {"seed": number, **seed.recipe}
    try:
        document = run("preflight", str(world.checkpoint), "--fix", "safe", "--grace", "0")
    except AssertionError:  # there is no checkpoint any more
        return answer | {"go": False, "fixed": []}
    answer |= {"go": document["go"], "fixed": [fix["fix"] for fix in document["fixed"]]}
    if document["fixed"]:
        story = follow(world, asked=False)
        answer |= {"class": str(story.outcome), "counted": story.as_json()["counted"]}
    return answer


def main(numbers: Iterable[int], folder: str) -> None:
    """Record seeds that are not recorded yet."""
    from tests.support.services.kafka import connector_jars, kafka_broker
    from tests.support.spark import classes, live
    from tests.support.spark.queries import session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    classes.use()
    activity.LOOKS_APART_S = 0.0  # nobody else writes here

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)))
        jars = ",".join(map(str, connector_jars()))
        conf = live.settings(jars) | {"spark__sql__warehouse__dir": str(scratch / "warehouse")}
        spark = session("ckpt-unattended", "local[1]", **conf)
        spark.sparkContext.setLogLevel("OFF")
        worlds = Worlds(spark, Path(folder or scratch), lambda: Broker(stack.enter_context(kafka_broker(scratch))))
        for number in numbers:
            answers = read()
            if number in answers:
                continue
            try:
                answers[number] = tell(worlds, number)
            except Exception as error:
                sys.stderr.write(f"{number} FAILED {type(error).__name__}: {str(error)[:600]}\n")
                continue
            lines = (json.dumps(answer) for _, answer in sorted(answers.items()))
            FILE.write_text("".join(f"{line}\n" for line in lines))
            sys.stderr.write(f"{json.dumps(answers[number])}\n")
        spark.stop()


if __name__ == "__main__":
    chosen = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    kept = next((word.removeprefix("--folder=") for word in sys.argv if word.startswith("--folder=")), "")
    quick_first = sorted(range(SEEDS), key=lambda number: (make_seed(number).kind.cost, make_seed(number).kind.name))
    main(chosen or quick_first, kept)
