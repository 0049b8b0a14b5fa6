"""What a person sees: one page, 80 columns, nothing that a terminal would obey, colour only where it is wanted."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ckpt.errors import CkptError
from commands.watching import interruptible
from tests.conftest import OUTPUTS, Ckpt, CopyOf, command
from tests.support.places import GOLDENS, HERE, SAMPLE_NAMES, golden_checkpoints
from tests.support.spark.live import EVERY_CASE

pytestmark = pytest.mark.slow

TO_COPY = r"(Next)? +(→ )?((?:ckpt|grep) [a-z-]+|mkdir -p) "
NASTY = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202e\u2028\x00\x7f end"


def too_wide(page: str) -> list[str]:
    """Lines over 80 columns that could have been folded: whose words are all short, and that hold nothing to copy."""
    wide = [line for line in page.splitlines() if len(line) > 80 and not re.match(TO_COPY, line)]
    return [line for line in wide if max(map(len, line.split())) + _margin(line) <= 80]


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_the_page_of_every_sample_fits_80_columns(sample: str, ckpt: Ckpt) -> None:
    page = ckpt("inspect", f"sample_checkpoints/{sample}").stdout
    assert too_wide(page) == []
    assert page.split("\n\n")[1].startswith(sample)


@pytest.mark.parametrize("golden", golden_checkpoints())
def test_the_page_of_every_golden_fits_80_columns(golden: str, ckpt: Ckpt) -> None:
    assert too_wide(ckpt("inspect", GOLDENS / golden).stdout) == []


def test_a_page_with_many_sources_fits_80_columns(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        head = file.read_text().splitlines()[:2]
        topics = [
            json.dumps({f"topic-{i}": {str(p): 1_000_000_000 * int(file.name) + p for p in range(64)}})
            for i in range(12)
        ]
        file.write_text("\n".join([*head, *topics]))
    page = ckpt("inspect", checkpoint).stdout
    assert "12 sources" in page
    assert too_wide(page) == []


def test_a_page_of_batches_far_apart_fits_80_columns(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    for folder in ("offsets", "commits"):
        for batch in range(6):
            number = 10**17 * (batch + 1)
            (checkpoint / folder / str(batch)).rename(checkpoint / folder / str(number))
            (checkpoint / folder / f".{batch}.crc").unlink()
    assert too_wide(ckpt("inspect", checkpoint).stdout) == []


def test_the_verdict_comes_first_and_the_next_step_last(ckpt: Ckpt) -> None:
    for sample in SAMPLE_NAMES[:: 1 if EVERY_CASE else 3]:
        page = ckpt("inspect", f"sample_checkpoints/{sample}").stdout
        verdict = ckpt("inspect", f"sample_checkpoints/{sample}", "-o", "json").json()["verdict"]
        assert " ".join(page.split()).lower().startswith(verdict.lower())
        parts = ("Findings", "Sources", "Batches", "State", "Notes", "Next")
        places = [page.index(f"\n{name}") for name in parts if f"\n{name}" in page]
        assert places == sorted(places)
        assert page.count("\nFindings") <= 1


def test_table_is_the_default_and_is_no_json(ckpt: Ckpt) -> None:
    path = "sample_checkpoints/stateless-3.5"
    assert ckpt("inspect", path).stdout == ckpt("inspect", path, "-o", "table").stdout
    with pytest.raises(json.JSONDecodeError):
        ckpt("inspect", path).json()


def nasty(checkpoint: Path) -> Path:
    """Write text that a terminal would obey wherever a checkpoint holds text; what was there stays readable."""
    (checkpoint / "metadata").write_text(json.dumps({"id": NASTY}))
    topic = {NASTY: {"0": 1}, "\ud800": {"0": 2}, "x" * 500: {"0": 3}}
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        first, second, *_ = file.read_text().splitlines()
        meta = json.loads(second)
        meta["conf"] |= {NASTY: NASTY, "spark.sql.streaming.stateStore.providerClass": NASTY}
        file.write_text(
            "\n".join([first, json.dumps(meta), json.dumps(topic), json.dumps(NASTY), json.dumps({"a": NASTY})])
        )
    for folder in ("", "offsets", "commits", "state", "state/0", "state/0/0", "sources"):
        (checkpoint / folder).mkdir(exist_ok=True)
        for name in (NASTY.replace("\0", ""), ".5.\x1b[1m.tmp", "\x1b[2J.crc"):
            (checkpoint / folder / name).write_text(NASTY)
        with open(os.fsencode(checkpoint / folder) + b"/\xff\xfe.tmp", "wb") as file_of_bytes:
            file_of_bytes.write(b"x")
    for file in (file for file in checkpoint.glob("state/*/**/*") if file.is_file()):
        raw = file.read_bytes().replace(b'"operatorName":"', b'"operatorName":"\\u001b[2J')
        raw = raw.replace(b'\\"stateName\\":\\"', b'\\"stateName\\":\\"\\\\u001b[2J')
        file.write_bytes(raw.replace(b'"name":"count"', '"name":"\u202ent"'.encode()))
    return checkpoint


@pytest.mark.parametrize("sample", ["stateless-3.5", "aggregation-hdfs-3.5", "tws-rocksdb-4.2", "two-sources-3.5"])
def test_text_from_a_checkpoint_never_reaches_the_terminal_raw(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = nasty(copy_of(sample, to="\x1b[2J checkpoint \u202e"))

    table, document = ckpt("inspect", checkpoint), ckpt("inspect", checkpoint, "-o", "json")

    assert all(line.isprintable() for line in table.stdout.split("\n"))
    assert all(line.isprintable() for line in document.stdout.split("\n"))
    assert document.stdout.isascii()
    assert document.json()["checkpoint"]["path"] == str(checkpoint)
    assert table.exit_code == document.exit_code in (0, 1)


@pytest.mark.parametrize("line", [b"v1\x1b[2J", b'v1\n{"\x1b[2J', b"v1\n{}\n\x1b]0;x\x07", b"v1\n{}\n\xff\xfe"])
def test_text_of_unreadable_files_never_reaches_the_terminal_raw(line: bytes, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("stateless-3.5")
    for path in ("offsets/5", "offsets/2", "commits/5", "metadata"):
        (checkpoint / path).write_bytes(line)
    assert all(row.isprintable() for row in ckpt("inspect", checkpoint).stdout.split("\n"))
    assert all(row.isprintable() for row in ckpt("inspect", checkpoint, "-o", "json").stdout.split("\n"))


def test_a_nasty_path_in_an_error_is_one_printable_line(ckpt: Ckpt, tmp_path: Path) -> None:
    result = ckpt("inspect", tmp_path / "\x1b[2J\nno\u202esuch")
    assert result.exit_code == 3
    assert result.refusal()


def test_names_of_checkpoints_below_are_printable(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    copy_of("stateless-3.5", to="\x1b[2J\nqueries")
    result = ckpt("inspect", tmp_path)
    assert result.exit_code == 3
    assert "queries" in result.refusal()


# Colour and pipes: only a process of its own has a terminal.


def on_a_terminal(*words: str, typed: bytes = b"", **env: str) -> str:
    """Run ckpt on a terminal of 80 columns, type into it, and return all that it shows."""
    ours, its = pty.openpty()
    os.set_blocking(ours, True)
    subprocess.run(["stty", "cols", "80", "rows", "24"], stdin=its, check=True)
    env = {"TERM": "xterm-256color", **{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}, **env}
    with subprocess.Popen([*command(), *words], stdout=its, stdin=its, stderr=its, cwd=HERE, env=env) as process:
        os.close(its)
        os.write(ours, typed)
        parts = []
        while part := _read(ours):
            parts.append(part)
        process.wait(60)
    os.close(ours)
    return b"".join(parts).decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the other side is closed
        return b""


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_a_terminal_gets_colour_and_the_same_words(ckpt: Ckpt) -> None:
    words = ("inspect", "sample_checkpoints/damaged-missing-metadata")
    shown = on_a_terminal(*words).replace("\r\n", "\n")

    assert COLOUR.search(shown)
    assert COLOUR.sub("", shown) == ckpt(*words).stdout
    assert "\x1b" not in COLOUR.sub("", shown)


def test_no_color_switches_colour_off() -> None:
    shown = on_a_terminal("inspect", "sample_checkpoints/damaged-missing-metadata", NO_COLOR="1")
    assert "\x1b" not in shown
    assert "WILL NOT RESTART" in shown


@pytest.mark.parametrize("env", [{}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, {"PYTHONIOENCODING": "utf-8"}])
def test_a_pipe_gets_no_colour(env: dict[str, str], ckpt_process: Ckpt) -> None:
    result = ckpt_process("inspect", "sample_checkpoints/damaged-missing-metadata", env=env)
    assert "\x1b" not in result.stdout
    assert result.stderr == ""
    assert result.exit_code == 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_knows_no_unicode_gets_a_page_all_the_same(encoding: str, ckpt_process: Ckpt) -> None:
    env = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [*command(), "inspect", "sample_checkpoints/damaged-missing-metadata"],
        cwd=HERE,
        env={**os.environ, **env},
        capture_output=True,
        timeout=60,
    )
    assert done.stderr == b""
    assert done.returncode == 1
    assert b"WILL NOT RESTART" in done.stdout


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_reader_that_leaves_early_is_no_trouble(output: str) -> None:
    piped = f"{' '.join(command())} inspect sample_checkpoints/join-hdfs-3.5 -o {output} | head -c 1"
    done = subprocess.run(["bash", "-c", piped], cwd=HERE, capture_output=True, text=True, timeout=60)
    assert len(done.stdout) == 1
    assert done.stderr == ""


def test_a_full_disk_is_told_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command(), "inspect", "sample_checkpoints/stateless-3.5"],
            cwd=HERE,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert "Traceback" not in done.stderr
    assert done.returncode == 3
    assert done.stderr.startswith("ckpt: ")


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
def interrupt(event, args):
    if event == "open" and "offsets/5" in str(args[0]):
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
from importlib.metadata import entry_points
(script,) = entry_points(group="console_scripts", name="ckpt")
script.load()(sys.argv[1:])
"""


@pytest.mark.parametrize("command", ["inspect", "repair-async", "relocate", "handoff"])
def test_ctrl_c_while_reading_ends_a_run_without_a_word(command: str) -> None:
    words = [sys.executable, "-c", INTERRUPTED, command, "sample_checkpoints/stateless-3.5", "-o", "json"]
    done = subprocess.run(words, cwd=HERE, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_errors_go_to_stderr_and_leave_stdout_empty(ckpt_process: Ckpt) -> None:
    result = ckpt_process("inspect", "no/such/folder", "-o", "json")
    assert result.exit_code == 3
    assert "no/such/folder" in result.refusal()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_cleans_up_as_after_ctrl_c(number: signal.Signals) -> None:
    """Whatever the tests were started with: `nohup` ignores one of them."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(CkptError, match="interrupted; nothing was written"), interruptible():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
