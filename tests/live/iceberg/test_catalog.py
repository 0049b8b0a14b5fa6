"""A real query between tables of a catalog that keeps the name of their metadata itself: `catalog.py`."""

import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.support.remedies import remove

KEPT = Path(__file__).with_name("catalog.tar.xz")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with tarfile.open(KEPT) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def said(ckpt: Ckpt, place: Path, name: str, command: str = "inspect") -> dict[str, Any]:
    table, sink = place / "db" / name, place / "db" / f"{name}_sink"
    words = ["--spark", "4.0", "--progress", "sync", "--sources", "--source-options", f"0.path={table}", "--sink", sink]
    run = ckpt(command, place / f"checkpoint-{name}", *words, "-o", "json")
    assert run.exit_code == 0
    found: dict[str, Any] = run.json()
    return found


@pytest.mark.parametrize("name", ["plain", "small"])
def test_the_file_with_the_highest_number_is_read(name: str, place: Path, ckpt: Ckpt) -> None:
    document = said(ckpt, place, name)
    live, sink = document["sources"][0]["live"], document["sink"]
    assert (live["outcome"], live["waiting"], live["rows"]) == ("continues", 1, 10)
    assert (sink["kind"], sink["outcome"], sink["last_batch"]) == ("iceberg", "continues", 2)
    assert (live["read_from"][:15], sink["read_from"][:15]) == ("metadata/00004-", "metadata/00003-")
    assert {one["severity"] for one in document["findings"]} <= {"note"}


def test_preflight_lets_it_start(place: Path, ckpt: Ckpt) -> None:
    assert said(ckpt, place, "plain", "preflight")["sink"]["outcome"] == "continues"


def test_where_the_source_began_is_no_checkpoint_of_its_own(place: Path, ckpt: Ckpt) -> None:
    checkpoint = place / "checkpoint-plain"

    def codes() -> list[str]:
        return [one["code"] for one in ckpt("inspect", checkpoint, "-o", "json").json()["findings"]]

    assert "CKPT508" not in codes()
    more = checkpoint / "sources" / "0" / "offsets" / "1"
    more.write_text((checkpoint / "offsets" / "1").read_text())
    assert "CKPT508" in codes()
    remove(more)
    (checkpoint / "sources" / "0" / "offsets").rename(checkpoint / "sources" / "0" / "more")
    (checkpoint / "copy").mkdir()
    (checkpoint / "sources" / "0" / "more").rename(checkpoint / "copy" / "offsets")
    assert "CKPT508" in codes()


def test_a_copy_has_the_place_where_the_source_began(place: Path, ckpt: Ckpt, tmp_path: Path) -> None:
    assert ckpt("copy", place / "checkpoint-plain", tmp_path / "new", "--batch", 1).exit_code == 0
    first = Path("sources", "0", "offsets", "0")
    assert (tmp_path / "new" / first).read_bytes() == (place / "checkpoint-plain" / first).read_bytes()
