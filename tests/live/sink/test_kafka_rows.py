"""`--sink kafka`: rows of a topic after an incident, when the pages were obeyed, are those that they announced."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.live.sink.code import BATCHES, EACH, KILLED_IN, TWICE, put

pytestmark = [pytest.mark.spark, pytest.mark.service]


class Numbers:
    """A query that writes the numbers of files into a topic, a file in each batch; with state it drops duplicates."""

    def __init__(self, spark: Any, servers: str, folder: Path, *, stateful: bool) -> None:
        self.spark, self.folder, self.stateful = spark.newSession(), folder, stateful
        self.spark.conf.set("spark.sql.shuffle.partitions", "1")
        self.checkpoint = folder / "checkpoint"
        self.kafka = {"kafka.bootstrap.servers": servers}
        self.topic = f"numbers-{folder.name}"

    def start(self, *, noop: bool = False) -> None:
        """Run it over what is there; or once into ``noop``, as a page says."""
        rows = self.spark.readStream.schema("n bigint").option("maxFilesPerTrigger", 1).json(str(self.folder / "input"))
        rows = rows.dropDuplicates(["n"]) if self.stateful else rows
        writer = rows.selectExpr("CAST(n AS STRING) AS value").writeStream
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        if noop:
            running = writer.format("noop").trigger(once=True).start()
        else:
            writer = writer.format("kafka").options(**self.kafka).option("topic", self.topic)
            running = writer.trigger(availableNow=True).start()
        running.awaitTermination(300)

    def stop_after_the_sink(self) -> None:
        """Batch 2 is written, and its commit is not: a crash between the two."""
        for name in (f"{KILLED_IN}", f".{KILLED_IN}.crc"):
            (self.checkpoint / "commits" / name).unlink()

    def tear_offsets(self) -> None:
        """Its offsets are torn, too."""
        self.stop_after_the_sink()
        (self.checkpoint / "offsets" / f"{KILLED_IN}").write_bytes(b"")
        (self.checkpoint / "offsets" / f".{KILLED_IN}.crc").unlink()

    def times(self) -> Counter[int]:
        """How often each number is in the topic."""
        rows = self.spark.read.format("kafka").options(**self.kafka).option("subscribe", self.topic).load()
        return Counter(int(row.value) for row in rows.select("value").collect())


def expect(*twice: int) -> Counter[int]:
    """Every number once, and those of some batches twice."""
    return Counter(range(BATCHES * EACH)) + Counter(
        n for batch in twice for n in range(batch * EACH, batch * EACH + EACH)
    )


def obey(query: Numbers, ckpt: Ckpt, *words: str) -> str:
    """Do what the page of a command, and those after it, say to do before a start; what they say of the sink."""
    said = ""
    command: list[Any] = [words[0], query.checkpoint, *words[1:], "--sink", "kafka"]
    for _ in range(4):
        grace = ["--grace", "0"] if "--apply" in command else []
        document = ckpt(*command, *grace, "-o", "json").json()
        said += " ".join([*document.get("warnings", ()), (document.get("sink") or {}).get("said", "")])
        step = next(iter(document["next"]), None)
        if step is None or step["command"] is None:
            if step is not None and "noop" in step["what"]:
                query.start(noop=True)
            return said
        command = step["command"][1:]
    raise AssertionError(command)


INCIDENTS: dict[str, tuple[bool, Callable[[Numbers], None], tuple[str, ...], str, tuple[int, ...]]] = {
    "restarted": (False, Numbers.stop_after_the_sink, ("inspect",), f"batch 2 runs again, .*: {TWICE}", (2,)),
    "rewound": (False, lambda query: None, ("rewind", "--to-batch", "0"), f"from 1 on run again: {TWICE}", (1, 2)),
    "rewound by one": (True, lambda query: None, ("rewind", "--to-batch", "1"), "noop", ()),
    "rewound with state": (True, lambda query: None, ("rewind", "--to-batch", "0"), f"run again: {TWICE}", (1, 2)),
    "skipped": (False, Numbers.stop_after_the_sink, ("skip",), "wrote to a sink stay there", ()),
    "repaired": (False, Numbers.tear_offsets, ("repair",), f"from 2 on run again: {TWICE}", (2,)),
}
"""With state or not, what happened, the command, what its page says, and batches whose rows are there twice."""


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_topic_has_what_was_announced(
    name: str, spark: Any, kafka: str, kafka_jars: str, ckpt: Ckpt, tmp_path: Path
) -> None:
    stateful, happen, words, says, twice = INCIDENTS[name]
    query = Numbers(spark, kafka, tmp_path, stateful=stateful)
    for batch in range(KILLED_IN + 1):
        put(tmp_path, batch)
    query.start()
    happen(query)
    for batch in range(KILLED_IN + 1, BATCHES):
        put(tmp_path, batch)

    said = obey(query, ckpt, *words)
    query.start()

    assert query.times() == expect(*twice)
    assert re.search(says, said), said
