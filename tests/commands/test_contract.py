"""``docs/contract.md`` against the code: the JSON of every checkpoint there is, options, exit codes, words."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ckpt import __version__
from ckpt.checkpoint import reader
from ckpt.checkpoint.history import Pattern
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.starts import StartingPoint
from ckpt.inspection import inspection
from ckpt.live.outlook import Fate, SourceOutcome
from ckpt.migrate import comparison, switches
from ckpt.migrate.transform import Api, TimeMode
from ckpt.migrate.variables import VariableForm
from ckpt.model import Kind, Provider, ToProvider
from ckpt.restart.findings import Outcome, Severity
from ckpt.versions import Progress
from commands.render.reports import Exit
from docs.generate.contract import CONTRACT, contract_page
from tests.commands import contract
from tests.conftest import Ckpt, commands_of
from tests.inspection import golden
from tests.support.places import HERE, SAMPLE_NAMES


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_every_sample_is_told_as_published(sample: str, ckpt: Ckpt) -> None:
    document = ckpt("inspect", f"sample_checkpoints/{sample}", "-o", "json").json()
    assert contract.disagreements(document) == []
    assert list(contract.contradictions(document)) == []


def test_an_empty_folder_is_told_as_published(ckpt: Ckpt, tmp_path: Path) -> None:
    document = ckpt("inspect", tmp_path, "-o", "json").json()

    assert contract.disagreements(document) == []
    assert document["ckpt"] == {"version": __version__, "schema": 1}
    assert document["checkpoint"]["kind"] == "empty"
    assert document["state"] is None
    assert document["latest"]["offset_batch"] is None


def test_every_published_key_is_used() -> None:
    """A key below a list that is empty in every sample would be published unseen.

    `tests/live/sink` looks at those of sinks, `tests/live` at those of sources that were asked.
    """
    seen = {"ckpt", "ckpt.version", "ckpt.schema"}
    for sample in SAMPLE_NAMES:
        seen |= contract.keys_in(golden.recorded(sample))
    asked = ("sink.", "sources[].live.")
    assert {key for key in contract.shapes().keys() - seen if not key.startswith(asked)} == set()


@pytest.mark.parametrize(
    ("command", "asked", "elsewhere"),
    [
        ("offsets show", ("kafka-4.2", "stateless-killed-3.5"), ()),
        (
            "migrate changelog",
            ("aggregation-killed-changelog-4.3 --to off",),
            ("state_compared.",),
        ),  # test_changelog.py
        ("migrate provider", ("aggregation-hdfs-4.2 --to rocksdb", "join-v3-changelog-4.2 --to hdfs"), ()),
        ("migrate transform-with-state", ("tws-rocksdb-4.2 --to none --plan",), ()),
        ("handoff", ("file-source-4.2", "kafka-4.2", "aggregation-killed-hdfs-4.0"), ("sources[].live.",)),  # not asked
    ],
)
def test_every_published_key_of_a_command_is_used(
    command: str, asked: tuple[str, ...], elsewhere: tuple[str, ...], ckpt: Ckpt
) -> None:
    lines = [f"{command} sample_checkpoints/{sample} -o json".split() for sample in asked]
    used_keys = {key for line in lines for key in contract.keys_in(ckpt(*line).json())}
    unused = contract.shapes(command).keys() - used_keys
    assert {key for key in unused if not key.startswith(("checkpoint.", *elsewhere))} == set()


def test_the_checker_sees_what_differs(ckpt: Ckpt) -> None:
    document = ckpt("inspect", "sample_checkpoints/join-hdfs-3.5", "-o", "json").json()
    del document["latest"]["conf"]
    document["extra"] = 1
    document["checkpoint"]["files"] = True
    document["restart"][0]["outcome"] = "perhaps"
    document["state"]["operators"][0]["stores"][1]["num_keys"] = "7"

    assert contract.disagreements(document) == [
        "checkpoint.files is True",
        "latest.conf is missing",
        "restart[].outcome is 'perhaps'",
        "state.operators[].stores[].num_keys is '7'",
        "extra is not published",
    ]


WORDS: dict[tuple[str, str], type[StrEnum]] = {
    ("inspect", "checkpoint.kind"): Kind,
    ("inspect", "batches.pattern"): Pattern,
    ("inspect", "sources[].type"): SourceType,
    ("inspect", "sources[].live.outcome"): SourceOutcome,
    ("inspect", "sources[].live.partitions[].fate"): Fate,
    ("inspect", "restart[].progress"): Progress,
    ("inspect", "restart[].outcome"): Outcome,
    ("inspect", "state.provider"): Provider,
    ("inspect", "findings[].severity"): Severity,
    ("handoff", "sources[].begin"): StartingPoint,
    ("migrate changelog", "outcome"): switches.SwitchOutcome,
    ("migrate changelog", "to"): switches.Changelog,
    ("migrate changelog", "state_compared.verdict"): comparison.ComparisonVerdict,
    ("migrate provider", "outcome"): switches.MoveOutcome,
    ("migrate provider", "to"): ToProvider,
    ("migrate transform-with-state", "api"): Api,
    ("migrate transform-with-state", "time_mode"): TimeMode,
    ("migrate transform-with-state", "variables[].form"): VariableForm,
}
"""The words of a key of the JSON of a command."""


def test_published_words_are_all_the_words_there_are() -> None:
    published = {(command, path): contract.shapes(command)[path].words for command, path in WORDS}
    assert published == {key: {str(word) for word in words} for key, words in WORDS.items()}, "run make docs"


COMMANDS = contract.commands()


def test_published_keys_and_types_only_grow() -> None:
    before, now = contract.SNAPSHOT.read_text(encoding="utf-8").splitlines(), contract.published()

    assert contract.withdrawn(before, now) == []
    assert sorted(set(now) - set(before)) == [], "run make docs"


def test_a_key_or_a_type_that_goes_away_is_seen() -> None:
    before = ["scan: a = int", "scan: b = int, NoneType", "scan: c = str"]

    assert contract.withdrawn(before, ["scan: b = int", "scan: c = str, words"]) == before[:2]


@pytest.mark.slow
def test_keys_of_the_contract_are_those_of_the_documents() -> None:
    assert CONTRACT.read_text(encoding="utf-8") == contract_page()


_ARGUMENTS = {
    "copy": "CHECKPOINT NEW",
    "evolve": "CHECKPOINT NEW",
    "explain": "TEXT",
    "import-state": "EXPORT NEW",
    "offsets commit": "ROOT...",
    "rewrite": "CHECKPOINT NEW",
    "merge": "CHECKPOINT CHECKPOINT... NEW",
    "split": "CHECKPOINT NEW NEW...",
    "scan": "ROOT...",
    "sql": "[STATEMENT] ROOT...",
}
ALIASES = ["state export", "state import"]


def heading(command: str) -> str:
    return f"## `ckpt {command} {_ARGUMENTS.get(command, 'CHECKPOINT')}`"


def test_every_command_is_published(app: Any) -> None:
    assert sorted(commands_of(app)) == sorted(COMMANDS + ALIASES)


@pytest.mark.parametrize("command", COMMANDS)
def test_published_options_are_those_of_the_command(command: str, app: Any) -> None:
    options = {
        "`, `".join(option.opts): option
        for option in commands_of(app)[command].params
        if option.param_type_name == "option" and option.name != "help"
    }
    published = {row[0].strip("`"): row[1:] for row in contract.table(heading(command))}
    assert published.keys() == options.keys()
    for name, (_, default, _) in published.items():
        told = {"all": None, "none": None, "off": False}.get(default, default)
        assert str(options[name].default) == str(told), name


NARROWER = ("migrate transform-with-state", "`--format`")  # the command itself refuses the other formats of an export


@pytest.mark.parametrize(
    ("command", "option", "values"),
    [
        (command, row[0].strip("`"), row[1].split(", "))
        for command in COMMANDS
        for row in contract.table(heading(command))
        if ", " in row[1] and (command, row[0]) != NARROWER
    ],
)
def test_published_values_are_those_that_the_option_takes(
    command: str, option: str, values: list[str], ckpt: Ckpt, tmp_path: Path
) -> None:
    for word in option.split("`, `"):
        taken = [ckpt(*command.split(), tmp_path, word, value) for value in values]
        assert [run.stderr for run in taken if "Invalid value" in run.stderr] == []
        refused = ckpt(*command.split(), tmp_path, word, "nonsense")
        assert refused.exit_code == 2
        assert re.findall(r"'(\w[\w.-]*)'", refused.stderr) == ["nonsense", *values]


def test_published_exit_codes_are_those_of_the_application(app: Any) -> None:
    codes = {code: meaning.partition(":")[0] for code, meaning in contract.table("## Exit codes")}

    assert [*codes] == [str(int(code)) for code in Exit]
    told = " ".join((typer.main.get_command(app).help or "").split())
    assert all(f"{code} {meaning}" in told for code, meaning in codes.items()), told


def test_the_public_calls_give_what_the_command_shows(ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    path = "sample_checkpoints/damaged-missing-predecessor"
    found = inspection.inspect(reader.open_checkpoint(path))
    document = ckpt("inspect", path, "-o", "json").json()

    assert document["verdict"] == found.verdict
    assert [one["code"] for one in document["findings"]] == [one.finding.diagnosis.code for one in found.findings]
