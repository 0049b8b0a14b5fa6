"""Descriptions that every Spark version made: what a start passes over is held, and what means the same is not."""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.advice import Advice, Option, Words
from ckpt.inspection.preflight import PlannedStart, Readiness, judge_start
from ckpt.query.compare_queries import (
    Knowledge,
    OperatorComparison,
    PartComparison,
    compare_signatures,
    compare_watermarks,
    find_worst,
    pair_sources,
)
from ckpt.query.description import QueryDescription, parse_query
from tests.inspection.preflight import record, signatures

MINORS = record.SIGNATURES.answers.minors
SILENT = ("CKPT447", "CKPT448", "CKPT449", "CKPT481")


@cache
def archive(minor: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(record.FOLDER / "signatures" / f"{minor}.zip")


@cache
def described(minor: str, name: str) -> QueryDescription:
    """A recorded query, as a later ckpt describes it: with conditions."""
    query = parse_query(json.loads(archive(minor).read(f"queries/{name.replace(': ', '-')}.json")))
    own = query.operators or ()
    return replace(query, operators=tuple(replace(each, conditions=each.filters) for each in own))


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The checkpoint of a base, as a version made it."""
    folder = tmp_path_factory.mktemp("checkpoints")

    @cache
    def unpack(minor: str) -> Path:
        names = [name for name in archive(minor).namelist() if name.startswith("bases/")]
        archive(minor).extractall(folder / minor, names)
        return folder / minor / "bases"

    return cache(lambda minor, base: ckpt.open_checkpoint(str(unpack(minor) / base)))


def judged(minor: str, change: signatures.Changed, checkpoints: Any, old: QueryDescription | None = None) -> Readiness:
    query, before = described(minor, change.id), old or described(minor, change.base)
    start = PlannedStart(ckpt.Spark(minor), query=query, old=before)
    return judge_start(checkpoints(minor, change.base), start)


def codes(readiness: Readiness) -> set[str]:
    found = {rated.finding.diagnosis.code for rated in (*readiness.holds, *readiness.warnings)}
    return found & {*SILENT, "CKPT442"}


def compare(minor: str, change: signatures.Changed) -> list[OperatorComparison]:
    old, new = described(minor, change.base), described(minor, change.id)
    return [*compare_signatures(old, new, pair_sources(old.sources, new.sources), {0: 0})]


def worst(minor: str, change: signatures.Changed) -> Knowledge:
    return find_worst(part.verdict for pair in compare(minor, change) for part in pair.parts)


def list_silent(minor: str, change: signatures.Changed) -> list[PartComparison]:
    """What a start of the changed query passes over."""
    old, new = described(minor, change.base), described(minor, change.id)
    watermarks = compare_watermarks(old, new, pair_sources(old.sources, new.sources))
    return [part for part in (*watermarks, *compare(minor, change)[0].parts) if part.silent]


def of(minor: str, changes: tuple[signatures.Changed, ...]) -> Iterator[signatures.Changed]:
    asked = {change.id for change in signatures.changes(minor)}
    return (change for change in changes if change.id in asked)


def test_what_spark_starts_silently_wrong_is_held(checkpoints: Any) -> None:
    for minor in MINORS:
        answers = record.SIGNATURES.recorded(minor)
        for change in of(minor, signatures.WRONG):
            if minor == signatures.ALL or signatures.is_started(change, minor):
                readiness = judged(minor, change, checkpoints)
                assert codes(readiness) == {*change.codes}, change.id
                assert readiness.go == (change.codes == signatures.ROWS), change.id
                assert answers[change.id]["error"] is None, change.id


@pytest.mark.slow
def test_remedies_name_the_command_that_carries_the_change_over(checkpoints: Any, tmp_path: Path) -> None:
    """Followed exactly: what leads to ``ckpt evolve`` it accepts, and what does not, it refuses."""
    led = 0
    for change in of("4.2", signatures.WRONG):
        if change.codes == signatures.ROWS:
            continue
        held = [rated for rated in judged("4.2", change, checkpoints).holds if rated.finding.diagnosis.code in SILENT]
        advised = [[step.call for step in (rated.advice or Advice()).all_steps()] for rated in held]
        commands = [[each for each in calls if each and each.name == "evolve"] for calls in advised]
        accepted = any("accept_from_now_on" in dict(each.options) for own in commands for each in own)
        plan, _ = ckpt.evolve(
            checkpoints("4.2", change.base).uri,
            str(tmp_path / "new"),
            to=described("4.2", change.id),
            from_query=described("4.2", change.base),
            accept_from_now_on=accepted,
            plan=True,
        )
        assert [bool(own) for own in commands] == [plan.refused is None] * len(held), (change.id, plan.refused)
        assert accepted == (plan.refused is None and plan.verdict is Knowledge.FROM_NOW_ON), change.id
        led += plan.refused is None
    assert led >= 12


def test_what_means_the_same_is_not_held(checkpoints: Any) -> None:
    answers = record.SIGNATURES.recorded(signatures.ALL)
    for change in signatures.SAME:
        readiness = judged(signatures.ALL, change, checkpoints)
        assert codes(readiness) == set(), change.id
        assert readiness.go, (change.id, readiness.verdict)
        assert answers[change.id]["error"] is None, change.id
    assert len(signatures.SAME) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("minor", MINORS)
def test_each_version_describes_what_shows_a_change(minor: str) -> None:
    for change in of(minor, signatures.WRONG):
        assert list_silent(minor, change), change.id
    for change in of(minor, signatures.SAME):
        assert worst(minor, change) is Knowledge.FULL, change.id
        assert not list_silent(minor, change), change.id


@pytest.mark.parametrize("minor", MINORS)
def test_what_ckpt_does_not_see_is_neither_held_nor_full(minor: str) -> None:
    for change in of(minor, signatures.DOUBTFUL):
        assert worst(minor, change) is Knowledge.UNKNOWN, change.id
        assert not list_silent(minor, change), change.id


def test_versions_agree_on_expressions() -> None:
    """They write the same of a query; only ``collect_list`` and nullability differ, which no case here has.

    From 4.0 on ``from_json`` says what it does with variants.
    """
    for base in signatures.BASES:
        minors = [minor for minor in MINORS if base != "messages" or minor != "3.5"]
        operators = [described(minor, base).operators for minor in minors]
        texts = [
            [(part.keys, part.window, part.gap, part.limit, part.filters, part.join) for part in each or ()]
            for each in operators
        ]
        assert all(text == texts[0] for text in texts), base
        functions = [[[each.sql for each in part.aggregates or ()] for part in each or ()] for each in operators]
        assert all(function == functions[0] for function in functions), base


@pytest.mark.parametrize("minor", MINORS)
def test_no_text_of_a_literal_is_kept(minor: str) -> None:
    for name in archive(minor).namelist():
        assert b"hush" not in archive(minor).read(name).lower() or name.startswith("bases/"), name


def test_empty_buffers_are_those_that_spark_computes() -> None:
    """Of ``count``: 0. Of ``sum``: NULL."""
    for minor in MINORS:
        (operator,) = described(minor, "counts").operators or ()
        buffers = [buffer for aggregate in operator.aggregates or () for buffer in aggregate.buffers]
        assert [(buffer.name, buffer.empty, buffer.empty_known) for buffer in buffers] == [
            ("count", 0, True),
            ("sum", None, True),
        ]


def test_without_the_old_description_it_says_what_it_cannot_see(checkpoints: Any) -> None:
    change = next(change for change in signatures.WRONG if change.id == "sums: swapped")
    start = PlannedStart(ckpt.Spark.V4_2, query=described("4.2", change.id))
    readiness = judge_start(checkpoints("4.2", change.base), start)

    assert readiness.go
    named = {part for text in readiness.unknown if isinstance(text, Words) for part in text.parts}
    assert Option("from_query") in named


def test_a_description_of_another_query_is_not_used(checkpoints: Any) -> None:
    change = next(change for change in signatures.WRONG if change.id == "sums: swapped")
    readiness = judged("4.2", change, checkpoints, described("4.2", "dedup"))

    assert readiness.go
    assert any("describes a different query" in str(sentence) for sentence in readiness.unknown)


def test_a_difference_between_two_spark_versions_is_not_known(checkpoints: Any) -> None:
    change = next(change for change in signatures.WRONG if change.id == "sums: swapped")
    older = replace(described("4.2", "sums"), spark=ckpt.Spark.V4_1)
    readiness = judged("4.2", change, checkpoints, older)

    assert codes(readiness) == set()
    assert any("another Spark version" in str(sentence) for sentence in readiness.unknown)
