"""``docs/runbooks/relocate.md`` with the output of its commands as it is now.

``python -m tests.changes.relocate.runbook``.
"""

import os
import re
import shutil
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.cli import invoke
from tests.support.places import ROOT, SAMPLES

PAGE = ROOT / "docs" / "runbooks" / "relocate.md"
_BLOCK = re.compile(r"```console\n\$ ckpt (?P<words>[^\n]*)\n.*?```", re.S)


def page() -> str:
    """Run the commands in their order, on a copy of the sample that the page names."""

    def filled(block: re.Match[str]) -> str:
        output = invoke(*block["words"].split(), "--quiet").stdout
        return f"```console\n$ ckpt {block['words']}\n{output.rstrip()}\n```"

    with TemporaryDirectory() as scratch, chdir(scratch):
        shutil.copytree(SAMPLES / "tws-rocksdb-4.2", Path("checkpoints/devices"))
        for file in Path("checkpoints").rglob("*"):
            os.utime(file, (0, 0))
        return _BLOCK.sub(filled, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
