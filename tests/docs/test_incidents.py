"""``docs/incidents.md``: what it says is tried, on a checkpoint with that damage or in a test that is named.

Both tables are in ``docs/evidence/repairs.md``.
"""

import re
from pathlib import Path

import pytest

from tests.changes.applying import after_next
from tests.conftest import Ckpt, CopyOf
from tests.laws.next_obeyed import End, act, announced_rows, failing, found_rows, look, obey, unsafe
from tests.support.places import ROOT, SAMPLES

QUERY_ID = "16da3b92-5f2c-4a8e-9d3e-1f0a2b3c4d5e"
PAGE, EVIDENCE = (ROOT / "docs" / name for name in ("incidents.md", "evidence/repairs.md"))
_WORDS = {  # what the page calls the cost in rows
    "rows of finished batches are read again": "again",
    "rows of an unfinished batch are read again": "again",
    "no row is read again": "none",
    "a sink that remembers batch ids may drop rows": "left out",
}


def _table(page: Path, head: str) -> list[list[str]]:
    """The rows below a head; of all such tables, where there are several."""
    found, inside = [], False
    for line in page.read_text().splitlines():
        inside = line.startswith("|") and (inside or line.startswith(head))
        if inside and not line.startswith((head, "|---")):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


ROWS = {row[-1]: row for row in _table(EVIDENCE, "| Spark says | finding |")}


def words_of(checkpoint: Path, fix: str) -> list[object]:
    options = fix.split("`")[1].replace("ID", QUERY_ID).split()
    return [options[0], checkpoint, *options[1:]]


@pytest.mark.parametrize("sample", ROWS)
def test_the_row_is_what_inspect_says(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    says, finding, *_ = ROWS[sample]
    found = ckpt("inspect", copy_of(sample), "-o", "json").json()
    assert finding in [one["code"] for one in found["findings"] if one["severity"] != "note"]
    errors = {one["error"] for one in found["restart"]}
    assert says == "nothing" or says.strip("`") in {e[: len(says.strip("`"))] for e in errors if e}


@pytest.mark.slow
@pytest.mark.parametrize("sample", ROWS)
def test_the_fix_of_the_row_is_the_one_that_helps(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    _, _, fix, rows, _ = ROWS[sample]
    checkpoint = copy_of(sample)
    if "`" not in fix:
        assert ckpt("repair", checkpoint).exit_code == 3
        return
    words = words_of(checkpoint, fix)
    plan = ckpt(*words, "-o", "json").json()
    assert plan.get("chosen") == (fix.split()[-1] if ":" in fix else None)
    page = ckpt(*words)
    told = " ".join(page.stdout.split())
    if len(plan.get("ways", ())) > 1:
        assert rows in told
    else:
        assert (rows == "no row is read again") == (not plan.get("replay"))
    done = ckpt(*after_next(page.stdout), "--grace", 0)
    assert done.exit_code == 0
    left = {
        one["code"] for one in ckpt("inspect", checkpoint, "-o", "json").json()["findings"] if one["severity"] != "note"
    }
    assert left <= {"CKPT419"}  # which asks for a start into noop, and so does the page
    assert not left or "ONCE into noop" in " ".join(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("sample", ROWS)
def test_a_program_that_obeys_next_ends_where_the_row_does(sample: str, copy_of: CopyOf) -> None:
    """It begins with `ckpt inspect`, and has no copy; what only a person can do is named in `what`."""
    _, _, fix, rows, _ = ROWS[sample]
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
        if ":" in fix:
            assert obeyed.applied[-1].get("chosen", obeyed.applied[-1].get("strategy")) == fix.split()[-1]
        assert announced_rows(obeyed) == found_rows(obeyed) == _WORDS[rows].replace(" ", "-")
    assert obeyed.faults == []
    inspection = look(checkpoint)
    assert (failing(inspection), unsafe(inspection)) == ([], [])


# The page has what was tried, and nothing else.


def _page_rows() -> list[list[str]]:
    return [row for head in ("| Spark says", "| You see") for row in _table(PAGE, head)]


@pytest.mark.parametrize("sample", ROWS)
def test_the_page_has_the_row(sample: str) -> None:
    says, finding, fix, rows, _ = ROWS[sample]
    command = f"ckpt {fix.split('`')[1]}" if "`" in fix else "from a copy"
    seen = [
        row
        for row in _page_rows()
        if f"[{finding}](" in row[1] and (says == "nothing" or says.strip("`") in row[0].replace("`", ""))
    ]
    assert [
        row for row in seen if command in row[2].replace("repair-async", "repair") and _WORDS.get(rows, "") in row[3]
    ]


def test_each_finding_of_the_page_is_tried_somewhere() -> None:
    tried = _table(EVIDENCE, "| finding | provoked in |")
    named = {row[1] for row in ROWS.values()} | {code for row in tried for code in re.findall(r"CKPT\d+", row[0])}
    assert {*re.findall(r"CKPT\d+", PAGE.read_text())} <= named
    paths = [path for row in tried for path in re.findall(r"`(tests/[\w./]+)`", row[1])]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert all("`tests/" in row[1] for row in tried)


def test_the_page_can_be_read() -> None:
    text = PAGE.read_text()
    assert len(text.splitlines()) <= 200
    assert text.splitlines()[2:5] == [
        "```sh",
        "ckpt inspect CHECKPOINT                            # what is wrong, and the command that helps",
        "ckpt explain driver.log --checkpoint CHECKPOINT    # the same, from the error",
    ]
    assert [row for row in _page_rows() if len(row) != 4 or not all(row)] == []
