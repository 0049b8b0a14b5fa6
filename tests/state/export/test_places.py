"""Checkpoints that were moved or copied, or lie under awkward names; nothing in any of them is touched."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.state.reading.columns import flat_columns
from ckpt.state.reading.reading import StateRequest, plan_readings
from ckpt.state.reading.units import StateUnit
from tests.conftest import Ckpt, CopyOf
from tests.state.export import rows
from tests.support.places import GOLDENS, ROOT, SAMPLES
from tests.support.spark.samples import ORIGIN

pytestmark = pytest.mark.spark

CALLS = (
    "open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,"
    "truncate,ftruncate,utimensat,utimes,chmod,fchmodat,chown,lchown,fchownat,mknod,mknodat,setxattr,lsetxattr"
)
STRACE = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", f"trace={CALLS}", "-s", "500", "-o"]
AWKWARD = ["with space", "per%20cent 100%", "größe-日本", "a[1]{b}#c?d", "plus+and&more=1,2;3", "trailing "]


def assert_same(spark: Any, sample: str, path: Path | str, unit: StateUnit) -> None:
    frame = ckpt.read_state(str(path), session=spark, **rows.choice(unit))
    assert rows.content(frame) == rows.flattened(rows.answer(sample, unit), flat_columns(unit.schema))


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize(
    "sample", ["aggregation-hdfs-4.2", "aggregation-format2-4.2", "tws-rocksdb-4.2", "join-hdfs-3.5"]
)
def test_awkward_names(sample: str, name: str, spark: Any, copy_of: CopyOf, untouched: Callable[[Path], None]) -> None:
    path = copy_of(sample, to=name)
    untouched(path)
    for unit in rows.units_of(path)[-2:]:
        assert_same(spark, sample, path, unit)


def test_awkward_names_are_written_to_as_well(spark: Any, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    for number, name in enumerate(AWKWARD):
        target = tmp_path / f"{number}" / name / "a b%20ü"
        result = ckpt(
            "export-state", "--engine", "spark", "sample_checkpoints/aggregation-hdfs-4.2", "--to", target, "--quiet"
        )
        assert result.exit_code == 0, result.stderr
        assert sorted(path.name for path in target.parent.iterdir()) == [target.name]
        assert (target / "_SUCCESS").is_file()


def test_a_file_uri_is_decoded(spark: Any, copy_of: CopyOf) -> None:
    path = copy_of("aggregation-hdfs-4.2", to="with space")
    (unit,) = rows.units_of(path)
    assert_same(spark, "aggregation-hdfs-4.2", path.as_uri(), unit)


@pytest.mark.parametrize("sample", ["tws-changelog-4.0", "tws-avro-changelog-4.2", "tws-format2-4.3"])
def test_moved_while_the_old_place_holds_another(
    sample: str, spark: Any, copy_of: CopyOf, untouched: Callable[[Path], None]
) -> None:
    """Spark follows recorded paths without a word: schemas of whatever lies at the old place must not be read."""
    origin = ORIGIN / sample
    if origin.exists():
        pytest.skip(f"{origin} is in use")
    path = copy_of(sample)
    decoy = origin / "state" / "0" / "_stateSchema" / "default"
    for schema in (SAMPLES / sample / "state" / "0" / "_stateSchema" / "default").iterdir():
        decoy.mkdir(parents=True, exist_ok=True)
        (decoy / schema.name).write_text("not a schema")
    untouched(path)
    try:
        for unit in rows.units_of(path):
            assert_same(spark, sample, path, unit)
    finally:
        shutil.rmtree(origin)


def test_the_staged_metadata_is_needed_by_the_driver_only(
    spark: Any, copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Until the frame is planned; so executors on other machines, which do not see it, can read."""
    import tempfile

    staging = tmp_path / "staging"
    staging.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(staging))
    frame = ckpt.read_state(str(copy_of("tws-rocksdb-4.2")), session=spark, variable="recent")
    (staged,) = staging.iterdir()
    files = [path for path in staged.rglob("*") if path.is_file()]
    assert files
    assert sum(path.stat().st_size for path in files) < 10_000
    frame._jdf.queryExecution().executedPlan()
    shutil.rmtree(staged)
    assert len(frame.collect()) == 10


def test_nothing_is_written_below_a_checkpoint(copy_of: CopyOf, tmp_path: Path) -> None:
    """The system calls of one run that reads everything: none that would change something succeeds, or even starts.

    Asking for folders that are there already (``mkdir``, which then fails) is Spark's habit and changes nothing.
    """
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    places = [copy_of(sample, to=sample) for sample in ("join-hdfs-3.5", "tws-rocksdb-4.2", "aggregation-format2-4.2")]
    log = tmp_path / "calls"
    script = (
        "import sys, ckpt\n"
        "from ckpt.spark.installed import Session\n"
        "from ckpt.spark.session import open_session\n"
        "from tests.state.export import rows\n"
        "with open_session(Session(master='local[1]')) as spark:\n"
        "    for path in sys.argv[1:]:\n"
        "        for unit in ckpt.state_units(ckpt.open_checkpoint(path)):\n"
        "            assert ckpt.read_state(path, session=spark, **rows.choice(unit)).count()\n"
    )
    done = subprocess.run(
        [*STRACE, str(log), sys.executable, "-c", script, *map(str, places)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if "Operation not permitted" in done.stderr and not log.stat().st_size:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    calls = [line for line in log.read_text(errors="replace").splitlines() if any(str(p) in line for p in places)]
    assert len(calls) > 100
    assert [line for line in calls if _changes(line)] == []


def _changes(line: str) -> bool:
    """Whether a traced call would change something."""
    if "open" in line.partition("(")[0]:
        return any(flag in line for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"))
    return not ("mkdir" in line.partition("(")[0] and ("EEXIST" in line or "unfinished" in line))


# What Spark's own tests keep.


@pytest.mark.parametrize(
    ("golden", "count"),
    [
        ("checkpoint-version-3.1.0-flatmapgroupswithstate-repartition", 1),
        ("checkpoint-version-3.2.0-session-window-with-repartition", 8),
        ("checkpoint-version-3.3.0-streaming-deduplication", 2),
    ],
)
def test_checkpoints_of_sparks_own_tests(golden: str, count: int, spark: Any) -> None:
    path = GOLDENS / golden
    if not path.is_dir():
        pytest.skip("there is no ../shared/golden with the checkpoints of Spark's own tests")
    assert ckpt.read_state(str(path), session=spark).count() == count


def test_deduplication_of_old_is_read_without_its_false_values(spark: Any) -> None:
    path = GOLDENS / "checkpoint-version-3.3.0-streaming-deduplication"
    if not path.is_dir():
        pytest.skip("there is no ../shared/golden with the checkpoints of Spark's own tests")
    (reading,) = plan_readings(StateRequest(str(path)))
    assert "spark.sql.streaming.stateStore.formatValidation.enabled" in {conf.name for conf in reading.confs}
    frame = ckpt.read_state(str(path), session=spark)
    assert frame.columns == ["key__1"]
    assert sorted(row[0] for row in frame.collect()) == ["a", "b"]
