"""`ckpt inspect --sink` of real Iceberg tables: what it says before a start is what the start does, and its cures cure.

The starts are recorded (`iceberg.py`); there is no Iceberg for the Spark that the tests run.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ckpt import NotFound
from ckpt.live.sink.reader import read_sink
from ckpt.live.sink.records import SinkKind, SinkLog
from tests.commands import contract
from tests.conftest import Ckpt
from tests.live.sink import iceberg
from tests.live.sink.iceberg_query import BATCHES
from tests.live.sink.mismatches import EVERY_ROW, promised
from tests.support.services.fixtures import USUAL, Upload

RECORDED: dict[str, Any] = json.loads(iceberg.RECORDED.read_text())
ONCE = Counter(range(EVERY_ROW))
NEWEST = BATCHES - 1
SAID: dict[str, tuple[str, str | None]] = {
    "continued": ("continues", None),
    "rewound by one": ("drops", "CKPT411"),
    "rewound by three": ("drops", "CKPT411"),
    "rewound by one, same": ("passes-over", "CKPT416"),
    "rewound by three, same": ("drops", "CKPT411"),
    "restored older": ("drops", "CKPT411"),
    "crashed after the sink": ("passes-over", "CKPT416"),
    "crashed before the sink": ("continues", None),
    "new checkpoint": ("continues", None),
    "new id": ("unknown-query", "CKPT414"),
    "recreated": ("unknown-query", "CKPT414"),
    "rolled back": ("lacks", "CKPT412"),
    "rolled back, uncommitted": ("lacks", "CKPT412"),
    "expired": ("continues", None),
    "expired, uncommitted": ("passes-over", "CKPT416"),
    "forgotten": ("unknown-query", "CKPT414"),
    "forgotten, uncommitted": ("unknown-query", "CKPT414"),
    "compacted, uncommitted": ("passes-over", "CKPT416"),
    "others too, restored older": ("drops", "CKPT411"),
}
"""The outcome, and the code that explains it."""

Said = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("iceberg")


@pytest.fixture(scope="module")
def said(folder: Path) -> Said:
    """What ckpt says today of each scenario."""
    return iceberg.asked_again(folder)


@pytest.fixture
def table(said: Said, folder: Path, tmp_path: Path) -> Path:
    """The metadata of a table with one snapshot for each batch of a query."""
    assert "continued" in said
    place = tmp_path / "table"
    shutil.copytree(folder / "continued" / "0" / iceberg.TABLE, place)
    return place


def times(answer: dict[str, Any], key: str = "times") -> Counter[int]:
    return Counter({int(row): count for row, count in answer[key].items() if int(row) < EVERY_ROW})


def codes(one: dict[str, Any]) -> set[str]:
    return {found["code"] for found in one["findings"] if found["code"].startswith("CKPT41")}


def test_every_scenario_is_recorded() -> None:
    assert SAID.keys() == iceberg.STARTED.keys()
    assert RECORDED.keys() == {"3.5", "4.0", "4.1"}
    assert all(list(found["answers"]) == list(iceberg.SCENARIOS) for found in RECORDED.values())


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_before_the_start_is_what_the_start_does(name: str, said: Said) -> None:
    (one,) = said[name]
    outcome, code = SAID[name]
    assert (one["sink"]["kind"], one["sink"]["outcome"], codes(one)) == ("iceberg", outcome, {code} - {None})
    assert contract.disagreements(one) == []
    for version, found in RECORDED.items():
        answer = found["answers"][name]
        assert answer["error"] == "", version
        assert times(answer) == promised(one, times(answer, "before")), version


@pytest.mark.parametrize("name", [name for name in iceberg.CURED if "rolled back" in name])
def test_a_table_that_is_rolled_back_as_the_remedy_says_loses_no_row_and_doubles_none(name: str, said: Said) -> None:
    before, after = said[name]
    assert (codes(before), after["sink"]["outcome"], codes(after)) == ({"CKPT411"}, "continues", set())
    for found in RECORDED.values():
        assert (found["answers"][name]["error"], times(found["answers"][name])) == ("", ONCE)


@pytest.mark.parametrize("name", iceberg.BACK)
def test_a_query_goes_back_together_with_the_table(name: str, said: Said) -> None:
    """Every row is there once, and nothing is changed before the table is back."""
    (after,) = said[name]
    assert (after["sink"]["outcome"], codes(after)) == ("continues", set())
    for recorded in RECORDED.values():
        answer = recorded["answers"][name]
        assert (answer["held"] is None) == (name == "back together, rolled back before")
        assert (answer["error"], times(answer)) == ("", ONCE)


def test_batches_that_a_table_lacks_are_written_again_by_a_rewind(said: Said) -> None:
    before, after = said["made good"]
    assert before["sink"]["lacks"] == [NEWEST - 1, NEWEST]
    assert after["sink"]["outcome"] == "continues"
    for found in RECORDED.values():
        assert (found["answers"]["made good"]["error"], times(found["answers"]["made good"])) == ("", ONCE)


def test_a_lost_id_is_that_of_the_only_query_in_the_table(said: Said) -> None:
    before, after = said["named again"]
    assert f"--query-id {before['sink']['query_id']} --sink " in iceberg.remedy(before, "CKPT108")
    assert after["sink"]["outcome"] == "passes-over"
    for found in RECORDED.values():
        assert (found["answers"]["named again"]["error"], times(found["answers"]["named again"])) == ("", ONCE)


@pytest.mark.parametrize("name", ["deduplication", "state lost", "complete", "format 2"])
def test_a_batch_that_is_passed_over_is_computed_with_its_state(name: str, said: Said) -> None:
    (one,) = said[name]
    assert (one["sink"]["outcome"], codes(one)) == ("passes-over", {"CKPT416"})
    for found in RECORDED.values():
        assert (found["answers"][name]["error"], times(found["answers"][name])) == ("", ONCE)


def test_a_table_that_has_forgotten_says_why(said: Said) -> None:
    (one,) = said["forgotten, uncommitted"]
    (finding,) = [found for found in one["findings"] if found["code"] == "CKPT414"]
    assert "its first snapshots have expired" in finding["detail"]


def newest(table: Path) -> Path:
    return max((table / "metadata").glob("*.metadata.json"), key=lambda file: int(file.name[1:].partition(".")[0]))


def test_the_newest_metadata_is_read_whatever_the_hint_says(table: Path) -> None:
    hint = table / "metadata" / "version-hint.text"
    for text in (hint.read_text(), "2", ""):
        hint.write_text(text)
        assert read_sink(str(table)).writers[0].last_batch == NEWEST
    hint.unlink()
    found = read_sink(str(table))
    assert (found.writers[0].last_batch, found.read_from) == (NEWEST, f"metadata/{newest(table).name}")


def test_a_gap_ends_the_row_that_the_hint_begins(table: Path) -> None:
    """`HadoopTableOperations.refresh` goes from the hint to the next version as long as there is one."""
    (table / "metadata" / "version-hint.text").write_text("3")
    (table / "metadata" / "v5.metadata.json").unlink()
    assert read_sink(str(table)).writers[0].last_batch == 2


def test_compressed_metadata_of_a_catalog(table: Path) -> None:
    """Named by a number and a UUID, and no version hint."""
    (table / "metadata" / "version-hint.text").unlink()
    for file in sorted((table / "metadata").glob("v*")):
        name = f"{int(file.name[1:].partition('.')[0]):05}-1f3c5d7e-0000-4000-8000-000000000000.gz.metadata.json"
        file.with_name(name).write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert read_sink(str(table)).writers[0].last_batch == NEWEST


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_metadata_file_is_read_itself(batch: int, table: Path) -> None:
    found = read_sink(str(table / "metadata" / f"v{batch + 2}.metadata.json"))
    assert [(one.last_batch, sorted(one.before)) for one in found.writers] == [(batch, [*range(1, batch + 1)])]


def _two_of_one_number(table: Path) -> None:
    (table / "metadata" / "version-hint.text").unlink()
    for file in (table / "metadata").glob("v*"):
        file.unlink()
    for letter in "ab":
        (table / "metadata" / f"00007-{letter}.metadata.json").write_text("{}")


def _of_two_catalogs(table: Path) -> None:
    (table / "metadata" / "00009-abc.metadata.json").write_text("{}")


def _hint_ahead(table: Path) -> None:
    (table / "metadata" / "version-hint.text").write_text("99")


def _cut(table: Path) -> None:
    newest(table).write_text(newest(table).read_text()[:-50])


def _no_text(table: Path) -> None:
    newest(table).write_bytes(b"\xff\xfe")


def _half_packed(table: Path) -> None:
    newest(table).write_bytes(b"\x1f\x8bno gzip at all")


def _current_gone(table: Path) -> None:
    known = json.loads(newest(table).read_text())
    newest(table).write_text(json.dumps({**known, "current-snapshot-id": 7}))


def _no_ids(table: Path) -> None:
    known = json.loads(newest(table).read_text())
    newest(table).write_text(json.dumps({**known, "snapshots": [{"timestamp-ms": 1}]}))


def _other_json(table: Path) -> None:
    newest(table).write_text('{"format-version": 2, "snapshots": 7}')


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_two_of_one_number, "2 metadata files have the number 7"),
        (_of_two_catalogs, "of a Hadoop table and of another catalog"),
        (_hint_ahead, "names version 99, which does not exist"),
        (_cut, "JSON"),
        (_no_text, "is not UTF-8"),
        (_half_packed, "cannot be unpacked"),
        (_current_gone, "its current snapshot 7 is not in it"),
        (_no_ids, "a snapshot has no id"),
        (_other_json, "its snapshots are not a list"),
    ],
)
def test_what_cannot_be_known_is_said(damage: Callable[[Path], None], words: str, table: Path) -> None:
    damage(table)
    found = read_sink(str(table))
    assert (found.kind, found.writers) == (SinkKind.ICEBERG, ())
    assert words in str(found.unknown)
    assert "give that file instead of the table" in str(found.unknown)
    assert found.unreached


def test_ancestors_in_a_circle_end(table: Path) -> None:
    known = json.loads(newest(table).read_text())
    known["snapshots"][0]["parent-snapshot-id"] = known["current-snapshot-id"]
    newest(table).write_text(json.dumps(known))
    assert [one.last_batch for one in read_sink(str(table)).writers] == [NEWEST]


def test_a_table_without_a_snapshot_has_no_batch(table: Path) -> None:
    first = table / "metadata" / "v1.metadata.json"
    assert read_sink(str(first)).writers == ()
    assert not read_sink(str(first)).cut


def test_a_metadata_file_that_is_not_there(table: Path) -> None:
    with pytest.raises(NotFound):
        read_sink(str(table / "metadata" / "v99.metadata.json"))


def test_where_the_snapshot_before_has_expired_there_is_no_rollback(table: Path, folder: Path, ckpt: Ckpt) -> None:
    """A newer snapshot would bring rows twice, and an older one takes too many back."""
    known = json.loads(newest(table).read_text())
    known["snapshots"] = known["snapshots"][3:]
    newest(table).write_text(json.dumps(known))
    checkpoint = folder / "restored older" / "0" / iceberg.CHECKPOINT
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    newest(table).write_text(newest(table).read_text().replace(read_sink(str(table)).writers[0].app_id, query))
    document = ckpt("inspect", checkpoint, "--sink", table, "-o", "json").json()
    remedy = iceberg.remedy(document, "CKPT411")
    assert "rollback_to_snapshot" not in remedy
    (finding,) = [each for each in document["findings"] if each["code"] == "CKPT411"]
    assert [step["do"]["do"]["value"] for step in finding["advice"]["steps"]] == ["wait", "change"]


def test_a_table_with_metadata_of_both_kinds_is_what_a_query_writes_to(table: Path) -> None:
    """As Delta's UniForm makes them, whose Iceberg snapshots name no query."""
    log = table / "_delta_log"
    log.mkdir()

    def with_txn(*queries: str) -> SinkLog:
        lines: list[dict[str, Any]] = [{"metaData": {"id": "t", "schemaString": "{}", "configuration": {}}}]
        lines += [{"txn": {"appId": query, "version": 3, "lastUpdated": 1}} for query in queries]
        (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
        return read_sink(str(table))

    query = "70593f07-759f-415f-8591-109f754ff6b0"
    assert with_txn().kind is SinkKind.ICEBERG
    assert "which of them" in str(with_txn(query).unknown)
    newest(table).write_text(newest(table).read_text().replace("spark.sql.streaming.queryId", "by"))
    assert (with_txn(query).kind, with_txn().kind) == (SinkKind.DELTA, SinkKind.DELTA)
    (table / "_spark_metadata").mkdir()
    assert "which of them" in str(with_txn(query).unknown)


def test_a_page_says_which_file_was_read(table: Path, folder: Path, ckpt: Ckpt) -> None:
    run = ckpt("inspect", folder / "continued" / "0" / iceberg.CHECKPOINT, "--sink", table)
    assert f"read from metadata/{newest(table).name}" in run.stdout


@pytest.mark.parametrize("upload", USUAL, indirect=True)
def test_tables_on_remote_storage(upload: Upload, table: Path) -> None:
    uri, options = upload(table)
    place, question, query = uri.partition("?")
    file = f"{place}/metadata/{newest(table).name}{question}{query}"
    assert [read_sink(one, options).writers[0].last_batch for one in (uri, file)] == [NEWEST, NEWEST]
