"""What is written is what is so: pages compared with the code, commands shown compared with what they print."""

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ckpt.restart.diagnoses import all_diagnoses
from ckpt.restart.findings import Diagnosis, Outcome
from ckpt.restart.rules import RULES
from ckpt.versions import Spark
from docs.generate.commands import commands_page
from docs.generate.errors import errors_page
from docs.generate.findings import findings_page
from docs.generate.man import man_pages
from docs.generate.pictures import IMAGES, terminals
from docs.generate.places import DEPLOY, DOCS, MAN, README, ROOT
from docs.generate.sessions import AT_ROOT, RUNBOOK, at_root, runbook
from docs.generate.shipped import shipped_files
from tests.conftest import Ckpt, commands_of

PAGES = [README, *sorted(DOCS.glob("*.md"))]


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [findings_page, errors_page, commands_page], ids=lambda page: page.__name__)
def test_a_reference_is_what_the_code_says(page: Callable[[], str]) -> None:
    assert read(DOCS / f"{page.__name__.removesuffix('_page')}.md") == page(), "run make docs"


def test_man_pages_say_what_the_help_says() -> None:
    assert {page.name: read(page) for page in MAN.iterdir()} == man_pages(), "run make docs"


def test_what_the_wheel_ships_beside_code_is_as_it_is_made() -> None:
    files = shipped_files()
    assert {name: read(DEPLOY / name) for name in files} == files, "run make docs"


@pytest.mark.slow
def test_the_runbook_shows_what_ckpt_prints() -> None:
    """What it shows of Spark is compared with a Kafka, by tests/changes/fixes/async_gap/test_kafka_incident.py."""
    assert read(RUNBOOK) == runbook(), "run make docs"


@pytest.mark.parametrize("page", AT_ROOT, ids=lambda page: page.name)
def test_pages_show_what_ckpt_prints_on_bundled_checkpoints(page: Path) -> None:
    assert read(page) == at_root(page), "run make docs"


@pytest.mark.parametrize("diagnosis", all_diagnoses(), ids=lambda diagnosis: diagnosis.code)
def test_every_diagnosis_is_declared_well(diagnosis: Diagnosis) -> None:
    assert re.fullmatch("CKPT[1-9][0-9]{2}", diagnosis.code)
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", diagnosis.name)
    steps = [*diagnosis.advice.all_steps()] if diagnosis.advice else []
    assert [text for text in map(str, (diagnosis.meaning, *(step.what for step in steps))) if text[-1] != "."] == []
    assert f"## {diagnosis.code} {diagnosis.name}\n" in read(DOCS / "findings.md")
    assert steps or diagnosis.severity == "note", "what is worth a warning has a way out"


def test_codes_and_names_are_unique() -> None:
    diagnoses = all_diagnoses()
    assert len({one.code for one in diagnoses}) == len({one.name for one in diagnoses}) == len(diagnoses)


def used_in(*folders: str) -> set[str]:
    """The diagnoses that the modules of some folders name: ``diagnoses.room.X``."""
    trees = [ast.parse(read(module)) for folder in folders for module in (ROOT / folder).rglob("*.py")]
    return {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
    }


def test_every_diagnosis_is_used() -> None:
    declared = {
        target.id
        for module in (ROOT / "ckpt" / "restart" / "diagnoses").glob("*.py")
        for node in ast.parse(read(module)).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id in ("error", "warning", "note")
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert len(declared) == len(all_diagnoses())
    assert declared - used_in("ckpt/restart", "ckpt/live", "ckpt/query", "ckpt/inspection") == set()


# Commands that texts name.

NAMED = re.compile(r"\bckpt (?P<command>[a-z]+(?:-[a-z]+)*)(?P<rest>[^.;:,`\n]*)")


def options_of(app: Any) -> dict[str, set[str]]:
    return {name: {word for one in command.params for word in one.opts} for name, command in commands_of(app).items()}


def unknown_commands(text: str, commands: dict[str, set[str]]) -> Iterator[str]:
    for named in NAMED.finditer(text):
        command, rest = named["command"], named["rest"]
        inner = re.match(r" (?P<name>[a-z]+(?:-[a-z]+)*)\b", rest)
        if inner and f"{command}{inner[0]}" in commands:
            command, rest = f"{command}{inner[0]}", rest[inner.end() :]
        if command not in commands:
            yield named[0]
        else:
            yield from (word for word in re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest) if word not in commands[command])


