"""``python -m tests.checkpoint.state.s3_times``: record the times of the files that Spark's own queries write to S3.

A stateful query runs on a real Spark, through s3a and moto: at a pace, and as fast as it can. The answer is a listing
of each checkpoint, in ``s3_times.json``. Needs Java and the network of Maven.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from ckpt.settings import PROVIDER_CLASS, ROCKSDB_PROVIDER
from ckpt.storage import FileInfo, Listing, open_storage
from tests.support.services.s3 import s3_server, s3a_jars

RECORDED = Path(__file__).with_suffix(".json")
BATCHES = 6
_CHANGELOG = {
    PROVIDER_CLASS: ROCKSDB_PROVIDER,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
_QUERIES = {
    f"{name}, {pace}": (pace, conf)
    for name, conf in (("HDFS-backed", {}), ("changelog", _CHANGELOG))
    for pace in ("3 seconds", "0 seconds")
}


def recorded() -> dict[str, Listing]:
    found = {}
    for name, files in json.loads(RECORDED.read_text())["queries"].items():
        folders: dict[str, dict[str, FileInfo]] = {"": {}, "state": {}, "state/0": {}}
        for path, facts in files.items():
            folder, _, file = path.rpartition("/")
            folders.setdefault(folder, {})[file] = FileInfo(*facts)
        found[name] = Listing(folders)
    return found


def record() -> None:
    """Run the queries, and write what S3 lists of them."""
    from pyspark.sql import SparkSession

    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, s3_server(Path(folder)) as s3:
        s3.file_system().create_dir("bucket")
        builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(map(str, s3a_jars())))
        for key, value in {"spark.sql.shuffle.partitions": "3", "spark.ui.enabled": "false", **s3.confs}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        for number, (name, (pace, conf)) in enumerate(_QUERIES.items()):
            for key, value in conf.items():
                spark.conf.set(key, value)
            rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
            counts = rows.groupBy(rows.value % 5).count()
            writer = counts.writeStream.outputMode("complete").format("noop").trigger(processingTime=pace)
            query = writer.option("checkpointLocation", f"s3a://bucket/{number}").start()
            while query.lastProgress is None or query.lastProgress["batchId"] < BATCHES:
                time.sleep(0.2)
            query.stop()
            listing = open_storage(f"s3://bucket/{number}", s3.options).list_tree()
            answers[name] = {path: list(info) for path, info in sorted(listing.walk()) if "_" not in path}
        document = {"spark": spark.version, "queries": answers}
        spark.stop()
    RECORDED.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    record()
