"""``--help`` is read at a terminal of 80 columns by somebody in a hurry."""

import shlex

import pytest
import typer

from commands import main
from commands.help import Manual, make_context
from tests.conftest import Ckpt

GROUP = typer.main.get_command(main.app)
MANUALS = {manual.name: manual for manual in Manual("ckpt", GROUP, make_context(GROUP, "ckpt")).below()}
LEAVES = [name for name, manual in MANUALS.items() if not manual.inner]


@pytest.mark.parametrize("name", MANUALS)
def test_each_option_and_command_has_one_line(name: str) -> None:
    manual = MANUALS[name]
    lines = manual.page().splitlines()
    rows = [row for heading, rows in manual.lists.items() if heading != "Exit status" for row in rows]
    for spelling, meaning in rows:
        if spelling == "--show-completion":  # Typer's own words
            continue
        shown = spelling.removeprefix(f"{name} ")
        assert [line for line in lines if line.startswith(f"  {shown} ") and line.endswith(f"  {meaning}")], shown
    long = [line for line in lines if len(line) > 80 and not line.startswith("  ckpt ")]
    assert long == []
    assert not [line for line in lines if ("<" in line and "<>" not in line) or "{CHECKPOINT}" in line]


@pytest.mark.parametrize("name", LEAVES)
def test_each_command_has_two_examples_that_are_command_lines_of_it(name: str) -> None:
    examples = MANUALS[name].examples
    assert len(examples) == 2
    for example in examples:
        words = shlex.split(example.partition(" > ")[0])
        named = next(MANUALS[name] for name in sorted(LEAVES, reverse=True) if example.startswith(f"{name} "))
        options = {option for param in named.command.params for option in param.opts}
        assert {word for word in words if word.startswith("--")} <= options


def test_commands_stand_in_groups(ckpt: Ckpt) -> None:
    page = ckpt("--help").stdout
    heads = ["Look", "Repair (", "State", "New checkpoints", "New queries"]
    places = [page.index(f"\n{head}") for head in heads]
    assert places == sorted(places)


SITUATIONS = {
    "which of 300 queries will not restart": ("every checkpoint", ["scan"]),
    "rows are wrong since this morning": ("wrong rows", ["rewind"]),
    "one batch always fails": ("always fails", ["skip"]),
    "the disk was full, now it does not start": ("damage", ["repair"]),
    "'batch 308 doesn't exist'": ("doesn't exist", ["repair-async"]),
    "the checkpoint was moved to another bucket": ("moved", ["relocate"]),
    "a dashboard of the lag": ("lag", ["offsets"]),
    "the query has to read a new topic": ("topic", ["offsets"]),
    "400 shuffle partitions": ("partitions", ["rewrite"]),
    "the state is too large: which keys": ("keys", ["state"]),
    "read the state as a table": ("table", ["export-state"]),
    "continue with transformWithState": ("transformWithState", ["migrate"]),
    "move to RocksDB": ("RocksDB", ["migrate"]),
}
"""Situations, the word of each that somebody looks for in ``ckpt --help``, and the commands whose lines may have it."""


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_situation_leads_to_one_command_of_the_first_page(situation: str, ckpt: Ckpt) -> None:
    word, commands = SITUATIONS[situation]
    lines = ckpt("--help").stdout.partition("\nOptions\n")[0].splitlines()
    hits = [(number, line) for number, line in enumerate(lines, 1) if word in line]
    named = set()
    for _, line in hits:
        heading = dict(part.split(": ") for part in line.partition("(")[2].rstrip(")").split("; ") if ": " in part)
        named |= {command for text, command in heading.items() if word in text} if heading else {line.split()[0]}
    assert sorted(named) == commands
    assert hits[0][0] <= len(lines) <= 40


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("rewrite", "a", "--into", "b"), "ckpt rewrite CHECKPOINT NEW"),
        (("import-state", "a", "--like", "c", "--into", "b"), "ckpt import-state EXPORT NEW --like CHECKPOINT"),
        (("state", "import", "a", "--like", "c", "--into", "b"), "ckpt state import EXPORT NEW --like CHECKPOINT"),
        (("offsets", "set", "a", "--batch", "5"), "--expect-batch"),
        (("offsets", "import", "a", "f", "--batch", "5"), "--expect-batch"),
        (("scan", "a", "--commit-to", "p"), "ckpt offsets commit ROOT... --group PREFIX"),
        (("state", "keys", "a", "--largest"), "the heaviest keys are shown without this option"),
    ],
)
def test_an_old_spelling_is_refused_with_the_new_one(words: tuple[str, ...], instead: str, ckpt: Ckpt) -> None:
    run = ckpt(*words)
    assert (run.exit_code, run.stderr.count("\n")) == (2, 1)
    assert instead in run.stderr
