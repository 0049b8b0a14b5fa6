"""What a remedy says helps: where ``ckpt repair`` is named it changes the files that are changed in cases of the
oracle, where Spark restarted; and on a copy, where it is obeyed, the trouble is gone.
"""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from ckpt import open_checkpoint
from ckpt.changes.fixes.repair import repair
from ckpt.inspection.preflight import PlannedStart, judge_start
from ckpt.inspection.verdict import IF_STATELESS
from ckpt.query.description import DescribedOperator, DescribedSource, QueryDescription
from ckpt.versions import NEWEST, Spark
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle import answers
from tests.restart.oracle.cases.logs import REMEDIED, SAMPLE
from tests.restart.oracle.cases.model import delete_logs, replace
from tests.support.places import ROOT, some_quick
from tests.support.remedies import obey, remove
from tests.support.spark.damage import DAMAGED

_WITHOUT_STATE = [{"op": "delete_tree", "path": "state"}]


def remedy_of(code: str, checkpoint: Path, ckpt: Ckpt) -> str:
    findings = ckpt("inspect", checkpoint, "-o", "json").json()["findings"]
    (remedy,) = [found["remedy"] for found in findings if found["code"] == code]
    return str(remedy)


@pytest.mark.parametrize("name", REMEDIED)
def test_a_way_out_changes_the_files_without_which_spark_restarts(name: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    damage, remedy = REMEDIED[name]
    checkpoint = copy_of(SAMPLE, *damage)
    plan, _ = repair(str(checkpoint))
    changed = {step.path: step.source for step in plan.steps if not step.path.endswith(".crc")}
    assert changed == {one.get("to", one["path"]): one["path"] if "to" in one else None for one in remedy}

    obey("`ckpt repair {checkpoint}`", checkpoint)
    assert ckpt("inspect", checkpoint, "--progress", "sync").exit_code == 0


@pytest.mark.parametrize("minor", answers.VERSIONS)
@pytest.mark.parametrize("name", REMEDIED)
def test_spark_restarted_without_them(name: str, minor: str) -> None:
    answer = answers.read(minor)["answers"][f"remedy-{name}/sync"]
    assert (answer["outcome"], answer["then"]["outcome"]) == ("resumes", "resumes")


_NOOP = "but only after one start into noop"
STARTS = [
    ("damaged-empty-offset", "CKPT101", "Restarts with new batch 6"),
    ("damaged-truncated-offset", "CKPT101", "Restarts with new batch 6"),
    ("damaged-empty-commit", "CKPT101", "Restarts by running batch 5 again"),
    ("damaged-commits-ahead-of-offsets", "CKPT204", "Restarts with new batch 6"),
    ("damaged-commits-far-behind", "CKPT205", "Restarts by running batch 5 again"),
    ("damaged-missing-unique-ids", "CKPT111", f"Restarts by running batch 7 again on Spark 4.1 to {NEWEST}, {_NOOP}"),
    ("damaged-state-ahead", "CKPT332", "Restarts with new batch 4"),
]


@pytest.mark.parametrize(("sample", "code", "verdict"), STARTS)
def test_what_a_remedy_says_leads_out(sample: str, code: str, verdict: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    obey(remedy_of(code, checkpoint, ckpt), checkpoint)

    after = ckpt("inspect", checkpoint, "-o", "json")
    assert after.json()["verdict"].partition(": ")[0].removesuffix(IF_STATELESS) == verdict
    assert after.exit_code == (1 if verdict.endswith(_NOOP) else 0)


@pytest.mark.parametrize("sample", ["aggregation-hdfs-4.2", "aggregation-changelog-4.2", "aggregation-format2-4.2"])
@pytest.mark.parametrize("committed", [True, False])
def test_a_stateful_query_goes_back_with_its_state(sample: str, committed: bool, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    latest = max(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))
    (checkpoint / "offsets" / str(latest)).write_text("")
    if not committed:
        remove(checkpoint / "commits" / str(latest))
    remedy = remedy_of("CKPT101", checkpoint, ckpt)
    obey(remedy, checkpoint)

    after = ckpt("inspect", checkpoint, "-o", "json")
    assert after.json()["verdict"].startswith(f"Restarts with new batch {latest}")
    assert after.exit_code == 0


def test_logs_that_are_put_back_fit_the_state_that_was_ahead_of_them(ckpt: Ckpt, copy_of: CopyOf) -> None:
    whole = copy_of("aggregation-hdfs-4.2", to="a copy")
    checkpoint = copy_of("aggregation-hdfs-4.2", *delete_logs((7, 8, 9), (7, 8, 9)))
    document = ckpt("inspect", checkpoint, "-o", "json").json()
    assert "CKPT306" in {finding["code"] for finding in document["findings"]}
    assert document["next"][0]["do"] == "put-back"
    assert "restore these instead" in " ".join(ckpt("repair", checkpoint).stdout.split())
    for folder in ("offsets", "commits"):
        shutil.copytree(whole / folder, checkpoint / folder, dirs_exist_ok=True)

    after = ckpt("inspect", checkpoint, "-o", "json")
    assert after.json()["verdict"] == "Restarts with new batch 10"
    assert after.exit_code == 0


def test_a_commit_ahead_of_a_stateful_query_goes_back_with_its_state(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", *delete_logs(offsets=(8, 9)))
    remedy = remedy_of("CKPT204", checkpoint, ckpt)
    obey(remedy, checkpoint)

    assert ckpt("inspect", checkpoint, "-o", "json").json()["verdict"] == "Restarts with new batch 8"


def test_the_command_for_a_moved_checkpoint_links_it(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("tws-rocksdb-4.2", to="it's here; $(so) to say")
    old = tmp_path / "old place" / "tws"
    for file in (checkpoint / "state/0/_metadata/v2").glob("[0-9]*"):
        file.write_text(file.read_text().replace("/tmp/ckpt-samples/tws-rocksdb-4.2", str(old)))
    command = re.search("`(mkdir [^`]*)`", remedy_of("CKPT305", checkpoint, ckpt))
    assert command
    assert command[1] in ckpt("inspect", checkpoint).stdout.splitlines()[-1]
    assert command[0] in ckpt("inspect", checkpoint, "-o", "json").json()["next"][-1]["what"]
    subprocess.run(["bash", "-c", command[1]], check=True, cwd=ROOT)

    assert old.resolve() == checkpoint.resolve()


def test_where_only_a_copy_helps_a_new_checkpoint_is_left(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", *delete_logs([8], range(10)))
    assert "CKPT202" in {found["code"] for found in ckpt("inspect", checkpoint, "-o", "json").json()["findings"]}
    steps = ckpt("repair", checkpoint, "-o", "json").json()["next"]
    assert [step["do"] for step in steps][-2:] == ["put-back", "start"]
    assert "checkpointLocation" in steps[-1]["what"]


def test_where_a_newer_spark_may_continue_no_new_checkpoint_is_advised(ckpt: Ckpt, copy_of: CopyOf) -> None:
    newer = (*delete_logs(range(1, 6), range(1, 6)), replace("commits/0", "v1", "v9"))
    checkpoint = copy_of("stateless-3.5", *newer)
    steps = ckpt("repair", checkpoint, "-o", "json").json()["next"]
    assert [step["do"] for step in steps] == ["start", "put-back"]
    assert "newer" in steps[0]["what"]


@pytest.mark.parametrize("sample", ["async-kafka-4.2", "damaged-missing-predecessor"])
def test_a_command_can_be_copied_from_the_page(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample, to="a path with spaces " * 5)
    page = ckpt("inspect", checkpoint).stdout
    assert f"ckpt repair-async {shlex.quote(str(checkpoint))}" in page
    assert "`" not in page


def test_a_new_place_is_no_green_light(ckpt: Ckpt, tmp_path: Path) -> None:
    result = ckpt("inspect", tmp_path)
    assert result.exit_code == 0
    assert "do NOT start it" in " ".join(result.stdout.split("\nNext")[1].split())


def test_state_that_may_be_lost_is_part_of_the_verdict(ckpt: Ckpt) -> None:
    """No file tells a stateless query from one that lost its state; only the verdict is read by everybody."""
    for sample in ("damaged-missing-state", "stateless-3.5"):
        page = ckpt("inspect", f"sample_checkpoints/{sample}").stdout
        assert "RESTARTS with new batch 6, if the query is stateless\n" in page
        assert "CKPT312" not in page
        assert "CKPT312" in ckpt("inspect", f"sample_checkpoints/{sample}", "-o", "json").stdout
    for sample in ("async-kafka-4.2", "continuous-4.2", "aggregation-hdfs-4.2"):
        assert "keeps no state" not in ckpt("inspect", f"sample_checkpoints/{sample}").stdout


def test_lost_state_shows_in_batches_without_rows(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Spark plans them for state alone; the answers of the oracle (all-state-lost) say how each version fails."""
    checkpoint = copy_of("windowed-aggregation-hdfs-4.2", *_WITHOUT_STATE)
    page = ckpt("inspect", checkpoint).stdout
    assert "WILL NOT RESTART" in page
    assert "CKPT304" in page
    assert f"ckpt handoff {checkpoint}" in " ".join(page.split("\nNext")[1].split())
    hold = ckpt("preflight", checkpoint)
    assert (hold.exit_code, "see CKPT304" in hold.stdout) == (1, True)
    assert ckpt("copy", checkpoint, checkpoint.with_name("new"), "--batch", 1).exit_code == 3
    assert ckpt("rewind", checkpoint, "--to-batch", 0, "-o", "json").json()["refused"]


def test_a_watermark_without_state_is_a_warning_until_the_query_is_known(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Most such queries keep no state, and the start of another one fails and harms nothing."""
    no_batch_without_rows = delete_logs(range(8), range(8))
    checkpoint = copy_of("windowed-aggregation-hdfs-4.2", *_WITHOUT_STATE, *no_batch_without_rows)
    (checkpoint / "offsets" / "9").write_text((checkpoint / "offsets" / "8").read_text().replace(":50,", ":60,"))
    looked = ckpt("inspect", checkpoint)
    assert (looked.exit_code, "CKPT328" in looked.stdout) == (1, True)
    assert "if the query is stateless" in looked.stdout
    read = open_checkpoint(str(checkpoint))
    readiness = judge_start(read, PlannedStart())
    assert readiness.go
    assert IF_STATELESS in readiness.verdict
    for operators, held, warned in (
        ((), set(), set()),
        ((DescribedOperator("stateStoreSave"),), {"CKPT434"}, {"CKPT328"}),
        (None, set(), {"CKPT328"}),
    ):
        source = DescribedSource("rate-micro-batch")
        query = QueryDescription(Spark("4.2"), "append", (source,), operators, None, None, {})
        readiness = judge_start(read, PlannedStart(query=query))
        assert {rated.code for rated in readiness.holds} == held
        assert {rated.code for rated in readiness.warnings} == warned
        assert (IF_STATELESS in readiness.inspection.verdict) == bool(warned)


def test_a_batch_that_fails_for_want_of_state_is_not_to_be_skipped(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", *_WITHOUT_STATE, *delete_logs(commits=[9]))
    advice = " ".join(ckpt("inspect", checkpoint).stdout.split("\nNext")[1].split())
    assert "If batch 9 fails every time and the query is stateless, see the plan" in advice


_EDITS = {
    "shuffle.partitions": {"old": 'shuffle.partitions":"2"', "new": 'shuffle.partitions":"3"'},
    "providerClass": {"old": "HDFSBackedStateStoreProvider", "new": "RocksDBStateStoreProvider"},
}


@pytest.mark.parametrize("setting", _EDITS)
def test_settings_that_were_edited_in_the_newest_offsets_lead_to_the_repair(
    setting: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", {"op": "replace_text", "path": "offsets/9", **_EDITS[setting]})
    page = ckpt("inspect", checkpoint, "-o", "json").json()
    remedy = next(finding["remedy"] for finding in page["findings"] if finding["code"] == "CKPT304")
    assert setting in remedy
    assert page["next"][0]["command"] == ["ckpt", "repair", str(checkpoint)]
    obey("`ckpt repair {checkpoint}`", checkpoint)
    assert ckpt("inspect", checkpoint, "--progress", "sync").exit_code == 0


def test_a_partition_that_is_lost_leads_to_what_is_left(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", {"op": "delete_tree", "path": "state/0/1"})
    remedy = remedy_of("CKPT304", checkpoint, ckpt)
    assert f"`ckpt rewrite {checkpoint} NEW --salvage --accept-loss --plan`" in remedy
    assert ckpt("rewrite", checkpoint, tmp_path / "new", "--salvage").exit_code == 3
    plan = ckpt("rewrite", checkpoint, tmp_path / "new", "--salvage", "--accept-loss", "--plan")
    assert (plan.exit_code, "1 partition of state is lost" in plan.stdout) == (0, True)
    assert not (tmp_path / "new").exists()
    assert ckpt("rewrite", checkpoint, tmp_path / "new", "--salvage", "--accept-loss").exit_code == 0


def test_the_other_progress_mode_gets_a_remedy_of_its_own(ckpt: Ckpt) -> None:
    kafka = ckpt("inspect", "sample_checkpoints/async-kafka-4.2", "--progress", "async").stdout
    assert '.writeStream.option("asyncProgressTrackingEnabled", "true")' in kafka.split("\nNext")[1]
    moved = ckpt("inspect", "sample_checkpoints/tws-rocksdb-4.2", "--progress", "async")
    assert "ckpt relocate" in moved.stdout.split("\nNext")[1]
    assert "CKPT208" in moved.stdout


def test_a_start_that_is_unknown_is_explained(ckpt: Ckpt) -> None:
    result = ckpt("inspect", "sample_checkpoints/tws-rocksdb-4.2", "--spark", "3.5", "-o", "json")
    unknown = [told for told in result.json()["restart"] if told["outcome"] == "unknown"]
    assert unknown
    assert all(told["because"] for told in unknown)
    assert result.exit_code == 1
    assert any(one["severity"] != "note" for one in result.json()["findings"])


@pytest.mark.parametrize("words", [["inspect"], ["repair"], ["rewind", "--to-batch", 3], ["skip"]], ids=lambda w: w[0])
@pytest.mark.parametrize("sample", some_quick([damage.name for damage in DAMAGED], 6))
def test_the_next_step_is_never_the_command_that_says_so(sample: str, words: list[object], ckpt: Ckpt) -> None:
    """But where a file is to be restored before."""
    checkpoint = f"sample_checkpoints/{sample}"
    advice = ckpt(words[0], checkpoint, *words[1:]).stdout.split("\nNext")[1]
    typed = " ".join(map(str, ["ckpt", words[0], checkpoint, *words[1:]]))
    lines = [line.strip() for line in advice.splitlines()]
    if typed in lines or f"{typed} again." in lines:
        assert "restore" in advice.lower().split(typed)[0]


def test_offsets_that_were_edited_back_are_rewound(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("damaged-offset-backwards")
    remedy = remedy_of("CKPT401", checkpoint, ckpt)
    assert "--to-batch 4 --replay new`" in remedy
    (command,) = re.findall(r"`ckpt ([^`]*)`", remedy)
    assert ckpt(*shlex.split(command), "--accept-skip", "--accept-replay", "--apply", "--grace", "0").exit_code == 0
    assert ckpt("inspect", checkpoint).exit_code == 0


@pytest.mark.parametrize("kept", [0, 1])
def test_a_skip_is_advised_where_it_is_planned(kept: int, ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Of the first batch it never is."""
    damage = delete_logs(offsets=range(kept + 1, 6), commits=range(kept, 6))
    checkpoint = copy_of("stateless-3.5", *damage)
    advised = f"ckpt skip {checkpoint}" in ckpt("inspect", checkpoint).stdout
    assert advised == (kept > 0) == (ckpt("skip", checkpoint).exit_code == 1)
    read = ckpt("state", "show", checkpoint).stderr
    assert ("no batch is committed" in read, "a loss for any other" in read) == (not kept, bool(kept))
