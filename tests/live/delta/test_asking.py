"""What ckpt reads of a Delta table for a streaming query: logs written here line by line, no JVM."""

import json
from pathlib import Path
from typing import Any

import pytest

from ckpt import open_checkpoint
from ckpt.errors import SourceError
from ckpt.live.asking import ask_sources
from ckpt.live.delta.ask import reads_as
from ckpt.live.records import DeltaNow
from tests.commands import contract
from tests.conftest import Ckpt
from tests.live.judging import checkpoint_of
from tests.support.places import SAMPLES

ID = "d9b04949-155c-4168-a478-a6e25bf831be"
COLUMNS = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


def end(version: int, index: int = -1) -> dict[str, Any]:
    return {
        "sourceVersion": 1,
        "reservoirId": ID,
        "reservoirVersion": version,
        "index": index,
        "isStartingVersion": False,
    }


def add(path: str, rows: int = 5) -> dict[str, Any]:
    stats = json.dumps({"numRecords": rows})
    return {"add": {"path": path, "modificationTime": 1, "dataChange": True, "stats": stats}}


def table(folder: Path, *versions: list[dict[str, Any]]) -> Path:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    first = {"metaData": {"id": ID, "schemaString": json.dumps(COLUMNS), "configuration": {}}}
    for number, actions in enumerate([[first], *versions]):
        (log / f"{number:020}.json").write_text("".join(json.dumps(one) + "\n" for one in actions))
    return folder


def asked(checkpoint: Path, place: Path) -> DeltaNow:
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: {"Path": str(place)}})
    assert isinstance(source.answer, DeltaNow)
    return source.answer


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return checkpoint_of(tmp_path / "checkpoint", [end(1), end(2)], committed=True)


def test_files_that_wait_are_looked_for_in_the_table_only(checkpoint: Path, tmp_path: Path) -> None:
    place = table(
        tmp_path / "t", [add("p=a%20b/1.parquet")], [add("gone"), add("../x"), add("/etc/passwd"), add("s3://b/c")]
    )
    (place / "p=a b").mkdir()
    (place / "p=a b" / "1.parquet").write_text("x")
    versions = {one.version: [file.there for file in one.files] for one in asked(checkpoint, place).versions}
    assert versions == {1: [True], 2: [False, None, None, None]}


def test_the_page_and_the_document(checkpoint: Path, tmp_path: Path, ckpt: Ckpt) -> None:
    place = table(tmp_path / "t", [add("1")], [add("2"), add("3", 7)])
    for name in "123":
        (place / name).write_text("x")
    given = ["--sources", "--source-options", f"0.path={place}"]
    run = ckpt("inspect", checkpoint, *given)
    assert run.exit_code == 0
    assert "now: the table has versions 0 to 2; unread: 2 files with 12 rows" in " ".join(run.stdout.split())
    document = ckpt("inspect", checkpoint, *given, "-o", "json").json()
    assert contract.disagreements(document) == []
    assert list(contract.contradictions(document)) == []
    live = document["sources"][0]["live"]
    assert (live["unit"], live["waiting"], live["rows"], live["lost"]) == ("files", 2, 12, 0)
    assert (live["table_id"], live["first_version"], live["last_version"]) == (ID, 0, 2)


def test_the_version_since_which_columns_have_their_names(checkpoint: Path, tmp_path: Path) -> None:
    described = [
        {"metaData": {"id": ID, "schemaString": json.dumps(struct(**columns)), "configuration": {}}}
        for columns in ({"id": "long", "old": "long"}, {"id": "long", "new": "long"}, {"id": "long", "new": "string"})
    ]
    place = table(tmp_path / "t", [], *([one] for one in described), [add("1")])
    assert asked(checkpoint, place).changed_in == 3
    assert asked(checkpoint, table(tmp_path / "same", [], [])).changed_in is None


def test_a_place_without_a_table_is_one_line(checkpoint: Path, tmp_path: Path, ckpt: Ckpt) -> None:
    run = ckpt("inspect", checkpoint, "--sources", "--source-options", f"0.path={tmp_path / 'nowhere'}")
    assert run.exit_code == 3
    assert "it has no _delta_log; check the option path of source 0" in run.unreached()


def test_a_table_that_may_be_newer_in_a_catalog_is_not_judged(checkpoint: Path, tmp_path: Path) -> None:
    place = table(tmp_path / "t", [add("1")])
    (place / "_delta_log" / "_staged_commits").mkdir()
    (place / "_delta_log" / "_staged_commits" / "1.json").write_text("")
    with pytest.raises(SourceError, match="only in a catalog"):
        asked(checkpoint, place)


@pytest.mark.parametrize("text", ["{", '{"add": {"path": ', "\xff"])
def test_a_damaged_log_is_one_line(text: str, checkpoint: Path, tmp_path: Path) -> None:
    place = table(tmp_path / "t", [add("1")])
    (place / "_delta_log" / f"{1:020}.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(SourceError, match="its log cannot be read"):
        asked(checkpoint, place)


def test_an_option_with_rules_of_its_own_is_not_judged(checkpoint: Path, tmp_path: Path) -> None:
    options = {"path": str(table(tmp_path / "t", [], [])), "readChangeFeed": "true"}
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: options})
    assert source.not_asked == "with the option readchangefeed, Delta has rules that ckpt does not know"


def test_a_change_feed_of_another_table_stops_a_start(checkpoint: Path, tmp_path: Path, ckpt: Ckpt) -> None:
    place = table(tmp_path / "t", [], [])
    first = place / "_delta_log" / f"{0:020}.json"
    first.write_text(first.read_text().replace(ID, ID[::-1]))
    words = ["--sources", "--source-options", f"0.path={place}", "--source-options", "0.readChangeFeed=true"]
    codes = [one["code"] for one in ckpt("inspect", checkpoint, *words, "-o", "json").json()["findings"]]
    assert "CKPT451" in codes
    assert ckpt("preflight", checkpoint, *words).exit_code == 1


def struct(**columns: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in columns.items()]}


@pytest.mark.parametrize(
    ("old", "new", "reads"),
    [
        (struct(a="long"), struct(A="long", b="string"), True),
        (struct(a="long"), struct(b="long"), False),
        (struct(a="integer"), struct(a="long"), True),
        (struct(a="integer"), struct(a=struct(b="long")), False),
        (struct(a=struct(b="long")), struct(a=struct(b="long", c="long")), True),
        (struct(a=struct(b="long")), struct(a=struct(c="long")), False),
        ({"type": "array", "elementType": "long"}, {"type": "array", "elementType": "long"}, True),
        ({"type": "array", "elementType": "long"}, {"type": "array", "elementType": struct()}, False),
        ({"type": "array", "elementType": "long"}, struct(a="long"), False),
    ],
)
def test_columns_that_can_be_read_as_newer_ones(old: Any, new: Any, reads: bool) -> None:
    assert reads_as(old, new) is reads


def test_a_secret_in_a_place_is_not_shown(ckpt: Ckpt) -> None:
    run = ckpt(
        "inspect", SAMPLES / "delta-4.2", "--sources", "--source-options", "0.path=/nowhere?secret_key=very-hidden"
    )
    assert run.exit_code == 3
    assert "/nowhere?secret_key=***" in run.unreached()
