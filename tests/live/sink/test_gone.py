"""A sink that is gone for good: what the page says of a start, and of a new checkpoint, is what happens."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.live.first_remedy import ckpt

pytestmark = pytest.mark.spark
_FILES = 4


def _add(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.json").write_text(f'{{"id": {number}}}\n')


def _start(spark: Any, sink: str, place: Path, checkpoint: str = "checkpoint") -> None:
    rows = spark.readStream.format("json").schema("id BIGINT").load(str(place / "in"))
    writer = rows.writeStream.format(sink).option("checkpointLocation", str(place / checkpoint))
    assert writer.trigger(availableNow=True).start(str(place / "out")).awaitTermination(120)


def _rows(spark: Any, sink: str, place: Path) -> Counter[int]:
    if sink == "delta":
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return Counter(row.id for row in spark.read.format(sink).load(str(place / "out")).collect())


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_only_a_new_checkpoint_writes_the_earlier_rows_again(sink: str, spark: Any, tmp_path: Path) -> None:
    for number in range(_FILES - 1):
        _add(tmp_path / "in", number)
        _start(spark, sink, tmp_path)
    shutil.rmtree(tmp_path / "out")
    code, page = ckpt("inspect", tmp_path / "checkpoint", "--sink", tmp_path / "out")
    assert code == 3
    advice = " ".join(page.partition("\nNext")[2].split())
    assert 'start the query with .writeStream.option("checkpointLocation", "NEW")' in advice
    _add(tmp_path / "in", _FILES - 1)
    _start(spark, sink, tmp_path)
    if sink == "delta":  # readers of a file sink fail, whose log lacks its entries
        assert _rows(spark, sink, tmp_path) == Counter([_FILES - 1])
    else:
        with pytest.raises(Exception, match=r"FileNotFoundException|does not exist|doesn't exist"):
            _rows(spark, sink, tmp_path)
    shutil.rmtree(tmp_path / "out")
    _start(spark, sink, tmp_path, "new")
    assert _rows(spark, sink, tmp_path) == Counter(range(_FILES))
