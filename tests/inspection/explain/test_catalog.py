"""The catalog: what it declares is complete, is what Spark says itself, and no entry is taken for another."""

import json
import re

import pytest

from ckpt.inspection.explain.catalog import KnownError, catalog
from ckpt.inspection.explain.explain import explain
from ckpt.restart.diagnoses import all_diagnoses
from docs.generate.errors import versions_of
from tests.conftest import commands_of
from tests.inspection.explain.classes import RECORDED

ENTRY = pytest.mark.parametrize("error", catalog(), ids=lambda error: error.id)
WRAPPERS = {  # classes whose own text says nothing that an entry could look for
    "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED",
    "CANNOT_LOAD_STATE_STORE.KEY_ROW_FORMAT_VALIDATION_FAILURE",
    "CANNOT_LOAD_STATE_STORE.VALUE_ROW_FORMAT_VALIDATION_FAILURE",
    "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT",
    "STREAMING_CHECKPOINT_LOG_WRITE_FAILURE",
}


@ENTRY
def test_an_entry_is_declared_well(error: KnownError) -> None:
    assert re.fullmatch("[a-z0-9.]+(-[a-z0-9.]+)*", error.id)
    assert error.title[0].isupper()
    assert not error.title.endswith(".")
    assert error.cause.rstrip("`)").endswith(".")
    assert error.cure.endswith(".")
    assert "{" not in error.cure, "a word that [words] lacks"
    assert error.source
    assert error.since
    assert error.says or error.classes
    assert set(error.codes) <= {one.code for one in all_diagnoses()}
    assert error.bare or error.frames, "without a stack it is not matched, and no frame is named"


def test_there_are_entries_and_their_names_are_unique() -> None:
    assert len({error.id for error in catalog()}) == len(catalog()) > 90


@ENTRY
def test_the_sample_of_an_entry_is_matched_by_it_alone(error: KnownError) -> None:
    assert [match.error.id for match in explain(error.sample).matches] == [error.id]


@ENTRY
def test_commands_that_are_named_exist(error: KnownError, app: object) -> None:
    known = commands_of(app)
    named = [error.command] if error.command else []
    for command in [*named, *re.findall("`(ckpt [^`]+)`", error.cure)]:
        words = command.split()[1:]
        name = next((name for n in (2, 1) if (name := " ".join(words[:n])) in known), None)
        assert name, command
        options = {option for param in known[name].params for option in param.opts}
        assert {word for word in words if word.startswith("--")} <= options, command
        assert name not in ("export-state", "offsets set") or "--to" in words, "it refuses to run without"


@pytest.mark.parametrize("name", sorted({name for error in catalog() for name in error.classes}))
def test_a_class_says_what_its_entry_looks_for(name: str) -> None:
    (error,) = (one for one in catalog() if name in one.classes)
    text = re.sub(r"<\w+>", "7", " ".join(json.loads(RECORDED.read_text())[name]["text"].split()))

    found = explain(f"[{name}] {text}").matches
    assert found[0].error is error
    if name not in WRAPPERS:
        assert [match.error.id for match in explain(text).matches] == [error.id]
    versions = versions_of(name)
    assert versions
    if error.since[0].isdigit():
        oldest = re.match(r"[\d.]+", error.since)
        assert oldest
        assert tuple(map(int, oldest[0].split("."))) <= tuple(map(int, versions[0].split(".")))


def test_what_loses_rows_says_so() -> None:
    for error in catalog():
        for words in ("failOnDataLoss=false", "skipChangeCommits", "whole folder"):
            if words in error.cure:
                assert re.search("silently|lost|leave|left out|without an error", error.cure), error.id
