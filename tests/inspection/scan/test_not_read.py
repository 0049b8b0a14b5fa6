"""A scan reads the state that the next start loads, as far as it is told to, and has what it did not read as data."""

import pytest

import ckpt as library
from ckpt.inspection.scan.unfinished import ScanRequest
from ckpt.model import NotRead
from commands.render.prometheus import exposition
from tests.conftest import Ckpt
from tests.support.places import SAMPLES

ZIPS = "aggregation-rocksdb-4.2"
METRIC = "ckpt_checkpoint_not_read_bytes"


def test_what_was_not_read_is_in_the_row_the_headline_and_the_metrics(ckpt: Ckpt) -> None:
    where = str(SAMPLES / ZIPS)
    names, plain, deep = (library.scan(where, **how) for how in ({"names_only": True}, {}, {"deep": True}))  # type: ignore[arg-type]

    assert [scan.checkpoints[0].not_read == NotRead(0, 0) for scan in (names, plain, deep)] == [False, True, True]
    unread = names.checkpoints[0].not_read
    assert unread is not None
    assert f'{METRIC}{{checkpoint="{where}"}} {unread.bytes}\n' in exposition(names)
    assert f'{METRIC}{{checkpoint="{where}"}} 0\n' in exposition(plain)
    page = " ".join(ckpt("scan", where, "--names-only").stdout.split())
    assert "NOTHING WRONG, JUDGING BY NAMES AND SIZES" in page
    assert "1 of them judged by names and sizes only" in page
    assert "JUDGING BY" not in ckpt("scan", where).stdout
    assert ckpt("scan", where, "--names-only", "--deep").exit_code == 2


@pytest.mark.parametrize("how", [(), ("--deep",)])
def test_html_says_what_was_not_read(how: tuple[str, ...], ckpt: Ckpt) -> None:
    said = "that it loads were not read completely"

    assert said not in ckpt("scan", SAMPLES / ZIPS, "-o", "html", *how).stdout
    assert said in ckpt("scan", SAMPLES / ZIPS, "-o", "html", "--names-only").stdout
    assert said in ckpt("inspect", SAMPLES / ZIPS, "-o", "html", "--names-only").stdout


def test_an_interrupted_scan_continues_with_rows_that_were_read_alike() -> None:
    asked = ScanRequest("1", ("a",), None, (), None, False, None, None, "read_loaded", 0)
    assert asked.continues(asked)
    assert not ScanRequest("1", ("a",), None, (), None, False, None, None, "_read_names", 0).continues(asked)
