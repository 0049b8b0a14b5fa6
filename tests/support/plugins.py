"""Distributions of somebody else that teach ckpt a source or a sink, and processes that find them."""

import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path


def install(plugin: Path, folder: Path, code: str | None = None) -> Path:
    """Install a distribution into a folder, as pip installs any wheel; ``code`` replaces its module."""
    project = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]
    name = f"{project['name'].replace('-', '_')}-{project['version']}"
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    entries = [line for group, points in project["entry-points"].items() for line in (f"[{group}]", *_lines(points))]
    (module,) = plugin.glob("*.py")
    files = {
        module.name: module.read_text() if code is None else code,
        f"{name}.dist-info/METADATA": metadata,
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/entry_points.txt": "\n".join(entries),
    }
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{name}.dist-info/RECORD", "".join(f"{path},,\n" for path in files))
    site = folder / "site"
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True, capture_output=True)
    return site


def run_with(sites: Sequence[Path], *words: object) -> subprocess.CompletedProcess[str]:
    """Run ckpt in a process that finds what is installed in these folders."""
    command = [sys.executable, "-m", "ckpt", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sites))}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def _lines(points: dict[str, str]) -> list[str]:
    return [f"{name} = {function}" for name, function in points.items()]
