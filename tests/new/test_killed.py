"""Writing a new checkpoint is killed: nothing that is left starts unless it is whole, and what the page says works."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import ckpt
from ckpt.formats.offsets import UNFINISHED
from ckpt.query.description import DescribedBuffer
from ckpt.state.native.temporary import make_temporary_folder
from tests.changes.killing import killed, stops
from tests.conftest import Ckpt
from tests.new.evolve.test_command import COUNT, SUM, describe_aggregates
from tests.new.rewrite.continuing import frames, state
from tests.support.places import SAMPLES
from tests.support.spark.live import EVERY_CASE

SAMPLE = SAMPLES / "aggregation-hdfs-4.2"
CONDITIONS = ("key_key < 3", "key_key >= 3")
NEWEST = "offsets/9"


@dataclass(frozen=True)
class Command:
    """A rewrite: its old checkpoints, its new ones, and its conditions."""

    old: tuple[Path, ...]
    new: tuple[Path, ...]
    where: tuple[str, ...]

    def run(self) -> object:
        """Write them in this process, which may be killed."""
        new = [str(path) for path in self.new]
        if self.where:
            return ckpt.split(str(self.old[0]), new, where=self.where, jobs=1)
        return ckpt.merge([str(path) for path in self.old], new[0], jobs=1)

    @property
    def words(self) -> tuple[str, ...]:
        """As a person types it."""
        conditions = [word for condition in self.where for word in ("--where", condition)]
        return "split" if self.where else "merge", *map(str, (*self.old, *self.new)), *conditions


def _read(folder: Path) -> dict[str, bytes]:
    """All files but the one with the query id, which is another each time."""
    files = (path for path in folder.rglob("*") if path.is_file() and path != folder / "metadata")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(params=["split", "merge"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> Command:
    old = tmp_path / "old"
    shutil.copytree(SAMPLE, old)
    if request.param == "split":
        return Command((old,), (tmp_path / "one", tmp_path / "two"), CONDITIONS)
    parts = (tmp_path / "low", tmp_path / "high")
    ckpt.split(str(old), [str(part) for part in parts], where=CONDITIONS)
    return Command(parts, (tmp_path / "one",), ())


@pytest.fixture
def whole(command: Command) -> list[dict[str, bytes]]:
    """The new checkpoints of a run that was never killed; they are gone again."""
    command.run()
    files = [_read(path) for path in command.new]
    for path in command.new:
        shutil.rmtree(path)
    return files


@pytest.mark.slow
def test_a_kill_at_any_write_leaves_what_is_whole_or_marked(command: Command, whole: list[dict[str, bytes]]) -> None:
    before, changes = [_read(path) for path in command.old], 0
    for changes in stops(command.run):  # noqa: B007
        assert [_read(path) for path in command.old] == before
        for path, files in zip(command.new, whole, strict=True):
            if path.exists() and (path / NEWEST).read_bytes() != UNFINISHED:
                left = _read(path)
                left.pop("offsets/.9.ckpt.tmp", None)
                assert left == files
    assert changes > 80


@pytest.mark.slow
def test_what_is_said_after_a_kill_makes_it_whole(
    command: Command, whole: list[dict[str, bytes]], run_ckpt: Ckpt
) -> None:
    changes = sum(1 for _ in stops(command.run))
    for path in command.new:
        shutil.rmtree(path)
    for at in (1, 9, *range(40, changes, 60), changes):
        assert killed(at, command.run)
        left = [path for path in command.new if path.exists()]
        pages = {path: run_ckpt("inspect", str(path)).stdout for path in left}
        unfinished = [path for path in left if "CKPT113" in pages[path]]
        again = run_ckpt(*command.words)
        assert (again.exit_code == 0) == (not left), again.stderr
        for path in unfinished:
            said = " ".join(pages[path].split())
            assert f"Remove {path}, and every other checkpoint that the interrupted command was to write" in said
        if left:
            for path in left:
                shutil.rmtree(path)
            assert run_ckpt(*command.words).exit_code == 0
        assert [_read(path) for path in command.new] == whole
        assert {path.name for path in command.new[0].parent.glob(".*")} == set()
        for path in command.new:
            shutil.rmtree(path)


def test_what_others_left_in_the_temporary_folder_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process that comes by removes it; the next makes one change fewer."""

    def use_temporary_folder() -> None:
        with make_temporary_folder():
            pass

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "ckpt-state-left").mkdir()
    assert killed(sum(1 for _ in stops(use_temporary_folder)), use_temporary_folder)


