"""``docs/contract.md`` as data: the tables that it publishes, and the shape of the JSON that they describe."""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.support.places import ROOT

PAGE = ROOT / "docs" / "contract.md"

_KINDS: dict[str, type] = {
    "object": dict,
    "list": list,
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
}


@dataclass(frozen=True)
class Shape:
    """What may stand under a key: values of some types, or some words; neither stands for any JSON value."""

    types: frozenset[type]
    words: frozenset[str]

    def fits(self, value: Any) -> bool:
        """Whether a value may stand here; True and False are no integers."""
        if not self.types and not self.words:
            return True
        return type(value) in self.types or (isinstance(value, str) and value in self.words)


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, each as its cells, without the head of the table."""
    _, found, below = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}\n")
    assert found, f"no heading {heading!r} in {PAGE.name}"
    lines = iter(below.splitlines())
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


@cache
def shapes(command: str = "inspect") -> dict[str, Shape]:
    """Each key of the JSON of a command, by its path; ``as `restart[]` `` is what ``ckpt inspect`` has there."""
    rows = {path.strip("`"): kinds for path, kinds, _ in table(f"### JSON of `ckpt {command}`")}
    found: dict[str, Shape] = {}
    for path, kinds in rows.items():
        model = re.fullmatch("as `([^`]+)`", kinds)
        if model is None:
            found[path] = _shape(kinds)
        else:
            below = re.compile(re.escape(model[1]) + r"(?=$|[.\[])")
            found |= {
                below.sub(path, key, count=1): one for key, one in {**shapes(), **found}.items() if below.match(key)
            }
    return found


def _shape(kinds: str) -> Shape:
    words = frozenset(re.findall("`([^`]+)`", kinds))
    names = [name for name in re.split(", | or ", re.sub("`[^`]+`", "", kinds)) if name.strip(" ,")]
    if names == ["any"]:
        return Shape(frozenset(), frozenset())
    return Shape(frozenset(_KINDS[name.strip()] for name in names), words)


SNAPSHOT = ROOT / "tests" / "commands" / "keys.txt"
"""Every published key of every command with its types: keys and types are added, and none goes away."""


def commands() -> list[str]:
    return sorted(re.findall("^### JSON of `ckpt (.*)`$", PAGE.read_text(encoding="utf-8"), re.M))


def published() -> list[str]:
    """The lines of ``keys.txt`` for the page as it is."""
    return [
        f"{command}: {path} = {', '.join(sorted({kind.__name__ for kind in shape.types} | shape.words)) or 'any'}"
        for command in commands()
        for path, shape in shapes(command).items()
    ]


def withdrawn(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """Keys, and types of a key, that were published and no longer are."""
    have = {path: set(kinds.split(", ")) for path, _, kinds in (line.partition(" = ") for line in now)}
    return [
        line
        for line in before
        for path, _, kinds in [line.partition(" = ")]
        if not set(kinds.split(", ")) <= have.get(path, set())
    ]


def disagreements(document: Any, command: str = "inspect") -> list[str]:
    """Where a document differs from the contract: keys that are missing or not published, values of another kind."""
    return list(_differs(document, "", shapes(command)))


def _differs(value: Any, path: str, known: dict[str, Shape]) -> Iterator[str]:
    if path not in known and path:
        yield f"{path} is not published"
        return
    if path and not known[path].fits(value):
        yield f"{path} is {value!r}"
        return
    if path and not known[path].types and not known[path].words:
        return
    if isinstance(value, dict):
        prefix = f"{path}." if path else ""
        wanted = {one[len(prefix) :] for one in known if one.startswith(prefix)}
        missing = {one for one in wanted if "." not in one and "[" not in one} - value.keys()
        yield from (f"{prefix}{one} is missing" for one in sorted(missing))
        for key, inner in value.items():
            yield from _differs(inner, prefix + key, known)
    elif isinstance(value, list):
        for inner in value:
            yield from _differs(inner, f"{path}[]", known)


FORECAST_LISTS = frozenset({"never_run[]", "because[]", "lost[]", "reasons[]", "reasons[][]"})
"""Keys of a forecast whose lists may be empty: a test of ``ckpt inspect`` sees them used."""


def keys_in(value: Any, path: str = "") -> set[str]:
    """The paths of everything in a document; below ``next``, a record of all documents, those that there can be.

    So it is below ``pipeline`` of a checkpoint that is of none, as all samples are.
    """
    found = {path}
    if path.rpartition(".")[2] == "pipeline" and value is None:
        record = "checkpoint.pipeline"
        return {path + key.removeprefix(record) for key in shapes() if key.startswith(record)}
    if path == "next":
        return {key for key in shapes() if key.partition("[")[0] == "next"}
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= keys_in(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            found |= keys_in(inner, f"{path}[]")
    return found


def contradictions(document: Any) -> Iterator[str]:
    codes = {one["code"] for one in document["findings"]}
    for entry in document["restart"]:
        name = f"{entry['spark']} {entry['progress']} {entry['outcome']}"
        if not set(entry["because"]) <= codes:
            yield f"{name}: it is explained by findings that are not told"
        if entry["outcome"] not in ("resumes", "starts-fresh") and not entry["because"]:
            yield f"{name}: nothing explains it"
        if entry["outcome"] in ("resumes", "starts-fresh") and entry["error"]:
            yield f"{name}: it runs, and has an error"
        if entry["outcome"] in ("resumes", "fails-at-commit", "fails-in-batch") and entry["batch_id"] is None:
            yield f"{name}: which batch?"
        ends = {source["to"] is None for source in entry["sources"]}
        if entry["outcome"] == "resumes" and not entry["reexecutes"] and ends not in ({True}, set()):
            yield f"{name}: nobody knows where a new batch ends"
        if entry["outcome"] == "resumes" and len(entry["sources"]) != len(document["sources"]):
            yield f"{name}: other sources than the checkpoint"
    if not any(one["severity"] != "note" for one in document["findings"]) and document["verdict"].startswith(
        "Will not"
    ):
        yield "it will not restart, and nothing is wrong"
    moved = any(one["code"] == "CKPT305" for one in document["findings"])
    if moved and document["verdict"].startswith("Restarts"):
        yield "its schema files are elsewhere, and it restarts"
    if len({(one["code"], one["path"]) for one in document["findings"]}) < len(document["findings"]):
        yield "a finding is told twice"


if __name__ == "__main__":
    now = published()
    if gone := withdrawn(SNAPSHOT.read_text(encoding="utf-8").splitlines(), now):
        sys.exit("\n".join(["docs/contract.md no longer publishes:", *gone]))
    SNAPSHOT.write_text("\n".join([*now, ""]), encoding="utf-8")
