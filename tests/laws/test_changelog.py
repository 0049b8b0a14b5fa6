"""The files of ``changelog.d`` are what `make changelog` can put into ``CHANGELOG.md``."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.places import ROOT

FOLDER = ROOT / "changelog.d"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
GROUPS = SETTINGS["fragment"]


def faults(file: Path) -> list[str]:
    name = re.fullmatch(r"\+[a-z0-9-]+\.([a-z]+)\.md", file.name)
    text = file.read_text(encoding="utf-8")
    wrong = {
        "its name is +NAME.GROUP.md": name is not None and name[1] in GROUPS,
        "it is text that ends in a full stop and a line end": re.search(r"\.\n\Z", text) is not None,
        "it is no list and has no heading": re.search(r"(?m)^\s*([-*#]|$)", text.removesuffix("\n")) is None,
        "it names no number of an issue": re.search(r"#\d", text) is None,
    }
    return [rule for rule, kept in wrong.items() if not kept]


def test_fragments_are_well_formed() -> None:
    found = {file.name: faults(file) for file in FOLDER.iterdir() if file.name != "README.md"}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("+a-b.look.md", "Something is seen.\n", True),
        ("+a-b.look.md", "`--x` is new.\nIt costs nothing.\n", True),
        ("12.look.md", "Something is seen.\n", False),
        ("+a.rest.md", "Something is seen.\n", False),
        ("+a.look.md", "- Something is seen.\n", False),
        ("+a.look.md", "Something is seen", False),
        ("+a.look.md", "Something is seen (#12).\n", False),
    ],
)
def test_what_is_well_formed(name: str, text: str, right: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert (faults(tmp_path / name) == []) is right


def test_the_groups_are_headings_of_the_changelog() -> None:
    headings = re.findall(r"(?m)^### (.+)$", (ROOT / "CHANGELOG.md").read_text())
    assert {group["name"] for group in GROUPS.values()} <= set(headings)
    assert SETTINGS["title_format"].startswith("## ")
