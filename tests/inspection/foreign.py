"""Folders that are no checkpoints and look like one by a name; those of other programs by the shape they document."""

import json
from pathlib import Path

from tests.support.files import write_files

TREES: dict[str, tuple[dict[str, bytes], tuple[str, ...], str]] = {
    "postgres": (
        {"PG_VERSION": b"15\n", "pg_multixact/offsets/0000": b"\0" * 8192, "pg_multixact/members/0000": b"\0" * 8192},
        ("pg_multixact", "", "pg_multixact/offsets"),
        "PostgreSQL",
    ),
    "kafka": (
        {
            "meta.properties": b"#\n",
            "recovery-point-offset-checkpoint": b"0\n0\n",
            "metadata/__cluster_metadata-0/00000000000000000000.log": b"",
            "__consumer_offsets-7/partition.metadata": b"version: 0\n",
            "offsets/partition.metadata": b"version: 0\n",
        },
        ("", "metadata/__cluster_metadata-0", "__consumer_offsets-7"),
        "Kafka",
    ),
    "flink": (
        {"job/chk-7/_metadata": b"Ig-\x2d", "job/shared/8f": b"\1", "job/taskowned/1": b"\1"},
        ("job", "job/chk-7"),
        "Flink",
    ),
    "hudi": ({".hoodie/hoodie.properties": b"", "state/0/part-0.parquet": b"PAR1"}, ("",), "a Hudi table"),
    "file sink": ({"_spark_metadata/0": b"v1\n{}", "part-0.parquet": b"PAR1"}, ("", "_spark_metadata"), "a file sink"),
    "dstreams": (
        {"checkpoint-1700000000000": b"\xac\xed\0\5", "receivedBlockMetadata/log-1-2": b"\0"},
        ("",),
        "DStreams",
    ),
    "git": ({".git/HEAD": b"ref: x", ".git/objects/00/1": b"x", ".git/state/0/x": b""}, (".git",), "a git folder"),
    "iceberg source": (
        {
            "c/metadata": b'{"id":"00000000-0000-4000-8000-000000000001"}',
            "c/sources/0/offsets/0": b'{"version":1,"snapshot_id":1,"position":0,"scan_all_files":false}',
        },
        ("c/sources/0", "c/sources/0/offsets"),
        "in a checkpoint: use ",
    ),
    "state's own metadata": (
        {"c/commits/0": b"v1\n{}", "c/state/0/_metadata/metadata": b"v1\n{}", "c/state/0/0/1.delta": b"x"},
        ("c/state/0/_metadata", "c/state/0/0", "c/commits"),
        "in a checkpoint: use ",
    ),
    "data": (
        {
            "offsets/0": b"12345\n",
            "commits/1": b'{"sha":"8a"}',
            "commits/007": b"v1\n",
            "state/0/0.json": b"{}",
            "sources/main/1": b"int main() {}",
            "metadata": b'{"id":7,"name":"crawl"}',
        },
        ("",),
        "it contains no checkpoint file",
    ),
    "commits of a crawler": ({"commits/1": b"a1", "commits/2.json": b"{}"}, ("",), "it contains no checkpoint file"),
    "offsets of a connector": ({"offsets/orders.offset": b"8"}, ("",), "it contains no checkpoint file"),
    "sources of a program": (
        {"sources/main.c": b"int", "state/machine.c": b""},
        ("",),
        "it contains no checkpoint file",
    ),
    "what a Mac adds to a zip": (
        {"__MACOSX/offsets/._0": b"\0\5\x16\7", "__MACOSX/commits/._0": b"\0\5\x16\7"},
        ("__MACOSX",),
        "it contains no checkpoint file",
    ),
}
"""Files; the folders of it that a user might give; what is said of each."""


def build(top: Path, name: str) -> list[Path]:
    """Make one of the trees; returns the folders that are no checkpoints."""
    files, folders, _ = TREES[name]
    write_files(top, files)
    return [top / folder for folder in folders]


LEFT: dict[str, dict[str, bytes]] = {
    "empty metadata": {"metadata": b""},
    "metadata": {"metadata": b'{"id":"00000000-0000-4000-8000-000000000001"}'},
    "cut metadata": {"metadata": b'{"id":"0000'},
    "metadata of another editor": {"metadata": '\ufeff{\r\n "id": "x"\r\n}\r\n'.encode("utf-16")},
    "commits": {"commits/0": b'v1\n{"nextBatchWatermarkMs":0}'},
    "commits without version": {"commits/0": b'{"nextBatchWatermarkMs":0}'},
    "empty offsets": {"offsets/0": b""},
    "zeros": {"offsets/41": b"\0" * 600},
    "cut offsets": {"offsets/0": b"v"},
    "offsets of Spark 2.0": {
        "offsets/0": b"\xac\xed\0\5sr\0\x38org.apache.spark.sql.execution.streaming.CompositeOffset"
    },
    "offsets of Windows": {"offsets/0": b"v1\r\n{}\r\n5"},
    "checksums": {"offsets/.0.crc": b"crc\0", "commits/.0.crc": b"crc\0"},
    "one of many": {"offsets/0": b"v1\n", **{f"offsets/{i}": b"?" for i in range(1, 90)}},
    "state": {"state/0/0/1.delta": b"x"},
    "state of a join": {"state/0/3/left-keyToNumValues/7.snapshot": b""},
    "state without its data": {"state/0/0/_metadata/schema": b""},
    "checksums of state": {"state/0/0/.1.delta.crc": b"crc\0"},
    "RocksDB": {"state/0/0/5.zip": b"PK", "state/0/0/SSTs/1.sst": b""},
    "sources": {"sources/0/0": b'\0v1\n{"t":{"0":5}}'},
    "log of files": {"sources/0/9.compact": b"v1\n{}"},
    "Auto Loader's list": {"sources/0/metadata": b"v1\n{}", "sources/0/rocksdb/0.zip": b"PK"},
    "in a table": {"_delta_log/0.json": json.dumps({}).encode(), "commits/0": b"v1\n{}", "part-0.parquet": b"PAR1"},
    "data beside": {"commits/0": b"v1\n{}", "offsets/notes.txt": b"x", "state/x": b"x", "metadata": b"none"},
}
"""Minimal remains of checkpoints."""
