"""Build sdist and wheel into dist/: twice, from copies in other folders with other times, whose bytes must be equal.

``python deploy/build.py`` in an environment with the dependency group ``release``; exits with 1 if they differ, or if
the metadata would be refused by an index.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_UMASKS = (0o022, 0o002)


def main() -> int:
    """Build, compare, check, and print what was built."""
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        builds = [build_copy(Path(folder, f"copy-{mask:o}"), mask) for mask in _UMASKS]
        first, second = ({file.name: file.read_bytes() for file in sorted(build.iterdir())} for build in builds)
        shutil.copytree(builds[0], out)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, out.iterdir())], check=True)
    for name, data in first.items():
        print(f"{hashlib.sha256(data).hexdigest()}  {name}  {len(data):,} bytes")
    (wheel,) = out.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    print(f"{len(names)} files in the wheel:", *sorted({name.partition("/")[0] for name in names}))
    if first != second:
        print("the two builds differ", file=sys.stderr)
    return int(first != second)


def build_copy(copy: Path, mask: int) -> Path:
    """Build what git knows of the tree, copied to a folder with times of now and other permissions."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    before = os.umask(mask)
    try:
        for name in filter(None, listed.stdout.split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
        built = [sys.executable, "-m", "build", "--outdir", str(copy / "built"), str(copy)]
        subprocess.run(built, check=True, stdout=subprocess.DEVNULL)
    finally:
        os.umask(before)
    return copy / "built"


if __name__ == "__main__":
    sys.exit(main())
