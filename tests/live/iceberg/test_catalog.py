"""Recorded queries between Iceberg tables: a catalog that keeps metadata itself, and remedies as they were followed."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.live.iceberg.cases import Case
from tests.live.iceberg.record import from_json
from tests.live.iceberg.remedies_followed import OBEYED, SUITE, advice_on_a_table, of, takes
from tests.live.judging import checkpoint_of, inspected
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


((MINOR, RECORD),) = SUITE.answers.read_all().items()
ANSWERS = RECORD["answers"]


@pytest.mark.parametrize("case", OBEYED, ids=lambda case: case.name)
def test_no_row_is_left_out_or_read_twice_that_the_remedy_does_not_name(case: Case) -> None:
    answer, wanted = ANSWERS[case.name], OBEYED[case]
    assert (answer["read"]["error"], answer["read"]["ids"]) == (None, wanted.ids)
    assert answer["then 50"]["ids"] == sorted([*wanted.ids, *of(50)])
    assert (answer["then 51"]["error"], answer["then 51"]["ids"]) == (None, sorted([*wanted.ids, *of(50), *of(51)]))


@pytest.mark.parametrize("case", OBEYED, ids=lambda case: case.name)
def test_the_remedy_of_today_is_the_one_that_was_obeyed(case: Case, tmp_path: Path) -> None:
    answer = ANSWERS[case.name]
    checkpoint = checkpoint_of(tmp_path / "checkpoint", answer["offsets"], committed=case.committed)
    found = inspected(checkpoint, from_json(answer["now"], case), MINOR)
    today = json.dumps([takes(advice) for advice in advice_on_a_table(found)])
    assert json.loads(today.replace(str(checkpoint), "CHECKPOINT")) == answer["remedies"]
