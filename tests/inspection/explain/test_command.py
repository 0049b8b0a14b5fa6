"""``ckpt explain`` from the terminal."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking
from ckpt.inspection.explain.explain import explain
from ckpt.restart.diagnoses import all_diagnoses
from ckpt.restart.findings import Diagnosis
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.inspection.explain.drivers import read
from tests.support.places import ROOT
from tests.support.remedies import remove

GAPPED = "sample_checkpoints/async-kafka-4.2"
SOUND = "sample_checkpoints/aggregation-hdfs-4.2"
FILES = "sample_checkpoints/file-source-4.2"
NEAR = "replay changelogs from snapshot 0 to 8: lineage of /other/ck/state/0 is incomplete, missing versions 1,2"
TEXT = "java.lang.IllegalStateException: batch 30 doesn't exist"


def test_a_message_is_explained(ckpt: Ckpt) -> None:
    run = ckpt("explain", TEXT)

    assert run.exit_code == 0
    assert run.stdout.startswith("The offsets of an earlier batch are missing\n")
    assert "CKPT201 missing-predecessor" in run.stdout
    assert "ckpt repair-async CHECKPOINT" in run.stdout


@pytest.mark.parametrize("words", [[TEXT], [NEAR], [TEXT, "--checkpoint", GAPPED], ["x", "--checkpoint", GAPPED]])
def test_it_is_told_as_published(words: list[str], ckpt: Ckpt) -> None:
    assert contract.disagreements(ckpt("explain", *words, "-o", "json").json(), "explain") == []


def test_every_published_key_is_used(ckpt: Ckpt) -> None:
    seen = contract.keys_in(ckpt("explain", TEXT, "--checkpoint", GAPPED, "-o", "json").json())
    seen |= contract.keys_in(ckpt("explain", NEAR, "--checkpoint", SOUND, "-o", "json").json())
    assert contract.shapes("explain").keys() - seen == set()


def test_a_checkpoint_says_whether_it_shows_it(ckpt: Ckpt) -> None:
    document = ckpt("explain", TEXT, "--checkpoint", GAPPED, "-o", "json").json()
    (match,) = document["matches"]
    assert [one["code"] for one in match["shown"]] == ["CKPT201"]
    assert match["command"] == f"ckpt inspect {GAPPED}"
    match, twin = ckpt("explain", TEXT, "-o", "json").json()["matches"]
    assert (twin["shown"], twin["twin"]) == ([], match["id"])

    other = ckpt("explain", "Checksum error: file:/ck/state/0/0/9.zip ChecksumException", "--checkpoint", GAPPED)
    assert other.exit_code == 1
    sound = ckpt("explain", "Incomplete log file in the offset commit log", "--checkpoint", SOUND)
    assert "this checkpoint does not show CKPT101. Verdict on the checkpoint" in " ".join(sound.stdout.split())


def test_after_an_unknown_error_the_checkpoint_that_was_named_is_inspected(ckpt: Ckpt) -> None:
    (step,) = ckpt("explain", "no such error", "--checkpoint", GAPPED, "-o", "json").json()["next"]
    assert step["command"] == ["ckpt", "inspect", GAPPED]
    (step,) = ckpt("explain", "no such error", "-o", "json").json()["next"]
    assert step["command"] is None


def test_a_row_that_always_fails_leads_to_skip(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    remove(checkpoint / "commits" / "9")
    steps = ckpt("explain", "[POISON] it is bad", "--checkpoint", checkpoint, "-o", "json").json()["next"]
    assert [step["command"] and step["command"][1] for step in steps] == ["inspect", None, "skip"]
    assert f"`ckpt inspect {checkpoint} --sink URI`" in steps[1]["what"]
    assert (steps[2]["what"][:24], steps[2]["rows"]) == ("If a row of batch 9 make", "left-out")
    sound = ckpt("explain", "[POISON] it is bad", "--checkpoint", SOUND, "-o", "json").json()["next"]
    assert [step["command"] and step["command"][1] for step in sound] == ["inspect", None]


def test_damage_that_only_deep_finds_leads_to_deep(ckpt: Ckpt) -> None:
    text = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
    steps = ckpt("explain", text, "--checkpoint", SOUND, "-o", "json").json()["next"]
    assert steps[0]["command"] == ["ckpt", "repair", SOUND, "--deep"]


def test_two_causes_of_one_text_are_both_named_the_likelier_first(ckpt: Ckpt) -> None:
    def ids(*words: str) -> list[str]:
        return [match["id"] for match in ckpt("explain", TEXT, *words, "-o", "json").json()["matches"]]

    lost, named = "batch-does-not-exist", "source-names-on-old-checkpoint"
    assert ids() == [lost, named]
    assert ids("--checkpoint", GAPPED) == [lost], "only a file source keeps a log under its name"
    assert ids("--checkpoint", FILES) == [named, lost]
    for place, title in (
        (GAPPED, "The offsets of an earlier batch are missing"),
        (FILES, "The sources have names"),
    ):
        page = " ".join(ckpt("explain", TEXT, "--checkpoint", place).stdout.split())
        assert page.startswith(title)
        assert page.count("The sources have names") == (place == FILES)
        assert page.count("The offsets of an earlier batch are missing") == 1
        assert "CHECKPOINT" not in page


def test_what_only_wraps_another_error_shows_the_innermost(ckpt: Ckpt, tmp_path: Path) -> None:
    path = tmp_path / "driver.log"
    path.write_text(read()["4.2-program-foreach-batch-raises"].replace("poison row", "row password=hunter2"))
    page = ckpt("explain", path, "--checkpoint", SOUND).stdout
    assert page.startswith("A function of the query failed\n")
    assert "  Cause   ValueError: batch 0 holds the row password=" in page
    assert "hunter2" not in page
    assert f"ckpt skip {SOUND}" in " ".join(page.split())


def test_what_is_unknown_says_so_and_what_is_near(ckpt: Ckpt) -> None:
    run = ckpt("explain", NEAR)

    assert run.exit_code == 1
    assert "not in the catalog" in run.stdout
    assert "Nearest Changelogs between two snapshots are missing: it has 8 of the 9 words" in run.stdout
    assert "not an answer" in run.stdout
    assert "Nearest" not in ckpt("explain", "org.apache.spark.SparkException: it does not work").stdout


@pytest.mark.parametrize("diagnosis", all_diagnoses(), ids=lambda diagnosis: diagnosis.code)
def test_a_finding_is_explained_by_its_declaration(diagnosis: Diagnosis, ckpt: Ckpt) -> None:
    with speaking(SHELL):
        meaning, remedy = str(diagnosis.meaning), str(diagnosis.advice or "Nothing needs to be done.")
    for text in (
        diagnosis.code,
        f" {diagnosis.code.lower()}\n",
        f"init: HOLD: {diagnosis.code} (and 1 more): offsets/3",
    ):
        (match,) = ckpt("explain", text, "-o", "json").json()["matches"]
        assert (match["id"], match["codes"], match["system"]) == (diagnosis.code, [diagnosis.code], "ckpt")
        assert (match["cause"], match["cure"]) == (meaning, remedy)
    assert ckpt("explain", "CKPT999").exit_code == 1


def test_a_finding_beside_an_error_of_spark_gives_way(ckpt: Ckpt) -> None:
    document = ckpt("explain", f"ckpt says CKPT411\n{TEXT}\n", "-o", "json").json()
    ids = [match["id"] for match in document["matches"]]
    assert ids == ["batch-does-not-exist", "source-names-on-old-checkpoint", "CKPT411"]
    shown = ckpt("explain", "CKPT201", "--checkpoint", GAPPED).stdout
    assert "this checkpoint shows CKPT201 missing-predecessor" in " ".join(shown.split())
    assert f"ckpt repair-async {GAPPED}" in shown


LOST = "Some data may have been lost because they are not available in Kafka any more; either the\n data was aged out"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Some data may have been lost", ["kafka-data-loss"]),
        (f"java.lang.IllegalStateException: Some data: {LOST} by Kafka", ["kafka-data-loss"]),
        (f"java.lang.IllegalStateException: Set(t-1) are gone. Some data may have been missed.\n{LOST} by Kafka",
         ["kafka-partitions-deleted", "kafka-data-loss"]),
        (f"[KAFKA_DATA_LOSS.PARTITIONS_DELETED] {LOST.replace(chr(10), '')}; Reason: Partitions t-1 have been deleted.",
         ["kafka-partitions-deleted"]),
        ("Some data may have been lost because they are not available in Pulsar any more; either", []),
    ],
)  # fmt: skip
def test_what_kafka_lost_is_known_by_its_common_words(text: str, ids: list[str], ckpt: Ckpt) -> None:
    assert [match["id"] for match in ckpt("explain", text, "-o", "json").json()["matches"]] == ids


@pytest.mark.parametrize(
    ("pasted", "found"),
    [  # as in reports that docs/evidence/errors.md lists
        ("terminated with exception:\ndbfs:/mnt/path/sources/0/0 doesn't exist", "file-source-log-hole"),
        ("S3 Metadata Error: `_spark_metadata/0 doesn't exist`", "file-sink-log-hole"),
        ("`StreamingQueryException: Partition raw-0's offset was changed ...`", "kafka-offset-changed"),
        ("terminated with exception: org/apache/spark/kafka010/KafkaConfigUpdater", "library-mismatch"),
        ("assertion failed: DataFrame returned by getBatch from A did not have isStreaming=true", "library-mismatch"),
        ("Detected deleted data from streaming source at version 2. This is currently not supported.", "delta-deletes"),
        ("StreamingQueryException: Failed to merge fields \n'a' and 'a'.", "columns-not-merged"),
        (
            ' * Exception in thread "main" org.apache.spark.sql.streaming.StreamingQueryException: Job aborted due to '
            "stage failure: Task 0 in stage 14.0 failed 1 times: java.lang.RuntimeException: The 0th field is null\n"
            " * at org.apache.spark.sql.catalyst.expressions.GeneratedClass$A.processNext(Unknown Source)",
            "task-failed",
        ),
    ],
)
def test_a_report_as_pasted_is_explained(pasted: str, found: str) -> None:
    assert [match.error.id for match in explain(pasted).matches] == [found]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Set(persistent://public/default/orders-partition-1) are gone. Some data may have been missed", "data-loss"),
        ("persistent://a/b/c's offset was changed from 9:7:-1 to 1:3:-1, some data might has been missed", "data-loss"),
        ("Potential Data Loss: intended to start at 1240:7:-1, actually we get 1301:0:-1", "data-loss"),
        ("Failed to commit cursor for persistent://public/default/orders", "no-answer"),
        ("requirement failed: The Schema of Pulsar source and provided doesn't match", "schemas"),
    ],
)
def test_what_pulsar_lost_is_not_taken_for_kafka(words: str, found: str) -> None:
    text = f"java.lang.IllegalStateException: {words}. "
    pulsar, flink = (
        [match.error.id for match in explain(f"{text}\n\tat org.apache.{code}(A.scala:1)").matches]
        for code in ("spark.sql.pulsar.PulsarSource.getBatch", "flink.connector.pulsar.Reader.run")
    )
    assert (pulsar, flink) == ([f"pulsar-{found}"], [])
    assert [match.error.id for match in explain(text).matches] == [f"pulsar-{found}"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("DELTA_CONCURRENT_WRITE", "Another writer changed rows of the Delta table at the same time"),
        (" KAFKA_DATA_LOSS.PARTITIONS_DELETED\n", "Kafka no longer has partitions in the checkpoint"),
        ("GroupAuthorizationException", "The query is not authorized in Kafka"),
        ("OSError: [Errno 28] No space left on device", "A disk is full"),
    ],
)
def test_the_name_alone_is_enough(text: str, title: str, ckpt: Ckpt) -> None:
    assert ckpt("explain", text).stdout.startswith(title)
    assert ckpt("explain", "DELTA_IS_NICE").exit_code == 1


def test_a_text_about_another_checkpoint_says_so(ckpt: Ckpt) -> None:
    def differs(text: str) -> Any:
        return ckpt("explain", text, "--checkpoint", GAPPED, "-o", "json").json()["checkpoint"]["contradictions"]

    other = "3272056a-2aa0-46d9-a85c-75261c2cde06"
    own = ckpt("inspect", GAPPED, "-o", "json").json()["checkpoint"]["query_id"]
    ended = "Query [id = {}, runId = 327d2331-e629-4bff-898b-bb1dbdeb36c1] terminated with error\n" + TEXT
    assert differs(TEXT) == []
    assert differs(ended.format(own)) == []
    assert differs(ended.format(other)) == [f"the text belongs to query {other}, this checkpoint to {own}"]
    assert differs(ended.format(other) + "\n" + ended.format(own)) == []
    gone = "File {}/offsets/30 does not exist"
    assert differs(gone.format(f"file:{ROOT / GAPPED}")) == []
    assert differs(gone.format("s3a://bucket/orders")) == ["the text names s3a://bucket/orders, which is another path"]
    assert differs(TEXT.replace("30", "3400")) == ["the text names batch 3400, but offsets/ here has batches 0 to 31"]
    page = ckpt("explain", ended.format(other), "--checkpoint", GAPPED).stdout
    assert "But       the text belongs to query" in page
    assert " ".join(page.split()).count("Is it the right checkpoint?") == 1
    assert "But       " in ckpt("explain", f"Query [id = {other}] terminated with error", "--checkpoint", GAPPED).stdout


def test_a_log_is_read_from_a_file_and_from_standard_input(ckpt: Ckpt, tmp_path: Path) -> None:
    log = read()["4.3-damaged-expired-deltas"]
    plain, packed = tmp_path / "driver.log", tmp_path / "driver.log.gz"
    plain.write_text(log)
    packed.write_bytes(gzip.compress(log.encode()))

    told = ckpt("explain", plain).stdout
    assert told.startswith("A state delta file is missing\n")
    assert ckpt("explain", packed).stdout == told
    program = "from importlib.metadata import entry_points as e; e(group='console_scripts')['ckpt'].load()()"
    for words in (["explain"], ["explain", "-"]):
        piped = subprocess.run(
            [sys.executable, "-c", program, *words], input=log.encode(), capture_output=True, cwd=ROOT
        )
        assert (piped.stdout.decode(), piped.returncode) == (told, 0)


@pytest.mark.parametrize(
    ("words", "exit_code", "says"),
    [
        (["/nowhere/driver.log"], 2, "there is no file /nowhere/driver.log"),
        (["  "], 2, "the text is empty"),
        ([""], 2, "the text is empty"),
        (["."], 2, ". is not a file"),
        (["/dev/zero"], 2, "/dev/zero is not a file"),
        ([TEXT, "--storage-options", "a=b"], 2, "--storage-options is for --checkpoint"),
        ([TEXT, "--checkpoint", "/nowhere"], 3, "/nowhere"),
    ],
)
def test_what_cannot_be_done_is_one_line(words: list[str], exit_code: int, says: str, ckpt: Ckpt) -> None:
    run = ckpt("explain", *words)
    assert run.exit_code == exit_code
    (line,) = run.stderr.splitlines()
    assert says in line


def test_a_pipe_that_never_ends_is_not_waited_for(ckpt: Ckpt, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run = ckpt("explain", pipe)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == f"ckpt: {pipe} is not a file: name a file, or pipe the text into `ckpt explain`\n"


def test_a_pipe_that_a_shell_has_opened_is_read(ckpt: Ckpt) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        file.write(TEXT)
    assert ckpt("explain", f"/dev/fd/{reading}").exit_code == 0
    os.close(reading)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_a_log_may_be_utf_16(encoding: str, ckpt: Ckpt, tmp_path: Path) -> None:
    path = tmp_path / "log"
    mark = "\ufeff" if encoding.endswith("be") else ""
    path.write_bytes(f"{mark}café\r\n{TEXT}\r\n".encode(encoding))
    assert ckpt("explain", path).stdout == ckpt("explain", TEXT).stdout


def test_a_gzip_file_that_ends_early_is_not_taken_for_a_whole_log(ckpt: Ckpt, tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"INFO fine\n" * 1000 + b"Caused by: batch 30 doesn't exist")[:-20])
    run = ckpt("explain", path)
    assert (run.exit_code, run.stdout, run.stderr.count("\n")) == (3, "", 1)
    assert "ends early" in run.stderr


def test_a_damaged_gzip_file_is_one_line(ckpt: Ckpt, tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"a" * 100_000)[:20] + b"\xff" * 50)
    run = ckpt("explain", path)
    assert run.exit_code == 3
    assert run.stderr == f"ckpt: {path} cannot be read: its compressed data is damaged\n"


def test_secrets_and_control_characters_of_a_text_are_not_shown(ckpt: Ckpt) -> None:
    text = f"\x1b[31m{'x' * 470} s3://KEY:SECRET@bucket/ck batch 4 doesn't exist password=hunter2"
    for output in ("table", "json"):
        told = ckpt("explain", text, "-o", output).stdout
        assert "SECRET" not in told
        assert "hunter2" not in told
        assert "\x1b" not in told
