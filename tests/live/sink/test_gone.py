"""A sink that is gone for good: what the page says of a start, and of a new checkpoint, is what happens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.live.first_remedy import ckpt
from tests.live.sink.stateful import ROWS, Numbers

pytestmark = pytest.mark.spark
_BATCHES = 4


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_only_a_new_checkpoint_writes_the_earlier_rows_again(sink: str, spark: Any, tmp_path: Path) -> None:
    query, old, new = Numbers(spark, tmp_path, sink, stateful=False), tmp_path / "old", tmp_path / "new"
    query.add(0, _BATCHES - 1)
    assert query.start(old) == ""
    shutil.rmtree(old / "out")
    code, page = ckpt("inspect", old / "checkpoint", "--sink", old / "out")
    assert code == 3
    advice = " ".join(page.partition("\nNext")[2].split())
    assert 'start the query with .writeStream.option("checkpointLocation", "NEW")' in advice
    query.add(_BATCHES - 1)
    assert query.start(old) == ""
    if sink == "delta":  # readers of a file sink fail, whose log lacks its entries
        assert query.times(old) == dict.fromkeys(range((_BATCHES - 1) * ROWS, _BATCHES * ROWS), 1)
    else:
        with pytest.raises(Exception, match=r"FileNotFoundException|does not exist|doesn't exist"):
            query.times(old)
    assert query.start(new) == ""
    assert query.times(new) == dict.fromkeys(range(_BATCHES * ROWS), 1)
