"""`ckpt rewind --to-sink-version`: bad rows for five batches, table and query go back, every row is there once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt import StorageError
from ckpt.changes.plan import First
from ckpt.changes.rewind.rewind import restore_table
from tests.conftest import Ckpt
from tests.live.sink.restored import GOOD, NEWEST, Mistaken
from tests.support.spark.live import trace

pytestmark = pytest.mark.spark
NOW: Any = {"apply": True, "grace": 0}


@pytest.fixture
def query(spark: Any, tmp_path: Path) -> Mistaken:
    query = Mistaken(spark, tmp_path)
    query.go_wrong()
    return query


def back(query: Mistaken, version: int | str, **how: Any) -> Any:
    return ckpt.rewind(str(query.checkpoint), sink=query.table, to_sink_version=version, **how)


def back_words(query: Mistaken, version: int) -> tuple[Any, ...]:
    return ("rewind", query.checkpoint, "--sink", query.table, "--to-sink-version", version, "--replay", "new")


def test_restored_by_the_statement_of_the_page(query: Mistaken, ckpt: Ckpt) -> None:
    version = query.version_of(GOOD - 1)
    words = back_words(query, version)
    before = trace(query.checkpoint)

    planned = ckpt(*words, "-o", "json")
    assert ckpt(*words, "--apply", "--grace", 0).exit_code == 3, "the table is not there yet"
    assert trace(query.checkpoint) == before
    query.sql(planned.json()["table"]["statement"])
    applied = ckpt(*words, "--apply", "--grace", 0)

    assert planned.json()["to_batch"] == GOOD - 1
    assert applied.exit_code == 0, applied.stdout
    assert query.finish() == query.all_once


@pytest.mark.parametrize("replay", ["same", "new"])
def test_restored_by_ckpt(replay: str, query: Mistaken) -> None:
    plan, receipt = back(query, query.version_of(GOOD - 1), restore_sink=True, replay=replay, **NOW)
    assert (receipt.problem, plan.first, plan.skips, plan.repeats) == (None, First.NOTHING, None, None)
    assert query.finish() == query.all_once


def test_a_query_without_state_back_to_a_time(spark: Any, tmp_path: Path) -> None:
    query = Mistaken(spark, tmp_path, stateful=False)
    query.go_wrong()
    plan, receipt = back(query, query.moment_after(query.version_of(GOOD - 1)), restore_sink=True, **NOW)
    assert (receipt.problem, plan.to_batch) == (None, GOOD - 1)
    assert query.finish() == query.all_once


def test_once_more_to_before_the_query_got_a_new_id(query: Mistaken, ckpt: Ckpt, tmp_path: Path) -> None:
    """The page is obeyed to the letter."""
    earlier = query.version_of(GOOD - 2)
    assert back(query, query.version_of(GOOD - 1), restore_sink=True, replay="new", **NOW).receipt.applied
    query.run()
    assert query.numbers() == query.all_once
    wrong = back(query, earlier + 3).plan.refused
    assert wrong.endswith("name the batch to keep with `to_batch`, and restore the table yourself"), "another batch"

    page = " ".join(ckpt(*back_words(query, earlier)).stdout.split())
    statement, batch = re.findall(r"run (RESTORE .* AS OF [0-9]+) in .* NEW --batch ([0-9]+) --new-id` makes", page)[0]
    query.sql(statement)
    new = tmp_path / "new"
    copied = ckpt("copy", query.checkpoint, new, "--batch", batch, "--new-id")
    assert copied.exit_code == 0, copied.stdout
    query.checkpoint = new

    assert query.finish() == query.all_once


def test_a_table_that_somebody_restored_before(query: Mistaken, ckpt: Ckpt) -> None:
    query.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {query.version_of(GOOD - 1)}")
    findings = ckpt("inspect", query.checkpoint, "--sink", query.table, "-o", "json").json()["findings"]
    (remedy,) = [finding["remedy"] for finding in findings if finding["code"] == "CKPT418"]

    words = remedy.partition("`ckpt ")[2].partition("`")[0].split()
    assert ckpt(*words, "--apply", "--grace", 0).exit_code == 0

    assert query.finish() == query.all_once


def test_a_table_that_went_on_after_somebody_restored_it(query: Mistaken, ckpt: Ckpt) -> None:
    """The batches after the RESTORE are in the table, and those before them are not: it has to go back again."""
    query.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {query.version_of(GOOD - 1)}")
    query.send()
    query.run()
    findings = ckpt("inspect", query.checkpoint, "--sink", query.table, "-o", "json").json()["findings"]
    (remedy,) = [finding["remedy"] for finding in findings if finding["code"] == "CKPT418"]

    words = remedy.partition("`ckpt ")[2].partition("`")[0].split()
    assert ckpt(*words, "--apply", "--grace", 0).exit_code == 3
    assert ckpt(*words, "--restore-sink", "--apply", "--grace", 0).exit_code == 0

    assert query.finish() == query.all_once


def test_undone_as_the_page_says(query: Mistaken) -> None:
    """Two RESTOREs: the table has every row again, and nobody is told that some are missing."""
    version = query.version_of(GOOD - 1)
    plan, receipt = back(query, version, restore_sink=True, **NOW)
    ckpt.rewind(str(query.checkpoint), undo=receipt.backup, grace=0)
    query.sql(plan.table.undo)
    sink = ckpt.inspect(str(query.checkpoint), sink=query.table).sink
    assert sink is not None
    assert sink.lacks is None

    query.sql(f"RESTORE TABLE {{table}} TO TIMESTAMP AS OF '{query.moment_after(version)}'")
    sink = ckpt.inspect(str(query.checkpoint), sink=query.table).sink
    assert sink is not None
    assert sink.lacks == (GOOD, NEWEST)
    plan, receipt = back(query, version, replay="new", **NOW)
    assert (receipt.problem, plan.table.is_current) == (None, True)
    assert query.finish() == query.all_once


def test_commits_of_others_are_named_and_accepted(query: Mistaken) -> None:
    version = query.version_of(GOOD - 1)
    query.sql("DELETE FROM {table} WHERE id = 0")
    query.sql("OPTIMIZE {table}")

    plan, receipt = back(query, version, restore_sink=True, **NOW)
    assert plan.table.others == (f"{plan.table.newest - 1} (DELETE)",)
    assert "`accept_skip`" in receipt.problem

    _, receipt = back(query, version, restore_sink=True, accept_skip=True, **NOW)
    assert receipt.applied, receipt.problem
    assert query.finish() == query.all_once


def test_killed_between_the_table_and_the_commit(query: Mistaken) -> None:
    for file in (f"{NEWEST}", f".{NEWEST}.crc"):
        (query.checkpoint / "commits" / file).unlink(missing_ok=True)
    _, receipt = back(query, query.version_of(NEWEST - 1), restore_sink=True, **NOW)
    assert receipt.applied, receipt.problem
    _, receipt = ckpt.rewind(str(query.checkpoint), undo=receipt.backup, grace=0)
    assert receipt.undone, receipt.problem

    plan, receipt = back(query, query.version_of(GOOD - 1), restore_sink=True, **NOW)
    assert receipt.applied, (receipt.problem, plan.refused)
    assert query.finish() == query.all_once


def test_a_table_with_a_newer_version_is_left_alone(
    query: Mistaken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody commits between the plan and the restore: neither table nor checkpoint is changed."""
    before = trace(query.checkpoint)

    def late(*table: Any) -> None:
        query.sql("INSERT INTO {table} VALUES (5)")
        restore_table(*table)

    monkeypatch.setattr("ckpt.changes.rewind.rewind.restore_table", late)
    _, receipt = back(query, query.version_of(GOOD - 1), restore_sink=True, **NOW)

    assert "the table now has" in receipt.problem
    assert trace(query.checkpoint) == before
    assert not list(tmp_path.glob("checkpoint.ckpt-backup-*"))
    assert query.numbers()[5] == 2


def test_stopped_after_the_table_was_restored_the_command_finishes(
    query: Mistaken, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, before = query.version_of(GOOD - 1), trace(query.checkpoint)

    def stopped(*table: Any) -> None:
        restore_table(*table)
        raise StorageError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr("ckpt.changes.rewind.rewind.restore_table", stopped)
        _, receipt = back(query, version, restore_sink=True, **NOW)
    assert "the disk is gone" in receipt.problem
    assert trace(query.checkpoint) == before

    plan, receipt = back(query, version, restore_sink=True, **NOW)
    assert (receipt.problem, plan.restores) == (None, False), "the table is there already"
    assert query.finish() == query.all_once
