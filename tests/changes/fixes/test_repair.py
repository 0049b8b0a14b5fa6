"""``ckpt repair``: on every damaged sample each way that is offered helps as promised, and can be taken back."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ckpt.calls.inspect import inspect
from ckpt.changes.apply import Receipt
from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import Cost
from ckpt.changes.fixes.repair import FixName, RepairPlan, repair
from ckpt.changes.fixes.write_logs import find_commit
from ckpt.changes.plan import NoWay
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.storage import open_storage
from tests.changes.applying import after_next, facts
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLE_NAMES, SAMPLES, some_quick
from tests.support.remedies import remove
from tests.support.spark.damage import DAMAGED

QUERY_ID = "16da3b92-5f2c-4a8e-9d3e-1f0a2b3c4d5e"
NO_WAY = {
    "damaged-directory-named-like-batch": "offsets/6",
    "damaged-expired-deltas": "state files",
    "damaged-missing-join-store": "state files",
    "damaged-missing-partition": "no folder",
    "damaged-no-commits": "no batch to go back to",
    "damaged-no-offsets": "no batch to go back to",
    "damaged-tws-missing-schema": "_stateSchema",
}
"""Samples for which only a copy helps, and a part of the reason."""

RECOMMENDED = {
    "damaged-async-uncommitted": (FixName.FILL, Cost.UNFINISHED_AGAIN),
    "damaged-commits-ahead-of-offsets": (FixName.READ_AGAIN, Cost.FINISHED_AGAIN),
    "damaged-commits-far-behind": (FixName.READ_AGAIN, Cost.FINISHED_AGAIN),
    "damaged-empty-commit": (FixName.RUN_AGAIN, Cost.FINISHED_AGAIN),
    "damaged-empty-delta": (FixName.RUN_AGAIN, Cost.FINISHED_AGAIN),
    "damaged-empty-offset": (FixName.READ_AGAIN, Cost.FINISHED_AGAIN),
    "damaged-empty-predecessor": (FixName.FILL, Cost.NOTHING),
    "damaged-file-source-log-hole": (FixName.PLAN_AGAIN, Cost.MAY_LOSE),
    "damaged-missing-delta": (FixName.RUN_AGAIN, Cost.MAY_LOSE),
    "damaged-missing-sst": (FixName.RUN_AGAIN, Cost.FINISHED_AGAIN),
    "damaged-missing-unique-ids": (FixName.RUN_AGAIN, Cost.FINISHED_AGAIN),
    "damaged-orphan-commit-crc": (FixName.TIDY, Cost.FINISHED_AGAIN),
    "damaged-orphan-offset-crc": (FixName.TIDY, Cost.MAY_LOSE),
    "damaged-state-ahead": (FixName.TIDY, Cost.MAY_LOSE),
}


def plan_of(top: Path, way: FixName | None = None, *, leftovers: bool = False) -> RepairPlan:
    return repair(str(top), choose=way, leftovers=leftovers)[0]


def repaired(top: Path, way: FixName, backup: Path) -> Receipt:
    return repair(str(top), choose=way, apply=True, backup=str(backup), grace=0, accept_replay=True, accept_skip=True)[
        1
    ]


@pytest.mark.slow
@pytest.mark.parametrize("sample", some_quick((damage.name for damage in DAMAGED), 6))
def test_every_way_that_is_offered_leads_out_and_back(sample: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    top = copy_of(sample)
    before = facts(top)
    ways = plan_of(top).ways
    assert facts(top) == before, "planning changes nothing"
    assert sum(way.recommended for way in ways) == any(way.cost is not None for way in ways)
    for way in ways:
        if way.cost is None:
            assert way.plan.refused
            continue
        backup = tmp_path / f"backup-{way.name}"
        receipt = repaired(top, way.name, backup)
        assert receipt.applied, receipt.problem  # the forecasts that the plan promised were compared
        after = repair(str(top))[0]
        assert after.sound or not after.needed, "what is repaired needs no repair"
        assert repair(str(top), undo=str(backup), grace=0)[1].undone
        assert facts(top) == before


@pytest.mark.parametrize("sample", RECOMMENDED)
def test_the_cheapest_way_is_recommended(sample: str, copy_of: CopyOf) -> None:
    (best,) = [way for way in plan_of(copy_of(sample)).ways if way.recommended]
    assert (best.name, best.cost) == RECOMMENDED[sample]


@pytest.mark.parametrize("sample", NO_WAY)
def test_where_only_a_copy_helps_it_says_so_and_does_not_send_anybody_round(
    sample: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    top = copy_of(sample)
    run = ckpt("repair", top, "-o", "json")
    assert run.exit_code == 3
    assert NO_WAY[sample] in run.json()["refused"]
    assert contract.disagreements(run.json(), "repair") == []
    assert "ckpt repair " not in ckpt("repair", top).stdout.split("\nNext")[1]
    assert run.json()["next"][0]["command"] is None


@pytest.mark.parametrize("sample", ["stateless-4.2", "aggregation-hdfs-4.2", "damaged-offset-backwards"])
def test_nothing_to_repair_is_no_plan(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    run = ckpt("repair", copy_of(sample), "-o", "json")
    document = run.json()
    assert (document["needed"], document["ways"], document["steps"]) == (False, [], [])
    assert run.exit_code == (1 if sample.startswith("damaged") else 0)


@pytest.mark.parametrize("sample", ["damaged-missing-metadata", "damaged-empty-metadata", "damaged-garbled-metadata"])
def test_a_lost_query_id_is_asked_for_and_written(sample: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    top = copy_of(sample)
    assert plan_of(top).refused == BOOK.text("lost_id")
    page = ckpt("repair", top)
    assert page.exit_code == 3
    assert page.stdout.rstrip().endswith("--query-id ID")
    words = ("repair", top, "--query-id", QUERY_ID, "--apply", "--grace", 0, "--backup", tmp_path / "backup")
    assert ckpt(*words).exit_code == 0
    assert (top / "metadata").read_text() == f'{{"id":"{QUERY_ID}"}}'
    assert ckpt("inspect", top).exit_code == 0


@pytest.mark.parametrize("query_id", ["x", "", "16da3b92"])
def test_a_query_id_is_a_uuid(query_id: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    run = ckpt("repair", copy_of("damaged-missing-metadata"), "--query-id", query_id)
    assert run.exit_code == 2
    assert "is not a UUID" in run.refusal()


def test_a_query_id_that_is_there_is_not_replaced(ckpt: Ckpt, copy_of: CopyOf) -> None:
    run = ckpt("repair", copy_of("stateless-4.2"), "--query-id", QUERY_ID)
    assert run.exit_code == 2
    assert "contains the id" in run.refusal()


@pytest.mark.parametrize(
    ("gone", "batches", "finished"),
    [
        (("offsets/5", "commits/5"), [5], True),
        (("offsets/5", "commits/5", "offsets/.5.crc"), [5], True),
        (("offsets/5", "commits/5", "commits/.5.crc"), [5], False),
        (("offsets/5", "offsets/4", "commits/5", "commits/.5.crc", "commits/4", "commits/.4.crc"), [4], True),
        (("offsets/5", "commits/5", "commits/4", "commits/.4.crc"), [4, 5], True),
        ([f"{log}/{batch}" for log in ("offsets", "commits") for batch in range(6)], [0], True),
    ],
)
def test_checksums_left_over_prove_that_their_batches_were_planned(
    gone: Sequence[str], batches: list[int], finished: bool, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    """A start plans them once more: their rows are read again, and a sink that has their ids drops new ones."""
    top = copy_of("stateless-4.2")
    for path in gone:
        (top / path).unlink()
    document = ckpt("repair", top, "-o", "json").json()
    assert [(way["name"], way["drops"]) for way in document["ways"] if way["recommended"]] == [("tidy", True)]
    assert [part["batch"] for part in document["replay"]] == batches
    assert document["replay"][-1]["finished"] is finished
    before = facts(top)
    refused = ckpt("repair", top, "--apply", "--grace", "0", "-o", "json").json()
    assert (refused["applied"], facts(top)) == (False, before)


def test_a_checksum_below_the_newest_batch_proves_nothing_lost(ckpt: Ckpt, copy_of: CopyOf) -> None:
    top = copy_of("stateless-4.2")
    (top / "commits/2").unlink()
    (top / "offsets/2").unlink()
    assert not plan_of(top).steps
    best = plan_of(top, leftovers=True).chosen
    assert best is not None
    assert (best.name, best.cost) == (FixName.TIDY, Cost.NOTHING)


def test_a_batch_that_is_committed_is_read_again_under_a_new_id(copy_of: CopyOf) -> None:
    top = copy_of("stateless-4.2")
    (top / "offsets/5").unlink()
    best = plan_of(top).chosen
    assert best is not None
    assert (best.name, best.cost) == (FixName.READ_AGAIN, Cost.FINISHED_AGAIN)


def test_temporary_files_go_on_request_only(copy_of: CopyOf) -> None:
    top = copy_of("damaged-leftover-temp")
    assert plan_of(top).steps == ()
    plan, _ = repair(str(top), leftovers=True)
    assert plan.steps
    assert all(step.path.endswith((".tmp", ".tmp.crc")) and step.after is None for step in plan.steps)


def test_a_temporary_file_goes_with_its_checksum_and_comes_back(copy_of: CopyOf) -> None:
    top = copy_of("aggregation-hdfs-4.2")
    temporary = "00000000-0000-4000-8000-000000000000.tmp"
    names = {".metadata.", "state/0/0/.9.delta.", "offsets/.9."}
    written = {top / f"{name}{temporary}" for name in names}
    written |= {path.with_name(f".{path.name}.crc") for path in written}
    for path in written:
        path.write_bytes(b"crc\0")
    before = facts(top)
    _, receipt = repair(str(top), leftovers=True, apply=True, grace=0)
    assert receipt.applied, receipt.problem
    assert not [path for path in written if path.exists()]
    repair(str(top), undo=receipt.backup)
    assert facts(top) == before


def test_temporary_files_of_a_checkpoint_inside_this_one_are_not_its_own(copy_of: CopyOf) -> None:
    top = copy_of("stateless-4.2")
    inner = copy_of("aggregation-hdfs-4.2", to="checkpoint/inner")
    (inner / "state/0/0/.9.delta.00000000-0000-4000-8000-000000000000.tmp").write_bytes(b"being written")
    (top / "export.csv.tmp").write_bytes(b"of somebody else")
    assert {"CKPT505", "CKPT508"} & {rated.code for rated in inspect(str(top)).findings} == {"CKPT508"}
    assert plan_of(top, leftovers=True).steps == ()


def _empty(top: Path) -> None:
    (top / "offsets/11").write_text("")


def _lost(top: Path) -> None:
    for batch in (10, 11):
        remove(top / f"offsets/{batch}")


def _misspelt(top: Path) -> None:
    text = (top / "offsets/11").read_text()
    (top / "offsets/11").write_text(text.replace("logOffset", "logOffsett"))
    (top / "offsets/.11.crc").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("damage", [_empty, _lost, _misspelt])
def test_the_log_of_a_file_source_tells_offsets(
    damage: Callable[[Path], None], committed: bool, copy_of: CopyOf
) -> None:
    """Spark's own are the answer; only the time of the batch is another."""
    top = copy_of("file-source-4.2")
    damage(top)
    if not committed:
        remove(top / "commits/11")
    plan = plan_of(top)
    assert plan.chosen is not None
    assert (plan.chosen.name, plan.repeats, plan.skips) == (FixName.WRITE_OFFSETS, None, None)
    assert plan.chosen.cost is (Cost.NOTHING if committed else Cost.UNFINISHED_AGAIN)
    repair(str(top), backup=str(top.with_name("backup")), apply=True, grace=0)
    for batch in (10, 11):
        ends = [(at / f"offsets/{batch}").read_text().split("\n")[2] for at in (top, SAMPLES / "file-source-4.2")]
        assert ends[0] == ends[1]
    (start, *_) = inspect(read_checkpoint(open_storage(str(top)))).counted
    assert start.batch_id == (12 if committed else 11)


