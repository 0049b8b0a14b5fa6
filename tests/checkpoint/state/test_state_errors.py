"""What each Spark version does about a damage: the table of ``docs/format-state.md``, row by row.

Every row was measured by starting a real query; ``tests/restart/oracle`` asks Spark again.
"""

import pytest

from ckpt.model import DamageKind, Provider, StateDamage, StateFileKind
from ckpt.restart.state_errors import load_failure
from ckpt.versions import Spark

MEASURED = (Spark.V3_5, Spark.V4_0, Spark.V4_1, Spark.V4_2, Spark.V4_3)
HDFS, ROCKSDB = Provider.HDFS, Provider.ROCKSDB
EMPTY, TRUNCATED, UNREADABLE = DamageKind.EMPTY, DamageKind.TRUNCATED, DamageKind.UNREADABLE
MISSING, ODD_END = DamageKind.MISSING, DamageKind.ODD_END
DELTA, SNAPSHOT = StateFileKind.DELTA, StateFileKind.SNAPSHOT
CHANGELOG, ZIP, SST = StateFileKind.CHANGELOG, StateFileKind.ZIP, StateFileKind.SST
UNCATEGORIZED = "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"
NO_DELTA = "CANNOT_READ_DELTA_FILE_NOT_EXISTS"
NO_LOG = "CANNOT_READ_STREAMING_STATE_FILE"
LOADS = None


def words(provider: Provider, kind: DamageKind, file_kind: StateFileKind | None, **more) -> list[str | None]:
    """What 3.5, 4.0, 4.1, 4.2 and 4.3 say; None where they load the state."""
    damage = StateDamage(kind, 0, "default", 0, 6, "state/0/0/6.delta", file_kind, "seen", **more)
    failures = [load_failure(damage, provider, spark.rules) for spark in MEASURED]
    return [failure.words if failure else LOADS for failure in failures]


@pytest.mark.parametrize(
    ("provider", "kind", "file_kind", "more", "expected"),
    [
        (HDFS, MISSING, DELTA, {}, ["Error reading delta file", *[NO_DELTA] * 4]),
        (HDFS, DamageKind.MISSING_PARTITION, None, {}, ["Error reading delta file", *[NO_DELTA] * 4]),
        (ROCKSDB, MISSING, CHANGELOG, {}, ["Error reading streaming state file", *[NO_LOG] * 4]),
        (ROCKSDB, MISSING, ZIP, {}, ["Error reading streaming state file", *[NO_LOG] * 4]),
        (HDFS, EMPTY, DELTA, {}, ["EOFException", *[UNCATEGORIZED] * 4]),
        (HDFS, TRUNCATED, DELTA, {}, ["EOFException", *[UNCATEGORIZED] * 4]),
        (ROCKSDB, UNREADABLE, CHANGELOG, {}, ["Stream is corrupted", *[UNCATEGORIZED] * 4]),
        (HDFS, ODD_END, DELTA, {}, [LOADS] * 5),
        (HDFS, ODD_END, DELTA, {"checksummed": True}, [LOADS, LOADS, UNCATEGORIZED, LOADS, LOADS]),
        (ROCKSDB, ODD_END, ZIP, {"checksummed": True}, [LOADS] * 5),
        (
            ROCKSDB,
            ODD_END,
            CHANGELOG,
            {"checksummed": True, "format_version": 2},
            [LOADS, LOADS, *[UNCATEGORIZED] * 3],
        ),
        (ROCKSDB, ODD_END, ZIP, {"checksummed": True, "format_version": 2}, [*[LOADS] * 3, *[UNCATEGORIZED] * 2]),
        (
            HDFS,
            TRUNCATED,
            SNAPSHOT,
            {"fallback": True},
            ["EOFException", UNCATEGORIZED, UNCATEGORIZED, LOADS, LOADS],
        ),
        (HDFS, TRUNCATED, SNAPSHOT, {}, ["EOFException", UNCATEGORIZED, UNCATEGORIZED, NO_DELTA, NO_DELTA]),
        (
            ROCKSDB,
            TRUNCATED,
            ZIP,
            {"fallback": True, "changelog": True},
            ["EOFException", UNCATEGORIZED, UNCATEGORIZED, LOADS, LOADS],
        ),
        (
            ROCKSDB,
            TRUNCATED,
            ZIP,
            {"changelog": True},
            ["EOFException", UNCATEGORIZED, UNCATEGORIZED, NO_LOG, NO_LOG],
        ),
        (ROCKSDB, TRUNCATED, ZIP, {}, ["EOFException", *[UNCATEGORIZED] * 4]),
        (
            ROCKSDB,
            EMPTY,
            ZIP,
            {"says": "NoSuchFileException"},
            ["NoSuchFileException", *[UNCATEGORIZED] * 4],
        ),
        (
            ROCKSDB,
            MISSING,
            ZIP,
            {"changelog": True, "format_version": 2},
            [
                "CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT",
                "CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT",
                "CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT",
                UNCATEGORIZED,
                UNCATEGORIZED,
            ],
        ),
        (ROCKSDB, DamageKind.MISSING_SST, SST, {}, ["does not exist", *[UNCATEGORIZED] * 4]),
        (ROCKSDB, TRUNCATED, SST, {}, ["Copied", *["CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE"] * 4]),
        (HDFS, DamageKind.BLOCKED, DELTA, {}, ["Error committing version", *["CANNOT_WRITE_STATE_STORE"] * 4]),
    ],
)
def test_words_of_each_version(provider, kind, file_kind, more, expected) -> None:
    assert words(provider, kind, file_kind, **more) == expected


