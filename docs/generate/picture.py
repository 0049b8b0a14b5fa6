"""``docs/images/report.png``: a page of ``ckpt inspect -o html`` in a browser, if Chromium is installed.

No test compares it: another Chromium draws the same page with other bytes.
"""

import shutil
import subprocess
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from .app import run_ckpt
from .places import DOCS, ROOT

PICTURE = DOCS / "images" / "report.png"
SHOWN = "ckpt inspect sample_checkpoints/async-kafka-4.2 -o html"
SIZE = "820,1000"


def take_picture() -> None:
    """Write the picture, or say why not."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not chromium:
        print(f"{PICTURE.relative_to(ROOT)} stays as it is: Chromium is not installed")  # noqa: T201
        return
    with TemporaryDirectory() as scratch, chdir(ROOT):
        page = Path(scratch, "report.html")
        shown = run_ckpt(SHOWN).replace(f"{ROOT}/sample_checkpoints/", "/checkpoints/")  # not a path of this machine
        page.write_text(shown, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={scratch}/profile"]
        shot = [f"--window-size={SIZE}", f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run([chromium, *options, *shot], check=True, capture_output=True, timeout=120)
