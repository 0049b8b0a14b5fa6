"""A migrated file source reads no file again that the old query has read, however the way to it is spelled."""

from importlib.util import find_spec
from typing import Any

import pytest

from tests.migrate import file_paths
from tests.support.spark.live import EVERY_CASE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(find_spec("delta") is None, reason="delta-spark is not installed"),
]


@pytest.fixture(scope="module", params=file_paths.COUNTS if EVERY_CASE else ["many"])
def found(request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return file_paths.found(spark, tmp_path_factory.mktemp("file-paths"), request.param)


def test_only_new_files_are_read(found: dict[str, Any]) -> None:
    count = found["count"]
    new = list(range(count, count + 5))
    assert found["same"] == found["link"] == found["pattern"] == new
    assert found["spelled"] == list(range(count + 5)), "as spelled, every old file is read again"


def test_a_folder_without_any_of_the_files_is_refused(found: dict[str, Any]) -> None:
    assert "no file that the old query has read is in" in found["refused"]
    assert "in%20put/" in found["refused"]


def test_files_that_are_elsewhere_are_named(found: dict[str, Any]) -> None:
    assert "1 files that the old query has read are not in" in found["said"]
    assert found["some"] == list(range(found["count"], found["count"] + 5))


def test_the_schemes_of_s3_are_one(found: dict[str, Any]) -> None:
    assert found["s3"] == ["a", "b", None]


def test_the_format_is_that_of_the_names_and_code_stays_small(found: dict[str, Any]) -> None:
    assert found["format"] == "json"
    assert found["code"] < 25_000
