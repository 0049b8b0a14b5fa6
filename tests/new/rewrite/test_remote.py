"""``ckpt rewrite`` and ``ckpt import-state`` behind a network: what they write there is what they write locally."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError
from ckpt.versions import Progress
from tests.new.fill.test_import_state import exported
from tests.new.refusing import files, nothing_is_left
from tests.support.places import SAMPLES
from tests.support.services.fixtures import USUAL, Upload, uploads
from tests.support.services.s3 import S3Server
from tests.support.spark.live import EVERY_CASE

upload = uploads(*USUAL)
SAMPLE = SAMPLES / "aggregation-changelog-4.2"
FORM: dict[str, Any] = {"provider": "hdfs", "partitions": 3}


def looked_at(uri: str, options: dict[str, str]) -> tuple[list[str], list[str], bool]:
    """Its files, its rows, and whether all is well."""
    rows = ckpt.read_state_arrow(uri, storage_options=options).to_pylist()
    return (
        files(uri, options),
        sorted(map(str, rows)),
        ckpt.inspect(ckpt.open_checkpoint(uri, storage_options=options)).sound,
    )


def test_it_is_written_there_and_back_as_here(upload: Upload, tmp_path: Path) -> None:
    """Checkpoint, export and new checkpoint each lie there once, and here once."""
    old, options = upload(SAMPLE)
    request = ckpt.types.ExportRequest(
        old, to=str(tmp_path / "export"), all_units=True, engine=ckpt.types.Engine.NATIVE
    )
    ckpt.export_state(request, storage_options=options)
    export, _ = upload(tmp_path / "export")
    ckpt.rewrite(str(SAMPLE), str(tmp_path / "new"), **FORM)
    here = looked_at(str(tmp_path / "new"), {})
    assert here[1:] == (sorted(map(str, ckpt.read_state_arrow(str(SAMPLE)).to_pylist())), True)
    back, local = str(tmp_path / "back"), str(tmp_path / "imported")

    ckpt.rewrite(old, f"{old}-new", storage_options=options, **FORM)
    assert looked_at(f"{old}-new", options) == here
    ckpt.rewrite(f"{old}-new", back, storage_options=options, provider="rocksdb", partitions=2)
    assert looked_at(back, {})[1:] == here[1:]
    ckpt.import_state(export, f"{old}-imported", like=old, storage_options=options, **FORM)
    assert looked_at(f"{old}-imported", options) == here
    ckpt.import_state(export, local, like=str(SAMPLE), storage_options=options, **FORM)
    assert looked_at(local, {}) == here


MAKING: dict[str, Callable[[str, str, str, dict[str, str]], Any]] = {
    "rewrite": lambda old, _, new, options: ckpt.rewrite(old, new, storage_options=options, **FORM, jobs=1),
    "import-state": lambda old, export, new, options: ckpt.import_state(
        export, new, like=old, storage_options=options, **FORM
    ),
}


@pytest.mark.parametrize(
    ("upload", "command"),
    [
        *(("memory_uri", command) for command in MAKING),
        *(pytest.param(kind, "rewrite", marks=pytest.mark.service) for kind in ("s3_uri", "hdfs_uri")),
    ],
    indirect=["upload"],
)
def test_a_file_that_is_refused_leaves_nothing(
    command: str, upload: Upload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it the first, the last or one between them, which alone is refused by services."""
    old, options = upload(SAMPLE)
    export = str(exported(SAMPLE, tmp_path / "export"))
    make, new = MAKING[command], f"{old}-new"
    count = make(old, export, f"{old}-whole", options).files
    numbers = (1, count // 2, count) if EVERY_CASE or old.startswith("memory") else (count // 2,)
    nothing_is_left(lambda: make(old, export, new, options), new, options, numbers, monkeypatch)
    assert make(old, export, new, options).written


@pytest.mark.service
def test_a_store_that_answers_no_more_is_left_without_a_checkpoint(s3: S3Server) -> None:
    """Nothing can be removed then: what is there does not start, and inspect says so."""
    old = s3.upload(SAMPLE)
    with ExitStack() as outage:
        watcher = lambda *_: outage.enter_context(s3.refusing())  # noqa: E731
        with pytest.raises(CkptError, match="new"):
            ckpt.rewrite(old, f"{old}-new", storage_options=s3.options, **FORM, jobs=1, watcher=watcher)
    left = ckpt.inspect(ckpt.open_checkpoint(f"{old}-new", storage_options=s3.options))
    assert left.checkpoint.state is not None
    assert [one for one in left.forecasts if one.progress is Progress.SYNC and one.outcome.runs] == []
