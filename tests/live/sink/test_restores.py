"""Of which batches a Delta table has the rows after one RESTORE or several; tables are written by delta-rs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ckpt import UsageError
from ckpt.formats import deltalog
from ckpt.live.sink.reader import read_sink
from ckpt.live.sink.records import SinkWriter
from ckpt.live.sink.versions import read_sink_version
from tests.live.sink.test_sinklog import OTHER, QUERY, deltalake, log_of, table_of

BATCHES = 6
NEWEST = BATCHES - 1


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Version N has batch N last."""
    return table_of(tmp_path / "table", *((QUERY, batch) for batch in range(BATCHES)))


def writer_of(table: Path, query: str = QUERY) -> SinkWriter:
    writer = read_sink(str(table)).writer(query)
    assert writer is not None
    return writer


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_restore_that_another_one_undoes(checkpointed: bool, table: Path) -> None:
    """As the page of `ckpt rewind` says for an undo."""
    deltalake.DeltaTable(table).restore(2)
    deltalake.DeltaTable(table).restore(NEWEST)
    if checkpointed:
        deltalake.DeltaTable(table).create_checkpoint()

    assert writer_of(table).taken_back is None
    version = read_sink_version(str(table), str(NEWEST + 2), QUERY)
    assert (version.batch, version.is_current) == (NEWEST, True)
    version = read_sink_version(str(table), str(NEWEST + 1), QUERY)
    assert (version.batch, version.is_current) == (2, False)


def test_a_restore_to_one_that_was_restored(table: Path) -> None:
    deltalake.DeltaTable(table).restore(2)
    table_of(table, (OTHER, 0))
    deltalake.DeltaTable(table).restore(NEWEST)
    deltalake.DeltaTable(table).restore(NEWEST + 1)
    assert (writer_of(table).taken_back, writer_of(table).kept) == ((3, NEWEST), 2)
    assert writer_of(table, OTHER).taken_back == (0, 0)
    assert read_sink_version(str(table), "2", QUERY).is_current, "it was restored, and that version once more"


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_restore_to_a_time(checkpointed: bool, table: Path) -> None:
    """Its commit does not say which version that was: the files that it added and removed do."""
    moment = int(deltalake.DeltaTable(table).history()[BATCHES - 1 - 2]["timestamp"])
    deltalake.DeltaTable(table).restore(datetime.fromtimestamp(moment / 1000, UTC))
    assert "version" not in deltalake.DeltaTable(table).history(1)[0]["operationParameters"]
    if checkpointed:
        deltalake.DeltaTable(table).create_checkpoint()

    last = deltalake.DeltaTable(table).to_pyarrow_table().num_rows - 1
    assert 0 <= last < NEWEST
    writer = writer_of(table)
    assert (writer.taken_back, writer.restored_to, writer.kept) == ((last + 1, NEWEST), last, last)
    assert not read_sink_version(str(table), str(NEWEST), QUERY).is_current
    assert read_sink_version(str(table), str(last), QUERY).is_current
    assert read_sink_version(str(table), str(NEWEST + 1), QUERY).batch == last


def test_a_restore_to_a_time_that_nothing_tells(table: Path) -> None:
    moment = int(deltalake.DeltaTable(table).history()[BATCHES - 1 - 2]["timestamp"])
    deltalake.DeltaTable(table).restore(datetime.fromtimestamp(moment / 1000, UTC))
    deltalake.DeltaTable(table).create_checkpoint()
    for version in range(4):
        (log_of(table) / f"{version:020}.json").unlink()
    assert "cannot tell which version" in str(read_sink(str(table)).unknown)


@pytest.mark.parametrize("cleaned", [False, True])
def test_a_restore_further_back_than_versions_are_looked_at(
    cleaned: bool, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the log no longer has what it took back, nobody is told to go on behind the first that it has."""
    monkeypatch.setattr(deltalog, "_EARLIER", 2)
    deltalake.DeltaTable(table).restore(1)
    deltalake.DeltaTable(table).create_checkpoint()
    if not cleaned:
        assert (writer_of(table).taken_back, writer_of(table).kept) == ((2, NEWEST), 1)
        assert read_sink_version(str(table), str(NEWEST + 1), QUERY).batch == 1
        return
    for version in range(4):
        (log_of(table) / f"{version:020}.json").unlink()
    assert (writer_of(table).taken_back, writer_of(table).kept) == ((4, NEWEST), None)
    with pytest.raises(UsageError, match="no file shows which batch came before"):
        read_sink_version(str(table), str(NEWEST + 1), QUERY)


def test_a_restore_to_before_the_query_had_its_id(tmp_path: Path) -> None:
    """Batches of the id that a first going back gave the query do not begin with 0."""
    table = table_of(tmp_path / "table", *((OTHER, batch) for batch in range(3)), (QUERY, 2), (QUERY, 3))
    deltalake.DeltaTable(table).restore(0)
    assert (writer_of(table).taken_back, writer_of(table).kept) == ((2, 3), None)
    with pytest.raises(UsageError, match="name the batch with `to_batch`"):
        read_sink_version(str(table), "5", QUERY)
