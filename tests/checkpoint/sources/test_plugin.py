"""A distribution of somebody else teaches ckpt a source; a faulty one is one line on standard error."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CopyOf
from tests.support.places import ROOT
from tests.support.plugins import install, run_with

pytestmark = pytest.mark.slow

PLUGIN = Path(__file__).parent / "plugin"
Run = Callable[..., subprocess.CompletedProcess[str]]


def feed(number: int) -> dict[str, Any]:
    return {"feed": "news", "next": number}


@pytest.fixture
def checkpoint(copy_of: CopyOf) -> Path:
    """A checkpoint whose batches end at messages 0, 10, 20 ... of a feed."""
    folder = copy_of("kafka-4.2")
    for path in (folder / "offsets").iterdir():
        if path.name.startswith("."):
            path.unlink()
        else:
            head = path.read_text().splitlines()[:2]
            path.write_text("\n".join([*head, json.dumps(feed(10 * int(path.name)))]))
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the plugin is installed."""
    return install(PLUGIN, tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def ckpt(site: Path) -> Run:
    return lambda *words: run_with([site], *words)


def document(run: subprocess.CompletedProcess[str]) -> Any:
    assert run.stderr == ""
    return json.loads(run.stdout)


def test_it_is_named_and_counted(ckpt: Run, checkpoint: Path) -> None:
    inspected = document(ckpt("inspect", checkpoint, "-o", "json"))
    (source,) = inspected["sources"]
    assert (source["type"], source["offset"], source["decoded"]) == ("feed", feed(50), feed(50))
    page = ckpt("inspect", checkpoint, "-v").stdout
    assert "(feed)" in page.split("\n\n")[1]
    assert "message 50 of news" in page
    assert "+10 messages" in page
    (shown,) = document(ckpt("offsets", "show", checkpoint, "-o", "json"))["sources"]
    assert (shown["amount"], shown["unit"], shown["rows"]) == (10, "messages", 10)
    assert shown["reader_option"] == {"startingMessage": "50"}


def test_it_is_handed_off(ckpt: Run, checkpoint: Path) -> None:
    (source,) = document(ckpt("handoff", checkpoint, "-o", "json"))["sources"]
    assert (source["type"], source["begin"]) == ("feed", "exact")
    assert source["options"] == {"startingMessage": "50"}
    code = ckpt("handoff", checkpoint, "--snippet", "python").stdout
    assert 'spark.readStream.format("feed")' in code
    assert '.option("startingMessage", "50")' in code


def test_its_reader_needs_more_than_a_start(site: Path, checkpoint: Path) -> None:
    code = "import ckpt, sys; print(ckpt.inspect(ckpt.open_checkpoint(sys.argv[1])).sources[0].reader_options)"
    command = [sys.executable, "-c", code, str(checkpoint)]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True).stdout
    assert printed.strip() == str({"feedFile": "", "feed": "news"})


@pytest.mark.parametrize(
    ("words", "end", "cost"),
    [(("--to", json.dumps(feed(45))), 45, "replay"), (("--shift", "+7"), 57, "skipped")],
)
def test_its_end_is_set(words: tuple[str, str], end: int, cost: str, ckpt: Run, checkpoint: Path) -> None:
    plan = document(ckpt("offsets", "set", checkpoint, *words, "-o", "json"))
    assert plan["sources"] == [{"index": 0, "from": feed(50), "to": feed(end)}]
    assert plan["refused"] is None
    assert plan[cost][0]["sources"][0]["amount"] == abs(end - 50)
    accepted = {"replay": "--accept-replay", "skipped": "--accept-skip"}[cost]
    ckpt("offsets", "set", checkpoint, *words, "--expect-batch", 5, "--apply", "--grace", 0, accepted)
    assert document(ckpt("inspect", checkpoint, "-o", "json"))["sources"][0]["offset"] == feed(end)


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ({"feed": "news"}, '`to` is not an offset of a feed source: {"feed": "news"}'),
        ({"feed": "olds", "next": 3}, "the query reads the feed news"),
    ],
)
def test_an_end_that_it_does_not_take_is_refused(to: Any, reason: str, ckpt: Run, checkpoint: Path) -> None:
    run = ckpt("offsets", "set", checkpoint, "--to", json.dumps(to), "-o", "json")
    assert run.returncode in (2, 3)
    assert reason.replace("`to`", "--to") in run.stderr + run.stdout.replace('\\"', '"')


