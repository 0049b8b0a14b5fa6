"""`ckpt rewind --to-sink-version --restore-sink` with Delta tables on HDFS and S3: every row is there once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from ckpt import UsageError
from ckpt.storage.delta_rs import spell_for_delta_rs
from tests.live.sink.restored import Mistaken, go_back_together
from tests.support.places import ROOT
from tests.support.services.delta import delta_settings
from tests.support.services.fixtures import or_skip
from tests.support.services.hdfs import HdfsCluster
from tests.support.services.s3 import S3Server, s3a_jars


def must_be_back(told: dict[str, Any], statement: str) -> None:
    assert told.pop("sent") > 0
    assert told.pop("statement").startswith(statement)
    assert "the table now has" in told.pop("held")
    assert told == {"problem": None, "once": True}


@pytest.mark.spark
@pytest.mark.service
def test_hdfs(spark: Any, hdfs: HdfsCluster, tmp_path: Path) -> None:
    table = f"{hdfs.root}/{tmp_path.name}/numbers"
    query = Mistaken(spark, tmp_path, table=table)
    must_be_back(go_back_together(query, table), f"RESTORE TABLE delta.`{table}` TO VERSION AS OF ")


@pytest.mark.spark
@pytest.mark.service
def test_s3(s3: S3Server, tmp_path: Path) -> None:
    """In a process of its own: the session of all tests has no s3a."""
    with or_skip("s3a"):
        delta = {key.replace("__", "."): value for key, value in delta_settings().items()}
        jars = ",".join([delta.pop("spark.jars", ""), *map(str, s3a_jars())])
    s3.file_system().create_dir("tables")
    table = "tables/of numbers"
    asked = {
        "settings": delta | s3.confs | {"spark.jars": jars},
        "folder": str(tmp_path),
        "table": f"s3a://{table}",
        "sink": f"s3://{table}?{urlencode(s3.options)}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.live.sink.restored"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    must_be_back(json.loads(done.stdout.splitlines()[-1]), f"RESTORE TABLE delta.`s3a://{table}` TO VERSION AS OF ")


def test_places_as_delta_rs_takes_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    assert spell_for_delta_rs(f"file://{tmp_path}/a%20b") == (f"{tmp_path}/a b", {})
    assert spell_for_delta_rs("hdfs://host:9000/a=b") == ("hdfs://host:9000/a=b", {})
    place, options = spell_for_delta_rs("s3a://key:se%2Fcret@bucket/t?region=eu-west-1&endpoint_override=http://host:1")
    assert place == "s3://bucket/t"
    assert options == {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "se/cret",
        "aws_region": "eu-west-1",
        "aws_endpoint_url": "http://host:1",
        "aws_allow_http": "true",
    }
    assert spell_for_delta_rs("s3://bucket/a b?region=x") == ("s3://bucket/a%20b", {"aws_region": "x"})
    for uri, why in (
        ("gs://bucket/t", "only on local disks, S3 and HDFS"),
        ("s3://bucket/t?region=x&role_arn=arn", "role_arn: delta-rs has no such option"),
        ("hdfs://user@host/t", "only on local disks, S3 and HDFS"),
        ("hdfs://host/a b", "of HDFS below such a name"),
        ("s3://bucket/10%25", "below a name with %"),
        (f"{tmp_path}/10%", "below a name with %"),
    ):
        with pytest.raises(UsageError, match=why):
            spell_for_delta_rs(uri)
