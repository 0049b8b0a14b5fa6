"""What ckpt reads of an Iceberg table for a streaming query: metadata written here key by key, no JVM."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ckpt import UsageError, inspect, open_checkpoint
from ckpt.errors import SourceError
from ckpt.formats.iceberg import IcebergSnapshot
from ckpt.live.asking import ask_sources
from ckpt.live.records import IcebergNow
from tests.commands import contract
from tests.conftest import Ckpt
from tests.live.iceberg.remedies_followed import takes
from tests.live.judging import checkpoint_of

ID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
LATER = 1_900_000_000_000  # than any batch of the samples


def end(snapshot: int, position: int = 1) -> dict[str, Any]:
    return {"version": 1, "snapshot_id": snapshot, "position": position, "scan_all_files": False}


def snapshot(
    number: int, operation: str = "append", *, parent: int | None = None, files: int = 1, rows: int = 10, ms: int = 5
) -> dict[str, Any]:
    summary = {"operation": operation, "added-data-files": str(files), "added-records": str(rows)}
    found = {"snapshot-id": number, "timestamp-ms": ms, "summary": summary, "manifest-list": "file:///etc/passwd"}
    return found if parent is None else {**found, "parent-snapshot-id": parent}


def table(folder: Path, *snapshots: Mapping[str, Any], current: int | None = None) -> Path:
    (folder / "metadata").mkdir(parents=True)
    known = {
        "format-version": 2,
        "table-uuid": ID,
        "location": "s3://elsewhere/never/opened",
        "current-snapshot-id": current if current is not None else snapshots[-1]["snapshot-id"] if snapshots else -1,
        "snapshots": snapshots,
    }
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(known))
    return folder


def chain(*operations: str) -> list[dict[str, Any]]:
    return [snapshot(n, one, parent=n - 1 if n > 1 else None) for n, one in enumerate(operations, 1)]


def asked(checkpoint: Path, place: Path, **options: str) -> IcebergNow:
    given = {"Path": str(place), **{key.replace("_", "-"): value for key, value in options.items()}}
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: given})
    assert isinstance(source.answer, IcebergNow)
    return source.answer


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The query has read snapshots 1 and 2."""
    return checkpoint_of(tmp_path / "checkpoint", [end(1), end(2)], committed=True)


def test_only_ancestors_of_the_current_snapshot_count(checkpoint: Path, tmp_path: Path) -> None:
    branch = snapshot(2, parent=1)
    now = asked(checkpoint, table(tmp_path / "t", snapshot(1), branch, snapshot(3, "replace", parent=1)))
    assert now.table_id == ID
    assert now.chain == (IcebergSnapshot(1, None, 5, "append", 1, 10), IcebergSnapshot(3, 1, 5, "replace", 1, 10))
    assert (now.branched, now.cut_after) == ({2: 1}, None)


def test_what_has_expired_is_known_by_its_child(checkpoint: Path, tmp_path: Path) -> None:
    now = asked(checkpoint, table(tmp_path / "t", snapshot(3, parent=2)))
    assert (now.cut_after, now.branched, now.younger) == (2, {}, False)


def test_counts_that_are_not_recorded_are_not_guessed(checkpoint: Path, tmp_path: Path) -> None:
    bare = {"snapshot-id": 2, "timestamp-ms": 5}
    assert asked(checkpoint, table(tmp_path / "t", bare)).chain == (IcebergSnapshot(2, None, 5, None, None, None),)
    odd = {**bare, "summary": {"operation": "append", "added-data-files": "many"}}
    assert asked(checkpoint, table(tmp_path / "u", odd)).chain == (IcebergSnapshot(2, None, 5, "append", None, 0),)


def test_the_page_and_the_document(checkpoint: Path, tmp_path: Path, ckpt: Ckpt) -> None:
    place = table(tmp_path / "t", *chain("append", "append", "append", "replace", "append"))
    given = ["--sources", "--source-options", f"0.path={place}"]
    run = ckpt("inspect", checkpoint, *given)
    assert run.exit_code == 0
    said = "now: the table has 5 snapshots up to 5; unread: 2 files with 20 rows"
    assert said in " ".join(run.stdout.split())
    document = ckpt("inspect", checkpoint, *given, "-o", "json").json()
    assert contract.disagreements(document) == []
    (source,) = document["sources"]
    live = source["live"]
    assert source["type"] == "iceberg"
    assert (live["unit"], live["waiting"], live["rows"], live["lost"]) == ("files", 2, 20, None)
    assert (live["table_id"], live["read_from"]) == (ID, "metadata/v1.metadata.json")


def test_a_metadata_file_can_be_named_itself(checkpoint: Path, tmp_path: Path) -> None:
    place = table(tmp_path / "t", *chain("append", "append"))
    older, newer = (place / "metadata" / f"00007-{letter}.metadata.json" for letter in "ab")
    (place / "metadata" / "v1.metadata.json").rename(older)
    newer.write_text(older.read_text().replace('"current-snapshot-id": 2', '"current-snapshot-id": 1'))
    with pytest.raises(SourceError, match=r"2 metadata files have the number 7; if its catalog names another"):
        asked(checkpoint, place)
    assert [len(asked(checkpoint, file).chain) for file in (older, newer)] == [2, 1]


