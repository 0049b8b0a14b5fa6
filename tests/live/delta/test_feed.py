"""What docs/sources.md says of `readChangeFeed`, as Delta on two versions of Spark did it."""

from typing import Any

import pytest

from tests.live.delta import feed

ANSWERS: dict[str, dict[str, Any]] = feed.SUITE.answers.read_all()
WORDS = {
    **dict.fromkeys(feed.OTHER, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"),
    **dict.fromkeys(feed.CLEANED, "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"),
    **dict.fromkeys(feed.RENAMED, "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"),
    **dict.fromkeys(feed.GONE, "FAILED_READ_FILE.FILE_NOT_EXIST"),
    "older-copy": "Trying to load a non-existent version 2",
}
BATCH = {"committed": 3, "planned": 2}


@pytest.mark.parametrize("name", feed.names())
def test_each_version_did_what_the_page_says(name: str) -> None:
    incident, batch, *_ = name.split(", ")
    for answers in ANSWERS.values():
        said = answers[name]
        if incident in WORDS:
            assert WORDS[incident] in said["error"]
            left = incident in feed.GONE and batch == "committed"
            assert said["newest"] == (3 if left or said["batches"] else 2)
        elif (incident, batch) == ("read-file-lost", "planned"):
            assert WORDS["file-lost"] in said["error"]
        else:
            assert said["error"] is None
            assert said["batches"][0][0] == BATCH[batch]
            assert (said["batches"][-1][1] > 10) == (incident not in ("nothing", "read-file-lost"))
