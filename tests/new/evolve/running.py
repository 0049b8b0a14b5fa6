"""Runs real queries for the suite `evolve`: an old one, and a changed one that continues from its checkpoint.

Each source has ids of its own. Every id of a source that the changed query reads has to come once: rows are counted
(stateless), or counted and added up by source (aggregation). Nothing here imports ckpt.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.spark import queries, topics

_STREAMING = "spark.sql.streaming."
NAMED = {_STREAMING + "queryEvolution.enableSourceEvolution": "true", _STREAMING + "offsetLog.formatVersion": "2"}
UNNAMED = {_STREAMING + "queryEvolution.enableSourceEvolution": "false", _STREAMING + "offsetLog.formatVersion": "1"}
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    _STREAMING + "stateStore.minDeltasForSnapshot": "2",
    _STREAMING + "stateStore.maintenanceInterval": "1000ms",
}
ROWS = 3  # ids that a source gets at a time


@dataclass
class Inputs:
    """The input of one query: ids by source, in files, topics or tables."""

    spark: Any
    root: Path
    ids: dict[str, list[int]] = field(default_factory=dict)

    def put(self, tags: Sequence[str]) -> None:
        """Give each source its next ids."""
        for tag in map(tag_of, tags):
            known = self.ids.setdefault(tag, [])
            new = list(range(len(known), len(known) + ROWS))
            known += new
            if tag[0] == "k":
                rows = self.spark.createDataFrame([(str(number),) for number in new], "value STRING").coalesce(1)
                rows.write.format("kafka").options(**topics.options(), topic=self.topic(tag)).save()
            elif tag[0] == "d":
                rows = self.spark.createDataFrame([(number,) for number in new], "id BIGINT").coalesce(1)
                rows.write.format("delta").mode("append").save(str(self.root / tag))
            elif tag[0] == "i":
                rows = self.spark.createDataFrame([(number,) for number in new], "id BIGINT").coalesce(1)
                self._create_iceberg_table(self.root / tag, rows)
                rows.write.format("iceberg").mode("append").save(str(self.root / tag))
            elif tag[0] != "r":
                rows = [{"id": number} for number in new]
                write_rows(self.root / tag / f"f{new[0]:05}.json", rows, 1.7e9 + new[0])

    def topic(self, tag: str) -> str:
        """Return the topic of a source of Kafka."""
        return f"{self.root.parent.name}-{self.root.name}-{tag}".replace(" ", "-")

    def _create_iceberg_table(self, folder: Path, rows: Any) -> None:
        if not folder.exists():
            iceberg = self.spark._jvm.org.apache.iceberg
            schema = iceberg.spark.SparkSchemaUtil.convert(rows._jdf.schema())
            tables = iceberg.hadoop.HadoopTables(self.spark._jsc.hadoopConfiguration())
            tables.create(schema, iceberg.PartitionSpec.unpartitioned(), str(folder))


def write_rows(file: Path, rows: Sequence[Mapping[str, Any]], seconds: float) -> None:
    """Write a file that is there at once, as old as that."""
    file.parent.mkdir(parents=True, exist_ok=True)
    hidden = file.with_name(f".{file.name}")
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(hidden, (seconds, seconds))
    hidden.rename(file)


def tag_of(word: str) -> str:
    """Return the source of a word such as `a@alpha`, which names it."""
    return word.partition("@")[0]


def read(spark: Any, inputs: Inputs, word: str, options: Mapping[str, str]) -> Any:
    """Return the data frame of a source: `a` files, `r` rate-micro-batch, `k` Kafka, `d` Delta, `i` Iceberg."""
    tag, _, name = word.partition("@")
    reader = spark.readStream.name(name) if name else spark.readStream
    if tag[0] == "r":
        rate = {"rowsPerBatch": "7" if tag == "r7" else "5", "numPartitions": "1", "startTimestamp": "1000", **options}
        frame = reader.format("rate-micro-batch").options(**rate).load().selectExpr("value AS id")
    elif tag[0] == "k":
        kafka = {**topics.options(), "subscribe": inputs.topic(tag), "startingOffsets": "earliest", **options}
        frame = reader.format("kafka").options(**kafka).load()
        frame = frame.selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id")
    elif tag[0] in "di":
        kind = {"d": "delta", "i": "iceberg"}[tag[0]]
        frame = reader.format(kind).options(**options).load(str(inputs.root / tag))
    else:
        (inputs.root / tag).mkdir(parents=True, exist_ok=True)
        frame = reader.schema("id BIGINT").options(maxFilesPerTrigger="100", **options).json(str(inputs.root / tag))
    return frame.selectExpr(f"'{tag}' AS tag", "id")


def build(spark: Any, inputs: Inputs, shape: str, words: Sequence[str], options: Mapping[str, Any]) -> Any:
    """Return the query: rows of all sources, or their number and sum by source."""
    frames = [read(spark, inputs, word, options.get(tag_of(word), {})) for word in words]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.union(frame)
    if "dedup" in shape:
        rows = rows.dropDuplicates(["tag", "id"])
    return rows.groupBy("tag").agg({"id": "sum", "*": "count"}) if "agg" in shape else rows


@dataclass
class Line:
    """A checkpoint, and what its sink has seen."""

    checkpoint: Path
    inputs: Inputs
    shape: str
    rows: Counter[tuple[str, int]] = field(default_factory=Counter)
    sums: dict[str, tuple[int, int]] = field(default_factory=dict)  # by source: number and sum

    def run(
        self,
        spark: Any,
        words: Sequence[str],
        conf: Mapping[str, str],
        options: Mapping[str, Any],
        *,
        fails: bool = False,
    ) -> str | None:
        """Start the query once; return what Spark said if it failed."""
        session = queries.own_session(spark, {**SETTINGS, **conf})
        batches: list[list[Any]] = []

        def take(frame: Any, _: int) -> None:
            if fails:
                raise RuntimeError("as it shall")
            batches.append([tuple(row) for row in frame.select(sorted(frame.columns)).collect()])

        frame = build(session, self.inputs, self.shape, words, options)
        error = None
        try:
            queries.drain(frame, self.checkpoint, "append" if self.shape == "rows" else "update", take)
        except Exception as exception:
            error = shorten(str(exception))
        for row in (row for batch in batches for row in batch):
            if "agg" in self.shape:  # count(1), sum(id), tag
                self.sums[row[2]] = (row[0], row[1])
            else:
                self.rows[row[1], row[0]] += 1
        return error

    def judge(self, words: Sequence[str], begins: Mapping[str, int]) -> dict[str, Any]:
        """Compare what the sink has seen with the ids of the sources."""
        wrong: dict[str, Any] = {}
        for number, tag in enumerate(map(tag_of, words)):
            ids = self._rate_ids(number, words) if tag[0] == "r" else self.inputs.ids.get(tag, [])
            ids = ids[begins.get(tag, 0) :]
            if "agg" in self.shape:
                has_sum, wants_sum = self.sums.get(tag, (0, 0)), (len(ids), sum(ids))
                if has_sum != wants_sum:
                    wrong[tag] = {"has": [*has_sum], "wants": [*wants_sum]}
            else:
                has = Counter({row: count for (other, row), count in self.rows.items() if other == tag})
                lost, twice = Counter(ids) - has, has - Counter(ids)
                if lost or twice:
                    wrong[tag] = {"lost": lost.total(), "twice": twice.total()}
        return dict(sorted(wrong.items()))

    def _rate_ids(self, number: int, words: Sequence[str]) -> list[int]:
        newest = max(
            (file for file in (self.checkpoint / "offsets").iterdir() if file.name.isdigit()),
            key=lambda file: int(file.name),
        )
        version, _, *lines = newest.read_text().split("\n")
        name = words[number].partition("@")[2] or (str(number) if version == "v2" else "")  # v2 has them in any order
        line = next(line for line in lines if line.startswith(f"{name}:")) if name else lines[number]
        return list(range(json.loads(line[line.index("{") :])["offset"]))


def shorten(text: str) -> str:
    """Return what Spark said, without paths and ids."""
    text = re.sub(r"\s+", " ", text.split("=== Streaming Query ===")[0])
    text = re.sub(r"\[id = [^]]*]|id = [\w-]+, runId = [\w-]+|(file:)?/[\w/. -]+", "...", text)
    return text[:300]


class Answering:
    """Old queries that cases share, each with its sources; and the jobs about them."""

    def __init__(self) -> None:
        self._made: dict[str, Line] = {}
        self._lines: dict[str, Line] = {}
        self._columns: Any = None

    def answer(self, spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
        """Make a copy of an old checkpoint, describe the changed query, or continue with it."""
        if job["do"].startswith("columns"):
            from tests.new.evolve.columns_run import Columns

            self._columns = self._columns or Columns()
            columns: Columns = self._columns
            return columns.make(spark, job) if job["do"] == "columns: make" else columns.go_on(spark, job)
        jobs = {"make": self._make, "describe": self._describe, "continue": self._continue}
        return jobs[job["do"]](spark, job)

    def _make(self, spark: Any, job: dict[str, Any]) -> dict[str, Any]:
        base, root = job["base"], Path(job["root"])
        conf = {**job["conf"], **(NAMED if "@" in base["words"][0] else {})}
        if base["name"] not in self._made:
            inputs = Inputs(spark, root / "inputs" / base["name"])
            line = Line(root / "made" / base["name"], inputs, base["shape"])
            inputs.put(base["waiting"])
            for number, tags in enumerate(base["runs"]):
                inputs.put(tags)
                fails = base["planned"] and number == len(base["runs"]) - 1
                error = line.run(spark, base["words"], conf, {}, fails=fails)
                assert bool(error) == fails, error
            if base["left_out"]:  # sources that were not read for a while
                for tags in base["left_out_runs"]:
                    inputs.put(tags)
                    error = line.run(spark, base["left_out"], conf, {})
                    assert error is None, error
            self._made[base["name"]] = line
        made = self._made[base["name"]]
        shutil.copytree(made.checkpoint, job["checkpoint"], copy_function=shutil.copy2)
        copied = Line(Path(job["checkpoint"]), made.inputs, made.shape, Counter(made.rows), dict(made.sums))
        self._lines[job["checkpoint"]] = copied
        folder = made.inputs
        return {"inputs": str(folder.root), "topics": {tag: folder.topic(tag) for tag in folder.ids if tag[0] == "k"}}

    def _describe(self, spark: Any, job: dict[str, Any]) -> dict[str, Any]:
        """Start the changed query on empty folders: its checkpoint has the operators that it wants."""
        line = Line(Path(job["described"]), Inputs(spark, Path(job["empty"])), job["shape"])
        line.inputs.put(job["words"])
        return {"error": line.run(spark, job["words"], job["conf"], {})}

    def _continue(self, spark: Any, job: dict[str, Any]) -> dict[str, Any]:
        line = self._lines[job["checkpoint"]]
        line.checkpoint, line.shape = Path(job["evolved"]), job["shape"]
        begins = dict(job["begins"])
        if job["from_now_on"]:
            begins |= {tag: len(line.inputs.ids[tag]) for tag in map(tag_of, job["old_words"])}
            line.rows, line.sums = Counter(), {}
        kept = {tag: list(ids) for tag, ids in line.inputs.ids.items()}
        files = {file for file in line.inputs.root.rglob("*") if file.is_file()}
        named = "@" in job["words"][0]
        error = None
        for tags in job["runs"]:
            line.inputs.put(tags)
            conf = {**UNNAMED, **job["conf"], **(NAMED if named else {})}
            error = line.run(spark, job["words"], conf, job["options"])
            if error is not None:
                break
        wrong = {} if error else line.judge(job["words"], begins)
        self._forget(line.inputs, kept, files)
        return {"error": error, "wrong": wrong}

    @staticmethod
    def _forget(inputs: Inputs, kept: dict[str, list[int]], files: set[Path]) -> None:
        """Take new files away: the next case has the same. Topics and tables keep their rows."""
        for tag in [tag for tag in inputs.ids if tag[0] not in "kdi"]:
            inputs.ids[tag] = kept.get(tag, [])
        for file in inputs.root.rglob("*"):
            if file.is_file() and file not in files and file.relative_to(inputs.root).parts[0][0] not in "di":
                file.unlink()


answer = Answering().answer
