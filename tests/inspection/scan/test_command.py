"""``ckpt scan`` as it is typed: its documents, its exit codes, and what it leaves where it is interrupted."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.commands import contract
from tests.conftest import Ckpt, CopyOf, command
from tests.inspection.scan.trees import build
from tests.support.places import HERE, ROOT

BAD = "sample_checkpoints/damaged-missing-sst"
WARNED = "sample_checkpoints/async-kafka-4.2"
GOOD = "sample_checkpoints/kafka-4.2"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("scan") / "root", 30, hostile=True)


def families(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """The samples of each family by the values of their labels, read by Prometheus' own client."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        assert family.name not in found, "all samples of a family are in one place"
        found[family.name] = {tuple(one.labels.values()): one.value for one in family.samples}
        assert len(found[family.name]) == len(family.samples), "no sample is there twice"
    return found


def test_the_document_is_as_published(tree: Path, ckpt: Ckpt) -> None:
    document = ckpt("scan", tree, "-o", "json").json()
    assert contract.disagreements(document, "scan") == []
    assert contract.keys_in(document) | {"checkpoints[].points[]"} >= set(contract.shapes("scan"))
    lines = ckpt("scan", tree, "-o", "jsonl").stdout.splitlines()
    ages = {"age_ms": 0}
    assert [json.loads(line) | ages for line in lines] == [one | ages for one in document["checkpoints"]]


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("name", ["o", "orders-" * 12])
def test_the_verdict_is_there_however_narrow_the_page_is(
    name: str, width: int, copy_of: CopyOf, ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy_of("async-kafka-4.2", to=f"all/{name}").parent
    monkeypatch.setenv("COLUMNS", str(width))
    page = ckpt("scan", root).stdout
    table = page.split("\n\n")[2]
    assert "Will not restart without" in table
    assert table.count("tracking:") == 1
    assert all(len(line) <= width or name in line for line in table.splitlines())
    assert ("CKPT201" in table) == (width > 40 and len(name) < width / 2)


def test_healthy_checkpoints_are_one_line(copy_of: CopyOf, ckpt: Ckpt) -> None:
    root = copy_of("aggregation-hdfs-4.2", to="all/good").parent
    for number in range(3):
        copy_of("aggregation-hdfs-4.2", to=f"all/{number}")
    healthy = ckpt("scan", root).stdout
    assert re.search(r"\n  (4 without findings|4 with notes only|.*): --all shows them\n", healthy)
    assert "good" not in healthy
    assert ckpt("scan", root, "--all").stdout.count("Restarts with new batch 10") == 4
    (root / "1" / "commits" / "9").write_text("")
    page = ckpt("scan", root).stdout
    assert [name in page for name in (f"{root}/1\n", "  good ", "  1 ")] == [True, False, True]
    assert re.search(r"\n  3 with", page)
    assert "good" in ckpt("scan", root, "-o", "html").stdout.partition("<summary>3 with")[2]


@pytest.mark.parametrize("form", ["json", "jsonl", "html", "github", "prometheus"])
def test_what_is_written_names_checkpoints_by_absolute_paths(
    form: str, ckpt: Ckpt, tmp_path: Path, copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copy_of("stateless-4.2", to="all/q") / "metadata").unlink()
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    run = partial(ckpt, "scan", "all")
    monkeypatch.chdir(tmp_path)
    written = run("-o", form, "--textfile", tmp_path / "x.prom").stdout
    assert f'checkpoint="{tmp_path}/all/q"' in (tmp_path / "x.prom").read_text()
    for text in (written, run("--textfile", tmp_path / "x.prom").stdout):
        assert f"{tmp_path}/all" in text.replace("\\", "")
        assert not re.search(r"(?<![\w/])all/q", text.replace("\\", ""))
    assert "ckpt inspect all/q" in run().stdout


def test_next_names_a_checkpoint_for_each_kind_of_trouble(copy_of: CopyOf, ckpt: Ckpt) -> None:
    for number, name in enumerate(("stateless-4.2", "stateless-4.2", "kafka-4.2")):
        (copy_of(name, to=f"all/{number}") / "commits" / "5").write_text("")
    (copy_of("stateless-3.5", to="all/3") / "metadata").unlink()
    root = copy_of("aggregation-hdfs-4.2", to="all/4").parent
    (root / "4" / "state" / "0" / "0" / "10.delta").unlink()
    (root / "4" / "state" / "0" / "1" / "10.delta").unlink()
    _, _, after = ckpt("scan", root).stdout.partition("Next      ")
    wanted = [
        "See what CKPT101 unreadable-log-file in 3 checkpoints means and what to do.",
        f"ckpt inspect {root}/0",
        "Then See what CKPT103 missing-metadata means and what to do.",
        f"ckpt inspect {root}/3",
        "Then See what CKPT301 state-file-missing means and what to do.",
        f"ckpt inspect {root}/4",
    ]
    assert after.split() == " ".join(wanted).split()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([BAD], 1),
        ([BAD, "--fail-on", "error"], 1),
        ([WARNED], 1),
        ([WARNED, "--fail-on", "error"], 0),
        ([GOOD], 0),
        ([GOOD, "nowhere"], 3),
        (["--depth", "0", "sample_checkpoints"], 3),
        ([GOOD, "--watch", "5", "-o", "json"], 2),
        ([GOOD, "--textfile", "nowhere/x.prom"], 2),
        ([GOOD, "--changed-since", "yesterday"], 2),
        ([GOOD, "--sources"], 2),
        ([GOOD, "--source-options", "kafka.bootstrap.servers=h:1"], 2),
        ([GOOD, "--sources", "--source-options", "kafka.bootstrap.servers"], 2),
    ],
)
def test_exit_codes(words: list[str], code: int, ckpt: Ckpt) -> None:
    assert ckpt("scan", *words).exit_code == code


