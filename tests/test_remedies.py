"""What a remedy says to move away leads out: the same files are gone in cases of the oracle, where Spark restarted."""

import re
from pathlib import Path

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.oracle import answers
from tests.oracle.cases.logs import REMEDIED, SAMPLE

NAMED = re.compile(r"move ((?:offsets|commits)/\d+)(?: (and|down to) ((?:offsets|commits)/\d+))?")


def moved_away(remedy: str) -> list[str]:
    """The files that a remedy names, in its order."""
    found = NAMED.search(remedy)
    assert found is not None, remedy
    first, how, last = found.groups()
    if how == "down to":
        folder, begin, end = first.split("/")[0], *(int(path.split("/")[1]) for path in (first, last))
        return [f"{folder}/{i}" for i in range(begin, end - 1, -1)]
    return [first] if last is None else [first, last]


@pytest.mark.parametrize("name", REMEDIED)
def test_the_files_that_a_remedy_names_are_those_without_which_spark_restarts(
    name: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    damage, remedy = REMEDIED[name]
    checkpoint = copy_of(SAMPLE, *damage)
    document = ckpt("inspect", checkpoint, "--progress", "sync", "-o", "json").json()
    worst = next(one for one in document["findings"] if one["severity"] == "error")
    named = moved_away(worst["remedy"])
    assert sorted(named) == sorted(str(one["path"]) for one in remedy)

    for path in named:
        folder, file = path.split("/")
        (Path(checkpoint) / path).unlink()
        (Path(checkpoint) / folder / f".{file}.crc").unlink(missing_ok=True)
    assert ckpt("inspect", checkpoint, "--progress", "sync").exit_code == 0


@pytest.mark.parametrize("minor", answers.VERSIONS)
@pytest.mark.parametrize("name", REMEDIED)
def test_spark_restarted_without_them(name: str, minor: str) -> None:
    answer = answers.read(minor)["answers"][f"remedy-{name}/sync"]
    assert (answer["outcome"], answer["then"]["outcome"]) == ("resumes", "resumes")


def test_a_stateful_query_is_not_told_to_move_finished_batches_away(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-3.5", {"op": "write", "path": "offsets/5", "text": ""})
    document = ckpt("inspect", checkpoint, "-o", "json").json()
    worst = next(one for one in document["findings"] if one["severity"] == "error")
    assert worst["code"] == "CKPT101"
    assert "move" not in worst["remedy"]
