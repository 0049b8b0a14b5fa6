"""New checkpoints behind a network, whichever command makes them: as here, or nothing that starts."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.errors import CkptError
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.query.description import DescribedBuffer, QueryDescription
from ckpt.versions import Progress
from tests.changes.applying import tree
from tests.new.evolve.test_command import COUNT, SUM, describe_aggregates
from tests.new.fill.test_import_state import exported
from tests.new.refusing import files, nothing_is_left
from tests.support.places import SAMPLES
from tests.support.services.fixtures import USUAL, Upload, uploads
from tests.support.services.s3 import S3Server
from tests.support.spark.live import EVERY_CASE

upload = uploads(*USUAL)
MEMORY, S3, HDFS = (kind if isinstance(kind, str) else kind.values[0] for kind in USUAL)
SAMPLE = SAMPLES / "aggregation-changelog-4.2"
FORM: dict[str, Any] = {"provider": "hdfs", "partitions": 3}

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stateful checkpoint with no more files than it needs: a request for each takes long."""
    path = tmp_path_factory.mktemp("small") / "small"
    ckpt.rewrite(str(SAMPLE), str(path), jobs=1)
    return path


def rewrite(old: str, new: str, folder: Path, options: dict[str, str], **how: Any) -> Any:
    return ckpt.rewrite(old, new, storage_options=options, jobs=1, **FORM, **how)


def import_state(old: str, new: str, folder: Path, options: dict[str, str], **how: Any) -> Any:
    """An export beside the old checkpoint, which is made where it is not there yet."""
    export = folder / "export"
    if not export.exists():
        exported(SAMPLE, export)
    return ckpt.import_state(str(export), new, like=old, storage_options=options, **FORM, **how)


def evolve(old: str, new: str, folder: Path, options: dict[str, str], **how: Any) -> Any:
    """Add an aggregate, and give the others another order."""
    before, after = folder / "old.json", folder / "query.json"
    describe_aggregates(before, COUNT, SUM)
    describe_aggregates(after, SUM, DescribedBuffer("max", "long", True), COUNT)
    how = {"from_query": str(before), "to": str(after), "accept_from_now_on": True, **how}
    plan, _ = ckpt.evolve(old, new, jobs=1, storage_options=options, **how)
    assert plan.refused is None
    return plan


def looked_at(uri: str, options: dict[str, str]) -> tuple[list[str], list[str], bool]:
    """Its files, its rows, and whether all is well."""
    rows = ckpt.read_state_arrow(uri, storage_options=options).to_pylist()
    sound = ckpt.inspect(ckpt.open_checkpoint(uri, storage_options=options)).sound
    return files(uri, options), sorted(map(str, rows)), sound


@pytest.mark.parametrize("make", [rewrite, import_state, evolve])
def test_it_is_written_there_and_back_as_here(make: Make, upload: Upload, small: Path, tmp_path: Path) -> None:
    old, options = upload(small)
    before, back = tree(old, options), str(tmp_path / "back")
    make(str(small), str(tmp_path / "here"), tmp_path, {})
    here = looked_at(str(tmp_path / "here"), {})
    assert here[2]
    assert not make(old, f"{old}-new", tmp_path, options, plan=True).written
    assert files(f"{old}-new", options) == []

    make(old, f"{old}-new", tmp_path, options)
    make(old, back, tmp_path, options)
    there = looked_at(f"{old}-new", options)
    assert there[1:] == looked_at(back, {})[1:] == here[1:]
    assert len(there[0]) == len(here[0])
    assert tree(old, options) == before
    if make is evolve:
        start = PlannedStart(query=QueryDescription.read(str(tmp_path / "query.json")))
        assert judge_start(ckpt.open_checkpoint(f"{old}-new", storage_options=options), start).go


def test_an_export_is_read_behind_a_network(upload: Upload, small: Path, tmp_path: Path) -> None:
    export, options = upload(exported(small, tmp_path / "export"))
    ckpt.import_state(export, f"{export}-new", like=str(small), storage_options=options, **FORM)
    assert looked_at(f"{export}-new", options)[1:] == looked_at(str(small), {})[1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("upload", "make"),
    [
        *((MEMORY, make) for make in (rewrite, import_state, evolve)),
        pytest.param(S3, rewrite, marks=pytest.mark.service),
        pytest.param(HDFS, evolve, marks=pytest.mark.service),
    ],
    indirect=["upload"],
)
def test_a_file_that_is_refused_leaves_nothing(
    make: Make, upload: Upload, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it of the state or a log after it: the first, the last or one between them, which alone services refuse."""
    old, options = upload(small)
    count = make(old, f"{old}-whole", tmp_path, options).files
    numbers = (1, 3, count // 2, count) if EVERY_CASE or old.startswith("memory") else (count // 2,)
    new = f"{old}-new"
    nothing_is_left(lambda: make(old, new, tmp_path, options), new, options, numbers, monkeypatch)
    assert make(old, new, tmp_path, options).written


@pytest.mark.service
@pytest.mark.parametrize("make", [rewrite, evolve])
def test_a_store_that_answers_no_more_is_left_without_a_checkpoint(
    make: Make, s3: S3Server, small: Path, tmp_path: Path
) -> None:
    """Nothing can be removed then: what is there does not start, and inspect says so."""
    old = s3.upload(small)
    with ExitStack() as outage:
        watcher = lambda *_: outage.enter_context(s3.refusing())  # noqa: E731
        with pytest.raises(CkptError, match="new"):
            make(old, f"{old}-new", tmp_path, s3.options, watcher=watcher)
    left = ckpt.inspect(ckpt.open_checkpoint(f"{old}-new", storage_options=s3.options))
    assert left.checkpoint.state is not None
    assert "CKPT113" in [rated.code for rated in left.findings]
    assert [each for each in left.forecasts if each.progress is Progress.SYNC and each.outcome.runs] == []
