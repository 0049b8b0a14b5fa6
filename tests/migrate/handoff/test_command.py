"""``ckpt handoff`` from the terminal, on real samples and on copies with damage."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ckpt.migrate.handoff.starts import file_path
from tests.changes.applying import look_at
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases.model import delete
from tests.support.places import EACH_SAMPLE, ROOT, SAMPLES
from tests.support.remedies import remove


def document(ckpt: Ckpt, checkpoint: object, *words: object) -> Any:
    return ckpt("handoff", checkpoint, "-o", "json", *words).json()


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_every_sample_is_told_as_published_and_left_alone(sample: str, ckpt: Ckpt) -> None:
    run = look_at(sample, ckpt, "handoff")
    told = ckpt("handoff", f"sample_checkpoints/{sample}", "-o", "json", "--snippet", "python").json()

    assert contract.disagreements(told, "handoff") == []
    assert run.exit_code == (3 if told["refused"] else 0 if told["exact"] else 1)
    assert (told["snippet"] is None) == bool(told["refused"])
    assert told["exact"] == (not told["refused"] and not told["doubts"])


def test_kafka_every_partition(ckpt: Ckpt) -> None:
    told = document(ckpt, "sample_checkpoints/kafka-4.2")
    (source,) = told["sources"]
    assert (told["batch"], told["exact"], told["state_version"]) == (5, True, None)
    assert json.loads(source["options"]["startingOffsets"]) == source["offset"] == {"orders": {"0": 51, "1": 49}}


@pytest.mark.parametrize("committed", [True, False])
def test_a_recreated_topic_starts_at_its_earliest_rows(committed: bool, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("damaged-topic-recreated")
    if not committed:
        remove(checkpoint / "commits" / "5")
    told = document(ckpt, checkpoint, "--batch", 4)
    (source,) = told["sources"]
    assert (source["begin"], told["exact"]) == ("earliest", False)
    assert source["options"] == {"startingOffsets": '{"orders":{"0":-2,"1":-2}}'}
    doubts = " ".join(told["doubts"])
    assert "a topic was recreated, and is read from its earliest rows" in doubts
    assert "Start the old query once more" not in doubts
    assert ("do not start the old query again" in doubts) is not committed


def test_behind_the_batch_that_went_back_it_says_what_the_old_query_skipped(ckpt: Ckpt) -> None:
    told = document(ckpt, "sample_checkpoints/damaged-topic-recreated")
    assert told["batch"] == 5
    assert any("orders/0 went from 50 to 3" in one and "--batch 4" in one for one in told["warnings"])


def test_only_the_topic_that_was_recreated_starts_at_its_earliest_rows(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    remove(checkpoint / "commits" / "5")
    for batch, offsets in ((4, '{"kept":{"0":9},"orders":{"0":50,"1":48}}'), (5, '{"kept":{"0":9},"orders":{"0":60}}')):
        file = checkpoint / "offsets" / str(batch)
        lines = file.read_text().splitlines()
        remove(file)
        file.write_text("\n".join([*lines[:2], offsets]))
    (source,) = document(ckpt, checkpoint)["sources"]
    assert json.loads(source["options"]["startingOffsets"]) == {"kept": {"0": 9}, "orders": {"0": -2}}


def test_files_up_to_an_earlier_batch(ckpt: Ckpt) -> None:
    told = document(ckpt, "sample_checkpoints/file-source-4.2", "--batch", 3)
    (source,) = told["sources"]
    assert [path.rpartition("/")[2] for path in source["seen"]] == [f"part-{n:02}.json" for n in range(4)]
    assert all(path.startswith("file:/") and not path.startswith("file://") for path in source["seen"])
    assert [one["batch"] for one in told["later"]] == list(range(4, 12))
    assert "Batch 11 is committed: rows that the old query read" in told["doubts"][0]


@pytest.mark.parametrize(
    ("logged", "column"),
    [
        ("file:///in%20put/a.json", "file:/in%20put/a.json"),
        ("hdfs:///a", "hdfs:/a"),
        ("hdfs://name:9000/a", "hdfs://name:9000/a"),
        ("s3a://bucket/a%2520b", "s3a://bucket/a%2520b"),
        ("file:/a", "file:/a"),
    ],
)
def test_paths_are_spelled_as_the_column_has_them(logged: str, column: str) -> None:
    assert file_path(logged) == column


def test_an_uncommitted_batch_is_said_and_not_handed_over(ckpt: Ckpt) -> None:
    sample = "sample_checkpoints/aggregation-killed-hdfs-4.0"
    told = document(ckpt, sample)
    assert (told["batch"], told["state_version"]) == (3, 4)
    assert told["later"] == [
        {
            "batch": 4,
            "committed": False,
            "sources": [
                {
                    "index": 0,
                    "from": {"offset": 40, "timestamp": 1700000004000},
                    "to": {"offset": 50, "timestamp": 1700000005000},
                    "amount": 10,
                    "unit": "rows",
                    "new_partitions": 0,
                }
            ],
        }
    ]
    refused = ckpt("handoff", sample, "--batch", 4)
    assert refused.exit_code == 3
    words = " ".join(refused.stdout.split())
    assert "batch 4 is not committed" in words
    assert "possible batches: 0 to 3" in words


def test_a_watermark_to_expect(ckpt: Ckpt) -> None:
    sample = SAMPLES / "windowed-aggregation-hdfs-4.2"
    recorded = json.loads((sample / "commits" / "9").read_text().splitlines()[1])["nextBatchWatermarkMs"]
    assert document(ckpt, sample)["watermark_ms"] == recorded
    assert recorded


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ("damaged-empty-offset", "offsets/5 cannot be read: the file is empty; possible batches: 0 to 4"),
        ("damaged-no-commits", "no batch is committed"),
        ("continuous-4.2", "ckpt does not know the source with offsets"),
    ],
)
def test_what_is_refused_and_why(sample: str, words: str, ckpt: Ckpt) -> None:
    told = document(ckpt, f"sample_checkpoints/{sample}")
    assert words in told["refused"]
    assert told["snippet"] is None


def with_offset(checkpoint: Path, text: str) -> Path:
    """Put another offset into the latest offset file of a sample with one source."""
    latest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    version, metadata, _ = latest.read_text().splitlines()
    latest.write_text("\n".join([version, metadata, text]))
    latest.with_name(f".{latest.name}.crc").unlink()
    return checkpoint


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ("12", "the number 12, as sockets and others write it"),
        ('{"shard":"a-7"}', 'does not know the source with offsets like {"shard": "a-7"}'),
        (
            '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":5,"index":3,"isStartingVersion":false}',
            "ended inside version 5 of the table (file 3 of that version)",
        ),
        (
            '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":5,"index":-1,"isStartingVersion":true}',
            "of the initial snapshot",
        ),
    ],
)
def test_a_source_that_cannot_go_on_is_refused_by_name(offset: str, words: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    told = document(ckpt, with_offset(copy_of("delta-4.2"), offset))
    assert words in told["refused"]
    assert told["refused"].startswith("source 0 (")
    assert told["sources"][0]["begin"] == "refused"


def test_a_source_of_which_nothing_was_read(ckpt: Ckpt, copy_of: CopyOf) -> None:
    told = document(ckpt, with_offset(copy_of("delta-4.2"), "-"))
    assert told["sources"][0]["begin"] == "unread"
    assert told["exact"]


@pytest.mark.parametrize("damage", [{"op": "delete"}, {"op": "truncate", "bytes": 40}])
def test_a_hole_in_the_log_of_a_file_source_is_refused(damage: dict[str, Any], ckpt: Ckpt, copy_of: CopyOf) -> None:
    told = document(ckpt, copy_of("file-source-4.2", {**damage, "path": "sources/0/9.compact"}))
    assert "sources/0/9.compact" in told["refused"]
    assert "files that the old query had read" in told["refused"]


def test_state_that_can_no_longer_be_loaded_moves_the_default_and_warns(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2", *({"op": "delete", "path": f"state/0/0/{v}.delta"} for v in (9, 10)))
    told = document(ckpt, checkpoint)
    assert told["batch"] == told["possible"][-1][1] == 7
    assert any("Batch 9 is committed, but its state cannot be loaded" in doubt for doubt in told["doubts"])
    named = document(ckpt, checkpoint, "--batch", 9)
    assert named["batch"] == 9
    assert any("The state of batch 9 cannot be loaded" in warning for warning in named["warnings"])


# Snippets: that they lead to the right rows is for test_continuity.py to show.

SNIPPETS = ["kafka-4.2", "delta-4.2", "file-source-4.2", "two-sources-3.5", "windowed-aggregation-hdfs-4.2"]


@pytest.mark.parametrize("sample", SNIPPETS)
def test_a_python_snippet_is_formatted_and_compiles(sample: str, ckpt: Ckpt, tmp_path: Path) -> None:
    code = ckpt("handoff", f"sample_checkpoints/{sample}", "--snippet", "python").stdout
    compile(code, "snippet", "exec")
    file = tmp_path / "snippet.py"
    file.write_text(code)
    for words in (["check", "--select", "E4,E7,E9,F,UP"], ["format", "--check"]):
        ran = subprocess.run([sys.executable, "-m", "ruff", *words, "--isolated", "--line-length", "120", str(file)])
        assert ran.returncode == 0, code


def odd(copy_of: CopyOf) -> tuple[Path, str]:
    """A checkpoint whose name and topic would end comments and strings, and its starting offsets."""
    offsets = {'or"ders\\u0000"""*/${x}\\n': {"0": 7}}
    checkpoint = with_offset(copy_of("kafka-4.2", to='a"""b*/\n'), json.dumps(offsets))
    return checkpoint, json.dumps(offsets, separators=(",", ":"))


