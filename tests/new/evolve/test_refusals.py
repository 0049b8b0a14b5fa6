"""A law of recorded changes that are refused or held: the reason names the change, and the next command leads on."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ckpt.query.description import QueryDescription, parse_query
from tests.inspection.preflight import changes, record, signatures
from tests.inspection.preflight.test_recorded import answers
from tests.inspection.preflight.test_signatures import archive, described
from tests.support.cli import invoke
from tests.support.spark.live import EVERY_CASE

MINORS = ("3.5", "4.2")
ASKED = ("guided", "new", "in place", "preflight")


@dataclass(frozen=True)
class Change:
    """A recorded change: the checkpoint of the old query, and both queries."""

    checkpoint: Path
    old: QueryDescription
    new: QueryDescription


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refused")


@cache
def unpack(minor: str, folder: Path) -> tuple[Path, Path]:
    """The checkpoints of both suites, as a version made them."""
    names = [name for name in archive(minor).namelist() if name.startswith("bases/")]
    archive(minor).extractall(folder / f"signatures-{minor}", names)
    return folder / f"signatures-{minor}" / "bases", record.unpack(minor, folder)


def list_changes(minor: str, folder: Path) -> Iterator[tuple[str, Change]]:
    of_signatures, of_changes = unpack(minor, folder)
    for change in signatures.changes(minor):
        if (of_signatures / change.base / "metadata").exists():
            both = described(minor, change.base), described(minor, change.id)
            yield change.id, Change(of_signatures / change.base, *both)
    told = answers(minor)
    for name in (each.id for each in changes.CHANGES if each.id in told and f"{each.base}: nothing" in told):
        base = name.partition(": ")[0]
        queries = [parse_query(told[each]["query"]) for each in (f"{base}: nothing", name)]
        yield name, Change(of_changes / base, *queries)


def list_words(query: QueryDescription, path: Path) -> Counter[str]:
    query.write(str(path))
    return Counter([*split(path.read_text()), str(len(query.sources))])


def split(text: str) -> list[str]:
    """The words of a text; a number stands for itself in any unit."""
    named = text.lower().replace("not null", "false")  # as a schema has it
    return [re.sub(r"(?<=\d)0+$", "", word) for word in re.findall(r"[a-z]\w*|\d+", named)]


def find_faults(change: Change, folder: Path, asked: tuple[str, ...]) -> Iterator[str]:
    """Ask each command, with the old query, without it and with a wrong one; what is wrong with its refusals."""
    old, new, into = folder / "old.json", folder / "query.json", folder / "NEW"
    was, now = list_words(change.old, old), list_words(change.new, new)
    changed = {*(was - now), *(now - was)}
    words: dict[str, list[Any]] = {
        "guided": ["evolve", change.checkpoint, "--to", new],
        "new": ["evolve", change.checkpoint, into, "--plan", "--to", new],
        "in place": ["evolve", change.checkpoint, "--in-place", "--to", new],
        "preflight": ["preflight", change.checkpoint, "--expect", new],
    }
    for name in asked:
        for from_query in (old, None, new):
            asks = [*map(str, words[name]), *(() if from_query is None else ("--from-query", str(from_query)))]
            said = ask(*asks)
            reason = refusal(said)
            if reason is None:
                continue
            named = f"{name}, {from_query and from_query.stem}: {reason[:300]!r}"
            known = changed if from_query is old else {*was, *now}
            asks_first = "--map-source" in reason or "of unknown kind" in reason  # what neither file nor query says
            if known and not known & {*split(reason)} and not asks_first:
                yield f"names nothing of the change: {named}"
            commands = [step["command"] or typed(step["what"]) for step in said["next"]]
            if not commands or not commands[0]:
                continue
            command = [fill(word, old, new, into) for word in commands[0][1:]]
            if command[0] == "inspect":
                yield f"inspect of a sound checkpoint: {named}"
            if "describes a different query" in reason and str(from_query) == str(new) and str(old) not in command:
                yield f"the old query is left out: {named} {command}"
            writes = command[0] == "evolve" and len(command) > 2 and not command[2].startswith("-")
            after = ask(*command, *(("--plan",) if writes and "--plan" not in command else ()))
            if name != "preflight" and refusal(after) == reason and command != asks:
                yield f"the same refusal again: {named} {command}"
            if command == asks:
                yield f"the same command again: {named}"


def typed(text: str) -> list[str]:
    """The last command of a text that has placeholders."""
    return shlex.split(next(iter(re.findall(r"`(ckpt [^`]+)`", text)[-1:]), ""))


def fill(word: str, old: Path, new: Path, into: Path) -> str:
    """A word of a command, with what the page says in place of a placeholder."""
    return {"old.json": str(old), "query.json": str(new), "NEW": str(into)}.get(word, word)


def ask(*words: str) -> dict[str, Any]:
    """The document of a command, which must be one that there is."""
    result = invoke(*words, "-o", "json")
    assert result.exit_code != 2, (words, result.stderr)
    assert result.stdout, (words, result.exit_code, result.stderr[-800:], repr(result.exception))
    document: dict[str, Any] = json.loads(result.stdout)
    return {**document, "exit": result.exit_code}


def refusal(document: dict[str, Any]) -> str | None:
    """Why it refused or held; None if it did not."""
    if "holds" in document:
        return "; ".join(f"{each['detail']}" for each in document["holds"]) if document["exit"] else None
    reason: str | None = document.get("refused")
    return reason


@pytest.mark.slow
@pytest.mark.parametrize("minor", MINORS)
def test_every_refusal_leads_on(minor: str, folder: Path, tmp_path: Path) -> None:
    changes = [*list_changes(minor, folder)]
    assert len(changes) > 100
    found = {}
    for number, (name, change) in enumerate(changes if EVERY_CASE else changes[::6]):
        asked = ASKED if EVERY_CASE else ASKED[number % len(ASKED) :][:1]  # each is asked of a fourth of these
        found[name] = [*find_faults(change, tmp_path, asked)]
    assert {name: faults for name, faults in found.items() if faults} == {}


def ask_evolve(name: str, minor: str, folder: Path, scratch: Path, *words: object) -> dict[str, Any]:
    """Ask for a change by its name, with both queries."""
    (change,) = (each for own, each in list_changes(minor, folder) if own == name)
    change.old.write(str(scratch / "old.json"))
    change.new.write(str(scratch / "query.json"))
    both = ("--from-query", scratch / "old.json", "--to", scratch / "query.json")
    return ask(*map(str, ("evolve", change.checkpoint, *words, *both)))


@pytest.mark.parametrize(
    ("change", "offered"), [("key: another expression", False), ("key: another column", True)], ids=("same", "other")
)
def test_no_one_value_stands_for_a_key_that_is_computed_otherwise(
    change: str, offered: bool, folder: Path, tmp_path: Path
) -> None:
    reason = refusal(ask_evolve(change, "4.2", folder, tmp_path, tmp_path / "NEW"))
    assert reason is not None
    assert ("--default" in reason) == offered
    assert ("--default" in str(ask_evolve(change, "4.2", folder, tmp_path)["answers"])) == offered


def test_in_place_the_reason_is_what_preflight_found(folder: Path, tmp_path: Path) -> None:
    reason = refusal(ask_evolve("variables: update mode", "4.2", folder, tmp_path, "--in-place"))
    assert "output mode Update, but Append in the checkpoint" in (reason or "")


@pytest.mark.parametrize("where", ["new", "guided"])
def test_after_a_wrong_old_query_it_is_asked_for_again(where: str, folder: Path, tmp_path: Path) -> None:
    (found,) = (each for name, each in list_changes("4.2", folder) if name == "sums: min for max")
    found.new.write(str(tmp_path / "query.json"))
    into = (tmp_path / "NEW",) if where == "new" else ()
    for wrong in (found.new, described("4.2", "window")):
        wrong.write(str(tmp_path / "wrong.json"))
        words = (found.checkpoint, *into, "--to", tmp_path / "query.json", "--from-query", tmp_path / "wrong.json")
        said = ask(*map(str, ("evolve", *words)))
        assert "--from-query describes a different query" in (refusal(said) or "")
        assert typed(said["next"][0]["what"])[-2:] == ["--from-query", "old.json"]


def test_what_has_no_batches_of_its_own_leads_to_a_start(tmp_path: Path) -> None:
    described("4.2", "sums").write(str(tmp_path / "query.json"))
    (tmp_path / "cp").mkdir()
    (tmp_path / "cp" / "metadata").write_text('{"id":"b24296d1-16fa-4407-b0bb-9ca09af0c796"}')
    (step,) = ask("evolve", str(tmp_path / "cp"), "--to", str(tmp_path / "query.json"))["next"]
    assert (step["do"], step["command"]) == ("start", None)
    epochs = ask("evolve", "sample_checkpoints/continuous-4.2", "--to", str(tmp_path / "query.json"))
    assert [each["command"][1] for each in epochs["next"]] == ["handoff"]


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ("stateless: aggregation", {"--accept-from-now-on"}),
        ("window: shorter", {"--map-operator=-=0", "--accept-from-now-on"}),
    ],
)
def test_an_operator_of_spark_3_5_begins_empty(change: str, options: set[str], folder: Path, tmp_path: Path) -> None:
    said = ask_evolve(change, "3.5", folder, tmp_path)
    assert {option for answer in said["answers"] for option in answer["options"]} == options
    assert ask(*said["next"][0]["command"][1:])["written"]
    names = {path.name for path in Path(said["into"]).glob("state/0/0/*.snapshot")}
    assert names == {f"{said['before'][0]['batch_id']}.snapshot"}
