"""``ckpt evolve`` behind a network, to a new checkpoint and in place: as here, completely or not at all."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.changes.apply import Receipt
from ckpt.errors import CkptError
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.query.description import DescribedBuffer, QueryDescription
from ckpt.versions import Progress, Spark
from tests.changes.applying import changed_by, tree
from tests.changes.killing import killed, stops
from tests.conftest import CopyOf
from tests.new.evolve.test_command import COUNT, FILES, MORE, OLD, SUM, describe_aggregates
from tests.new.refusing import files, nothing_is_left
from tests.new.rewrite.test_remote import looked_at
from tests.support.places import SAMPLES
from tests.support.services.fixtures import USUAL, Upload, uploads
from tests.support.services.s3 import S3Server
from tests.support.spark.live import EVERY_CASE

upload = uploads(*USUAL)
SAMPLE = SAMPLES / "aggregation-changelog-4.2"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stateful checkpoint with no more files than it needs: a request for each takes long."""
    path = tmp_path_factory.mktemp("sample") / "sample"
    ckpt.rewrite(str(SAMPLE), str(path), jobs=1)
    return path


def evolve(folder: Path, old: str, new: str, options: dict[str, str], **how: Any) -> Any:
    """Add an aggregate, and give the others another order."""
    before, after = folder / "old.json", folder / "query.json"
    describe_aggregates(before, COUNT, SUM)
    describe_aggregates(after, SUM, DescribedBuffer("max", "long", True), COUNT)
    how = {"from_query": str(before), "accept_from_now_on": True, "jobs": 1, **how}
    plan, _ = ckpt.evolve(old, new, to=str(after), storage_options=options, **how)
    assert plan.refused is None
    return plan


def can_start(query: QueryDescription, uri: str, options: dict[str, str]) -> bool:
    return judge_start(ckpt.open_checkpoint(uri, storage_options=options), PlannedStart(query=query)).go


def test_it_is_written_there_and_back_as_here(upload: Upload, sample: Path, tmp_path: Path) -> None:
    old, options = upload(sample)
    before = tree(old, options)
    evolve(tmp_path, str(sample), str(tmp_path / "here"), {})
    here = looked_at(str(tmp_path / "here"), {})
    assert here[2]
    back = str(tmp_path / "back")
    assert not evolve(tmp_path, old, f"{old}-new", options, plan=True).written
    assert files(f"{old}-new", options) == []
    evolve(tmp_path, old, f"{old}-new", options)
    evolve(tmp_path, old, back, options)
    there = looked_at(f"{old}-new", options)
    assert there[1:] == looked_at(back, {})[1:] == here[1:]
    assert len(there[0]) == len(here[0])
    assert tree(old, options) == before
    assert can_start(QueryDescription.read(str(tmp_path / "query.json")), f"{old}-new", options)


@pytest.mark.parametrize("upload", [USUAL[0], *USUAL[1 if EVERY_CASE else 2 :]], indirect=True)
def test_a_file_that_is_refused_leaves_nothing(
    upload: Upload, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it one of the state, or a log after it."""
    old, options = upload(sample)
    count = evolve(tmp_path, old, f"{old}-complete", options).files
    numbers = (1, 3, count // 2, count) if EVERY_CASE or old.startswith("memory") else (count // 2,)
    nothing_is_left(lambda: evolve(tmp_path, old, f"{old}-new", options), f"{old}-new", options, numbers, monkeypatch)
    assert evolve(tmp_path, old, f"{old}-new", options).written


@pytest.mark.service
def test_a_store_that_answers_no_more_is_left_without_a_checkpoint(s3: S3Server, sample: Path, tmp_path: Path) -> None:
    """Nothing can be removed then: what is there does not start, and inspect says so."""
    old = s3.upload(sample)
    with ExitStack() as outage:
        watcher = lambda *_: outage.enter_context(s3.refusing())  # noqa: E731
        with pytest.raises(CkptError, match="new"):
            evolve(tmp_path, old, f"{old}-new", s3.options, watcher=watcher)
    left = ckpt.inspect(ckpt.open_checkpoint(f"{old}-new", storage_options=s3.options))
    assert left.checkpoint.state is not None
    assert "CKPT113" in [rated.finding.diagnosis.code for rated in left.findings]
    starts = [each for each in left.forecasts if each.progress is Progress.SYNC and each.outcome.runs]
    assert starts == []


@pytest.mark.slow
def test_what_a_crash_leaves_does_not_start(tmp_path: Path) -> None:
    """After any change to the disk: no start takes what is there for a checkpoint, or for a new query."""

    def action() -> None:
        evolve(tmp_path, str(SAMPLE), str(tmp_path / "new"), {})

    def must_not_start() -> None:
        if not (tmp_path / "new").is_dir():
            return
        left = ckpt.inspect(ckpt.open_checkpoint(str(tmp_path / "new")))
        newest = tmp_path / "new/offsets/9"
        if not newest.exists() or newest.read_bytes() != (SAMPLE / "offsets/9").read_bytes():
            assert not any(forecast.outcome.runs for forecast in left.forecasts)

    at = 0
    for at in stops(action):  # noqa: B007
        must_not_start()
    assert at > 50
    for crash in (12, at // 2, at - 3):
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        assert killed(crash, action)
        must_not_start()


def test_in_place_it_is_planned_applied_and_undone(upload: Upload, copy_of: CopyOf) -> None:
    """A folder of files before the one that there was: lines of the logs and folders of sources move."""
    checkpoint = copy_of(FILES)
    for log in ("offsets", "commits"):
        for file in checkpoint.glob(f"{log}/*"):
            if file.name not in ("10", "11"):
                file.unlink()
    for file in checkpoint.glob("sources/0/*"):
        if file.name not in ("9.compact", "10", "11"):
            file.unlink()
    uri, options = upload(checkpoint)
    query = QueryDescription(Spark.V4_2, "append", (MORE, OLD), (), None, None, {})
    before = tree(uri, options)
    plan, receipt = ckpt.evolve(uri, to=query, storage_options=options)
    assert (plan.needed, plan.refused, receipt) == (True, None, Receipt())
    assert tree(uri, options) == before

    _, receipt = ckpt.evolve(uri, to=query, storage_options=options, apply=True, grace=0)
    assert receipt.applied, receipt.problem
    assert tree(uri, options)[1] == changed_by(plan, before[1])
    assert can_start(query, uri, options)
    again, _ = ckpt.evolve(uri, to=query, storage_options=options)
    assert not again.needed

    _, undone = ckpt.evolve(uri, to=query, storage_options=options, undo=receipt.backup, grace=0)
    assert undone.undone, undone.problem
    assert tree(uri, options)[1] == before[1]
