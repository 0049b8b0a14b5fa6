"""What no Spark up to 4.3 writes may be of a newer one: each page says that the query continues there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ckpt, CopyOf
from tests.support.files import edit_metadata, rewrite

CONTINUES = "written by perhaps a Spark after 4.3, on which the query continues"


def _version(log: str, line: str) -> Callable[[Path], None]:
    def write(checkpoint: Path) -> None:
        for path in (checkpoint / log).glob("[0-9]*"):
            rewrite(path, lambda text: re.sub(".*", line, text, count=1))

    return write


def _record(name: str, value: str) -> Callable[[Path], None]:
    def write(checkpoint: Path) -> None:
        for path in (checkpoint / "offsets").glob("[0-9]*"):
            edit_metadata(path, lambda metadata: metadata["conf"].update({f"spark.sql.{name}": value}))

    return write


def _replace(path: str, old: str, new: str) -> Callable[[Path], None]:
    def write(checkpoint: Path) -> None:
        (file,) = checkpoint.glob(path)
        rewrite(file, lambda text: text.replace(old, new))

    return write


NEWER = {
    "offsets v3": ("aggregation-hdfs-4.3", _version("offsets", "v3"), "v3"),
    "commits v4": ("aggregation-hdfs-4.3", _version("commits", "v4"), "v4"),
    "commits v4 of a query without state": ("stateless-4.3", _version("commits", "v4"), "v4"),
    "join format 5": ("join-v4-changelog-4.3", _record("streaming.join.stateFormatVersion", "5"), "Version=5"),
    "encoding": (
        "aggregation-changelog-4.2",
        _record("streaming.stateStore.encodingFormat", "protobuf"),
        '="protobuf"',
    ),
    "aggregation format 3": ("aggregation-hdfs-4.3", _record("streaming.aggregation.stateFormatVersion", "3"), '="3"'),
    "merge operator 3": (
        "aggregation-changelog-4.2",
        _record("streaming.stateStore.rocksdb.mergeOperatorVersion", "3"),
        '="3"',
    ),
    "watermark policy": ("join-changelog-4.2", _record("streaming.multipleWatermarkPolicy", "median"), '="median"'),
    "operator": (
        "aggregation-hdfs-4.3",
        _replace("state/0/_metadata/metadata", "stateStoreSave", "quantum"),
        '"quantum"',
    ),
    "a setting": ("stateless-4.3", _record("streaming.quantum.enabled", "true"), "streaming.quantum.enabled"),
    "a setting beside state": ("aggregation-hdfs-4.3", _record("streaming.quantum.enabled", "true"), "quantum.enabled"),
}


@pytest.mark.parametrize("name", NEWER)
def test_each_page_says_where_the_query_continues(name: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    sample, change, named = NEWER[name]
    checkpoint = copy_of(sample)
    change(checkpoint)
    page = " ".join(ckpt("inspect", checkpoint, "-v").stdout.split())
    assert CONTINUES in page
    assert named in page
    document = ckpt("inspect", checkpoint, "-o", "json").json()
    assert document["checkpoint"]["written_by"]["newer"]
    advice = json.dumps(document["next"])
    assert "newer" in advice
    assert "NEW" not in advice
    assert "handoff" not in advice
    for command in (["repair"], ["handoff"]):
        page = " ".join(ckpt(*command, checkpoint).stdout.split())
        assert CONTINUES in page
        assert "a new checkpoint: it reads its sources" not in page


@pytest.mark.parametrize(
    ("sample", "change"),
    [
        ("aggregation-hdfs-4.3", lambda _: None),
        ("aggregation-hdfs-4.3", _record("streaming.aggregation.stateFormatVersion", "0")),
        ("join-changelog-4.2", _record("streaming.multipleWatermarkPolicy", "")),
        ("aggregation-hdfs-4.3", _record("optimizer.pruneFiltersCanPruneStreamingSubplan", "yes")),
        ("aggregation-hdfs-4.3", lambda checkpoint: _version("commits", "vv")(checkpoint)),
        ("stateless-4.3", _replace("offsets/3", "spark.sql.shuffle", "spark.databricks.shuffle")),
    ],
)
def test_what_is_only_damaged_is_of_no_newer_spark(
    sample: str, change: Callable[[Path], None], ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = copy_of(sample)
    change(checkpoint)
    document = ckpt("inspect", checkpoint, "-o", "json").json()
    assert document["checkpoint"]["written_by"]["newer"] == []
