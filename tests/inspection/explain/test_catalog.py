"""The catalog: complete, what Spark says itself, and in agreement with what an inspection finds."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.advice import Call
from ckpt.advice.spelling import name_command, name_option
from ckpt.inspection.explain.catalog import KnownError, catalog, list_calls
from ckpt.inspection.explain.explain import explain
from ckpt.restart.diagnoses import all_diagnoses
from ckpt.restart.findings import Asked
from ckpt.versions import Spark
from tests.conftest import commands_of
from tests.inspection.explain.classes import versions_of
from tests.inspection.explain.messages import DECLARED, explained, messages
from tests.restart.oracle import answers, cases
from tests.restart.oracle.test_forecast import NOT_IN_THE_FILES
from tests.support.places import ROOT
from tests.support.spark import mutations
from tests.support.spark.live import EVERY_CASE

_SOME = 2
"""Of the checkpoints in which Spark ended with an error so many are looked at: they differ by sample and mode."""

Asking = tuple[cases.Case, str, str]


@cache
def failures() -> dict[str, list[Asking]]:
    """Entry -> what Spark answered with its error: the case, the version and the mode."""
    known: dict[tuple[str, ...], str | None] = {}
    found = defaultdict(list)
    recorded = {minor: answers.read(minor)["answers"] for minor in answers.VERSIONS}
    for case in cases.CASES:
        if any(part in case.name for part in NOT_IN_THE_FILES) or not case.folder.exists():
            continue
        for minor, given in recorded.items():
            for mode in ("sync", "async"):
                error = tuple(given.get(f"{case.name}/{mode}", {}).get("error") or ())
                if error not in known:
                    matches = explain("\nCaused by: ".join(error)).matches
                    known[error] = matches[0].error.id if matches else None
                if entry := known[error]:
                    found[entry].append((case, minor, mode))
    return dict(sorted(found.items()))


def disagreeing(entry: str, asked: list[Asking], folder: Path) -> Iterator[str]:
    """List the starts that raised the entry's error on a checkpoint that shows none of the entry's findings."""
    for number, (case, minor, mode) in enumerate(asked):
        place = mutations.copy_of(case.folder, folder / str(number), case.mutations)
        found = ckpt.inspect(ckpt.open_checkpoint(str(place)), spark=(Spark(minor),), progress=Asked(mode))
        codes = {rated.finding.diagnosis.code for rated in found.findings}
        (error,) = (entry_of for entry_of in catalog() if entry_of.id == entry)
        if not codes & set(error.codes):
            yield f"{case.name}/{mode} on {minor} shows {sorted(codes)}"


@pytest.mark.slow
def test_the_finding_of_an_error_is_in_its_checkpoint(tmp_path: Path) -> None:
    assert len(failures()) > 50
    wrong = {}
    for entry, asked in failures().items():
        sample = asked[:: 1 if EVERY_CASE else max(1, len(asked) // _SOME)]
        wrong[entry] = [*disagreeing(entry, sample, tmp_path / entry)]
    assert {entry: found for entry, found in wrong.items() if found} == {}


ENTRY = pytest.mark.parametrize("error", catalog(), ids=lambda error: error.id)


@ENTRY
def test_an_entry_is_declared_well(error: KnownError) -> None:
    assert re.fullmatch("[a-z0-9.]+(-[a-z0-9.]+)*", error.id)
    assert error.title[0].isupper()
    assert not error.title.endswith(".")
    assert str(error.cause).rstrip(")").endswith(".")
    assert error.cure
    for text in (error.cause, *(step.what for step in error.cure.all_steps())):
        assert str(text).rstrip(")").endswith(".")
        for part in (part for part in text.parts if isinstance(part, str)):
            assert not re.search("[`{]|ckpt [a-z-]+ [A-Z]|--[a-z]", part), "it is a value of [code] or [calls]"
    assert error.source
    assert error.since
    assert error.says or error.classes
    assert set(error.codes) <= {one.code for one in all_diagnoses()}
    assert error.bare or error.frames, "without a stack it is not matched, and no frame is named"
    assert "CHECKPOINT" not in str(error.cause), "it is not filled in there"
    assert error.broad or not error.wraps, "a narrower cause comes first"
    if error.twin:
        assert [entry.twin for entry in catalog() if entry.id == error.twin] == [None]


def test_there_are_entries_and_their_names_are_unique() -> None:
    assert len({error.id for error in catalog()}) == len(catalog()) > 160


@ENTRY
def test_the_sample_of_an_entry_is_matched_by_it_and_its_twins_alone(error: KnownError) -> None:
    text = error.twin or error.id
    twins = [entry.id for entry in catalog() if entry.twin == text]
    assert [match.error.id for match in explain(error.sample).matches] == [text, *twins]


KINDS = ("kafka-4.2", "file-source-4.2", "delta-4.2", "stateless-4.2", "join-changelog-4.2", "tws-changelog-4.0")


@pytest.mark.parametrize("sample", KINDS)
def test_an_error_of_a_source_or_operator_is_given_only_where_the_checkpoint_has_it(sample: str) -> None:
    inspection = ckpt.inspect(str(ROOT / "sample_checkpoints" / sample))
    document: Any = inspection.to_dict()
    reads = {source["type"] for source in document["sources"]}
    keeps = {operator["name"] for operator in (document["state"] or {"operators": ()})["operators"]}
    limited = [error for error in catalog() if error.reads or error.keeps]
    assert {bool(error.keeps) for error in limited} == {True, False}
    for error in limited:
        may = not error.reads or not reads.isdisjoint({*error.reads, "unknown"})
        may = may and (not error.keeps or bool(keeps if "any" in error.keeps else keeps & {*error.keeps}))
        explained = [match.error.id for match in explain(error.sample, checkpoint=inspection).matches]
        assert (error.id in explained) is may, error.id


ENDED = (
    "ERROR MicroBatchExecution: Query [id = 7d7f99b8-a654-42ad-8ab6-01fcb7ffac77, runId = x] terminated with error\n"
)
SOURCES = (
    "java.lang.AssertionError: assertion failed: There are [1] sources in the checkpoint offsets and now there are [3] "
    "sources requested by the query. Cannot continue."
)
LISTENER = "ERROR Utils: uncaught error in thread spark-listener-group-streams, stopping SparkContext\n"
METHOD = "java.lang.NoSuchMethodError: 'a b.c()'\n\tat org.apache.spark.sql.{}\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SOURCES, ["number-of-sources"]),
        (
            f"{SOURCES}\n\tat org.apache.spark.sql.pipelines.graph.Flow.run(Flow.scala:1)",
            ["pipeline-sources-changed", "number-of-sources"],
        ),
        (f"{LISTENER}java.lang.OutOfMemoryError: Java heap space", ["listener-failed"]),
        (
            LISTENER + METHOD.format("execution.streaming.StreamingQueryListenerBus.doPostEvent(S.scala:1)"),
            ["listener-failed", "library-mismatch"],
        ),
        (METHOD.format("Dataset.collect(Dataset.scala:1)"), []),
        (f"{ENDED}com.example.Failed: no\n\tat com.example.Source.latestOffset(Source.scala:1)", ["source-failed"]),
        (f"{ENDED}com.example.Failed: no\n\tat com.example.Sink.addBatch(Sink.scala:1)", ["sink-failed"]),
        (f"{ENDED}com.example.Failed: no\n\tat com.example.Main.run(Main.scala:1)", []),
    ],
)
def test_the_place_of_a_failure_counts(text: str, found: list[str]) -> None:
    assert [match.error.id for match in explain(text).matches] == found


def test_a_checkpoint_is_filled_in_everywhere() -> None:
    inspection = ckpt.inspect("sample_checkpoints/aggregation-hdfs-4.2")
    for error in catalog():
        for match in explain(error.sample, checkpoint=inspection).matches:
            assert "CHECKPOINT" not in f"{match.cure} {match.command}", match.error.id


@ENTRY
def test_commands_that_are_named_exist(error: KnownError, app: object) -> None:
    known = commands_of(app)
    named = [error.command] if error.command else []
    for call in (*named, *list_calls(error.cure), *(part for part in error.cause.parts if isinstance(part, Call))):
        command = known[name_command(call.name)]
        options = {option for param in command.params for option in param.opts}
        assert {name_option(name) for name, _ in call.options} <= options, call
        assert call.name not in ("export_state", "offsets_set") or "to" in dict(call.options), "it refuses without"


@ENTRY
def test_the_versions_of_an_entry_are_those_of_its_classes(error: KnownError) -> None:
    assert all(versions_of(name) for name in error.classes)
    versions = [version for name in error.classes for version in versions_of(name) if version[0].isdigit()]
    oldest = re.match(r"\d+\.\d+", error.since)
    if versions and oldest:
        assert float(oldest[0]) <= min(map(float, versions))


def test_an_error_class_has_one_entry() -> None:
    named = [name for error in catalog() if error.twin is None for name in error.classes]
    assert len(named) == len({*named})


def test_what_loses_rows_says_so() -> None:
    for error in catalog():
        for words in ("failOnDataLoss=false", "skipChangeCommits", "whole folder", "ckpt skip"):
            if words in (cure := str(error.cure)):
                assert re.search("silently|lost|skip|without an error|lacks all of its rows", cure), error.id


def test_every_recorded_message_is_explained_as_declared() -> None:
    declared = json.loads(DECLARED.read_text())
    wrong = []
    seen = set()
    for sign, text in messages():
        seen.add(sign)
        first = explained(text)
        if sign not in declared:
            wrong.append(f"new, look at it, and run python -m tests.record: {sign}")
        elif first != declared[sign]:
            wrong.append(f"{first} and not {declared[sign]}: {text[:300]}")

    assert wrong == []
    assert declared.keys() == seen, "declared, and recorded nowhere"
    assert len([call for call in declared.values() if call]) > 130


def test_what_is_unknown_has_no_words_of_its_own() -> None:
    """Without a stack these say nothing of a checkpoint; with one, `test_logs.py` shows that most of them are found."""
    unknown = [sign for sign, entry in json.loads(DECLARED.read_text()).items() if entry is None]
    assert len(unknown) < 30
