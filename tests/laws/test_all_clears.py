"""Damage that was an all-clear once: what a page now says of it."""

from pathlib import Path

import pytest

from ckpt.versions import Spark
from tests.conftest import Ckpt, CopyOf
from tests.restart.oracle.cases.model import delete, replace, truncate
from tests.support.places import GOLDENS, SAMPLES
from tests.support.spark.mutations import Mutation

golden = pytest.mark.skipif(not GOLDENS.is_dir(), reason="there is no ../shared/golden")
OF_OLD_SPARK = "spark.sql.streaming.stateStore.compression.codec"  # recorded since 3.1


def outcomes(ckpt: Ckpt, checkpoint: object) -> dict[str, str]:
    """How a synchronous start of each Spark version ends."""
    told = ckpt("inspect", checkpoint, "--progress", "sync", "-o", "json").json()
    return {restart["spark"]: restart["outcome"] for restart in told["restart"]}


def troubles(ckpt: Ckpt, checkpoint: object) -> set[str]:
    found = ckpt("inspect", checkpoint, "--progress", "sync", "-o", "json").json()["findings"]
    return {one["code"] for one in found if one["severity"] != "note"}


def written_by_old_spark(checkpoint: Path) -> Path:
    """Take out of the logs what Spark before 3.1 did not record."""
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        path.write_text(path.read_text().replace(f'"{OF_OLD_SPARK}":"lz4",', ""))
    return checkpoint


def test_state_of_old_spark_without_a_schema_is_unknown(ckpt: Ckpt, copy_of: CopyOf) -> None:
    schema = delete("state/0/0/_metadata/schema")
    checkpoint = written_by_old_spark(copy_of("aggregation-hdfs-3.5", *schema))
    assert set(outcomes(ckpt, checkpoint).values()) == {"unknown"}
    assert troubles(ckpt, checkpoint) == {"CKPT317"}
    assert "nothing has to be repaired" not in ckpt("inspect", checkpoint).stdout
    assert set(outcomes(ckpt, copy_of("aggregation-hdfs-3.5", *schema, to="later")).values()) == {"resumes"}
    assert set(outcomes(ckpt, written_by_old_spark(copy_of("aggregation-hdfs-3.5", to="schema"))).values()) == {
        "resumes"
    }


