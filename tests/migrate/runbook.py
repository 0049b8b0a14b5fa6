"""What ``docs/runbooks/changelog.md`` shows of Spark, as it is now: ``python -m tests.migrate.runbook``."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.places import ROOT, SAMPLES

PAGE = ROOT / "docs" / "runbooks" / "changelog.md"
_BLOCK = re.compile(r"```text\n\$ ckpt (?P<words>[^\n]*)\n.*?```", re.S)


def as_switched(checkpoint: Path) -> Path:
    """A copy of aggregation-changelog-4.2 as if versions 1 to 3 had been written without changelogs."""
    for version in (1, 2, 3):
        for log in checkpoint.glob(f"state/0/*/*{version}.changelog*"):
            log.unlink()
    return checkpoint


def page() -> str:
    """The page with the output of the commands that need Spark."""
    with TemporaryDirectory() as scratch:
        as_switched(Path(shutil.copytree(SAMPLES / "aggregation-changelog-4.2", Path(scratch, "checkpoints/orders"))))

        def filled(block: re.Match[str]) -> str:
            small = ["--master", "local[1]", "--conf", "spark.driver.host=127.0.0.1"]
            command = [sys.executable, "-m", "ckpt", *block["words"].split(), *small, "--quiet"]
            output = subprocess.run(
                command, cwd=scratch, capture_output=True, text=True, timeout=600, check=True
            ).stdout
            return f"```text\n$ ckpt {block['words']}\n{output.rstrip()}\n```"

        return _BLOCK.sub(filled, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
