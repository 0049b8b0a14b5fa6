"""The catalog: what it declares is complete, is what Spark says itself, and no entry is taken for another."""

import re

import pytest

import ckpt
from ckpt.advice import Call
from ckpt.advice.spelling import name_command, name_option
from ckpt.inspection.explain.catalog import KnownError, catalog, list_calls
from ckpt.inspection.explain.explain import explain
from ckpt.restart.diagnoses import all_diagnoses
from tests.conftest import commands_of
from tests.inspection.explain.classes import versions_of

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
                assert re.search("silently|lost|leave|left out|without an error|missing in the result", cure), error.id