@pytest.mark.parametrize("diagnosis", all_diagnoses(), ids=lambda diagnosis: diagnosis.code)
def test_a_remedy_names_only_commands_that_exist(diagnosis: Diagnosis, app: Any) -> None:
    assert list(unknown_commands(diagnosis.remedy or "", options_of(app))) == []


def test_a_command_that_does_not_exist_would_be_seen(app: Any) -> None:
    commands = options_of(app)
    assert [*unknown_commands("Run ckpt conjure {checkpoint}.", commands)] == ["ckpt conjure {checkpoint}"]
    assert [*unknown_commands("Run ckpt inspect {checkpoint} --magic again.", commands)] == ["--magic"]
    assert [*unknown_commands("Run ckpt inspect {checkpoint} --batches 0.", commands)] == []


def test_every_command_and_option_says_what_it_does(app: Any) -> None:
    for name, command in commands_of(app).items():
        assert command.help, name
        for option in command.params:
            assert getattr(option, "help", None) or getattr(option, "hidden", False), f"{name} {option.name}"


# Pages.


def test_the_skill_says_of_each_command_whether_it_writes(app: Any) -> None:
    listed = re.findall(r"^(They only read|These print|These write)(.*)\.$", read(DOCS / "SKILL.md"), re.MULTILINE)
    read_only, plans, writes = (
        {name for name in re.findall("`([a-z -]+)`", text) if name[0] != "-"} for _, text in listed
    )
    takes = options_of(app)
    assert writes == {name for name, flags in takes.items() if "--plan" in flags}
    assert plans == {name for name, flags in takes.items() if "--apply" in flags} - writes
    assert read_only == {name for name in takes if name != "offsets commit"} - plans - writes


def test_restart_md_explains_every_outcome_and_version() -> None:
    page = read(DOCS / "restart.md")
    assert [word for word in Outcome if f"| `{word}` |" not in page] == []
    first = page.split("\n\n")[1]
    assert [word for word in Spark if not re.search(rf"\b{re.escape(word)}\b(?!\.\d)", first)] == [], (
        "name it in the first sentence"
    )


def test_restart_md_has_a_numbered_paragraph_for_every_rule() -> None:
    numbers = re.findall(r"^(\d+)\. ", read(DOCS / "restart.md"), flags=re.MULTILINE)
    assert numbers == [str(place) for place in range(1, len(RULES) + 1)], [rule.__name__ for rule in RULES]


def test_links_outside_the_site_lead_somewhere() -> None:
    """Inside it ``make site`` looks, in ``make check``: at pages and at anchors."""
    broken = []
    for page in [README, *(ROOT / name for name in ("CONTRIBUTING.md", "tests/README.md", "benchmarks/README.md"))]:
        text = re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


def test_the_navigation_of_the_site_has_each_page_once() -> None:
    """Zensical, even when strict, says nothing of a page that is missing there, nor of one that does not exist."""
    project = tomllib.loads(read(ROOT / "zensical.toml"))["project"]
    shown = re.findall(r'"([^"]+\.md)"', json.dumps(project["nav"]))
    pages = {str(page.relative_to(DOCS)) for page in [*DOCS.glob("*.md"), *DOCS.glob("*/*.md")]}
    assert sorted(shown) == sorted(
        page for page in pages if not page.startswith(tuple(project["exclude_docs"].split()))
    )


def test_paths_that_pages_name_exist() -> None:
    """``ckpt/x.py``, ``tests/y`` and ``docs/z.md`` in code quotes are files and folders of the repository."""
    missing = []
    for page in [*PAGES, *sorted(DOCS.glob("runbooks/*.md")), ROOT / "CONTRIBUTING.md"]:
        for path in re.findall(r"`((?:ckpt|commands|tests|docs|benchmarks|sample_checkpoints)/[\w./-]*)`", read(page)):
            if not (ROOT / path).exists():
                missing.append(f"{page.name}: {path}")
    assert missing == []


