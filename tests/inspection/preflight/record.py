"""Record what Spark does with changed queries.

`python -m tests.inspection.preflight.record --spark 4.2=/path/to/python ...`.

For each version: its checkpoints (a zip), and for each change what `ckpt.preflight` said, the description of the query,
and what the start then did. With `--across` each version starts the checkpoints of the others that are recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from tests.support.places import ROOT

FOLDER = Path(__file__).parent / "recorded"
PLACE = Path("/tmp/ckpt-preflight")
"""Where the checkpoints are made: paths inside them begin so."""


def answers(minor: str) -> dict[str, Any]:
    """What was recorded for one version, by change."""
    found: dict[str, Any] = json.loads((FOLDER / f"{minor}.json").read_text())["answers"]
    return found


def recorded() -> list[str]:
    """The versions that were asked."""
    return sorted(one.stem for one in FOLDER.glob("*.json"))


def unpack(minor: str, to: Path) -> Path:
    """The checkpoints that a version made, below a folder."""
    with zipfile.ZipFile(FOLDER / f"{minor}.zip") as packed:
        packed.extractall(to / minor)
    for path in (to / minor).glob("*/state/*/_metadata/v2/*"):  # which name schema files by their absolute paths
        path.write_text(path.read_text().replace(f"{PLACE}/bases/", f"{to / minor}/"))
    return to / minor


def _run(python: str, *words: str) -> list[dict[str, Any]]:
    environment = os.environ | {"PYSPARK_PYTHON": python, "PYTHONPATH": str(ROOT)}
    command = [python, "-m", "tests.inspection.preflight.worker", *words]
    ran = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        raise SystemExit(f"{python} ended with {ran.returncode}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def _pack(bases: Path, minor: str) -> None:
    """The checkpoints, without Hadoop's hidden checksum files, byte for byte the same for the same files."""
    with zipfile.ZipFile(FOLDER / f"{minor}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(bases.rglob("*")):
            hidden = path.name.startswith(".") and path.name.endswith(".crc")
            if path.is_file() and not hidden:
                info = zipfile.ZipInfo(str(path.relative_to(bases)), (2026, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(info, path.read_bytes())


def _write(minor: str, spark: str, found: dict[str, Any]) -> None:
    text = json.dumps(found).replace(str(ROOT), "/project")
    lines = [f"{json.dumps(name)}: {json.dumps(told)}" for name, told in sorted(json.loads(text).items())]
    whole = f'{{"spark": {json.dumps(spark)}, "answers": {{\n' + ",\n".join(lines) + "\n}}\n"
    (FOLDER / f"{minor}.json").write_text(whole)


def main() -> None:
    """Read the command line and record one version after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="append", required=True, metavar="MINOR=PYTHON")
    parser.add_argument("--only", metavar="PATTERN", help="changes, with * and ?; other answers are kept")
    parser.add_argument("--across", action="store_true", help="start the checkpoints that other versions made")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for pair in options.spark:
        minor, _, python = pair.partition("=")
        shutil.rmtree(PLACE, ignore_errors=True)
        kept = {} if not options.only else answers(minor)
        if options.across:
            others = [str(unpack(one, PLACE)) for one in recorded() if one != minor]
            kept = {name: told for name, told in answers(minor).items() if ", made by " not in name}
            first, *told = _run(python, str(PLACE), "", *others)
        else:
            first, *told = _run(python, str(PLACE), options.only or "*")
            if not options.only:
                _pack(PLACE / "bases", minor)
        assert first["spark"].startswith(f"{minor}."), first
        _write(minor, first["spark"], {**kept, **{one.pop("id"): one for one in told}})
        shutil.rmtree(PLACE, ignore_errors=True)


if __name__ == "__main__":
    main()
