"""Nothing is opened but what was named: paths in a checkpoint lead nowhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CopyOf
from tests.places import ROOT

COMMANDS = [["inspect"], ["relocate"], ["repair-async"], ["handoff"], ["export-state", "--plan"]]

# Says what was opened, listed or asked of the network, and whether the libraries for remote storage were imported.
WATCHED = """
import json, sys
opened = []
WATCH = ("open", "os.listdir", "os.scandir", "socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event in WATCH else None)
from importlib.metadata import entry_points
(script,) = entry_points(group="console_scripts", name="ckpt")
app = script.load()
try:
    app(sys.argv[1:])
except SystemExit:
    pass
print(json.dumps([opened, [name for name in ("pyarrow", "fsspec") if name in sys.modules]]), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("place", ["s3a://bucket.nowhere.invalid/ck", "hdfs://nowhere.invalid:8020/ck", "file:{there}"])
def test_a_recorded_path_is_not_opened(place: str, command: list[str], copy_of: CopyOf, tmp_path: Path) -> None:
    there = tmp_path / "elsewhere"
    checkpoint = copy_of("tws-rocksdb-4.2")
    recorded = place.replace("{there}", str(there))
    for file in (checkpoint / "state/0/_metadata/v2").glob("[0-9]*"):
        text = re.sub(r'file:[^\\"]*?(?=/state/)', recorded, file.read_text())
        file.write_text(text)
        for schema in re.findall(rf"{there}(/state/[^\"]+)", text):
            (there / schema[1:]).parent.mkdir(parents=True, exist_ok=True)
            (there / schema[1:]).write_text("not to be read")
    words = [command[0], str(checkpoint), *command[1:]]

    done = subprocess.run([sys.executable, "-c", WATCHED, *words], capture_output=True, text=True, cwd=ROOT, timeout=60)

    opened, imported = json.loads(done.stderr.splitlines()[-1])
    assert imported == []
    assert any("offsets" in path for path in opened)
    assert [path for path in opened if "elsewhere" in path or "nowhere" in path] == []
    assert done.returncode == 0, done.stderr