def test_the_two_commands_of_the_readme_are_those_of_ci() -> None:
    shown = set(re.findall(r"^(?:\$ )?(make \w+)(?: +#.*)?$", read(README), flags=re.MULTILINE))
    in_ci = set(re.findall(r"^make \w+$", read(ROOT / ".ci" / "run"), flags=re.MULTILINE))
    targets = set(re.findall(r"^(\w+):", read(ROOT / "Makefile"), flags=re.MULTILINE))
    assert {f"make {target}" for target in targets} >= shown >= in_ci
    assert len(in_ci) == 2


# What a page shows being typed is run: in console blocks "$ ckpt ..." is a command, what follows is its output, and a
# line of "..." stands for any lines left out.

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sessions() -> list[Any]:
    """Each command of each console block whose output is shown, with that output."""
    found = []
    for page in PAGES:
        for block in CONSOLE.findall(read(page)):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                if command.startswith("ckpt ") and output.strip():
                    found.append(pytest.param(command, output, id=f"{page.name}: {command}"))
    return found


@pytest.mark.parametrize(("command", "output"), sessions())
def test_a_session_on_a_page_is_what_ckpt_prints(
    command: str, output: str, ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the root of the repository, with no more samples than a clone has."""
    monkeypatch.chdir(ROOT)
    printed = ckpt(*shlex.split(command)[1:]).stdout
    parts = re.split(r"^ *(?:\.\.\.|…)$\n?", output.rstrip("\n") + "\n", flags=re.MULTILINE)
    assert re.fullmatch(".*".join(map(re.escape, parts)), printed.rstrip("\n") + "\n", re.DOTALL), printed


GENERATED = ("api", "commands", "contract", "errors", "findings")  # references, which nobody reads from top to bottom


def test_a_page_has_at_most_200_lines_that_somebody_wrote() -> None:
    """What commands print is not counted: runbooks show it to be compared with one's own screen, and tests keep it.

    Nor are the tables of ``sql.md``, which come from the code.
    """
    long = {}
    for page in sorted({*DOCS.glob("*.md"), *DOCS.glob("*/*.md")}):
        text = read(page).partition("\n## Tables\n")[0] if page.stem == "sql" else read(page)
        written = CONSOLE.sub(lambda block: "\n".join(re.findall(r"^\$ .*", block[1], re.MULTILINE)), text)
        if page.stem not in GENERATED and len(written.splitlines()) > 200:
            long[page.name] = len(written.splitlines())
    assert long == {}, "move how it is known to docs/evidence, or divide the page by its questions"


def test_the_readme_shows_a_session() -> None:
    assert any(str(one.id).startswith("README.md: ckpt inspect sample_checkpoints/") for one in sessions())


def test_the_readme_begins_with_a_question_its_answer_and_the_fix() -> None:
    readme = read(README)
    before, after = readme.split("\n## Install\n")
    assert len(readme.splitlines()) <= 110
    assert len(before.splitlines()) <= 40
    assert len(CONSOLE.findall(before)[0].splitlines()) <= 20
    assert "|---" not in before
    assert all(f"images/{picture.name}" in readme for picture in IMAGES.iterdir())
    assert "docs/commands.md" in after


def test_terminals_show_what_ckpt_prints() -> None:
    made = terminals()
    assert {name: read(IMAGES / name) for name in made} == made, "run make docs"
    texts = {name: re.sub("<[^>]+>", "", drawn) for name, drawn in made.items()}
    assert all(str(ROOT) not in text and "/tmp" not in text for text in texts.values())
    assert all(word in texts["repair.svg"] for word in ("WILL NOT RESTART", "A PLAN", "REPAIRED", "\nRESTARTS"))


def test_promises_name_tests_that_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", read(ROOT / "SECURITY.md"))
    assert len(named) >= 12
    assert [name for name in named if not (ROOT / name).is_file()] == []
