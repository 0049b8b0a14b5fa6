"""A printed command means the same in a shell, whatever a folder is called and whatever a checkpoint holds."""

import re
import subprocess
from pathlib import Path

import pytest

from ckpt.texts import quote_path, quote_word
from tests.conftest import Ckpt, CopyOf
from tests.support.places import ROOT
from tests.support.spark.live import EVERY_CASE

NAMES = [
    "my ckpt;touch PWN;",
    "it's $(touch PWN) and 'more'",
    "a`touch PWN`b",
    "new\nline;touch PWN\n",
    "back\\slash' ;touch PWN; '",
    "{checkpoint}{path}{{batch}} ;touch PWN",
    "-rf ;touch PWN",
]
COMMAND = re.compile(r"""(?:Next)?[ ]+(?:→[ ])?(ckpt[ ](?:[a-z-]+[ ])+(?:[^ '"$]|'[^']*'|"'"|\$'(?:[^'\\]|\\.)*')*)""")
RECORDED = re.compile(r"file:[^\"]*?(?=/state/)")

# Whatever a printed line calls only says what it was called with.
STUBS = """
say() { printf '%s\\0' "$@" >> "$SAID"; }
for name in ckpt mkdir ln realpath python spark-submit cd; do eval "$name() { say $name \\"\\$@\\"; }"; done
"""


def said(line: str, folder: Path) -> list[str]:
    """What a line does in a shell: the words that programs were called with; anything else it does fails the test."""
    told = folder / "said"
    told.unlink(missing_ok=True)
    subprocess.run(["bash", "-c", f"{STUBS}\n{line}"], cwd=folder, env={"SAID": str(told)}, check=True, timeout=20)
    assert not [file for file in folder.rglob("*PWN*") if file.name == "PWN"], line
    return told.read_text(errors="surrogateescape").split("\0")


@pytest.mark.parametrize("name", [*NAMES, "plain", "\udcff", "\x1b[2J\u202e"])
def test_a_quoted_word_is_one_word_that_can_be_shown(name: str, tmp_path: Path) -> None:
    for shown in (quote_word(name), quote_path(name)):
        assert shown.isprintable()
        assert "`" not in shown
    assert said(f"say {quote_word(name)} {quote_path(name)}", tmp_path)[:-1] == [
        name,
        f"./{name}" if name.startswith("-") else name,
    ]


@pytest.mark.parametrize("name", NAMES)
def test_commands_of_remedies_run_nothing_else(name: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of("tws-rocksdb-4.2", to=name)
    recorded = "/gone/" + NAMES[NAMES.index(name) - 1]
    spelled = f"file:{recorded}".replace("\\", "\\\\").replace("\n", "\\n")
    for file in (checkpoint / "state/0/_metadata/v2").glob("[0-9]*"):
        file.write_text(RECORDED.sub(lambda _: spelled, file.read_text()))

    found = ckpt("inspect", checkpoint, "-o", "json").json()["findings"]
    commands = [
        line for one in found if one["remedy"] for line in re.findall("`((?:ckpt|mkdir) [^`]*)`", one["remedy"])
    ]

    assert len(commands) >= 2
    for command in commands:
        words = said(command, tmp_path)
        assert str(checkpoint) in words, command
        assert command.startswith("ckpt") or recorded in words


WORDS = [
    ["inspect"],
    ["scan"],
    ["preflight"],
    ["repair-async"],
    ["repair"],
    ["rewind", "--to-batch", "1"],
    ["skip"],
    ["prune"],
    ["evolve", "--in-place", "--to", str(ROOT / "docs" / "query.json")],
    ["relocate", "--to", "s3a://bucket/it's;touch PWN;"],
    ["handoff"],
    ["migrate", "changelog", "--to", "on"],
    ["migrate", "provider", "--to", "rocksdb"],
    ["migrate", "real-time"],
    ["offsets", "show"],
    ["state", "verify"],
    ["state", "count"],
    ["state", "history", "--variable", "rows", "--key", "key=2"],
    ["state", "keys", "--variable", "rows"],
    ["offsets", "set", "--to", "{}"],
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sample", "name"),
    [
        (sample, name)
        for row, name in enumerate(NAMES)
        for column, sample in enumerate(["tws-rocksdb-4.2", "damaged-empty-predecessor"])
        if EVERY_CASE or row % 2 == column
    ],
)
def test_commands_of_pages_run_nothing_else(
    sample: str, name: str, ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of(sample, to=name)
    lines = []
    for words in WORDS:
        at = 2 if words[0] in ("migrate", "offsets", "state") else 1
        lines += ckpt(*words[:at], checkpoint, *words[at:]).stdout.splitlines()
    commands = [found[1] for line in lines if (found := COMMAND.match(line)) and "CHECKPOINT" not in found[1]]
    assert len(commands) >= 3
    for command in commands:
        assert str(checkpoint) in said(command, tmp_path), command


def test_a_relative_path_that_begins_with_a_dash_is_no_option(
    ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_of("damaged-empty-predecessor", to="--apply")
    monkeypatch.chdir(tmp_path)
    assert "\n          ckpt repair-async ./--apply\n" in ckpt("inspect", "--", "--apply").stdout


def test_state_variables_are_named_as_words_of_a_shell(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("tws-rocksdb-4.2")
    for file in (checkpoint / "state/0/_metadata/v2").glob("[0-9]*"):
        file.write_text(file.read_text().replace('\\"stateName\\":\\"', '\\"stateName\\":\\"$(touch PWN) '))
    assert "--variable '$(touch PWN) " in ckpt("export-state", checkpoint, "--plan").refusal()
