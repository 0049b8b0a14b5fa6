"""What an export would be refused for is refused before a JVM starts, and by ``--plan`` in the same words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import Ckpt
from tests.state.export.runs import run_all
from tests.support.places import SAMPLES
from tests.support.services.fixtures import Upload

AGGREGATION = "sample_checkpoints/windowed-aggregation-hdfs-4.2"


def refusals(cases: list[list[str]]) -> list[str]:
    """What each case is refused with, run for real and as a plan: the same, and Spark is not so much as imported."""
    told = run_all([[*words, *more] for words in cases for more in ([], ["--plan"])])
    assert not told.imported
    found = []
    for words, real, plan in zip(cases, told.all[::2], told.all[1::2], strict=True):
        assert real == plan, words
        assert real.exit_code == 2, (words, real)
        found.append(real.refusal())
    return found


def test_targets_and_types(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("miaow")
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / "_SUCCESS").touch()
    (tmp_path / "file").touch()
    free, raw, over = str(tmp_path / "free"), ["--shape", "raw"], ["--mode", "overwrite"]

    def to(name: str) -> list[str]:
        return [AGGREGATION, "--to", str(tmp_path / name)]

    cases = {
        "already exists: --mode overwrite replaces it": to("exported"),
        "photos exists and is not an export, so it is not overwritten": [*to("photos"), *over],
        "photos exists and is not an export": to("photos"),
        "file exists and is not an export": [*to("file"), *over],
        "file is a file, so nothing can be written below it": to("file/below"),
        "--to file:/: write into a folder below it": [AGGREGATION, "--to", "/"],
        "column key (struct): use --shape flat or --format parquet": [*to("free"), "--format", "csv", *raw],
        "column value (void): use --shape flat": ["sample_checkpoints/dedup-hdfs-4.0", "--to", free, *raw],
        "never exports into a checkpoint": [AGGREGATION, "--to", f"{AGGREGATION}/state/out"],
        "choose one: ": ["sample_checkpoints/join-hdfs-3.5", "--to", free],
    }
    told = refusals(list(cases.values()))
    assert [says for says, refusal in zip(cases, told, strict=True) if says not in refusal] == [], told
    assert not Path(free).exists()


@pytest.mark.slow
def test_damaged_units(tmp_path: Path, ckpt: Ckpt) -> None:
    """With a finding of inspect, by code and path, and the newest batch that can be read, which is let through."""
    names = ["missing-sst", "missing-delta", "missing-changelog", "missing-zip", "empty-delta", "truncated-sst"]
    samples = [str(SAMPLES / f"damaged-{name}") for name in names]
    words = ["--to", str(tmp_path / "out")]
    told = run_all([[sample, *words] for sample in samples])
    assert not told.imported
    for sample, run in zip(samples, told.all, strict=True):
        assert run.exit_code == 3
        findings = ckpt("inspect", sample, "-o", "json").json()["findings"]
        assert any(f"{one['code']} {one['name']}, {one['path']}: " in run.refusal() for one in findings), run
        newest = run.refusal().rpartition("--batch ")[2]
        assert ckpt("export-state", sample, *words, "--batch", newest, "--plan").exit_code == 0
        later = ckpt("export-state", sample, *words, "--batch", str(int(newest) + 1), "--plan")
        assert later.exit_code != 0


def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write anywhere")
        (told,) = refusals([[AGGREGATION, "--to", str(tmp_path / "out")]])
        assert f"no permission to write in {tmp_path}" in told
    finally:
        tmp_path.chmod(0o700)


def test_what_is_let_through_says_nothing_of_the_target(tmp_path: Path, ckpt: Ckpt) -> None:
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / "_SUCCESS").touch()
    result = ckpt("export-state", AGGREGATION, "--to", tmp_path / "exported", "--mode", "overwrite", "--plan")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [path.name for path in (tmp_path / "exported").iterdir()] == ["_SUCCESS"]


def test_a_remote_target_is_looked_at_through_ckpts_own_door(memory_uri: Upload, tmp_path: Path, ckpt: Ckpt) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("miaow")
    uri, _ = memory_uri(tmp_path / "photos")
    taken = ckpt("export-state", AGGREGATION, "--to", uri, "--plan")
    assert taken.exit_code == 2
    assert f"{uri} exists and is not an export" in taken.refusal()
    free = ckpt("export-state", AGGREGATION, "--to", f"{uri}-free", "--plan")
    assert (free.exit_code, free.stderr) == (0, "ckpt: with Spark: only Spark writes to remote places\n")


def test_a_remote_target_that_cannot_be_looked_at_is_said_so(ckpt: Ckpt) -> None:
    result = ckpt("export-state", AGGREGATION, "--engine", "spark", "--to", "unheard-of://host/out", "--plan")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "ckpt: --to is checked only when Spark runs: ckpt and fsspec do not know unheard-of://"
    )
    assert result.stderr.count("\n") == 1
