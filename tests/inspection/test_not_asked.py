"""A page without trouble says in one line that nobody asked the sources or the sink: only these show some losses."""

from pathlib import Path

import pytest

from tests.conftest import Ckpt
from tests.live.sink.test_plans import files
from tests.support.places import SAMPLES

SOUND = SAMPLES / "kafka-4.2"
BOTH = "  not asked             the sources (--sources), the sink (--sink URI)"


def not_asked(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("  not asked")]


@pytest.mark.parametrize("command", ["inspect", "repair"])
def test_a_page_without_trouble_has_one_line(command: str, ckpt: Ckpt) -> None:
    run = ckpt(command, SOUND)
    assert run.exit_code == 0
    assert not_asked(run.stdout) == [BOTH]


def test_the_document_has_a_key_and_still_nothing_to_do(ckpt: Ckpt, tmp_path: Path) -> None:
    document = ckpt("inspect", SOUND, "-o", "json").json()
    assert (document["not_asked"], document["next"]) == (["sources", "sink"], [])
    place = files(tmp_path / "sink", "", 5)
    assert ckpt("inspect", SOUND, "--sink", place, "-o", "json").json()["not_asked"] == ["sources"]
    assert not_asked(ckpt("inspect", SOUND, "--sink", place).stdout) == [
        "  not asked             the sources (--sources)"
    ]


def test_a_new_checkpoint_has_no_source_and_may_have_an_old_sink(ckpt: Ckpt, tmp_path: Path) -> None:
    run = ckpt("inspect", tmp_path)
    assert (run.exit_code, not_asked(run.stdout)) == (0, ["  not asked             the sink (--sink URI)"])


def test_a_browser_is_told_too(ckpt: Ckpt) -> None:
    pytest.importorskip("jinja2", reason="the extra html is not installed")
    assert "the sink (--sink URI)" in ckpt("inspect", SOUND, "-o", "html").stdout


def test_a_scan_without_trouble_has_one_line(ckpt: Ckpt, tmp_path: Path) -> None:
    (tmp_path / "kafka").symlink_to(SOUND)
    run = ckpt("scan", tmp_path)
    assert (run.exit_code, len(not_asked(run.stdout))) == (0, 1), run.stdout
