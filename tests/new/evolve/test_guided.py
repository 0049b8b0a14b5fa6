"""A guided change: ``ckpt evolve`` without NEW lists what each change costs, and its command, as it is typed, works."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt.query.description import DescribedExpression
from tests.changes.applying import facts
from tests.conftest import Ckpt, CopyOf
from tests.inspection.preflight import signatures
from tests.inspection.preflight.test_signatures import archive, described
from tests.new.evolve.running import Inputs
from tests.new.evolve.test_command import FILES, MORE, OLD, RATE, STATEFUL, Describe, describe
from tests.support.spark.queries import drain, own_session

__all__ = ("describe",)
CHANGES = [each for each in signatures.changes("4.2") if f"bases/{each.base}/metadata" in archive("4.2").namelist()]
QUICK = ("window: shorter", "window: delay", "sums: another column", "dedup: another column", "join: condition")


@pytest.mark.parametrize(
    "change",
    [pytest.param(each, id=each.id, marks=() if each.id in QUICK else pytest.mark.slow) for each in CHANGES],
)
def test_the_command_works_as_it_is_typed(change: signatures.Changed, ckpt: Ckpt, tmp_path: Path) -> None:
    names = [name for name in archive("4.2").namelist() if name.startswith(f"bases/{change.base}/")]
    archive("4.2").extractall(tmp_path, names)
    checkpoint = tmp_path / "bases" / change.base
    described("4.2", change.base).write(str(tmp_path / "old.json"))
    described("4.2", change.id).write(str(tmp_path / "query.json"))
    before = facts(checkpoint)
    words = ("evolve", checkpoint, "--from-query", tmp_path / "old.json", "--to", tmp_path / "query.json")

    guided = ckpt(*words, "-o", "json")
    page = ckpt(*words).stdout
    document = guided.json()
    comment = ckpt(*words, "-o", "github").stdout.partition("\n\n")[2]

    assert (guided.exit_code, document["refused"], facts(checkpoint)) == (0, None, before)
    assert len([line for line in comment.splitlines() if line]) <= 10
    asked = {option for answer in document["answers"] for option in answer["options"]}
    if not document["steps"]:
        assert "NOTHING TO CHANGE" in page
        assert ckpt("preflight", checkpoint, "--expect", tmp_path / "query.json").exit_code == 0
        return
    (step,) = document["next"]
    assert all(option in shlex.join(step["command"]) for option in asked)
    assert shlex.join(step["command"]) in page
    assert shlex.join(step["command"]) in comment
    done = ckpt(*step["command"][1:], "--jobs", 1, "-o", "json")
    assert (done.exit_code, done.json()["verdict"]) == (0, document["verdict"]), done.stdout
    assert ckpt("preflight", step["command"][3], "--expect", tmp_path / "query.json").exit_code == 0


@pytest.mark.parametrize(
    ("base", "nullable", "options"),
    [
        ("sums", True, ["--default key_p=null"]),
        ("sums", False, ["--map-operator=-=0", "--accept-from-now-on"]),
        ("window", None, []),
    ],
    ids=("a key", "a key that is never NULL", "no state"),
)
def test_an_answer_that_leads_nowhere_is_not_given(
    base: str, nullable: bool | None, options: list[str], ckpt: Ckpt, tmp_path: Path
) -> None:
    names = [name for name in archive("4.2").namelist() if name.startswith(f"bases/{base}/")]
    archive("4.2").extractall(tmp_path, names)
    old = described("4.2", base)
    old.write(str(tmp_path / "old.json"))
    new = replace(old, operators=(), watermarks=())
    if nullable is not None:
        (operator,) = old.operators or ()
        (family,) = operator.stores[0].families
        column: Any = {"name": "p", "type": "string", "nullable": nullable, "metadata": {}}
        key: Any = family.key
        stores = (replace(operator.stores[0], families=(replace(family, key=struct_and(key, column)),)),)
        keys = (*(operator.keys or ()), DescribedExpression("p@0", "string", "p"))
        new = replace(old, operators=(replace(operator, keys=keys, stores=stores),))
    new.write(str(tmp_path / "query.json"))
    words = (
        "evolve",
        tmp_path / "bases" / base,
        "--from-query",
        tmp_path / "old.json",
        "--to",
        tmp_path / "query.json",
    )
    document = ckpt(*words, "-o", "json").json()
    assert [option for answer in document["answers"] for option in answer["options"]] == options
    assert ckpt(*document["next"][0]["command"][1:], "--jobs", 1).exit_code == 0


def struct_and(schema: Any, column: Any) -> Any:
    """Return a schema with a column more."""
    return {**schema, "fields": [*schema["fields"], column]}


def test_only_sources_can_change_in_place_too(ckpt: Ckpt, copy_of: CopyOf, describe: Describe) -> None:
    checkpoint, query = copy_of(FILES), describe(OLD, MORE)
    step, instead = ckpt("evolve", checkpoint, "--to", query, "--new-id", "-o", "json").json()["next"]
    assert (step["command"][3], step["command"][-1]) == (f"{checkpoint}-2", "--new-id")
    assert ckpt(*step["command"][1:]).exit_code == 0
    assert ckpt("evolve", checkpoint, "--to", query, "-o", "json").json()["into"] == f"{checkpoint}-3"
    assert ckpt(*instead["command"][1:], "--grace", 0).exit_code == 0
    assert ckpt("preflight", checkpoint, "--expect", query).exit_code == 0


def test_what_no_option_takes_is_refused(ckpt: Ckpt, copy_of: CopyOf, describe: Describe) -> None:
    checkpoint = copy_of("stateless-killed-3.5")
    document = ckpt("evolve", checkpoint, "--to", describe(MORE), "-o", "json").json()
    assert (document["answers"], "never be read" in document["refused"]) == ([], True)
    assert [step["command"][1] for step in document["next"]] == ["rewind"]


def test_two_sources_that_look_alike_continue_by_place(ckpt: Ckpt, copy_of: CopyOf, describe: Describe) -> None:
    document = ckpt("evolve", copy_of(STATEFUL), "--to", describe(RATE, RATE, like=STATEFUL), "-o", "json").json()
    assert next(each["options"] for each in document["answers"]) == ["--map-source 0=0"]
    assert [source["change"] for source in document["sources"]] == ["same", "added"]


@pytest.mark.spark
def test_state_sources_and_keys_change_at_once(spark: Any, tmp_path: Path, ckpt: Ckpt) -> None:
    """A source, an aggregate and a key column more: the command is obeyed, and rows are counted."""
    inputs = Inputs(spark, tmp_path)
    inputs.put("ab")

    def count(tags: str, keys: str, *aggregates: str) -> Any:
        functions = __import__("pyspark.sql.functions", fromlist=["expr"])
        own = own_session(spark, partitions=2)
        rows = own.readStream.schema("id LONG").json(str(tmp_path / tags[0]))
        for tag in tags[1:]:
            rows = rows.union(own.readStream.schema("id LONG").json(str(tmp_path / tag)))
        rows = rows.selectExpr("id", "id % 2 AS k", "id % 3 AS g")
        return rows.groupBy(*keys).agg(*map(functions.expr, aggregates))

    old = count("a", "k", "count(*) AS n")
    new = count("ba", "kg", "sum(id) AS s", "count(*) AS n")
    checkpoint = tmp_path / "cp"
    drain(old, checkpoint, "update", "noop")
    for name, frame in (("old", old), ("query", new)):
        library.describe_query(frame, output_mode="update", checkpoint=checkpoint).write(str(tmp_path / f"{name}.json"))

    words = ("evolve", checkpoint, "--from-query", tmp_path / "old.json", "--to", tmp_path / "query.json", "-o", "json")
    document = ckpt(*words).json()
    (step,) = document["next"]
    assert {option.partition(" ")[0] for each in document["answers"] for option in each["options"]} == {
        "--default",
        "--accept-from-now-on",
    }
    assert ckpt(*step["command"][1:], "--jobs", 1).exit_code == 0
    inputs.put("a")
    drain(new, step["command"][3], "update", "noop")
    rows = library.state_show(step["command"][3], limit=99).rows
    kept = [row for row in rows if row["key_g"] is None]
    assert sorted((row["key_k"], row["value_count"]) for row in kept) == [(0, 2), (1, 1)]
    names = ("key_k", "key_g", "value_count", "value_sum")
    found = sorted(tuple(int(str(row[name])) for name in names) for row in rows if row not in kept)
    ids = [*inputs.ids["b"], *inputs.ids["a"][3:]]
    groups = {(i % 2, i % 3) for i in ids}
    assert found == sorted(
        (k, g, len(own), sum(own)) for k, g in groups for own in [[i for i in ids if (i % 2, i % 3) == (k, g)]]
    )
