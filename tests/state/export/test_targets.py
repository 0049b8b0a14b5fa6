"""Which types a format holds: refused by name before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ckpt.errors import UsageError
from ckpt.state.export.targets import ExportTarget, Format, Mode, check_types, choose_target, folder_and_name
from ckpt.state.reading.columns import Column, Shape
from ckpt.storage.locations import spark_uri

ARRAY = {"type": "array", "elementType": "long", "containsNull": True}
MAP = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
DAYS = "interval day to second"


def refused(kind: Any, target: Format, shape: Shape = Shape.FLAT) -> str | None:
    try:
        check_types([Column("value_x", ("value", "x"), (1, 0), kind)], target, shape)
    except UsageError as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", [ARRAY, MAP, "binary", {"type": "array", "elementType": MAP, "containsNull": True}])
def test_csv_refuses_what_is_nested_by_name(kind: Any) -> None:
    told = refused(kind, Format.CSV)
    assert told is not None
    assert "value_x" in told
    assert 'format="parquet"' in told


@pytest.mark.parametrize("target", [Format.PARQUET, Format.DELTA, Format.JSON])
def test_the_others_hold_it(target: Format) -> None:
    assert refused(ARRAY, target) is None
    assert refused(MAP, target) is None


def test_intervals() -> None:
    assert refused(DAYS, Format.PARQUET) is None
    assert 'format="parquet"' in str(refused(DAYS, Format.DELTA))
    assert 'format="json"' in str(refused("interval", Format.PARQUET))
    assert refused(DAYS, Format.CSV) is None


@pytest.mark.parametrize("target", list(Format))
def test_void_is_in_no_format(target: Format) -> None:
    assert refused("void", target) is not None
    assert refused({"type": "array", "elementType": "void", "containsNull": True}, target) is not None


def test_the_cure_is_an_option_that_helps() -> None:
    struct = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]}
    assert str(refused(struct, Format.CSV, Shape.RAW)).endswith(
        'use `shape="flat"` or `format="parquet"` or `format="delta"` or `format="json"`'
    )
    assert str(refused(ARRAY, Format.CSV, Shape.RAW)).endswith(
        ': use `format="parquet"` or `format="delta"` or `format="json"`'
    )
    assert str(refused("void", Format.JSON, Shape.RAW)).endswith(': use `shape="flat"`')


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/a", ("file:", "a")),
        ("/a/b c/", ("file:/a", "b c")),
        ("s3a://bucket/a/b", ("s3a://bucket/a", "b")),
        ("hdfs:///a", ("hdfs://", "a")),
        ("hdfs://host:9000/a", ("hdfs://host:9000", "a")),
        ("/", None),
        ("s3://bucket/", None),
        ("hdfs:///", None),
    ],
)
def test_a_target_lies_in_a_folder(path: str, found: tuple[str, str] | None) -> None:
    if found is None:
        with pytest.raises(UsageError, match="into a folder"):
            folder_and_name(spark_uri(path))
    else:
        assert folder_and_name(spark_uri(path)) == found


def test_a_link_does_not_lead_into_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "checkpoint")

    def asked(to: Path, checkpoint: Path) -> ExportTarget:
        return choose_target(str(to), None, Format.PARQUET, Mode.ERROR, str(checkpoint))

    for to, checkpoint in (("link/out", "checkpoint"), ("checkpoint/out", "link")):
        with pytest.raises(UsageError, match="never exports into a checkpoint"):
            asked(tmp_path / to, tmp_path / checkpoint)
    assert asked(tmp_path / "beside", tmp_path / "link").path == f"file:{tmp_path}/beside"
