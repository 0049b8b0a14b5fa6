"""``docs/runbooks/move.md``: its page between S3 and Azure, and its commands with a query of real Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.new.copy.move_runbook import PAGE, page
from tests.support.places import ROOT
from tests.support.services.clouds import Cloud
from tests.support.services.fixtures import or_skip
from tests.support.services.hdfs import HdfsCluster
from tests.support.services.s3 import S3Server, s3a_jars

pytestmark = pytest.mark.service


def test_the_runbook_shows_what_ckpt_prints(s3: S3Server, azurite: Cloud) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(s3, azurite), "python -m tests.new.copy.move_runbook"


@pytest.mark.spark
def test_a_query_counts_on_wherever_it_is_moved(
    s3: S3Server, hdfs: HdfsCluster, azurite: Cloud, tmp_path: Path
) -> None:
    """A batch of ten rows at each of three places, for five keys: two rows of a key in each batch, each once."""
    with or_skip("s3a"):
        jars = {"spark.jars": ",".join(map(str, s3a_jars()))}
    asked = {
        "settings": s3.confs | jars | {"spark.sql.shuffle.partitions": "1"},
        "folder": str(tmp_path),
        "s3": s3.port,
        "hdfs": hdfs.root,
        "azure": azurite.options,
    }
    command = [sys.executable, "-m", "tests.new.copy.moving"]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, cwd=ROOT, timeout=900)
    assert done.returncode == 0, done.stderr[-5000:]
    counted = json.loads(done.stdout.splitlines()[-1])
    assert counted == {str(key): [2, 4, 6] for key in range(5)}
