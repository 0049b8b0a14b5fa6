"""``ckpt offsets set --to`` a time of a file source: its log names the time at which each file was modified.

The log of the sample has entries 0 to 11, of one file each, modified a second after the one before. In ``test_live`` a
real query continues there.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.offsets.plan import offsets_set
from tests.changes.offsets.running import apply_as_printed, copied
from tests.restart.oracle.cases.model import delete_logs


def modified(entry: float) -> datetime:
    """The time at which the file of an entry was modified."""
    return datetime.fromtimestamp(1_700_000_000 + entry, UTC)


TIMES = [  # the committed batch, the place, and the entry that is read next
    (11, modified(11), 11),
    (11, modified(10.5), 11),
    (9, modified(11), 11),
    (9, "latest", 12),
    (9, modified(60), 12),
    (9, modified(10), 10),
    (0, "earliest", 0),
    (0, "latest", 12),
    (0, modified(0), 0),
    (0, modified(3), 3),
]


def ended(committed: int, to: Path) -> Path:
    """The sample after a batch; the log also has the entries of later ones."""
    later = range(committed + 1, 12)
    return copied("file-source-4.2", to, *delete_logs(later, later))


@pytest.mark.parametrize(("committed", "to", "begin"), TIMES)
def test_the_query_goes_on_there(committed: int, to: Any, begin: int, tmp_path: Path) -> None:
    checkpoint = ended(committed, tmp_path / "ck")
    plan, _ = offsets_set(str(checkpoint), to=to)
    if begin == committed + 1:
        assert not plan.needed
        assert ("not in the log yet" in str(plan.warnings)) is (begin == 12)
        return
    assert apply_as_printed(plan, checkpoint).moved[0].new == replace(plan.moved[0].new, said=())
    assert plan.moved[0].new.value == {"logOffset": begin - 1}
    assert f"In between: {abs(begin - committed - 1)} file" in str(plan.warnings)
    assert ("not in the log yet" in str(plan.warnings)) is (begin == 12)
    assert (bool(plan.skips), bool(plan.repeats)) == (begin > committed + 1, begin <= committed)


@pytest.mark.parametrize("to", ["earliest", modified(3)])
def test_before_the_latest_batch_a_rewind_is_named(to: Any, tmp_path: Path) -> None:
    plan, _ = offsets_set(str(ended(11, tmp_path / "ck")), to=to)
    assert "rewind to go back further" in str(plan.refused)


def test_older_files_of_the_same_entries_are_counted(tmp_path: Path) -> None:
    checkpoint = ended(9, tmp_path / "ck")
    entry = checkpoint / "sources/0/11"
    head, file = entry.read_text().splitlines()
    old = json.loads(file) | {"path": "file:///in/old.json", "timestamp": 1}
    entry.write_text("\n".join((head, file, json.dumps(old, separators=(",", ":")))))
    plan, _ = offsets_set(str(checkpoint), to=modified(11))
    assert "1 file that the query then reads is older" in str(plan.warnings)


def test_a_log_that_cannot_be_read_is_no_beginning(tmp_path: Path) -> None:
    checkpoint = ended(9, tmp_path / "ck")
    (checkpoint / "sources/0/11").write_text("v1\n{")
    with pytest.raises(Exception, match="the log of source 0"):
        offsets_set(str(checkpoint), to="latest")
