"""State read side by side, in processes: the same rows in the same order, the same refusals, and nothing stays."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import ckpt
from ckpt import processes
from ckpt.errors import CkptError, UsageError
from ckpt.state.native import entries, show
from tests.conftest import CopyOf
from tests.support.places import SAMPLES


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where temporary folders are made; any state is worth a process."""
    monkeypatch.setattr(entries, "_WORTH_A_PROCESS", 1)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    return temporary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "part", "shape"),
    [
        ("join-hdfs-3.5", {"side": "left"}, "flat"),
        ("tws-rocksdb-4.2", {"variable": "recent"}, "raw"),
    ],
)
def test_rows_and_their_order_are_those_of_one_process(
    sample: str, part: ckpt.types.Part, shape: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = str(SAMPLES / sample), dict[str, Any](shape=shape, partition_id=shape == "flat")
    alone = ckpt.read_state_arrow(path, jobs=1, **asked, **part)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    sizes = ckpt.state_keys(path, **part)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(entries, "entries_of", None)  # not called here
    monkeypatch.setattr(show, "entries_of", None)
    assert ckpt.read_state_arrow(path, jobs=2, **asked, **part).equals(alone)
    assert [one.rows for one in ckpt.state_count(path, jobs=2, **part).units] == [alone.num_rows]
    assert ckpt.state_keys(path, **part) == sizes
    with ckpt.read_state_batches(path, jobs=2, **part) as reader:
        reader.read_next_batch()
    del reader
    assert list(folder.iterdir()) == []


def test_small_state_is_read_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(processes, "_started", None)
    assert ckpt.read_state_arrow(str(SAMPLES / "aggregation-hdfs-4.2"), jobs=8).num_rows == 7


def test_an_export_has_the_files_of_one_process(tmp_path: Path) -> None:
    path, found = str(SAMPLES / "aggregation-rocksdb-4.2"), []
    for jobs in (1, 2):
        request = ckpt.types.ExportRequest(
            path, to=str(tmp_path / f"out-{jobs}"), engine=ckpt.types.Engine.NATIVE, jobs=jobs
        )
        (part,) = ckpt.export_state(request).parts
        files = sorted((tmp_path / f"out-{jobs}").glob("*.parquet"))
        names = [re.sub(r"-[0-9a-f]{8}-.*", "", file.name) for file in files]
        found.append((part.rows, names, [pq.read_table(file) for file in files]))
    assert found[0] == found[1]


def test_a_refusal_is_the_one_of_one_process(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    file = checkpoint / "state/0/1/10.delta"
    data = bytearray(file.read_bytes())
    data[40] ^= 0xFF
    file.write_bytes(data)
    said = []
    for jobs in (1, 2):
        with pytest.raises(CkptError, match="decompressed with lz4") as refused:
            ckpt.read_state_arrow(str(checkpoint), jobs=jobs)
        said.append((type(refused.value), str(refused.value)))
    assert said[0] == said[1]
    with pytest.raises(UsageError, match="`jobs`"):
        ckpt.state_count(str(checkpoint), jobs=0)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_read(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    file = checkpoint / "state/0/1/9.delta"
    data = file.read_bytes()
    with file.open("wb") as sparse:
        sparse.seek(1 << 30)
        sparse.write(data)
    (file.parent / ".9.delta.crc").unlink()
    with pytest.raises(CkptError, match=r"state/0/1 .* its files have 1,073,.* --engine spark` reads it"):
        ckpt.state_count(str(checkpoint))


def test_what_only_this_process_sees_is_read_in_it(copy_of: CopyOf) -> None:
    import fsspec

    fsspec.filesystem("memory").put(str(SAMPLES / "aggregation-hdfs-4.2"), "/spread", recursive=True)
    assert ckpt.read_state_arrow("memory://spread", jobs=2).num_rows == 7