def test_text_of_a_checkpoint_stays_text_in_a_snippet(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint, offsets = odd(copy_of)
    code = ckpt("handoff", checkpoint, "--snippet", "python").stdout
    names: set[str] = set(compile(code, "snippet", "exec").co_names)
    assert {"source_0", "SparkSession", "DataStreamReader"} <= names
    assert repr(offsets) in code
    assert json.dumps(offsets) in ckpt("handoff", checkpoint, "--snippet", "scala").stdout


def test_more_files_than_a_snippet_names(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("file-source-4.2")
    entries = (f'{{"path":"file:///in/{n}.json","timestamp":1,"batchId":9}}' for n in range(5001))
    (checkpoint / "sources/0/9.compact").write_text("\n".join(["v1", *entries]))
    assert len(document(ckpt, checkpoint)["sources"][0]["seen"]) > 5000
    refusal = ckpt("handoff", checkpoint, "--snippet", "scala")
    assert refusal.exit_code == 3
    assert "take them from sources[].seen" in refusal.refusal()


@pytest.mark.spark
@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
def test_scala_snippets_compile(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    files: list[Path] = []
    for checkpoint in [*(SAMPLES / sample for sample in SNIPPETS), odd(copy_of)[0]]:
        code = ckpt("handoff", checkpoint, "--snippet", "scala").stdout
        files.append(tmp_path / f"Handoff{len(files) + 1}.scala")
        files[-1].write_text(code.replace("object Handoff", f"object Handoff{len(files)}"))
    jars = f"{Path(spec.origin).parent / 'jars'}/*"
    words = ["java", "-Xmx768m", "-cp", jars, "scala.tools.nsc.Main", "-usejavacp", "-d", tmp_path, *files]
    ran = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "Handoff1.class").exists()


def test_code_that_cannot_be_written_is_no_page(ckpt: Ckpt) -> None:
    """Whoever sends the code to a file finds nothing in it."""
    run = ckpt("handoff", "sample_checkpoints/damaged-no-commits", "--snippet", "python")
    assert run.exit_code == 3
    assert run.stdout == ""
    assert "no batch is committed" in run.refusal()


_LOST_STATE = {
    "no file": ("aggregation-hdfs-3.5", [{"op": "delete_tree", "path": f"state/0/{part}"} for part in (0, 1)]),
    "no operator": ("dedup-aggregation-hdfs-4.2", [{"op": "delete_tree", "path": "state/0"}]),
    "no state/": ("windowed-aggregation-hdfs-4.2", [{"op": "delete_tree", "path": "state"}]),
}


@pytest.mark.parametrize("lost", _LOST_STATE)
def test_where_no_batch_has_all_state_the_new_query_begins_without_it(lost: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Not in a circle: `ckpt inspect` names this command, and it named `ckpt inspect`."""
    sample, damage = _LOST_STATE[lost]
    checkpoint = copy_of(sample, *damage)
    page = ckpt("handoff", checkpoint)
    words = " ".join(page.stdout.split())
    assert page.exit_code == 1
    assert f"after batch {document(ckpt, checkpoint)['batch']}, but WITH EMPTY STATE" in words
    assert "the new query starts with empty state, which does not include the rows read so far" in words
    assert "ckpt export-state" not in words, "it would refuse"
    assert ckpt(*page.stdout.split("\n")[-2].split()[1:]).exit_code == 1, "the code is written"


def test_no_start_that_fails_is_advised(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2", {"op": "write", "path": "offsets/5", "text": ""}, *delete("commits/5"))
    (doubt,) = document(ckpt, checkpoint)["doubts"]
    assert doubt == "Batch 5 was planned but not committed: its rows may be in the sink, and are read again."
    (doubt,) = document(ckpt, copy_of("kafka-4.2", *delete("commits/5"), to="whole"))["doubts"]
    assert "Start the old query once more, so that it commits the batch" in doubt


def test_sources_that_are_refused_alike_are_named_together_and_no_start_is_advised(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2", *delete("commits/5"))
    shutil.rmtree(checkpoint / "sources")
    for batch in (4, 5):
        log = checkpoint / f"offsets/{batch}"
        log.write_text("\n".join([*log.read_text().splitlines()[:2], "12", "12"]))
        log.with_name(f".{batch}.crc").unlink()
    told = document(ckpt, checkpoint)
    assert told["refused"].startswith("each of sources 0 to 1 (unknown): its offset is the number 12")
    assert "Start the old query once more" not in told["doubts"][0], "the batch that it commits is refused too"
    assert "socket or other    REFUSED: 12" in ckpt("handoff", checkpoint).stdout


@pytest.mark.slow
def test_state_without_a_schema_is_exported_with_one(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    """As Spark before 3.1 wrote it: the command for state with a schema refuses."""
    checkpoint = copy_of("aggregation-hdfs-3.5")
    shutil.rmtree(checkpoint / "state/0/0/_metadata")
    page = " ".join(ckpt("handoff", checkpoint).stdout.split())
    command = page[page.index("ckpt export-state") :].partition(" Next ")[0]
    assert "--schema FILE" in command
    schema = tmp_path / "schema.json"
    schema.write_text('{"0": {"default": {"key": {"key": "long"}, "value": {"sum": "long", "count": "long"}}}}')
    words = command.replace("FILE", str(schema)).replace("DIR", str(tmp_path / "out")).split()[1:]
    assert "Exported" in ckpt(*words, "--engine", "native").stdout  # a test before this one may have left a session


def test_a_refusal_names_the_batch_after_which_it_goes_on(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2", {"op": "write", "path": "offsets/5", "text": ""})
    told = document(ckpt, checkpoint)
    assert told["refused"]
    assert told["next"][0]["command"] == ["ckpt", "handoff", str(checkpoint), "--batch", "4"]
    assert document(ckpt, checkpoint, "--batch", 4)["doubts"]
    assert ckpt("inspect", checkpoint).stdout.split("\n")[3].split("   ")[1] == (
        "no state/ folder, 1 source in batch 4 (kafka)"
    ), "the newest that can be read"


@pytest.mark.parametrize(("sample", "offers"), [("kafka-4.2", True), ("file-source-4.2", True), ("number", False)])
def test_offsets_show_offers_the_code_only_where_there_is_some(
    sample: str, offers: bool, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = with_offset(copy_of("delta-4.2"), "12") if sample == "number" else SAMPLES / sample
    words = ckpt("offsets", "show", checkpoint).stdout.split("\n")[-2].split()
    assert (words[1] == "handoff") == offers
    assert ckpt(*words[1:]).exit_code == (0 if offers else 1)