def at_start(damage: StateDamage) -> list[bool]:
    failures = [load_failure(damage, HDFS, spark.rules) for spark in MEASURED]
    return [failure is not None and failure.at_start for failure in failures]


def test_lost_state_stops_4_2_before_anything_runs_and_earlier_versions_while_they_load() -> None:
    lost = StateDamage(DamageKind.MISSING_STATE, None, None, None, 6, "state", None, "seen")

    assert at_start(lost) == [False, False, False, True, True]


def test_a_bad_schema_is_met_while_planning_since_4_0() -> None:
    bad = StateDamage(DamageKind.BAD_SCHEMA, 0, "default", 0, 6, "state/0/0/_metadata/schema", None, "seen")

    assert at_start(bad) == [False, True, True, True, True]


@pytest.mark.parametrize("kind", DamageKind)
@pytest.mark.parametrize("file_kind", [None, *StateFileKind])
@pytest.mark.parametrize("provider", Provider)
def test_there_is_an_answer_for_everything(kind, file_kind, provider) -> None:
    for spark in Spark:
        damage = StateDamage(kind, 0, None, None, 1, "state", file_kind, "seen")
        failure = load_failure(damage, provider, spark.rules)
        its_own = DamageKind.VERSION_2 if spark.rules.version_2_snapshots else DamageKind.VERSION_1
        harmless = kind in (ODD_END, its_own, DamageKind.CHECKSUM_DIFFERS)
        harmless |= kind is DamageKind.BAD_END and not spark.rules.looks_for_version
        harmless |= kind is DamageKind.STRAY and not spark.rules.repairs_snapshots
        assert (failure is None) is harmless
        assert failure is None or failure.certain is not uncertain(kind, spark)


def uncertain(kind: DamageKind, spark: Spark) -> bool:
    """Whether a start fails depends on what its batch reads, or on what is in memory."""
    of_some_rows = kind in (DamageKind.BAD_BLOCK, DamageKind.BAD_ROW, DamageKind.MISSING_ROWS)
    return of_some_rows or (kind is DamageKind.LEADS_OUTSIDE and spark is Spark.V3_5)
