"""Which Spark wrote a checkpoint: a range that contains the true version, as narrow as the files allow."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import ckpt as library
from ckpt import settings
from ckpt.restart.recorded_settings import bound_writer, name_versions
from ckpt.versions import MINORS, RECORDED
from tests.conftest import Ckpt, CopyOf
from tests.inspection import golden
from tests.support.files import edit_metadata
from tests.support.places import GOLDENS
from tests.support.spark.samples import SAMPLES as WRITTEN

_RECORDED_BY = {
    "2.1": [],
    "2.2": [settings.SHUFFLE_PARTITIONS],
    "2.3": [settings.PROVIDER_CLASS],
    "2.4": [settings.WATERMARK_POLICY, settings.GROUPS_FORMAT, settings.AGGREGATION_FORMAT],
    "3.0": [settings.JOIN_FORMAT],
    "3.1": [settings.COMPRESSION_CODEC],
    "3.2": [settings.ROCKSDB_FORMAT],
    "3.2.4": [settings.STRICT_DISTRIBUTION],
    "3.5.5": [settings.PRUNE_FILTERS],
    "4.0": [settings.ENCODING_FORMAT],
    "4.2": [settings.MERGE_OPERATOR, settings.ROW_CHECKSUM, settings.SOURCE_EVOLUTION, settings.PROTOBUF_EXTENSIONS],
    "4.3": [settings.ALWAYS_NULLABLE, settings.DISTINCT_KEY_ORDER],
}
"""The settings that each release records first (``OffsetSeqMetadata.relevantSQLConfs`` of its jar)."""
_RANGES = {
    "2.1": "Spark 2.1",
    "2.2": "Spark 2.2",
    "2.3": "Spark 2.3",
    "2.4": "Spark 2.4",
    "3.0": "Spark 3.0",
    "3.1": "Spark 3.1",
    "3.2": "Spark 3.2",
    "3.2.4": "Spark 3.2 to 3.5",
    "3.5.5": "Spark 3.5",
    "4.0": "Spark 4.0 or 4.1",
    "4.2": "Spark 4.2",
    "4.3": "Spark 4.3 or later",
}
_WRITERS = {sample.name: sample.spark for sample in WRITTEN}


def _rank(minor: str | None) -> int:
    return len(MINORS) if minor is None else MINORS.index(minor)


def _contains(written: Mapping[str, str | None], minor: str) -> bool:
    at_least = written["at_least"]
    return (at_least is None or _rank(at_least) <= _rank(minor)) and _rank(minor) <= _rank(written["at_most"])


def test_each_release_is_named_as_narrowly_as_what_it_records_allows() -> None:
    recorded: list[str] = []
    for release, more in _RECORDED_BY.items():
        recorded += more
        bounds = bound_writer(recorded)
        assert name_versions(*bounds) == _RANGES[release]
        assert _contains(dict(zip(("at_least", "at_most"), bounds, strict=True)), release[:3])
    assert sorted(recorded) == sorted(setting.name for setting in RECORDED)
    assert bound_writer([name for name in recorded if name != settings.SHUFFLE_PARTITIONS]) == ("4.3", None)


@pytest.mark.parametrize("sample", sorted(_WRITERS))
def test_the_version_that_wrote_a_sample_is_in_its_range(sample: str) -> None:
    assert _contains(golden.recorded(sample)["checkpoint"]["written_by"], _WRITERS[sample])


@pytest.mark.skipif(not GOLDENS.is_dir(), reason="../shared/golden is not there")
def test_the_version_that_wrote_a_checkpoint_of_spark_is_in_its_range() -> None:
    for metadata in GOLDENS.glob("checkpoint-version-*/**/metadata"):
        if (metadata.parent / "offsets").is_dir():
            minor = metadata.relative_to(GOLDENS).parts[0].removeprefix("checkpoint-version-")[:3]
            written = library.inspect(str(metadata.parent)).written_by
            assert _contains({"at_least": written.at_least, "at_most": written.at_most}, minor), metadata.parent


def test_the_newest_offsets_bound_it_above(ckpt: Ckpt, copy_of: CopyOf) -> None:
    """After an upgrade the older batches still have what the older version recorded."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    _forget(checkpoint / "offsets" / "0", settings.ENCODING_FORMAT, settings.MERGE_OPERATOR)
    told = ckpt("inspect", checkpoint, "-o", "json").json()["checkpoint"]["written_by"]
    assert (told["at_least"], told["at_most"]) == ("4.2", "4.2")
    assert "written by Spark 4.2   query" in " ".join(ckpt("inspect", checkpoint).stdout.splitlines()).replace(
        "  q", "  q"
    )


def test_a_range_that_the_files_contradict_is_open(copy_of: CopyOf) -> None:
    """Previews of 4.0 recorded what 3.5 does, and wrote operator metadata."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    newer = [name for release in ("3.5.5", "4.0", "4.2") for name in _RECORDED_BY[release]]
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        _forget(file, *newer)
    written = library.inspect(checkpoint).written_by
    assert (written.at_least, written.at_most) == ("4.0", None)


def test_state_of_old_spark_names_who_can_read_it(ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-3.5")
    for schema in checkpoint.glob("state/0/0/_metadata/*schema*"):
        schema.unlink()
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        _forget(file, *(name for release in ("3.1", "3.2", "3.2.4", "3.5.5") for name in _RECORDED_BY[release]))
    page = " ".join(ckpt("inspect", checkpoint).stdout.split())
    assert "only the version that wrote them (Spark 3.0) can resume" in page


def _forget(offsets: Path, *names: str) -> None:
    edit_metadata(offsets, lambda metadata: [metadata["conf"].pop(name, None) for name in names])
