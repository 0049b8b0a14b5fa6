"""What ``inspect`` imports is known (``python -m tests.laws.imports``), and packages call those below them."""

from pathlib import Path

import pytest

from ckpt.query.description import DescribedBuffer, QueryDescription
from ckpt.versions import Spark
from tests.conftest import Ckpt
from tests.laws.imports import LIST, imported
from tests.laws.upward import count_upward
from tests.new.evolve.test_command import COUNT, MORE, OLD, SUM, describe_aggregates
from tests.support.places import SAMPLES


def test_a_plain_look_imports_what_is_listed_and_nothing_else():
    assert imported() == LIST.read_text().splitlines()


AGGREGATION, FILE_SOURCE = str(SAMPLES / "aggregation-hdfs-4.2"), str(SAMPLES / "file-source-4.2")
OTHER_COLUMNS = ("--from-query", "old.json", "--accept-from-now-on", "--jobs", "1")
RUNS = {  # the most calls that a command may make
    ("inspect", AGGREGATION): 0,
    ("inspect", str(SAMPLES / "aggregation-rocksdb-4.2")): 0,
    ("preflight", FILE_SOURCE, "--sources", "--source-options", "0.path=.", "--expect", "query.json"): 2,
    ("rewind", AGGREGATION, "--to-batch", "7"): 22,  # parts of texts, about sinks
    ("repair-async", str(SAMPLES / "async-kafka-4.2")): 0,
    ("copy", AGGREGATION, "new"): 0,
    ("evolve", FILE_SOURCE, "new", "--to", "query.json"): 0,
    ("evolve", FILE_SOURCE, "--in-place", "--to", "query.json"): 1,
    ("evolve", AGGREGATION, "new", "--to", "columns.json", *OTHER_COLUMNS): 10,  # this and those below: work for tasks
    ("rewrite", AGGREGATION, "new", "--partitions", "3", "--jobs", "1"): 10,
    ("import-state", "state", "new", "--like", AGGREGATION, "--jobs", "1"): 10,
}


@pytest.mark.parametrize("words", RUNS, ids=lambda words: "-".join(words[::2]).replace("/", "-")[:40])
def test_hardly_anything_is_called_upwards(
    words: tuple[str, ...], ckpt: Ckpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    QueryDescription(Spark.V4_2, "update", (MORE, OLD), (), None, None, {}).write("query.json")
    describe_aggregates(tmp_path / "old.json", COUNT, SUM)
    describe_aggregates(tmp_path / "columns.json", DescribedBuffer("max", "long", True), SUM, COUNT)
    if words[0] == "import-state":
        assert ckpt("export-state", AGGREGATION, "--all-units", "--to", "state").exit_code == 0

    ended = []
    calls = count_upward(lambda: ended.append(ckpt(*words, "-o", "json").exit_code))

    assert ended[0] in (0, 1)
    assert calls.total() <= RUNS[words], calls
