"""An offsets file of another query in a checkpoint: it is named as such, and no plan takes its end for one of this."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLES
from tests.support.remedies import remove
from tests.support.spark.queries import drain

CASES = [  # a checkpoint, and another whose newest offsets take the place of its own
    ("kafka-4.2", "stateless-4.2"),
    ("stateless-4.2", "kafka-4.2"),
    ("delta-4.2", "stateless-4.2"),
    ("file-source-4.2", "kafka-4.2"),
    ("aggregation-hdfs-4.2", "delta-4.2"),
    ("kafka-4.2", "two-sources-3.5"),
]


def newest(top: Path) -> Path:
    return max((top / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))


def replace(top: Path, other: Path) -> Path:
    path = newest(top)
    remove(path)
    shutil.copyfile(newest(other), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "other"), CASES)
def test_it_is_a_file_from_elsewhere(sample: str, other: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    top = copy_of(sample)
    path = f"offsets/{replace(top, SAMPLES / other).name}"
    document = ckpt("inspect", top, "-o", "json").json()
    found = {(one["code"], one["path"]) for one in document["findings"]}
    assert ("CKPT126", path) in found
    assert "CKPT106" not in {code for code, _ in found}
    assert (document["next"][0]["do"], document["next"][0]["paths"]) == ("put-back", [path])
    plan, _ = library.repair(str(top))
    assert all(source.end is None for replay in plan.replay or () for source in replay.sources)
    assert "rate" not in ckpt("repair", top).stdout.partition("Replayed")[2]


def test_kinds_that_stay_and_topics_that_come_are_no_other_query(ckpt: Ckpt, copy_of: CopyOf) -> None:
    for sample in ("kafka-4.2", "two-sources-3.5", "named-sources-4.2"):
        findings = ckpt("inspect", copy_of(sample, to=sample), "-o", "json").json()["findings"]
        assert "CKPT126" not in {one["code"] for one in findings}


@pytest.mark.spark
@pytest.mark.parametrize("committed", [True, False])
def test_spark_fails_on_it_and_a_repair_loses_no_row(committed: bool, spark: Any, tmp_path: Path) -> None:
    source, out, top = (tmp_path / name for name in ("in", "out", "checkpoint"))
    source.mkdir()

    def run(*files: int) -> None:
        for number in files:
            (source / f"{number}.json").write_text(f'{{"id": {number}}}\n')
        rows = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(source))
        drain(rows, top, sink=lambda batch, _: batch.write.mode("append").parquet(str(out)))

    for number in range(3):
        run(number)
    replace(top, SAMPLES / "kafka-4.2")
    if not committed:
        remove(top / "commits" / "2")
    (source / "3.json").write_text('{"id": 3}\n')
    plan, _ = library.repair(str(top))
    tried = tmp_path / "tried"
    shutil.copytree(top, tried)
    with pytest.raises(Exception, match=r"."):
        run(3)
    shutil.rmtree(top)
    shutil.copytree(tried, top)
    plan, receipt = library.repair(str(top), apply=True, grace=0, accept_replay=True)
    assert receipt.applied
    run(3)
    rows = sorted(row.id for row in spark.read.parquet(str(out)).collect())
    again = [2] if plan.rows == "again" else []
    assert rows == sorted([0, 1, 2, 3, *again])
