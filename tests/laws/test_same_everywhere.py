"""The same checkpoint is told the same from a local disk and from every kind of remote storage."""

import json
import shlex

import pytest

from tests.conftest import Ckpt
from tests.support.places import SAMPLES
from tests.support.services.fixtures import Upload, storage_words
from tests.support.services.slow import SlowStore

CHECKPOINTS = [
    *("aggregation-rocksdb-4.2", "async-kafka-4.2", "damaged-missing-sst", "damaged-truncated-zip"),
    *("damaged-missing-predecessor", "file-source-4.2", "join-v3-changelog-4.2"),
]


@pytest.mark.parametrize("sample", CHECKPOINTS)
def test_remote_and_local_inspections_differ_in_the_path_only(ckpt: Ckpt, upload: Upload, sample: str):
    local = str(SAMPLES / sample)
    uri, options = upload(SAMPLES / sample)
    here = ckpt("inspect", local, "--output", "json")
    there = ckpt("inspect", uri, *storage_words(options), "--output", "json")

    assert there.stderr == here.stderr == ""
    assert there.exit_code == here.exit_code
    told = there.stdout.replace(shlex.quote(uri), "<checkpoint>").replace(uri, "<checkpoint>")
    documents = [json.loads(text) for text in (told, here.stdout.replace(local, "<checkpoint>"))]
    for step in documents[0]["next"]:  # calls repeat the options of the storage
        command = step["command"] or []
        options_at = [number for number, word in enumerate(command) if word == "--storage-options"]
        assert bool(options_at) == bool(command and options)
        for number in reversed(options_at):
            del command[number : number + 2]
    assert documents[0] == documents[1]


def test_a_slow_object_store_is_asked_in_few_rounds(ckpt: Ckpt):
    SlowStore.register()
    SlowStore.requests()

    run = ckpt("inspect", f"slow://{SAMPLES / 'aggregation-rocksdb-4.2'}", "--storage-options", "ms=5", "-o", "json")

    assert run.exit_code == ckpt("inspect", SAMPLES / "aggregation-rocksdb-4.2").exit_code
    assert SlowStore.requests() < 60
