"""A query of transformWithState that moves from HDFS to S3, to Azure, and back to HDFS, by the commands of the runbook.

It counts rows by key, and continues wherever Spark can run it. In a process of its own: the session of all
tests has no s3a.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import hdfs_native
from pyarrow import fs

from tests.new.copy.move_runbook import Place, find_commands, reaching, read_files, run
from tests.support.places import ROOT
from tests.support.services.s3 import S3Server
from tests.support.spark import queries


def start(spark: Any, place: str, out: Path) -> None:
    """Let the query run a batch with ten rows, and write counts to a file sink, which remembers batches."""
    query, options = queries.QUERIES["transform-with-state"], {"path": str(out)}
    running = queries.start(spark, query, place, store="changelog", sink="json", options=options)
    running.awaitTermination()


def move(old: Place, new: Place, *, by_hand: bool = False) -> None:
    """Carry out the page between two places: by ``ckpt copy``, or of files that another tool has copied."""
    for words in find_commands():
        if (words[0] == "relocate") is by_hand:
            target = new if not by_hand else Place(new.uri.removesuffix("-by-hand"), new.options)
            done = run(words, old, target)
            assert done.exit_code == (1 if by_hand and "--apply" not in words else 0), (words, done.output)


def move_around(spark: Any, asked: dict[str, Any], s3: S3Server, out: Path) -> dict[str, list[int]]:
    """Return what the query has counted of each key, in order."""
    hdfs, folder = asked["hdfs"], f"/move-{out.parent.name}"
    here, on_s3 = Place(f"{hdfs}{folder}/here"), Place(f"s3a://moved{folder}")
    on_azure = Place(f"abfss://moved@devstoreaccount1.dfs.core.windows.net{folder}", asked["azure"])
    back = Place(f"{hdfs}{folder}/back-by-hand")
    s3.file_system().create_dir("moved")
    azure = fs.AzureFileSystem("devstoreaccount1", **asked["azure"])
    azure.create_dir("moved")
    start(spark, here.uri, out)
    move(here, on_s3)
    start(spark, on_s3.uri, out)
    move(on_s3, on_azure)
    client = hdfs_native.Client(hdfs)
    for path, data in read_files(azure, f"moved{folder}"):
        client.mkdirs(f"{folder}/back-by-hand/{path}".rpartition("/")[0], 0o755, True)
        with client.create(f"{folder}/back-by-hand/{path}") as file:
            file.write(data)
    move(on_azure, back, by_hand=True)
    start(spark, back.uri, out)
    counts: dict[str, list[int]] = {}
    for row in spark.read.json(str(out)).orderBy("rows").collect():
        counts.setdefault(str(row.key), []).append(row.rows)
    return counts


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    started = queries.session("moving", **{key.replace(".", "__"): value for key, value in asked["settings"].items()})
    server = S3Server(asked["s3"], Path(), iter(()))
    with reaching(server):
        counted = move_around(started, asked, server, Path(asked["folder"], "out"))
    sys.stdout.write("\n" + json.dumps(counted) + "\n")
    started.stop()
