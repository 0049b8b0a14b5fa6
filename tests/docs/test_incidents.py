"""``docs/incidents.md``: each row is tried on a checkpoint with that damage."""

from pathlib import Path

import pytest

from tests.changes.fixes.async_gap.test_command import after_next
from tests.conftest import Ckpt, CopyOf
from tests.laws.next_obeyed import End, act, announced_rows, failing, found_rows, look, obey, unsafe
from tests.support.places import ROOT, SAMPLES

HEAD = "| Spark says |"
QUERY_ID = "16da3b92-5f2c-4a8e-9d3e-1f0a2b3c4d5e"


def _rows() -> list[list[str]]:
    lines = (ROOT / "docs" / "incidents.md").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(HEAD)) + 2
    table = [line for line in lines[first:] if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


ROWS = {row[-1]: row for row in _rows()}


def words_of(checkpoint: Path, fix: str) -> list[object]:
    options = fix.split("`")[1].replace("ID", QUERY_ID).split()
    return [options[0], checkpoint, *options[1:]]


@pytest.mark.parametrize("sample", ROWS)
def test_the_row_is_what_inspect_says(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    says, _, finding, *_ = ROWS[sample]
    found = ckpt("inspect", copy_of(sample), "-o", "json").json()
    assert finding in [one["code"] for one in found["findings"] if one["severity"] != "note"]
    errors = {one["error"] for one in found["restart"]}
    assert says == "nothing" or says.strip("`") in {e[: len(says.strip("`"))] for e in errors if e}


@pytest.mark.slow
@pytest.mark.parametrize("sample", ROWS)
def test_the_fix_of_the_row_is_the_one_that_helps(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    _, _, _, fix, rows, _ = ROWS[sample]
    checkpoint = copy_of(sample)
    if "`" not in fix:
        assert ckpt("repair", checkpoint).exit_code == 3
        return
    words = words_of(checkpoint, fix)
    plan = ckpt(*words, "-o", "json").json()
    assert plan["chosen"] == fix.split()[-1]
    page = ckpt(*words)
    told = " ".join(page.stdout.split())
    if len(plan["ways"]) > 1:
        assert rows in told
    else:
        assert (rows == "no row is read again") == (plan["replay"] == [])
    done = ckpt(*after_next(page.stdout), "--grace", 0)
    assert done.exit_code == 0
    left = {
        one["code"] for one in ckpt("inspect", checkpoint, "-o", "json").json()["findings"] if one["severity"] != "note"
    }
    assert left <= {"CKPT419"}  # which asks for a start into noop, and so does the page
    assert not left or "ONCE into noop" in " ".join(done.stdout.split())


_ROWS_OF = {
    "rows of finished batches are read again": "again",
    "rows of a batch that was not finished are read again": "again",
    "no row is read again": "none",
    "a sink that remembers batch ids may drop rows": "left-out",
}


@pytest.mark.slow
@pytest.mark.parametrize("sample", ROWS)
def test_a_program_that_obeys_next_ends_where_the_row_does(sample: str, copy_of: CopyOf) -> None:
    """It begins with `ckpt inspect`, and has no copy; what only a person can do is named in `what`."""
    _, _, _, fix, rows, _ = ROWS[sample]
    checkpoint = copy_of(sample)
    obeyed = obey(checkpoint, without_copy=True)
    if "`" not in fix:
        assert (obeyed.end, obeyed.applied) == (End.STOP, [])
        return
    if "ID" in fix:
        assert obeyed.last is not None
        assert "--query-id ID" in obeyed.last["what"]
        assert act(obeyed.last, checkpoint, SAMPLES / "stateless-3.5")
        obeyed = obey(checkpoint)
        assert obeyed.end is End.NOTHING
    else:
        assert obeyed.applied[-1].get("chosen", obeyed.applied[-1].get("strategy")) == fix.split()[-1]
        assert announced_rows(obeyed) == found_rows(obeyed) == _ROWS_OF[rows]
    assert obeyed.faults == []
    inspection = look(checkpoint)
    assert (failing(inspection), unsafe(inspection)) == ([], [])
