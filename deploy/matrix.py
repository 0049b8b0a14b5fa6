"""Install the wheel of dist/ with each extra, on each Python that is here, and run what the extra is for.

``python deploy/matrix.py`` after ``deploy/build.py``, in an environment with the dependency group ``release``. Rows
with "lowest" install the oldest version of each direct dependency that is admitted. Exits with 1 if a row fails.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SAMPLE = str(ROOT / "sample_checkpoints" / "aggregation-rocksdb-4.2")
BROKEN = str(ROOT / "sample_checkpoints" / "async-kafka-4.2")


@dataclass(frozen=True)
class Trial:
    """A command of ckpt, its exit code, and words that its output has."""

    command: tuple[str, ...]
    code: int
    words: str


PLAIN = (
    Trial(("inspect", SAMPLE), 0, "nothing to repair"),
    Trial(("inspect", BROKEN), 1, "batch"),
    Trial(("repair-async", BROKEN), 1, "--apply"),
)
WITHOUT = Trial(("state", "count", SAMPLE), 3, "[native]")
TRIALS = {
    "": WITHOUT,
    "native": Trial(("export-state", SAMPLE, "--to", "exported"), 0, "rows"),
    "html": Trial(("inspect", SAMPLE, "-o", "html"), 0, "</html>"),
    "sql": Trial(("rewrite", SAMPLE, "new", "--where", "true"), 3, "[native]"),
    "sql,native": Trial(("rewrite", SAMPLE, "new", "--where", "value_count > 0", "--plan"), 0, "new"),
    "kafka": Trial(
        ("inspect", BROKEN, "--sources", "--source-options", "0.kafka.bootstrap.servers=127.0.0.1:1"), 3, "not reached"
    ),
    "hdfs": Trial(("inspect", "hdfs://127.0.0.1:1/checkpoint"), 3, "127.0.0.1:1"),
    "deltalake": Trial(("import-state", "no-table", "new", "--like", SAMPLE), 3, "no-table"),
    "spark": Trial(("export-state", SAMPLE, "--engine", "spark", "--to", "exported"), 0, "rows"),
    "delta": Trial(("export-state", SAMPLE, "--format", "delta", "--to", "exported"), 0, "rows"),
}


def main() -> int:
    """Print a row for each Python, resolution and extra: seconds, and what a command answered if that is wrong."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    print("| Python | dependencies | extra | install s | run s | answer |\n|---|---|---|---|---|---|")
    failures = 0
    for python in PYTHONS:
        for resolution in ("highest", "lowest-direct") if python == PYTHONS[0] else ("highest",):
            for extra in TRIALS if not sys.argv[1:] else sys.argv[1:]:
                row = try_extra(wheel, python, resolution, extra)
                print("|", python, "|", resolution.partition("-")[0], "|", extra or "none", "|", *row, "|", flush=True)
                failures += row[-1] not in ("as expected", "this Python is not here")
    return int(bool(failures))


def try_extra(wheel: Path, python: str, resolution: str, extra: str) -> tuple[str, ...]:
    """Install into a new environment and run the trials of an extra; the last word says how it went."""
    with tempfile.TemporaryDirectory() as folder:
        uv = [sys.executable, "-m", "uv", "--quiet"]
        home = Path(folder, "venv")
        if subprocess.run(
            [*uv, "venv", "--no-python-downloads", "--python", python, home], capture_output=True
        ).returncode:
            return "-", "|", "-", "|", "this Python is not here"
        start = time.monotonic()
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        installed = subprocess.run(
            [*uv, "pip", "install", "--python", home / "bin" / "python", "--resolution", resolution, wanted],
            capture_output=True,
            text=True,
        )
        installing = time.monotonic() - start
        if installed.returncode:
            return f"{installing:.0f}", "|", "-", "|", " ".join(installed.stderr.split())[:300]
        start = time.monotonic()
        trials = (TRIALS[extra],) if extra else (*PLAIN, WITHOUT)
        wrong = [answer for trial in trials if (answer := run_trial(home, trial, folder))]
        return f"{installing:.0f}", "|", f"{time.monotonic() - start:.0f}", "|", "; ".join(wrong) or "as expected"


def run_trial(home: Path, trial: Trial, folder: str) -> str:
    """Run a command; say what is wrong with its answer, "" if nothing is."""
    done = subprocess.run(
        [home / "bin" / "ckpt", *trial.command], cwd=folder, capture_output=True, text=True, timeout=600
    )
    text = done.stdout + done.stderr
    if done.returncode == trial.code and trial.words in text and "Traceback" not in text:
        return ""
    return f"`{' '.join(trial.command[:2])}` exit {done.returncode}: {' '.join(text.split())[-300:]}"


if __name__ == "__main__":
    sys.exit(main())