@pytest.mark.parametrize("lacking", ["sources/0/11", "offsets/5"])
def test_what_the_log_of_a_file_source_does_not_tell_is_not_written(lacking: str, copy_of: CopyOf) -> None:
    """Its entry is lost; or the batches before did not read one entry each."""
    top = copy_of("file-source-4.2")
    _empty(top)
    if lacking == "offsets/5":
        (top / lacking).write_text((top / lacking).read_text().replace('"logOffset":5', '"logOffset":4'))
    else:
        remove(top / lacking)
    (way,) = [fix for fix in plan_of(top).ways if fix.name is FixName.WRITE_OFFSETS]
    assert way.cost is None
    assert "entr" in str(way.plan.refused)


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["damaged-empty-offset", "damaged-missing-sst", "damaged-state-ahead"])
def test_from_inspect_to_the_end_and_back_by_the_commands_that_are_printed(
    sample: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    top = copy_of(sample, to="it's 100%20 sure")
    before = facts(top)
    found = ckpt("inspect", top).stdout
    (command,) = {line.strip() for line in found.split("\nNext")[1].splitlines() if "ckpt repair " in line}
    command = command[command.index("ckpt repair ") :]
    words = shlex.split(command)[1:3]
    page = ckpt(*words)
    assert page.exit_code == 1
    run = ckpt(*words, "-o", "json")
    assert contract.disagreements(run.json(), "repair") == []
    done = ckpt(*after_next(page.stdout), "--grace", 0)
    assert done.exit_code == 0, done.stdout
    left = {one["code"] for one in ckpt("inspect", top, "-o", "json").json()["findings"] if one["severity"] != "note"}
    assert left == ({"CKPT419"} if "ONCE into noop" in " ".join(done.stdout.split()) else set())
    undone = ckpt(*after_next(done.stdout), "--grace", 0)
    assert undone.exit_code == 0
    assert facts(top) == before


def test_what_a_way_costs_has_to_be_accepted(ckpt: Ckpt, copy_of: CopyOf) -> None:
    top = copy_of("damaged-state-ahead")
    before = facts(top)
    for words in ((), ("--accept-replay",), ("--accept-skip",)):
        run = ckpt("repair", top, "--apply", "--grace", 0, *words, "-o", "json")
        assert run.exit_code == 3
        assert "--accept" in run.json()["refused"]
    assert facts(top) == before


@pytest.mark.parametrize("sample", some_quick((one.name for one in DAMAGED), 3))
def test_a_page_is_short(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    page = ckpt("repair", copy_of(sample)).stdout
    assert len(page.splitlines()) <= 50, page


def test_what_is_not_done_is_a_reason_and_the_command_that_does_it(ckpt: Ckpt, copy_of: CopyOf) -> None:
    top = copy_of("damaged-state-ahead")
    before = facts(top)
    run = ckpt("repair", top, "--apply", "--grace", 0, "--accept-skip")
    assert run.exit_code == 3
    assert facts(top) == before
    assert run.stdout.startswith("NOT DONE: rows of finished batches would be read again")
    assert len(run.stdout.splitlines()) < 8
    assert ckpt(*after_next(run.stdout), "--grace", 0).exit_code == 0
    assert ckpt("inspect", top).exit_code == 0


def test_a_way_that_is_not_there_is_bad_usage(ckpt: Ckpt, copy_of: CopyOf) -> None:
    run = ckpt("repair", copy_of("damaged-missing-sst"), "--choose", "read-again")
    assert run.exit_code == 2
    assert "run-again, plan-again" in run.refusal()


LOGGED = sorted(name for name in SAMPLE_NAMES if not name.startswith(("damaged", "continuous", "async")))


@pytest.mark.slow
@pytest.mark.parametrize("sample", LOGGED)
def test_an_emptied_commit_is_written_as_it_was_or_not_at_all(sample: str, copy_of: CopyOf, tmp_path: Path) -> None:
    top = copy_of(sample)
    newest = max((int(path.name) for path in (top / "commits").glob("[0-9]*")), default=0)
    file = top / "commits" / str(newest)
    was, checksums = file.read_bytes(), (top / "commits" / f".{newest}.crc").read_bytes()
    file.write_bytes(b"")
    (way,) = [way for way in plan_of(top).ways if way.name is FixName.WRITE_COMMIT]
    if sample.startswith("tws"):
        assert "CKPT305" in str(way.plan.refused), "it was moved, and finds no schema"
        return
    assert (way.recommended, way.cost) == (True, Cost.NOTHING)
    assert repaired(top, FixName.WRITE_COMMIT, tmp_path / "backup").applied
    assert (file.read_bytes(), (top / "commits" / f".{newest}.crc").read_bytes()) == (was, checksums)


def test_a_watermark_that_moved_is_taken_from_the_offsets_of_the_next_batch(copy_of: CopyOf) -> None:
    top = copy_of("windowed-aggregation-hdfs-4.2")
    moved = 4  # the watermark of batch 4 is not that of batch 3
    was = (top / "commits" / str(moved)).read_bytes()
    for batch in range(moved + 1, 10):
        remove(top / "commits" / str(batch))
        remove(top / "offsets" / str(batch + 1))
    (top / "commits" / str(moved)).write_bytes(b"")
    assert find_commit(read_checkpoint(open_storage(str(top)), batches=0), open_storage(str(top))) == (moved, was)
    remove(top / "offsets" / str(moved + 1))
    with pytest.raises(NoWay, match="it had another watermark, which no other file records"):
        find_commit(read_checkpoint(open_storage(str(top)), batches=0), open_storage(str(top)))


def test_a_commit_that_is_not_established_is_not_written(copy_of: CopyOf) -> None:
    sample, newest = "aggregation-format2-4.2", 7
    alone, twice = copy_of(sample, to="alone"), copy_of(sample, to="twice")
    (alone / "commits" / f".{newest}.crc").unlink()
    partition = twice / "state" / "0" / "1"
    (written,) = partition.glob(f"{newest + 1}_*.changelog")
    written.with_name(f"{newest + 1}_{QUERY_ID}.changelog").write_bytes(written.read_bytes())
    for top, said in ((alone, "commits/.7.crc, which would prove"), (twice, "state/0/1 has 2 files of version 8")):
        (top / "commits" / str(newest)).write_bytes(b"")
        refused, recommended = (
            next(way for way in plan_of(top).ways if is_it(way))
            for is_it in (lambda way: way.name is FixName.WRITE_COMMIT, lambda way: way.recommended)
        )
        assert said in str(refused.plan.refused)
        assert recommended.name is FixName.RUN_AGAIN


@pytest.mark.parametrize("left", ["garbled", "without its file"])
def test_operator_metadata_that_no_start_reads_is_removed(left: str, copy_of: CopyOf, tmp_path: Path) -> None:
    """Spark writes it again, as the cases `operator-metadata-missing` of the oracle show, if no checksum is left."""
    top = copy_of("aggregation-hdfs-4.2")
    path = top / "state/0/_metadata/metadata"
    path.with_name(".metadata.crc").write_bytes(b"crc\0\0\0\2\0\0\0\0\0")
    path.write_text("garbled") if left == "garbled" else path.unlink()
    before = inspect(str(top))
    assert [rated.finding.diagnosis.code for rated in before.troubles] == [
        "CKPT309" if left == "garbled" else "CKPT501"
    ]
    receipt = repaired(top, FixName.TIDY, tmp_path / "backup")
    assert receipt.applied
    assert [*path.parent.iterdir()] == []
    assert inspect(str(top)).sound
