"""``ckpt preflight`` from the terminal, on real samples: start or hold, as a page and as JSON."""

import json
import shutil
import time
from pathlib import Path

import pytest

from ckpt import inspect, open_checkpoint
from ckpt.restart.findings import Asked, Severity
from ckpt.restart.recorded_settings import SettingUse
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import EACH_SAMPLE, ROOT
from tests.support.spark.live import trace

AGGREGATION = "sample_checkpoints/aggregation-hdfs-4.2"
QUERY = ROOT / "docs" / "query.json"
FORMAT_2 = "spark.sql.streaming.stateStore.checkpointFormatVersion"


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_a_start_that_the_forecast_lets_run_is_a_go(sample: str, ckpt: Ckpt) -> None:
    run = ckpt("preflight", f"sample_checkpoints/{sample}", "-o", "json")
    document = run.json()
    seen = inspect(open_checkpoint(f"sample_checkpoints/{sample}"), progress=Asked.SYNC)
    safe = all(one.severity is not Severity.ERROR for one in seen.findings)

    assert contract.disagreements(document, "preflight") == []
    assert document["go"] == (safe and all(one.outcome.runs for one in seen.counted))
    assert run.exit_code == (0 if document["go"] else 1)
    assert document["not_asked"] == ["sources", "sink", "query"]


def test_settings_that_the_offset_log_has_win_silently(ckpt: Ckpt) -> None:
    given = {
        "spark.sql.shuffle.partitions": "200",
        "spark.sql.streaming.multipleWatermarkPolicy": "min",
        "spark.sql.streaming.stateStore.maintenanceInterval": "5s",
        "spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled": "true",
    }
    words = [word for one in given.items() for word in ("--conf", "=".join(one))]
    settings = ckpt("preflight", AGGREGATION, "--spark", "4.3", *words, "-o", "json").json()["settings"]

    assert {one["name"].rpartition(".")[2]: (one["used"], one["use"]) for one in settings} == {
        "partitions": ("2", SettingUse.RECORDED),
        "multipleWatermarkPolicy": ("min", SettingUse.SAME),
        "enabled": ("false", SettingUse.OLD_DEFAULT),
        "maintenanceInterval": ("5s", SettingUse.SESSION),
    }
    page = ckpt("preflight", AGGREGATION, "--spark", "4.2", *words).stdout
    assert "partitions=200: IGNORED, Spark silently keeps the recorded 2" in page
    assert "alwaysNullableOutput.enabled=true: takes effect" in page


@pytest.mark.parametrize("output", ["table", "json"])
def test_secrets_in_settings_are_not_printed(output: str, ckpt: Ckpt) -> None:
    names = ("spark.hadoop.fs.s3a.access.key", "spark.sql.catalog.c.password", "spark.my.own")
    words = [word for name in names for word in ("--conf", f"{name}=HUSHHUSH")]
    run = ckpt("preflight", AGGREGATION, *words, "-o", output)

    assert run.exit_code == 0
    assert "HUSH" not in run.stdout + run.stderr
    assert all(name in run.stdout for name in names)
    assert "HUSH" not in ckpt("preflight", AGGREGATION, "--conf", "HUSHHUSH").refusal()


@pytest.mark.parametrize(("value", "code", "go"), [(None, "CKPT441", True), ("1", "CKPT440", False), ("2", None, True)])
def test_the_state_format_that_nothing_records(value: str | None, code: str | None, go: bool, ckpt: Ckpt) -> None:
    words = [] if value is None else ["--conf", f"{FORMAT_2}={value}"]
    sample = "sample_checkpoints/aggregation-format2-4.2"
    found = ckpt("preflight", sample, *words, "-o", "json").json()
    newer = ckpt("preflight", sample, *words, "--spark", "4.3", "-o", "json").json()

    assert found["go"] is go
    assert newer["go"]
    assert [one["used"] for one in newer["settings"]] == ["2"] * len(newer["settings"])
    assert [one["code"] for one in (*found["holds"], *found["warnings"])] == ([code] if code else [])