def test_a_page_has_a_line_for_each_and_the_next_command(ckpt: Ckpt) -> None:
    page = ckpt("scan", GOOD, WARNED, BAD, "nowhere", "--all").stdout
    assert "1 WITH ERRORS, 1 WITH WARNINGS, 1 ROOT WITHOUT A CHECKPOINT" in page
    places = [page.index(name) for name in (BAD, WARNED, GOOD)]
    assert places == sorted(places)
    assert f"ckpt inspect {BAD}" in page
    assert "nowhere does not exist" in page


def test_metrics_are_read_by_prometheus(tree: Path, ckpt: Ckpt) -> None:
    document = ckpt("scan", tree, "-o", "json").json()["checkpoints"]
    text = ckpt("scan", tree, "-o", "prometheus").stdout

    found = families(text)

    assert found["ckpt_scan_root_checkpoints"] == {(str(tree),): len(document)}
    assert found["ckpt_checkpoint_readable"] == {(one["path"],): one["error"] is None for one in document}
    sizes = {(one["path"],): one["state_bytes"] for one in document if one["state_bytes"] is not None}
    assert found["ckpt_checkpoint_state_size_bytes"] == sizes
    times = {(one["path"],): one["latest_ms"] / 1000 for one in document if one["latest_ms"] is not None}
    assert found["ckpt_checkpoint_latest_batch_timestamp_seconds"] == times
    errors = {(one["path"], "error"): one["findings"]["error"] for one in document if one["findings"]}
    assert {key: n for key, n in found["ckpt_checkpoint_findings"].items() if key[1] == "error"} == errors


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_the_metrics_and_the_rules(tree: Path, ckpt: Ckpt) -> None:
    text = ckpt("scan", tree, "-o", "prometheus").stdout
    subprocess.run(["promtool", "check", "metrics"], input=text.encode(), check=True)
    subprocess.run(["promtool", "check", "rules", ROOT / "docs/monitoring/alerts.yml"], check=True)


def test_hostile_names_stay_inside_their_labels(ckpt: Ckpt, tmp_path: Path) -> None:
    names = {'a"} 1', "b\\", "c\nx 1", r"c\nx 1", "\x1b[2J", "s3:__KEY:SECRET@d"}
    for name in names:
        (tmp_path / name / "offsets").mkdir(parents=True)
    run = ckpt("scan", tmp_path, "-o", "prometheus")
    shown = {name.replace("\x1b", r"\x1b") for name in names}
    assert {path for (path,) in families(run.stdout)["ckpt_checkpoint_readable"]} == {
        f"{tmp_path}/{name}" for name in shown
    }


def test_a_textfile_is_there_as_a_whole_or_not_at_all(ckpt: Ckpt, tmp_path: Path) -> None:
    target = tmp_path / "ckpt.prom"
    target.write_text("before")
    run = ckpt("scan", GOOD, "--textfile", target, "-o", "prometheus")
    assert families(target.read_text()).keys() == families(run.stdout).keys()
    assert target.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["ckpt.prom"]


def started(words: list[str], **how: Any) -> Any:
    """A process that Ctrl-C reaches, also where whoever started the tests has it ignored, as nohup and ``&`` do."""
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(words, cwd=HERE, stdout=subprocess.PIPE, preexec_fn=heeding, **how)


READY = """
import sys
from importlib.metadata import entry_points
(script,) = entry_points(group="console_scripts", name="ckpt")
main = script.load()
sys.stderr.write("ready\\n")
sys.stderr.flush()
main()
"""
"""Runs ckpt, and says when Python has come up: before that an interrupt is none of ckpt's business."""


@pytest.mark.slow
def test_an_interrupt_leaves_nothing_half_written(copy_of: CopyOf, tmp_path: Path) -> None:
    for number in range(200):
        copy_of("stateless-4.2", to=f"many/{number}")
    target = tmp_path / "ckpt.prom"
    target.write_text("before")
    words = [sys.executable, "-c", READY, "scan", str(tmp_path / "many"), "--textfile", str(target), "-o", "json"]
    for wait in (0.1, 0.4):
        process = started(words, stderr=subprocess.PIPE, process_group=0)
        assert process.stderr.readline() == b"ready\n"
        time.sleep(wait)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        left = target.read_text()
        assert left == "before" or len(families(left)["ckpt_checkpoint_readable"]) == 200
        assert process.returncode not in (0, 1) or len(json.loads(out)["checkpoints"]) == 200
        assert [path.name for path in tmp_path.glob("*prom*")] == ["ckpt.prom"]


@pytest.mark.slow
def test_a_watch_scans_again(copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("stateless-4.2")
    words = [*command(), "scan", str(checkpoint), "--watch", "1", "-o", "jsonl"]
    with started(words, text=True) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        (checkpoint / "offsets" / str(first["latest_batch"])).write_text("")
        later = (json.loads(line) for line in process.stdout)
        second = next(one for one in islice(later, 20) if one["severity"] != first["severity"])
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert (first["severity"], second["severity"]) == ("note", "error")
