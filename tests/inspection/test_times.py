"""When a batch was planned, and with which Spark: as the files say it, and by whose clock."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt import settings
from ckpt.inspection.checks.sink_times import CLOCKS_APART_MS
from tests.conftest import Ckpt, CopyOf
from tests.support.files import edit_metadata
from tests.support.places import SAMPLES
from tests.support.spark import queries

CODE = "CKPT217"


def plan_later(checkpoint: Path, batch: int, by_ms: int) -> int:
    """Write a time into the offsets of a batch, so much later than now; return it."""
    later = time.time_ns() // 1_000_000 + by_ms
    edit_metadata(checkpoint / "offsets" / str(batch), lambda metadata: metadata.update(batchTimestampMs=later))
    return later


@pytest.mark.parametrize(
    ("by_ms", "found"),
    [
        (-3_600_000, False),
        (0, False),
        (CLOCKS_APART_MS - 20_000, False),
        (CLOCKS_APART_MS + 20_000, True),
        (400 * 86_400_000, True),
    ],
)
@pytest.mark.parametrize("batch", [3, 5])
def test_a_time_in_the_future_is_found(batch: int, by_ms: int, found: bool, copy_of: CopyOf, run_ckpt: Ckpt) -> None:
    checkpoint = copy_of("stateless-4.2")
    plan_later(checkpoint, batch, by_ms)
    findings = [rated for rated in ckpt.inspect(checkpoint).findings if rated.code == CODE]
    assert [rated.path for rated in findings] == [f"offsets/{batch}"] * found
    (row,) = run_ckpt("scan", checkpoint, "-o", "json").json()["checkpoints"]
    assert (CODE in row["codes"]) == found


@pytest.mark.parametrize("setting", [settings.ALWAYS_NULLABLE, settings.DISTINCT_KEY_ORDER])
def test_settings_that_only_one_version_records_name_it(setting: str, copy_of: CopyOf) -> None:
    """What offsets of 4.2.0, 4.2.1 and 4.3.0 record was compared: 4.3.0 records these two, and all that 4.2 does."""
    checkpoint = copy_of("stateless-4.2")
    assert ckpt.inspect(checkpoint).written_by.at_least == "4.2"
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        file.write_text(file.read_text().replace('"conf":{', f'"conf":{{"{setting}":"true",'))
    written = ckpt.inspect(checkpoint).written_by
    assert (written.at_least, written.evidence) == ("4.3", (f"{setting} is recorded",))


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.glob("*-4.[23]")))
def test_samples_name_their_version(sample: str) -> None:
    """None is said to be of a later version than the one that wrote it; offsets of 4.3 always say so."""
    inspection = ckpt.inspect(str(SAMPLES / sample))
    version = sample.rpartition("-")[2]
    recorded = any(log.metadata and log.metadata.conf for log in inspection.checkpoint.offsets.records.values())
    assert inspection.written_by.at_least == version or not recorded


@pytest.mark.spark
def test_a_start_plans_the_next_batch_with_its_own_clock(spark: Any, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    rows: list[int] = []

    def start() -> None:
        def keep(batch: Any, _: int) -> None:
            rows.extend(row[0] for row in batch.collect())

        queries.start(spark, queries.QUERIES["stateless"], checkpoint, sink=keep).awaitTermination(60)

    start()
    first = ckpt.inspect(checkpoint).checkpoint.offsets
    later = plan_later(checkpoint, first.latest or 0, 86_400_000)
    assert CODE in [rated.code for rated in ckpt.inspect(checkpoint).findings]
    start()
    newest = ckpt.inspect(checkpoint).checkpoint.offsets.newest
    assert newest is not None
    assert newest.metadata is not None
    assert newest.metadata.timestamp_ms < later - 80_000_000
    assert len(rows) == len(set(rows)) > 0