def test_a_driver_that_writes_while_ckpt_looks_is_seen(
    ckpt: Ckpt, copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of("stateless-4.2")
    (checkpoint / "commits" / ".tmp").touch()  # recent, so that there is a pause before the second look
    latest = max(int(one.name) for one in (checkpoint / "offsets").iterdir() if one.name.isdigit())
    text = (checkpoint / "offsets" / str(latest)).read_text()

    def write(seconds: float) -> None:
        assert seconds > 0
        (checkpoint / "offsets" / str(latest + 1)).write_text(text)

    monkeypatch.setattr("ckpt.inspection.activity.LOOKS_APART_S", 3.0)
    monkeypatch.setattr(time, "sleep", write)
    run = ckpt("preflight", checkpoint, "-o", "json")

    assert [(one["code"], one["path"]) for one in run.json()["holds"]] == [("CKPT431", f"offsets/{latest + 1}")]
    assert run.exit_code == 1


def test_only_reading(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("tws-changelog-4.0")
    (checkpoint / "commits" / ".recent").touch()
    before = trace(checkpoint)
    document = ckpt("preflight", checkpoint, "-o", "json").json()

    assert trace(checkpoint) == before
    assert any("a driver that waits for rows writes nothing" in one for one in document["unknown"])


def test_what_cannot_be_looked_at(ckpt: Ckpt, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert ckpt("preflight", tmp_path / "file" / "nowhere").exit_code == 3
    assert ckpt("preflight", AGGREGATION, "--spark", "2.4").exit_code == 2
    assert ckpt("preflight", AGGREGATION, "--source-options", "0.a=b").exit_code == 2
    assert ckpt("preflight", AGGREGATION, "--expect", tmp_path / "nowhere.json").exit_code == 2
    (tmp_path / "query.json").write_text('{"schema": 1}')
    refusal = ckpt("preflight", AGGREGATION, "--expect", tmp_path / "query.json").refusal()
    assert "is not a query description" in refusal
    description = json.loads(QUERY.read_text())
    description["operators"][0]["limit"] = float("inf")
    (tmp_path / "query.json").write_text(json.dumps(description))
    refusal = ckpt("preflight", AGGREGATION, "--expect", tmp_path / "query.json").refusal()
    assert "is not a query description" in refusal


def test_a_field_without_a_type_fits_no_schema(ckpt: Ckpt, tmp_path: Path) -> None:
    description = json.loads(QUERY.read_text())
    description["operators"][0]["stores"][0]["families"][0]["value"]["fields"][1] = {}
    (tmp_path / "query.json").write_text(json.dumps(description))
    run = ckpt("preflight", AGGREGATION, "--expect", tmp_path / "query.json", "-o", "json")
    assert run.exit_code == 1
    assert "CKPT436" in run.stdout


def test_brokers_that_do_not_answer_are_no_answer(ckpt: Ckpt) -> None:
    pytest.importorskip("confluent_kafka")
    words = ("--sources", "--source-options", "0.kafka.bootstrap.servers=127.0.0.1:1")
    run = ckpt("preflight", "sample_checkpoints/kafka-4.2", *words)

    assert run.exit_code == 3
    assert "127.0.0.1:1" in run.refusal()


def test_a_sink_that_would_drop_the_next_batches_is_a_hold(ckpt: Ckpt, tmp_path: Path) -> None:
    log = tmp_path / "out" / "_spark_metadata"
    log.mkdir(parents=True)
    for batch in range(9):
        (log / str(batch)).write_text("v1\n")
    run = ckpt("preflight", "sample_checkpoints/stateless-4.2", "--sink", tmp_path / "out", "-o", "json")

    assert run.exit_code == 1
    assert [one["code"] for one in run.json()["holds"]] == ["CKPT411"]
    assert run.json()["not_asked"] == ["sources", "query"]


def test_a_sink_whose_log_cannot_be_read_was_not_looked_at(ckpt: Ckpt, tmp_path: Path) -> None:
    (tmp_path / "t" / "metadata").mkdir(parents=True)
    (tmp_path / "t" / "metadata" / "v1.metadata.json").write_text("[")
    run = ckpt("preflight", "sample_checkpoints/stateless-4.2", "--sink", tmp_path / "t", "-o", "json")

    assert "its metadata cannot be read: metadata/v1.metadata.json: " in run.refusal()


def test_a_new_folder_starts_fresh(ckpt: Ckpt, tmp_path: Path) -> None:
    document = ckpt("preflight", tmp_path, "-o", "json").json()

    assert document["go"] is True
    assert {one["outcome"] for one in document["restart"]} == {"starts-fresh"}


@pytest.mark.parametrize(("path", "missing"), [("new", "new"), ("cp/team/new", "cp")])
def test_a_folder_that_does_not_exist_yet_starts_fresh_and_the_path_is_named(
    path: str, missing: str, ckpt: Ckpt, tmp_path: Path
) -> None:
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    kafka = ("--sources", "--source-options", "0.kafka.bootstrap.servers=127.0.0.1:1")
    run = ckpt("preflight", tmp_path / path, *kafka, "--sink", tmp_path / "out", "-o", "json")
    document = run.json()

    assert run.exit_code == 0
    assert contract.disagreements(document, "preflight") == []
    assert document["verdict"] == (
        "nothing is there yet: the query starts at batch 0 as a new one. If it has run before, check the path: "
        f"{tmp_path}/{missing} does not exist"
    )
    assert (document["go"], document["checkpoint"]["kind"], document["not_asked"]) == (True, "empty", ["query"])
    assert any(one.startswith("current offsets of the sources: ") for one in document["unknown"])
    assert {one["outcome"] for one in document["restart"]} == {"starts-fresh"}
    assert not (tmp_path / missing).exists()
    assert ckpt("inspect", tmp_path / path).exit_code == 3


@pytest.mark.parametrize("below", ["", "/", "/below"])
@pytest.mark.parametrize("command", ["preflight", "inspect"])
def test_a_link_that_leads_to_nothing_is_no_checkpoint_to_be(
    command: str, below: str, ckpt: Ckpt, tmp_path: Path
) -> None:
    """The disk behind it may not be mounted."""
    (tmp_path / "link").symlink_to("nowhere")
    told = ckpt(command, f"{tmp_path}/link{below}").refusal()
    if command == "preflight" or below != "/below":
        assert told == f"ckpt: {tmp_path}/link is a link that points to nothing: check its target"


@pytest.mark.parametrize("left", [(), ("metadata",), ("metadata", "commits", "state")])
def test_a_checkpoint_that_has_to_be_there(left: tuple[str, ...], ckpt: Ckpt, copy_of: CopyOf) -> None:
    """A volume that is not mounted leaves an empty folder; somebody may have deleted the logs only."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    assert ckpt("preflight", checkpoint, "--must-exist").exit_code == 0
    for one in checkpoint.iterdir():
        if one.name not in left:
            shutil.rmtree(one) if one.is_dir() else one.unlink()

    held = ckpt("preflight", checkpoint, "--must-exist", "-o", "json")
    assert held.exit_code == 1
    assert "CKPT446" in [one["code"] for one in held.json()["holds"]]
    if not left:
        unasked = ckpt("preflight", checkpoint)
        assert (unasked.exit_code, "--must-exist" in unasked.stdout) == (0, True)
    shutil.rmtree(checkpoint)
    gone = ckpt("preflight", checkpoint, "--must-exist", "-o", "json")
    assert gone.exit_code == 1
    assert [(one["code"], one["detail"]) for one in gone.json()["holds"]] == [
        ("CKPT446", f"check the path: {checkpoint} does not exist")
    ]


def test_the_remedy_names_the_file_that_was_given(ckpt: Ckpt, tmp_path: Path) -> None:
    query = json.loads((ROOT / "docs" / "query.json").read_text(encoding="utf-8"))
    query["sources"] *= 2
    file = tmp_path / "release 7.json"
    file.write_text(json.dumps(query), encoding="utf-8")
    run = ckpt("preflight", AGGREGATION, "--expect", file, "-o", "json")
    (remedy,) = (each["remedy"] for each in run.json()["holds"] if each["code"] == "CKPT432")
    assert f"NEW --to '{file}'`" in remedy
    assert "query.json" not in remedy
    old = ckpt("preflight", AGGREGATION, "--expect", file, "--from-query", ROOT / "docs/query.json", "-o", "json")
    (remedy,) = (each["remedy"] for each in old.json()["holds"] if each["code"] == "CKPT432")
    assert f"--to '{file}' --from-query {ROOT / 'docs/query.json'}`" in remedy
