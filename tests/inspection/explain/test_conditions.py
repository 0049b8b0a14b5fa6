"""Spark's, its Kafka connector's and Delta's own lists of error conditions: which of them are explained, and how."""

import re
from pathlib import Path

import pytest

from ckpt.inspection.explain.catalog import KnownError
from ckpt.inspection.explain.explain import explain
from ckpt.inspection.explain.search import Search
from tests.inspection.explain.classes import (
    QUERY,
    RUNTIME,
    SHARED,
    classes_in,
    conditions,
    family_of,
    is_overlooked,
)
from tests.inspection.explain.coverage import coverage_table, entry_of, fill_in
from tests.support.places import ROOT
from tests.support.services.delta import delta_jars
from tests.support.services.kafka import SPARK, connector_jars
from tests.support.services.process import Unavailable

FOREIGN = re.split(r"\n\n(?!Driver stack|goroutine)", (Path(__file__).parent / "foreign.txt").read_text().strip())
PAGE = ROOT / "docs" / "explain.md"
EVIDENCE = ROOT / "docs" / "evidence" / "errors.md"
OF_BATCH_JOBS_TOO = {"FAILED_EXECUTE_UDF", "USER_RAISED_EXCEPTION", "PYTHON_EXCEPTION"}
"""Explained without a stack, and the entry says that a batch job says the same."""


def entries_in(text: str) -> list[KnownError]:
    """The entries that explain a text, without a look at what is near."""
    search = Search()
    search.add(text.split("\n"))
    return [hit.error for hit in search.found()]


@pytest.mark.parametrize(("kind", "fewest"), [(RUNTIME, 230), (QUERY, 60), (SHARED, 30)])
def test_every_condition_of_streaming_is_explained_by_its_entry(kind: str, fewest: int) -> None:
    wanted = [condition for condition in conditions() if condition.family.kind == kind]
    assert len({condition.name for condition in wanted}) >= fewest
    assert [condition.name for condition in wanted if entry_of(condition) is None] == []
    for version in {version for condition in wanted for version in condition.versions}:
        known = [entry_of(condition) is not None for condition in wanted if version in condition.versions]
        assert sum(known) >= 0.95 * len(known), version


def test_the_coverage_is_as_published() -> None:
    assert coverage_table() in PAGE.read_text(), "run make docs"


def test_what_is_planned_is_said_to_be_about_the_query() -> None:
    for condition in conditions():
        if condition.family.kind == QUERY:
            entry = entry_of(condition)
            assert entry is not None
            assert "at fault, not the checkpoint" in str(entry.cure)


def test_a_message_without_its_class_is_never_explained_as_another() -> None:
    by_text = 0
    for condition in conditions():
        error = entry_of(condition)
        found = [match.error for match in explain(fill_in(condition.text)).matches]
        by_text += bool(found)
        if error is not None:
            assert {one.twin or one.id for one in found} <= {error.id, "kafka-data-loss"}, condition.name
    assert by_text > 190


def test_an_error_that_is_not_of_streaming_is_not_explained() -> None:
    assert len(FOREIGN) > 200
    assert f"- In {len(FOREIGN)} unrelated errors" in EVIDENCE.read_text()
    for text in FOREIGN:
        found = explain(text)
        assert (found.matches, found.nearest) == ((), ()), text


def test_a_line_of_it_alone_is_explained_only_as_what_other_code_says_too() -> None:
    """Its stack, which shows where it was thrown, is missing then."""
    for line in {line for text in FOREIGN for line in text.splitlines()}:
        for error in entries_in(line):
            assert error.frames, line
            assert re.search(r"[Cc]ode .*report|A batch job reports the same", str(error.cause)), line


@pytest.mark.spark
def test_the_lists_of_the_installed_jars_are_the_recorded_ones() -> None:
    """And no other condition of them is explained, or speaks of streams and is in no family."""
    import pyspark

    jars = Path(pyspark.__path__[0], "jars").glob("spark-common-utils_*.jar")
    try:
        installed = ((SPARK, [*jars, *connector_jars()]), ("Delta 4.4.0", delta_jars()))
    except Unavailable as reason:
        pytest.skip(str(reason))
    for version, paths in installed:
        texts = {name: text for jar in paths for name, text in classes_in(jar).items()}
        recorded = {condition.name: condition.text for condition in conditions() if version in condition.versions}
        mains = {name.partition(".")[0] for name in texts if "." in name}
        assert {name: text for name, text in texts.items() if family_of(name) and name not in mains} == recorded
        own = {name: text.removeprefix(texts[name.partition(".")[0]]) for name, text in texts.items()}
        assert [name for name, text in own.items() if is_overlooked(name, text)] == []
        others = {name: fill_in(text) for name, text in texts.items() if not family_of(name) and name not in mains}
        assert {name for name, text in others.items() if entries_in(f"[{name}] {text}")} <= {
            "FAILED_EXECUTE_UDF",
            "USER_RAISED_EXCEPTION",
            "PYTHON_EXCEPTION",
            "STREAM_FAILED",
        }
