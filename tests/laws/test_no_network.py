"""No command talks to anybody who was not named: no socket is opened, and no program is started."""

import subprocess
import sys

import pytest

from tests.support.places import ROOT, SAMPLES

SAMPLE = str(SAMPLES / "aggregation-rocksdb-4.2")
BROKEN = str(SAMPLES / "async-kafka-4.2")
WATCH = (
    "import sys\n"
    "def watch(event, words):\n"
    "    if event.startswith(('socket.', 'urllib.', 'subprocess.', 'os.system', 'os.exec', 'os.posix_spawn')):\n"
    "        print('WENT OUT', event, words, file=sys.stderr)\n"
    "sys.addaudithook(watch)\n"
)
LOOKS = [
    ("inspect", BROKEN),
    ("inspect", SAMPLE, "--deep", "-o", "html"),
    ("scan", BROKEN),
    ("preflight", SAMPLE),
    ("explain", "batch 3 doesn't exist"),
    ("repair-async", BROKEN),
    ("state", "count", SAMPLE),
    ("handoff", BROKEN),
]


def run_watched(*words: str) -> subprocess.CompletedProcess[str]:
    script = f"{WATCH}{words[0]}" if len(words) == 1 else f"{WATCH}import ckpt.__main__"
    return subprocess.run([sys.executable, "-c", script, *words], cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize("words", LOOKS, ids=lambda words: words[0])
def test_nobody_is_called(words: tuple[str, ...]) -> None:
    done = run_watched(*words)
    assert done.returncode in (0, 1), done.stderr
    assert "WENT OUT" not in done.stderr


def test_a_call_would_be_seen() -> None:
    assert "WENT OUT socket." in run_watched("import socket; socket.gethostbyname('localhost')").stderr
