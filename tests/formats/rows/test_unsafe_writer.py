"""Rows and keys that ckpt makes are those of Spark, byte for byte."""

import base64
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import ckpt
from ckpt.formats.rows.keys import key_blobs, keys_of, write_versioned_rows
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.rows.unsafe import structs_of
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.types import struct_of
from ckpt.state.native import entries
from ckpt.state.reading.columns import type_names
from tests.formats.rows.record import recorded
from tests.formats.rows.test_rows import decoded
from tests.state.native.states import VERSIONS, recorded as states_of


@pytest.mark.slow
def test_rows_of_every_type_are_written_as_spark_does() -> None:
    """Those of 200 random schemas; but calendar intervals, of which Spark keeps bytes that mean nothing."""
    count = 0
    for found in recorded():
        if "interval" not in type_names(found["schema"]):
            rows = [base64.b64decode(row) for row in found["rows"]]
            assert rows_from(found["schema"], decoded(found)).to_list() == rows
            assert rows_from(found["schema"], decoded(found).slice(1)).to_list() == rows[1:]
            count += 1
    assert count > 100


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_state_of_every_version_is_written_as_it_is(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, Any, Any]] = []

    def watched(kind: Any, rows: Any, what: str) -> Any:
        found = structs_of(kind, rows, what)
        seen.append((kind, rows, found))
        return found

    monkeypatch.setattr(entries, "structs_of", watched)
    for state, folder, _ in states_of(version, tmp_path):
        seen.clear()
        ckpt.read_state_arrow(str(folder), shape="raw", jobs=1)
        assert seen
        for kind, rows, found in seen:
            starts = (rows.at * 8).tolist()
            stored = [rows.raw[at : at + size].tobytes() for at, size in zip(starts, rows.size.tolist(), strict=True)]
            assert rows_from(kind, found).to_list() == stored, state.name


NUMBERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9)
KEY = struct_of([("at", "long"), ("key", struct_of([("name", "string")]))])


@given(NUMBERS, st.lists(st.text(), min_size=9, max_size=9), st.sampled_from(["No", "Prefix", "Range"]))
def test_keys_are_read_as_they_were_written(times: list[int | None], names: list[str], how: str) -> None:
    encoder: Any = {
        "No": {"keyStateEncoderType": "NoPrefixKeyStateEncoderSpec"},
        "Prefix": {"keyStateEncoderType": "PrefixKeyScanStateEncoderSpec", "numColsPrefixKey": 1},
        "Range": {"keyStateEncoderType": "RangeKeyScanStateEncoderSpec", "orderingOrdinals": [0]},
    }[how]
    rows: list[dict[str, Any]] = [{"at": at, "key": {"name": name}} for at, name in zip(times, names, strict=False)]
    keys = pa.array(rows, arrow_type(KEY))
    blobs = key_blobs(KEY, encoder, keys)
    assert keys_of(KEY, encoder, blobs).to_pylist() == rows
    if how == "No":
        assert blobs == write_versioned_rows(KEY, keys)
    if how == "Range":
        places: dict[Any, bytes] = {row["at"]: blob for row, blob in zip(rows, blobs, strict=True)}
        places.pop(None, None)
        assert all(places[first][:40] < places[second][:40] for first, second in pairwise(sorted(places)))


TIMED = struct_of([("name", "string"), ("time", "long")])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9), st.sampled_from(["Prefix", "Postfix"]))
def test_keys_with_a_time_are_read_as_they_were_written(times: list[int], how: str) -> None:
    encoder: Any = {"keyStateEncoderType": f"TimestampAs{how}KeyStateEncoderSpec"}
    rows: list[dict[str, Any]] = [{"name": "n", "time": time} for time in times]
    blobs = key_blobs(TIMED, encoder, pa.array(rows, arrow_type(TIMED)))
    assert keys_of(TIMED, encoder, blobs).to_pylist() == rows
    by_bytes = sorted(zip(blobs, times, strict=True))
    assert [time for _, time in by_bytes] == sorted(times)
