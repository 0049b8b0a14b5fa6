"""One file or folder that cannot be read: the rest is judged, and only what depends on it stays unknown."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import pytest

from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import StorageError
from ckpt.inspection.inspection import inspect
from ckpt.restart.findings import Outcome
from ckpt.storage.base import FileInfo
from ckpt.storage.remote import Backend, ListedItem, RemoteStorage
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLES
from tests.support.refusing import refusing

CODE = "CKPT511"
UNKNOWN = [
    ("aggregation-hdfs-4.2", "state/0/1"),
    ("aggregation-hdfs-4.2", "state"),
    ("aggregation-hdfs-4.2", "state/0/0/10.delta"),
    ("aggregation-hdfs-4.2", "state/0/0/_metadata/schema"),
    ("aggregation-rocksdb-4.2", "state/0/1"),
    ("aggregation-rocksdb-4.2", "state/0/1/6.zip"),
    ("join-changelog-4.2", "state/0/0"),
    ("tws-rocksdb-4.2", "state/0/_metadata"),
    ("stateless-4.2", "offsets/5"),
    ("stateless-4.2", "commits/5"),
    ("stateless-4.2", "metadata"),
    ("file-source-4.2", "sources/0"),
    ("file-source-4.2", "sources/0/10"),
]
"""Files and folders that the next start reads."""
IGNORED = [("stateless-4.2", "offsets/2"), ("stateless-4.2", "commits/2"), ("aggregation-hdfs-4.2", "commits/3")]
CODES = pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])


class _Bucket(Backend):
    """A folder as a remote storage: with keys, as S3 lists them, or listed folder by folder, as HDFS does."""

    cure = "give credentials"
    whole_files = True

    def __init__(self, folder: Path, refused: str, *, keys: bool) -> None:
        self._root, self._refused, self._keys = str(folder), refused, keys

    def _refuse(self, path: str) -> None:
        if path == self._refused:
            raise OSError(f"When reading '{path}': AWS Error ACCESS_DENIED during GetObject operation: Access Denied")

    def level(self, folder: str) -> Iterable[ListedItem]:
        self._refuse(folder)
        return self._list(Path(self._root, folder).iterdir())

    def everything(self) -> Iterable[ListedItem] | None:
        return self._list(Path(self._root).rglob("*")) if self._keys else None

    def _list(self, paths: Iterable[Path]) -> list[ListedItem]:
        infos = ((path, None if path.is_dir() else FileInfo(path.stat().st_size, 0)) for path in paths)
        return [ListedItem(path.relative_to(self._root).as_posix(), info) for path, info in infos]

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        self._refuse(path)
        data = Path(self._root, path).read_bytes()[offset:]
        return data if length is None else data[:length]


@CODES
@pytest.mark.parametrize(("sample", "path"), UNKNOWN)
def test_what_the_start_reads_makes_it_unknown(sample: str, path: str, code: int, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    whole = ckpt("inspect", checkpoint, "-o", "json").json()
    with refusing(checkpoint / path, code=code):
        run = ckpt("inspect", checkpoint, "-o", "json")
        page, held = ckpt("inspect", checkpoint).stdout, ckpt("preflight", checkpoint)
        rows = ckpt("scan", checkpoint, "-o", "json").json()["checkpoints"]
        change = ckpt("repair", checkpoint)
    document = run.json()
    assert run.exit_code == 1
    assert [(one["code"], one["path"]) for one in document["findings"] if one["severity"] != "note"] == [(CODE, path)]
    assert {one["outcome"] for one in document["restart"]} <= {"unknown", "refused"}
    assert document["latest"]["offset_batch"] == whole["latest"]["offset_batch"]
    assert path in page
    assert "as usual" not in page
    assert "no batch has complete state" not in page
    verdict = " ".join(held.stdout.partition("\n\n")[0].split())
    assert verdict.startswith(f"HOLD: {path} cannot be read: see {CODE}")
    assert held.exit_code == 1
    assert [row["worst"]["code"] for row in rows] == [CODE]
    assert path in change.refusal(), "nothing is changed that was not read"
    assert (
        f"Nothing can be planned until it is readable: `ckpt inspect {checkpoint}` judges the rest" in change.refusal()
    )
    assert [step["do"] for step in document["next"]] == ["find-out", "put-back", "move"]
    assert document["next"][-1]["paths"] == [path]


@CODES
@pytest.mark.parametrize(("sample", "path"), IGNORED)
def test_what_no_start_reads_changes_no_forecast(
    sample: str, path: str, code: int, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = copy_of(sample)
    forecasts = ckpt("inspect", checkpoint, "-o", "json").json()["restart"]
    with refusing(checkpoint / path, code=code):
        document = ckpt("inspect", checkpoint, "-o", "json").json()
        assert ckpt("preflight", checkpoint).exit_code == 0
    assert document["restart"] == forecasts
    assert [one["path"] for one in document["findings"] if one["code"] == CODE] == [path]


def test_other_damage_stays_a_finding(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    (checkpoint / "state/0/0/10.delta").unlink()
    lost = ckpt("inspect", checkpoint, "-o", "json").json()
    with refusing(checkpoint / "state/0/1", code=errno.EIO):
        document = ckpt("inspect", checkpoint, "-o", "json").json()
    assert document["restart"] == lost["restart"]
    assert {(one["code"], one["path"]) for one in lost["findings"]} | {(CODE, "state/0/1")} == {
        (one["code"], one["path"]) for one in document["findings"]
    }


@pytest.mark.parametrize("path", ["offsets", "commits"])
def test_without_a_log_nothing_is_judged(path: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-4.2")
    with refusing(checkpoint / path, code=errno.EACCES):
        run = ckpt("inspect", checkpoint)
    assert run.exit_code == 3
    assert f"{checkpoint / path} cannot be read" in run.refusal()


def test_nor_where_no_file_can_be_read(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-4.2")
    files = [path for path in checkpoint.rglob("*") if path.is_file()]
    with refusing(*files, code=errno.EACCES):
        assert ckpt("inspect", checkpoint).exit_code == 3


def test_every_byte_of_the_rest_is_read(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    with refusing(checkpoint / "state/0/1", code=errno.EIO):
        run = ckpt("inspect", checkpoint, "--deep")
    assert (run.exit_code, CODE in run.stdout) == (1, True)


@pytest.mark.parametrize(("sample", "path"), [*UNKNOWN, *IGNORED])
@pytest.mark.parametrize("keys", [True, False])
def test_a_remote_storage_that_refuses_one_key(sample: str, path: str, *, keys: bool) -> None:
    top = SAMPLES / sample
    if keys and (top / path).is_dir():
        return  # an object store has no folders that could be closed
    storage = RemoteStorage(str(top), _Bucket(top, path, keys=keys))  # type: ignore[abstract]
    inspection = inspect(read_checkpoint(storage, look_only=True))
    outcomes = {forecast.outcome for forecast in inspection.forecasts}
    assert (outcomes <= {Outcome.UNKNOWN, Outcome.REFUSED}) == ((sample, path) in UNKNOWN)
    details = [one.finding.detail for one in inspection.findings if one.finding.diagnosis.code == CODE]
    assert [path in detail and "Access Denied" in detail for detail in details] == [True]
    with pytest.raises(StorageError, match="Access Denied"):
        read_checkpoint(storage)