@pytest.fixture
def ask(ckpt: Run, checkpoint: Path, tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run `ckpt inspect` with a feed that has these messages."""

    def run(messages: str) -> subprocess.CompletedProcess[str]:
        place = tmp_path / "news"
        place.write_text(messages)
        option = f"0.feedFile={place}"
        return ckpt("inspect", checkpoint, "--sources", "--source-options", option, "-o", "json")

    return run


@pytest.mark.parametrize(
    ("messages", "outcome", "waiting", "lost", "said"),
    [
        ("0 1050", "continues", 1000, 0, "message 0 of news to message 1050 of news; 1,000 messages to be read"),
        ("60 80", "unknown", 20, 10, "; 20 messages to be read, and 10 before them are gone"),
        ("0 7", "unknown", None, None, "to message 7 of news, and the next batch begins at message 50 of news"),
    ],
)
def test_it_is_asked(messages: str, outcome: str, waiting: int | None, lost: int | None, said: str, ask: Any) -> None:
    now = document(ask(messages))["sources"][0]["live"]
    assert (now["outcome"], now["unit"], now["waiting"], now["lost"]) == (outcome, "messages", waiting, lost)
    assert now["said"].endswith(said)


def test_a_planned_batch_is_to_be_read(ask: Any, checkpoint: Path) -> None:
    for name in ("5", ".5.crc"):
        (checkpoint / "commits" / name).unlink()
    assert document(ask("0 50"))["sources"][0]["live"]["waiting"] == 10
    assert document(ask("0 49"))["sources"][0]["live"]["outcome"] == "unknown"


def test_a_plugin_that_cannot_ask_is_one_line(ask: Any, ckpt: Run, checkpoint: Path) -> None:
    run = ask("no numbers")
    assert json.loads(run.stdout)["sources"][0]["live"] is None
    (said,) = run.stderr.splitlines()
    assert said.startswith("ckpt: plugin feed of ckpt.sources: ValueError: invalid literal for int()")
    unreached = ckpt("inspect", checkpoint, "--sources", "--source-options", "0.feedFile=/nowhere", "-o", "json")
    assert (unreached.returncode, json.loads(unreached.stdout)["sources"][0]["live"]["outcome"]) == (3, "unreached")
    assert "the feed cannot be read: No such file or directory" in unreached.stderr
    unnamed = ckpt("inspect", checkpoint, "--sources")
    assert (unnamed.returncode, "name the file of source 0: 0.feedFile=PATH" in unnamed.stderr) == (2, True)


def test_preflight_asks_it(ckpt: Run, checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "news").write_text("60 80")
    run = ckpt(
        "preflight", checkpoint, "--sources", "--source-options", f"0.feedFile={tmp_path / 'news'}", "-o", "json"
    )
    assert "current offsets of source 0: it has message 60 of news to message 80" in run.stdout


FAULTY = (PLUGIN / "ckpt_feed.py").read_text()


@pytest.mark.parametrize(
    ("code", "line", "type_"),
    [
        ("raise RuntimeError('broken\\nin two')", r"RuntimeError: broken\nin two", "unknown"),
        ("", "AttributeError: module 'ckpt_feed' has no attribute 'FeedKind'", "unknown"),
        ("FeedKind = dict", "TypeError: it must be a subclass of ckpt.checkpoint.sources.kind.SourceKind", "unknown"),
        (
            FAULTY.replace('name = "feed"', 'name = "kafka"'),
            "ValueError: its sources cannot be called 'kafka'",
            "unknown",
        ),
        (FAULTY.replace('value.keys() != {"feed", "next"}', "1 / 0"), "ZeroDivisionError", "unknown"),
        (FAULTY.replace('return {"feed": offset.feed, "next": offset.next}', "return {0: self}"), "TypeError", "feed"),
        (FAULTY.replace('return f"message', 'return b"'), "TypeError: it must return str, not bytes", "feed"),
    ],
)
def test_a_faulty_plugin_is_one_line(
    code: str, line: str, type_: str, checkpoint: Path, tmp_path: Path, site: Path
) -> None:
    (tmp_path / "ckpt_feed.py").write_text(code)
    run = run_with([tmp_path, site], "inspect", checkpoint, "-o", "json")
    (source,) = json.loads(run.stdout)["sources"]
    assert (source["type"], source["offset"]) == (type_, feed(50))
    (said,) = (run.stderr or run_with([tmp_path, site], "inspect", checkpoint).stderr).splitlines()
    assert said.startswith(f"ckpt: plugin feed of ckpt.sources: {line}")


def test_the_example_of_the_page_is_a_plugin(checkpoint: Path, tmp_path: Path, site: Path) -> None:
    code = re.findall("```python\n(.*?)```", (ROOT / "docs" / "plugins.md").read_text(), re.S)
    (tmp_path / "ckpt_feed.py").write_text("\n".join([*code, "FeedKind = AskedFeedKind"]))
    for path in (checkpoint / "offsets").iterdir():
        path.write_text(path.read_text().replace('"feed": "news", ', ""))
    page = run_with([tmp_path, site], "inspect", checkpoint, "-v")
    assert page.stderr == ""
    assert "message 50" in page.stdout
    assert "+10 messages" in page.stdout
    (tmp_path / "feed").write_text("row\n" * 60)
    option = f"0.path={tmp_path / 'feed'}"
    asked = run_with([tmp_path, site], "inspect", checkpoint, "--sources", "--source-options", option)
    assert "now: it has message 0 to message 60; 10 messages to be read" in " ".join(asked.stdout.split())


def test_a_source_that_ckpt_knows_loads_no_plugin(copy_of: CopyOf, tmp_path: Path, site: Path) -> None:
    (tmp_path / "ckpt_feed.py").write_text("raise RuntimeError")
    run = run_with([tmp_path, site], "inspect", copy_of("kafka-4.2"), "-o", "json")
    assert document(run)["sources"][0]["type"] == "kafka"