def test_places_without_a_table_are_one_line(checkpoint: Path, tmp_path: Path, ckpt: Ckpt) -> None:
    (tmp_path / "empty" / "metadata").mkdir(parents=True)
    for place in ("nowhere", "empty", "nowhere/metadata/v1.metadata.json"):
        run = ckpt("inspect", checkpoint, "--sources", "--source-options", f"0.path={tmp_path / place}")
        assert run.exit_code == 3
        assert "check the option path of source 0" in run.unreached()


_DAMAGED = (
    "{",
    "\xff",
    "[]",
    "null",
    "{}",
    *(f'{{"format-version": 2, "snapshots": {one}}}' for one in ("{}", "[[]]")),
)


@pytest.mark.parametrize("text", _DAMAGED)
def test_damaged_metadata_is_one_line(text: str, checkpoint: Path, tmp_path: Path, ckpt: Ckpt) -> None:
    place = table(tmp_path / "t", snapshot(1))
    (place / "metadata" / "v1.metadata.json").write_bytes(text.encode("latin-1"))
    run = ckpt("inspect", checkpoint, "--sources", "--source-options", f"0.path={place}")
    assert run.exit_code == 3
    assert "its metadata cannot be read: metadata/v1.metadata.json: " in run.unreached()


@pytest.mark.parametrize("option", ["branch", "tag", "snapshot-id", "async-micro-batch-planning-enabled"])
def test_an_option_with_rules_of_its_own_is_not_judged(option: str, checkpoint: Path, tmp_path: Path) -> None:
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: {"path": str(tmp_path), option: "x"}})
    assert source.not_asked == f"with the option {option}, Iceberg has rules that ckpt does not know"


@pytest.mark.parametrize(
    "given", [{"skipChangeCommits": "true"}, {"streaming-skip-delete-snapshots": "yes"}, {"stream-from-timestamp": "x"}]
)
def test_options_that_are_wrong(given: dict[str, str], checkpoint: Path, tmp_path: Path) -> None:
    place = table(tmp_path / "t", snapshot(1))
    with pytest.raises(UsageError):
        ask_sources(open_checkpoint(str(checkpoint)), {0: {"path": str(place), **given}})


def outcome(ckpt: Ckpt, checkpoint: Path, place: Path, *more: str) -> tuple[str, list[str]]:
    options = [word for one in (f"path={place}", *more) for word in ("--source-options", f"0.{one}")]
    document = ckpt("inspect", checkpoint, "--sources", *options, "-o", "json").json()
    codes = [one["code"] for one in document["findings"] if one["code"].startswith("CKPT47")]
    return document["sources"][0]["live"]["outcome"], codes


def test_a_table_before_the_time_at_which_a_query_begins_is_unknown(
    checkpoint: Path, tmp_path: Path, ckpt: Ckpt
) -> None:
    place = table(tmp_path / "t", *chain("append", "append"))
    assert outcome(ckpt, checkpoint, place, f"stream-from-timestamp={LATER}") == ("unknown", [])
    assert outcome(ckpt, checkpoint, place, "stream-from-timestamp=1") == ("continues", [])


def test_a_snapshot_that_does_not_say_what_it_did_is_not_passed(checkpoint: Path, tmp_path: Path, ckpt: Ckpt) -> None:
    bare = {"snapshot-id": 3, "timestamp-ms": 5, "parent-snapshot-id": 2}
    place = table(tmp_path / "t", *chain("append", "append"), bare)
    assert outcome(ckpt, checkpoint, place, "streaming-skip-overwrite-snapshots=true") == ("fails", ["CKPT474"])


def test_where_the_query_began_matters_to_a_start_with_available_now(
    checkpoint: Path, tmp_path: Path, ckpt: Ckpt
) -> None:
    place = table(tmp_path / "t", snapshot(2, parent=1), snapshot(3, parent=2))
    assert outcome(ckpt, checkpoint, place) == ("continues", [])
    first = checkpoint / "sources" / "0" / "offsets" / "0"
    first.parent.mkdir(parents=True)
    first.write_text(json.dumps(end(1, 0)))
    assert outcome(ckpt, checkpoint, place) == ("continues", ["CKPT476"])
    first.write_text("{")
    assert outcome(ckpt, checkpoint, place) == ("continues", [])


@pytest.mark.parametrize("there", [True, False])
def test_snapshots_that_were_passed_stop_a_start_with_available_now_too(
    there: bool, checkpoint: Path, tmp_path: Path
) -> None:
    """The options with which they were passed are needed for good, also where the query begins anew."""
    first = checkpoint / "sources" / "0" / "offsets" / "0"
    first.parent.mkdir(parents=True)
    first.write_text(json.dumps(end(1, 0)))
    line = [snapshot(5, parent=1), snapshot(6, "overwrite", parent=5), snapshot(7, "delete", parent=6)]
    line = [*([snapshot(1)] if there else ()), *line, snapshot(2, parent=7)]
    options = {0: {"path": str(table(tmp_path / "t", *line))}}
    inspection = inspect(str(checkpoint), sources=True, source_options=options)
    (rated,) = [rated for rated in inspection.findings if rated.finding.diagnosis.code == "CKPT476"]
    assert rated.advice is not None
    asked_for = takes(rated.advice)
    assert ("sources/0/offsets/0" in asked_for["deletes"]) is not there
    assert asked_for["settings"] == [f"streaming-skip-{kind}-snapshots=true" for kind in ("delete", "overwrite")]


def test_a_place_has_to_be_given(checkpoint: Path, ckpt: Ckpt) -> None:
    run = ckpt("inspect", checkpoint, "--sources")
    assert run.exit_code == 2
    assert "name the table of source 0: 0.path=URI" in run.refusal()
