"""Of a declarative pipeline, the version that runs use is looked at, and others are named or folded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import ckpt
from ckpt.checkpoint.pipelines import Flow, parse_flow, sort_versions
from ckpt.errors import CkptError
from ckpt.inspection.inspection import Inspection
from ckpt.restart.findings import Severity
from tests.commands import contract
from tests.conftest import Ckpt
from tests.support.pipelines import STATEFUL, STATELESS, build_storage, flow_of
from tests.support.places import SAMPLES


def codes(inspection: Inspection) -> dict[str, Severity]:
    return {rated.finding.diagnosis.code: rated.severity for rated in inspection.findings}


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/s/_checkpoints/c/d/t/f/3", (Flow("/s", "c.d.t", "f"), "3")),
        ("/s/_checkpoints/c/d/t/f", (Flow("/s", "c.d.t", "f"), None)),
        ("/s/_checkpoints/side/into/0", (Flow("/s", "side", "into"), "0")),
        ("s3://b/s/_checkpoints/c/d/t/f/3/?region=eu", (Flow("s3://b/s", "c.d.t", "f"), "3")),
        ("/_checkpoints/c/d/t/f/+7", (Flow("/", "c.d.t", "f"), "+7")),
        ("/s/_checkpoints/c/d/t", None),
        ("/s/_checkpoints/c/d/t/f/notes", None),
        ("/s/_checkpoints/c/d/t/f/3/offsets", None),
        ("/s/checkpoints/c/d/t/f/3", None),
        ("/s/my_checkpoints/c/d/t/f/3", None),
    ],
)
def test_a_flow_is_known_by_its_path(path: str, told: object) -> None:
    assert parse_flow(path) == told


def test_versions_are_ordered_as_numbers() -> None:
    names = ["10", "9", "notes", "0.ckpt-backup-20261126T120000Z", "99999999999", "2"]
    assert sort_versions(names) == ("2", "9", "10")
    assert sort_versions(["-1", "notes", "0"]) == ("0",)
    assert sort_versions(["-5", "notes"]) == ()
    assert sort_versions(["-5", "-1"]) == ("-5", "-1")
    assert sort_versions(["007", "1.5", " 3", "6"]) == ("6", "007")


def test_a_scan_names_flows_and_folds_what_no_run_uses(tmp_path: Path, run_ckpt: Ckpt) -> None:
    storage = build_storage(tmp_path / "storage", "events/from_a/0", "events/from_b/0", "keys/keys/9", "keys/keys/10")
    build_storage(storage, "keys/keys/notes")
    shutil.rmtree(flow_of(storage, "keys/keys/9/offsets"))

    said = run_ckpt("scan", str(storage), "--all")
    everything = ckpt.scan(str(storage), all_versions=True)

    assert said.exit_code == 0
    assert "spark_catalog.default.keys  version 10" in said.stdout
    assert "spark_catalog.default.events  flow from_a  version 0" in said.stdout
    assert "version 9" not in said.stdout
    assert "1 superseded version of pipeline flows" in " ".join(said.stdout.split())
    assert "2 flows write to spark_catalog.default.events" in " ".join(said.stdout.split())
    assert {row.name for row in everything.checkpoints} == {
        "spark_catalog.default.events/from_a/0",
        "spark_catalog.default.events/from_b/0",
        "spark_catalog.default.keys/keys/9",
        "spark_catalog.default.keys/keys/10",
    }
    assert [row.name for row in everything.checkpoints if row.pipeline and row.pipeline.superseded] == [
        "spark_catalog.default.keys/keys/9"
    ]
    assert everything.roots[0].superseded == 0
    document = json.loads(run_ckpt("scan", str(storage), "-o", "json").stdout)
    assert contract.disagreements(document, "scan") == []
    assert {row["pipeline"]["flow"]["name"] for row in document["checkpoints"]} == {"from_a", "from_b", "keys"}


@pytest.mark.parametrize("place", ["", "_checkpoints", "spark_catalog", "keys", "keys/keys"])
def test_inspect_takes_any_part_with_one_flow(place: str, tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/2", "keys/keys/10")
    parts = {"": storage, "_checkpoints": storage / "_checkpoints"}
    parts |= {"spark_catalog": storage / "_checkpoints" / "spark_catalog"}

    inspection = ckpt.inspect(str(parts.get(place, flow_of(storage, place))))

    assert inspection.checkpoint.uri == str(flow_of(storage, "keys/keys/10"))
    assert inspection.checkpoint.flow is not None
    assert inspection.checkpoint.flow.versions == ("0", "2", "10")


def test_of_several_flows_inspect_names_the_version_of_each(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "events/from_a/0", "events/from_a/1", "keys/keys/3")

    with pytest.raises(CkptError, match="it has 2 pipeline flows: use the version that runs use") as no:
        ckpt.inspect(str(storage))

    assert str(flow_of(storage, "events/from_a/1")) in str(no.value)
    assert str(flow_of(storage, "keys/keys/3")) in str(no.value)


@pytest.mark.parametrize("command", ["rewind", "repair", "prune", "skip", "state show", "offsets show", "handoff"])
def test_other_commands_name_the_version(command: str, tmp_path: Path, run_ckpt: Ckpt) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/2")
    flow = flow_of(storage, "keys/keys")

    said = run_ckpt(*command.split(), str(flow), *(["--to-batch", "0"] if command == "rewind" else []))

    assert said.exit_code == 3
    assert f"use {flow}/2, the version that runs use" in said.stderr
    assert said.stderr.count("\n") == 1


def test_the_page_names_the_flow_and_how_it_is_run(tmp_path: Path, run_ckpt: Ckpt) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/2")

    said = run_ckpt("inspect", str(flow_of(storage, "keys/keys")))
    document = json.loads(run_ckpt("inspect", str(flow_of(storage, "keys/keys/0")), "-o", "json").stdout)

    assert contract.disagreements(document) == []
    text = " ".join(said.stdout.split())
    assert "version 2 of flow keys of spark_catalog.default.keys" in text
    assert "spark-pipelines run in its project starts the query" in text.replace("`", "")
    assert "--refresh keys" in text
    pipeline = document["checkpoint"]["pipeline"]
    assert pipeline["version"] == "0"
    assert pipeline["versions"] == ["0", "2"]
    assert pipeline["flow"] == {"pipeline": str(storage), "table": "spark_catalog.default.keys", "name": "keys"}
    assert {finding["code"]: finding["severity"] for finding in document["findings"]}["CKPT257"] == "note"


@pytest.mark.parametrize("command", ["handoff", "preflight", "relocate", "offsets show"])
def test_every_page_names_the_flow(command: str, tmp_path: Path, run_ckpt: Ckpt) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/2", sample=STATEFUL)
    said = run_ckpt(*command.split(), str(flow_of(storage, "keys/keys/2")))
    text = " ".join(said.stdout.split())
    assert "version 2 of flow keys of spark_catalog.default.keys" in text
    assert "spark-pipelines run" in text


def test_a_plan_for_a_superseded_version_says_so(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/2")
    plans = {
        version: ckpt.rewind(str(flow_of(storage, f"keys/keys/{version}")), to_batch=1, replay="new").plan
        for version in ("0", "2")
    }

    warning = "Runs of the pipeline use 2, not this version."
    warned = {version: warning in map(str, plan.warnings) for version, plan in plans.items()}
    assert warned == {"0": True, "2": False}
    assert plans["0"].steps


@pytest.mark.parametrize("left", ["nothing", "metadata", "a planned batch"])
def test_a_version_without_a_batch_above_one_with_batches(left: str, tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/7=")
    flow = flow_of(storage, "keys/keys")
    parts = {"nothing": (), "metadata": ("metadata",), "a planned batch": ("metadata", "offsets/0")}[left]
    for part in parts:
        (flow / "7" / part).parent.mkdir(exist_ok=True)
        shutil.copy(flow / "0" / part, flow / "7" / part)

    inspection = ckpt.inspect(str(flow))

    assert inspection.checkpoint.uri == str(flow / "7")
    assert codes(inspection)["CKPT256"] is Severity.ERROR
    assert "a name that is not a number, such as 7.unused: 7." in str(inspection.findings[0].advice)
    (flow / "7").rename(flow / "7.unused")
    renamed = ckpt.inspect(str(flow))
    assert renamed.checkpoint.uri == str(flow / "0")
    assert renamed.sound


def test_all_versions_above_the_one_with_batches_are_to_be_renamed(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/5=", "keys/keys/7=")
    flow = flow_of(storage, "keys/keys")

    advice = str(ckpt.inspect(str(flow)).findings[0].advice)

    assert "such as 7.unused: 5, 7. The flow then continues in version 0." in advice
    for version in ("5", "7"):
        (flow / version).rename(flow / f"{version}.unused")
    assert ckpt.inspect(str(flow)).checkpoint.uri == str(flow / "0")


def test_neither_of_two_names_of_the_highest_number_is_superseded(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/007", "keys/keys/7")
    superseded = {
        version: "CKPT257" in codes(ckpt.inspect(str(flow_of(storage, f"keys/keys/{version}"))))
        for version in ("0", "007", "7")
    }
    assert superseded == {"0": True, "007": False, "7": False}


def test_a_file_in_place_of_the_newest_version_is_a_row_of_a_scan(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1")
    (flow_of(storage, "keys/keys") / "9").write_text("mine")
    (row,) = ckpt.scan(str(storage)).checkpoints
    assert row.path == str(flow_of(storage, "keys/keys/9"))
    assert row.error is not None


def test_beside_other_checkpoints_a_superseded_version_is_marked(tmp_path: Path, run_ckpt: Ckpt) -> None:
    build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1")
    shutil.copytree(SAMPLES / STATELESS, tmp_path / "ordinary")
    said = run_ckpt("scan", str(tmp_path), "--all-versions").stdout
    assert "keys/keys/0 (superseded)" in said
    assert said.count("(superseded)") == 1


def test_a_table_with_a_dot_in_its_name_is_not_refreshed_by_half_of_it(tmp_path: Path, run_ckpt: Ckpt) -> None:
    storage = build_storage(tmp_path / "storage", "a.b/f/0", "a.b/f/1=")
    said = " ".join(run_ckpt("inspect", str(flow_of(storage, "a.b/f"))).stdout.split())
    assert "--full-refresh TABLE" in said
    assert "--refresh b" not in said


def test_a_full_refresh_that_has_run_is_no_finding(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1")
    assert not {"CKPT256", "CKPT257"} & codes(ckpt.inspect(str(storage))).keys()
    assert "CKPT256" not in codes(ckpt.inspect(str(build_storage(tmp_path / "new", "keys/keys/0="))))


def test_two_flows_into_one_table_of_files(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "events/from_a/0", "events/from_b/0", "keys/keys/0")
    sink = tmp_path / "events"
    (sink / "_spark_metadata").mkdir(parents=True)
    for batch in ckpt.open_checkpoint(str(flow_of(storage, "events/from_a/0")), batches=0).commits.ids:
        (sink / "_spark_metadata" / str(batch)).write_text("v1\n")
    flow = str(flow_of(storage, "events/from_a/0"))

    assert codes(ckpt.inspect(flow))["CKPT258"] is Severity.NOTE
    assert codes(ckpt.inspect(flow, sink=str(sink)))["CKPT258"] is Severity.WARNING
    assert "CKPT258" not in codes(ckpt.inspect(flow, sink="kafka://topic"))
    assert "CKPT258" not in codes(ckpt.inspect(str(flow_of(storage, "keys/keys/0")), sink=str(sink)))
