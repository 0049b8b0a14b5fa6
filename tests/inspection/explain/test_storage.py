"""What clients of storage say is explained: every text that was read in their sources."""

import re
from pathlib import Path
from typing import Any

import pytest

from ckpt.inspection.explain.catalog import catalog
from ckpt.inspection.explain.explain import explain
from tests.support.services.hdfs import HdfsCluster

_TEXTS = Path(__file__).with_name("storage.txt")
TEXTS = [line.split("\t") for line in _TEXTS.read_text().splitlines() if not line.startswith("#")]
_STACK = "\n\tat org.apache.hadoop.fs.FileContext.rename(FileContext.java:1032)\n\tat {}(Source.java:7)"
_SPARK = _STACK.format("org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog.write")
_HIVE = _STACK.format("org.apache.hadoop.hive.ql.exec.MoveTask.moveFile")
_OF_A_CHECKPOINT = re.compile(r"/offsets|/commits|/metadata|/state/")
_MOVED = ("s3a", "abfss", "gs", "hdfs", "dbfs")


def first(text: str) -> str | None:
    matches = explain(text).matches
    return matches[0].error.id if matches else None


def test_each_is_explained_below_code_of_spark_and_alone() -> None:
    alone = {error.id for error in catalog() if error.bare}
    for entry, text in TEXTS:
        assert first(text + _SPARK) == entry, text
        if entry in alone:
            assert first(text) == entry, text


def test_none_is_explained_below_code_of_another_program() -> None:
    others = [text for _, text in TEXTS if not _OF_A_CHECKPOINT.search(text)]
    assert len(others) > 100
    assert [text for text in others if first(text + _HIVE)] == []


_RECORDED = "/ck/state/0/_stateSchema/default/0_488f6668-0e20-4169-aacd-90ba11044d4f"
_START = "\n\tat org.apache.spark.sql.execution.streaming.state.StateSchemaCompatibilityChecker.<init>(S.scala:100)"
_READER = (
    "\n\tat org.apache.spark.sql.execution.streaming.state.StateSchemaMetadata$.createStateSchemaMetadata(R.scala:1)"
)
_ENDED = "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: "
_MANAGER = (
    "[CANNOT_LOAD_CHECKPOINT_FILE_MANAGER.UNCATEGORIZED] Error loading streaming checkpoint file manager for path="
)


@pytest.mark.parametrize(
    "text",
    [  # as Spark 4.2 said them of checkpoints whose metadata names these places, with and without the jars
        *(f"{_ENDED}{_MANAGER}{scheme}://old{_RECORDED}." for scheme in _MOVED),
        *(f'{_ENDED}No FileSystem for scheme "{scheme}" SQLSTATE: XXKST' for scheme in ("s3", "dbfs", "oss")),
        *(
            f"java.lang.RuntimeException: java.lang.ClassNotFoundException: Class {name} not found{_READER}"
            for name in (f"org.apache.hadoop.fs.{last}" for last in ("s3a.S3A", "azurebfs.Abfss", "gs.Gs"))
        ),
        f"fs.AbstractFileSystem.dbfs.impl=null: No AbstractFileSystem configured for scheme: dbfs{_READER}",
        f"java.net.UnknownHostException: oldnn{_READER}",
        f"java.net.ConnectException: Call From a/1 to nn:9 failed on connection exception: refused{_START}",
        f"java.net.ConnectException: Call From a/1 to nn:9 failed on connection exception: refused{_READER}",
        f"{_ENDED}s3a://old/ck/state/0/_stateSchema/default: org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: "
        "No AWS Credentials provided by TemporaryAWSCredentialsProvider",
        *(
            f"java.nio.file.AccessDeniedException: s3a://old{_RECORDED}: org.apache.hadoop.fs.s3a.auth."
            f"NoAuthWithAWSException: No AWS Credentials provided by SimpleAWSCredentialsProvider{at}"
            for at in (_START, _READER)
        ),
        'Failure to initialize configuration for a.dfs.core.windows.net key ="null": '
        f"Invalid configuration value detected for fs.azure.account.key{_READER}",
    ],
)  # fmt: skip
def test_a_moved_transform_with_state_is_relocated(text: str) -> None:
    match = explain(text).matches[0]
    assert match.error.id in {"state-schema-file-moved", "moved-file-system", "moved-storage"}
    assert match.command is not None
    assert match.command.name == "relocate"
    here = explain(text, checkpoint="sample_checkpoints/tws-avro-changelog-4.2").matches[0]
    assert [rated.code for rated in here.shown if rated.code == "CKPT305"] == ["CKPT305"]


@pytest.mark.parametrize("said", ["{} does not exist", "{} (Permission denied)", "{}: Read-only file system"])
@pytest.mark.parametrize(
    "place",
    [
        "/tmp/temporary-0a1b2c3d-0000-4000-8000-000000000000",
        "file:/local_disk0/ck",
        "/databricks/driver/ck",
        "file:/mnt/tmp/ck",
        "/opt/spark/work-dir/ck",
        "/var/lib/kubelet/pods/a/volumes/kubernetes.io~empty-dir/v/ck",
        "/hadoop/yarn/local/usercache/u/appcache/application_1_2/container_3/ck",
    ],
)
def test_a_place_that_does_not_last_comes_first_and_nothing_forbids_another(place: str, said: str) -> None:
    for file in ("state/0/5/1.delta", "offsets/.3.tmp", "metadata"):
        matches = explain(f"java.io.FileNotFoundException: {said.format(f'{place}/{file}')}").matches
        assert matches[0].error.id == "local-checkpoint", file
        assert not any(
            "Do not work around this with another checkpoint location" in str(match.cure) for match in matches
        )


@pytest.mark.spark
@pytest.mark.service
def test_what_spark_says_of_a_place_that_it_cannot_use(spark: Any, hdfs: HdfsCluster, tmp_path: Path) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    top = f"{hdfs.root}/{tmp_path.name}"
    at = spark._jvm.org.apache.hadoop.fs.Path
    files = at(top).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    files.mkdirs(at(f"{top}/full"))
    files.setQuota(at(f"{top}/full"), 2, 1 << 40)
    files.mkdirs(at(f"{top}/past"))
    files.allowSnapshot(at(f"{top}/past"))
    files.createSnapshot(at(f"{top}/past"), "kept")
    files.create(at(f"{top}/file")).close()
    expected = {
        "s3://bucket/ck": "no-file-system",
        "dbfs:/ck": "no-file-system",
        "hdfs://nameservice1/ck": "hdfs-unknown-host",
        "hdfs:///ck": "hdfs-unknown-host",
        "hdfs://127.0.0.1:9/ck": "hdfs-unreachable",
        "viewfs:///ck": "viewfs-mounts",
        "abfss://acct.dfs.core.windows.net/ck": "no-file-system",  # without hadoop-azure
        f"{top}/full/ck": "storage-quota",
        f"{top}/past/.snapshot/kept/ck": "read-only-storage",
        f"{top}/file/ck": "storage-refused",
        f"{top}/a:b/ck": "path-not-valid",
    }

    def run(place: str) -> None:
        frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        query = frame.writeStream.format("noop").option("checkpointLocation", place).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def explain_run(place: str) -> str | None:
        with pytest.raises((PySparkException, Py4JError)) as raised:
            run(place)
        java = getattr(raised.value, "java_exception", None) or getattr(raised.value, "_origin", None)
        return first(spark._jvm.org.apache.spark.util.Utils.exceptionString(java) if java else str(raised.value))

    assert {place: explain_run(place) for place in expected} == expected
