"""Nothing is opened but what was named: paths in a checkpoint lead nowhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CopyOf
from tests.support.places import ROOT
from tests.support.spark.live import EVERY_CASE

COMMANDS = [
    ["inspect"],
    ["scan"],
    ["preflight"],
    ["relocate"],
    ["repair-async"],
    ["repair"],
    ["rewind", "--to-batch", "1"],
    ["skip"],
    ["prune"],
    ["evolve", "--in-place", "--to", str(ROOT / "docs" / "query.json")],
    ["handoff"],
    ["offsets", "show"],
    ["offsets", "export"],
    ["offsets", "set", "--to", '{"offset":1,"timestamp":1}'],
    ["state", "show", "--variable", "rows"],
    ["state", "count"],
    ["state", "history", "--variable", "rows", "--key", "key=2"],
    ["state", "keys", "--variable", "rows"],
    ["state", "diff", "--from-batch", "0"],
    ["export-state", "--plan"],
]

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
imported = [name for name in ("pyarrow", "pyarrow.fs", "fsspec") if name in sys.modules]
print(json.dumps([opened, imported]), file=sys.stderr)
"""


PLACES = ["s3a://bucket.nowhere.invalid/ck", "hdfs://nowhere.invalid:8020/ck", "file:{there}"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "command"),
    [
        pytest.param(place, command, id=f"{place}-{' '.join(command[:2])}")
        for row, command in enumerate(COMMANDS)
        for column, place in enumerate(PLACES)
        if EVERY_CASE or command[:2] in (["inspect"], ["state", "show"]) or row % len(PLACES) == column
    ],
)
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
    at = next((i for i, word in enumerate(command) if word.startswith("-")), len(command))
    words = [*command[:at], str(checkpoint), *command[at:]]

    done = subprocess.run([sys.executable, "-c", WATCHED, *words], capture_output=True, text=True, cwd=ROOT, timeout=60)

    opened, imported = json.loads(done.stderr.splitlines()[-1])
    assert set(imported) <= ({"pyarrow"} if command[0] == "state" else set())
    assert any("offsets" in path for path in opened)
    assert [path for path in opened if "elsewhere" in path or "nowhere" in path] == []
    assert done.returncode == 0, done.stderr
