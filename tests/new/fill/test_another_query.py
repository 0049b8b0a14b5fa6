"""An export of one query becomes the state of another: what the page says of sinks is what happens in them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from tests.conftest import Ckpt

pytestmark = pytest.mark.spark


class Rows:
    """Rows without duplicates, a file of ten in each batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark, self._folder = spark.newSession(), folder
        self._spark.conf.set("spark.sql.shuffle.partitions", "2")
        (folder / "in").mkdir()

    def add(self, batch: int) -> None:
        lines = (json.dumps({"id": number}) for number in range(batch * 10, batch * 10 + 10))
        (self._folder / f"in/{batch}.json").write_text("\n".join(lines))

    def start(self, checkpoint: str, out: str, *, first: bool = False) -> None:
        """Run it to its end. The first start of a new query is one batch, and lets no row through."""
        source = self._spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 100 if first else 1)
        rows = source.json(str(self._folder / "in"))
        writer = rows.where("rand() < 0" if first else "true").dropDuplicates(["id"]).writeStream
        writer = (
            writer.option("checkpointLocation", str(self._folder / checkpoint)).format("parquet").option("path", out)
        )
        writer.trigger(availableNow=True).start().awaitTermination(300)

    def read(self, out: str) -> list[int]:
        return sorted(row.id for row in self._spark.read.parquet(out).collect())


def test_the_old_output_of_a_file_sink(spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    query, out = Rows(spark, tmp_path), str(tmp_path / "out")
    for batch in range(3):
        query.add(batch)
    query.start("old", out)
    assert query.read(out) == list(range(30))
    assert ckpt("export-state", tmp_path / "old", "--all-units", "--to", tmp_path / "state").exit_code == 0

    query.start("skipped", out, first=True)  # its sink has batches 0 to 2 of the old query
    for words in (
        ("export-state", tmp_path / "skipped", "--all-units", "--to", tmp_path / "none"),
        ("import-state", tmp_path / "state", tmp_path / "new", "--like", tmp_path / "skipped"),
    ):
        refused = ckpt(*words)
        assert refused.exit_code == 3
        assert "CKPT304" in refused.stderr
        assert "start it once into noop, with a new checkpoint" in refused.stderr

    query.start("first", str(tmp_path / "own-out"), first=True)
    new, first = tmp_path / "new", tmp_path / "first"
    run = ckpt("import-state", tmp_path / "state", new, "--like", first)
    ids = [library.open_checkpoint(str(path)).query_id for path in (tmp_path / "old", first)]
    page = " ".join(run.stdout.split())
    assert f"It has the query id of {first}, not that of EXPORT ({ids[0]})" in page
    assert "to sinks it is the same query" not in page
    assert run.stdout.rstrip().endswith(f"ckpt inspect {new} --sink URI")
    planned = ckpt(
        "import-state", tmp_path / "state", tmp_path / "plan", "--like", first, "--plan", "-o", "json"
    ).json()
    assert (planned["query_id"], planned["export_query_id"]) == (ids[1], ids[0])

    def ask(sink: Path | str) -> set[str]:
        asked = ckpt("inspect", new, "--spark", "4.2", "--sink", sink, "-o", "json").json()
        return {finding["code"] for finding in asked["findings"]}

    for batch in (3, 4):
        query.add(batch)
    assert "CKPT411" in ask(out)
    (tmp_path / "empty/_spark_metadata").mkdir(parents=True)
    assert "CKPT413" in ask(tmp_path / "empty"), "as after a first start into noop"
    assert not {"CKPT411", "CKPT413"} & ask(tmp_path / "own-out")
    shutil.copytree(new, tmp_path / "other")
    query.start("new", out)
    assert query.read(out) == list(range(30)), "lost, as ckpt inspect --sink had said"
    query.start("other", str(tmp_path / "own-out"))
    assert query.read(str(tmp_path / "own-out")) == list(range(30, 50))