def write_frames(old: str, new: str) -> object:
    return ckpt.write_state(frames(old), new, like=old, partitions=2)


def evolve(old: str, new: str) -> object:
    before, after = Path(f"{new}.old"), Path(f"{new}.new")
    describe_aggregates(before, COUNT, SUM)
    describe_aggregates(after, SUM, DescribedBuffer("max", "long", True), COUNT)
    return ckpt.evolve(old, new, to=str(after), from_query=str(before), accept_from_now_on=True, jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "sample"),
    [
        (ckpt.copy, "aggregation-changelog-4.2"),
        (ckpt.copy, "stateless-4.2"),
        (ckpt.copy, "tws-rocksdb-4.2"),
        (partial(ckpt.rewrite, partitions=2), "limit-hdfs-4.2"),
        (ckpt.copy, "async-4.2"),
        (partial(ckpt.rewrite, partitions=2), "aggregation-changelog-4.2"),
        (partial(ckpt.rewrite, partitions=3), "batch 0"),
        (ckpt.copy, "aggregation-killed-hdfs-4.0"),
        (write_frames, "limit-hdfs-4.2"),
        (evolve, "aggregation-changelog-4.2"),
        (write_frames, "aggregation-changelog-4.2"),
        (partial(ckpt.rewrite, provider="rocksdb"), "batch 0"),
    ],
)
def test_what_a_crash_leaves_does_not_start(write: Callable[..., object], sample: str, tmp_path: Path) -> None:
    """After any change to the disk: no start, with any version, takes what is there for a checkpoint or a new query.

    On ``offsets/0`` alone one would run batch 0 with empty state, and ask for none of what is written.
    """
    old, new = tmp_path / "old" if sample == "batch 0" else SAMPLES / sample, tmp_path / "new"
    if sample == "batch 0":
        ckpt.copy(str(SAMPLE), str(old), batch=0)
    newest = f"offsets/{max(int(path.name) for path in (old / 'offsets').glob('[0-9]*'))}"
    has_state = (old / "state").is_dir()

    def must_not_start() -> None:
        """Unless it is the whole of it."""
        if not new.is_dir():
            return
        if (new / newest).exists() and (new / newest).read_bytes() != UNFINISHED:
            assert not has_state or write is evolve or state(new) == state(old)
        else:
            assert not any(forecast.outcome.runs for forecast in ckpt.inspect(ckpt.open_checkpoint(str(new))).forecasts)

    action, at = partial(write, str(old), str(new)), 0
    for at in stops(action):
        if EVERY_CASE or at % 2 == 0:
            must_not_start()
    assert at > 20
    assert ckpt.inspect(ckpt.open_checkpoint(str(new))).sound or sample == "async-4.2"
    for crash in (20, at // 2, at - 3):
        shutil.rmtree(new, ignore_errors=True)
        assert killed(crash, action)
        must_not_start()


def test_the_other_part_can_be_written_alone(tmp_path: Path) -> None:
    """Where a query has run on the part that is complete."""
    new = [str(tmp_path / name) for name in ("one", "two")]
    ckpt.split(str(SAMPLE), new, where=CONDITIONS)
    alone = ckpt.rewrite(str(SAMPLE), str(tmp_path / "alone"), where=CONDITIONS[1], new_id=True)
    assert alone.query_id not in {ckpt.open_checkpoint(uri).query_id for uri in (*new, str(SAMPLE))}
    assert _read(tmp_path / "alone") == _read(tmp_path / "two")