@golden
@pytest.mark.parametrize(
    "name",
    [
        "checkpoint-version-2.4.5-for-compatibility-test-deduplicate",
        "checkpoint-version-2.4.5-for-compatibility-test-sum-decimal",
    ],
)
def test_state_of_spark_2_4_is_unknown(name: str, ckpt: Ckpt) -> None:
    assert troubles(ckpt, GOLDENS / name) == {"CKPT317"}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (replace("state/0/0/_metadata/schema", '"long"', '"strg"'), "strg"),
        (replace("state/0/0/_metadata/schema", '"type"', '"tyte"'), "has missing or additional keys"),
    ],
    ids=["type", "key"],
)
def test_a_schema_with_an_unknown_word_stops_a_start(damage: Mutation, words: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-3.5", damage)
    assert "resumes" not in outcomes(ckpt, checkpoint).values()
    assert words in " ".join(ckpt("inspect", checkpoint).stdout.split())


def test_operator_metadata_with_an_unknown_operator_stops_a_start(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(
        "aggregation-changelog-4.0", replace("state/0/_metadata/metadata", "stateStoreSave", "stateStoreSafe")
    )
    assert set(outcomes(ckpt, checkpoint).values()) == {"resumes", "fails-at-start"}
    assert outcomes(ckpt, checkpoint)["3.5"] == "resumes"
    assert troubles(ckpt, checkpoint) == {"CKPT318"}


def test_a_bad_rocksdb_snapshot_is_got_round_by_a_start_and_not_by_sparks_reader(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Batches of the versions from the bad snapshot on are not promised; those before it are."""
    checkpoint = copy_of("aggregation-changelog-4.2", truncate("state/0/0/{latest}.zip", 60))
    newest = max(int(path.stem) for path in (checkpoint / "state/0/0").glob("[0-9]*.zip"))
    assert outcomes(ckpt, checkpoint)["4.2"] == "resumes"
    refused = ckpt("export-state", checkpoint, "--plan", "--to", checkpoint.parent / "out", "-o", "json")
    assert refused.exit_code == 3
    assert f"batches 0 to {newest - 2} can be read" in refused.stderr
    allowed = ckpt("export-state", checkpoint, "--plan", "--to", checkpoint.parent / "out", "--batch", newest - 2)
    assert allowed.exit_code == 0


@pytest.mark.parametrize("sample", ["aggregation-hdfs-3.5", "two-sources-3.5"])
def test_what_is_promised_is_promised_to_an_unchanged_query(sample: str, ckpt: Ckpt) -> None:
    unchanged = "for the query unchanged: the same sources, operators, keys and aggregates"
    assert unchanged in ckpt("inspect", f"sample_checkpoints/{sample}").stdout
    for other in ("stateless-3.5", "damaged-missing-delta"):
        assert unchanged not in ckpt("inspect", f"sample_checkpoints/{other}").stdout


def test_two_buffers_of_one_name_are_refused_in_the_raw_shape(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """Two sums: Parquet of them cannot be read, and JSON has the key twice. The flat shape gives them two names."""
    two_sums = replace("state/0/0/_metadata/schema", '"name":"count"', '"name":"sum"')
    checkpoint = copy_of("aggregation-hdfs-3.5", two_sums)
    schema = checkpoint / "state/0/0/_metadata/schema"
    size = len((SAMPLES / "aggregation-hdfs-3.5/state/0/0/_metadata/schema").read_bytes()) - schema.stat().st_size
    schema.write_bytes(schema.read_bytes().replace(b'"name":"sum"', b'"name":"sum"' + b" " * size, 1))
    to = ["--plan", "--to", checkpoint.parent / "out"]
    refused = ckpt("export-state", checkpoint, *to, "--shape", "raw")
    assert refused.exit_code == 2
    assert "column value has several fields called sum" in refused.stderr
    assert "use --shape flat" in refused.stderr
    assert ckpt("export-state", checkpoint, *to).exit_code == 0


def test_fewer_partitions_recorded_than_the_state_has(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """A start loads as many partitions as the newest offsets record, and would count the keys of the others again."""
    setting = '"spark.sql.shuffle.partitions":"{}"'.format
    for sample in ("aggregation-hdfs-4.2", "aggregation-rocksdb-4.2", "aggregation-hdfs-3.5", "join-hdfs-3.5"):
        fewer = replace("offsets/{latest}", setting(2), setting(1))
        assert "CKPT116" in troubles(ckpt, copy_of(sample, fewer, to=f"fewer-{sample}")), sample


def test_joins_in_state_format_1(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """The setting is absent in Spark up to 2.4, and 1 where a later one continued an inner join of it."""
    setting = '"spark.sql.streaming.join.stateFormatVersion":"2"'
    lost = replace("offsets/[0-9]*", f"{setting},", "")
    assert troubles(ckpt, copy_of("join-hdfs-3.5", lost, to="lost")) == {"CKPT116"}, (
        "its rows have the flag of format 2"
    )
    without_flag = replace("state/0/0/*-keyWithIndexToValue/_metadata/schema", '"matched"', '"another"')
    absent = copy_of("join-hdfs-3.5", lost, without_flag, to="absent")
    assert set(outcomes(ckpt, absent).values()) == {"unknown"}
    assert troubles(ckpt, absent) == {"CKPT319"}
    one = replace("offsets/[0-9]*", setting, setting.replace('"2"', '"1"'))
    assert set(outcomes(ckpt, copy_of("join-hdfs-3.5", one, without_flag, to="described")).values()) == {"resumes"}
    undescribed = copy_of("join-hdfs-3.5", one, *delete("state/0/0/*/_metadata/schema"), to="undescribed")
    assert outcomes(ckpt, undescribed) == {
        spark.value: "fails-at-start" if spark.at_least(Spark.V4_1) else "unknown" for spark in Spark
    }
    assert troubles(ckpt, undescribed) == {"CKPT319", "CKPT321"}
