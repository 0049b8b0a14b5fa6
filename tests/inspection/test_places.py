"""A checkpoint in a place that ends with the run or the machine, or that other hosts do not see, is found as such."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.inspection.checks.stored import find_passing_place
from tests.support.files import rewrite
from tests.support.places import SAMPLES

_NAMES = {"CKPT512", "CKPT513", "CKPT514"}
_RUN = "temporary-0a1b2c3d-0000-4000-8000-000000000000"


def codes(uri: str) -> set[str]:
    return {rated.code for rated in ckpt.inspect(uri).findings} & _NAMES


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (f"/tmp/{_RUN}", "checkpointLocation was not set"),
        (f"file:/tmp/{_RUN}", "checkpointLocation was not set"),
        (f"/yarn/appcache/application_1_2/container_3/tmp/{_RUN}", "checkpointLocation was not set"),
        ("file:/local_disk0/tmp/ck", "local_disk0 disappears with"),
        ("file:///databricks/driver/ck", "databricks/driver disappears with"),
        ("/mnt/tmp/ck", "/mnt/tmp disappears with"),
        ("/opt/spark/work-dir/ck", "/opt/spark/work-dir disappears with"),
        ("/var/lib/kubelet/pods/a/volumes/kubernetes.io~empty-dir/v/ck", "empty-dir/v disappears with"),
        ("/data/usercache/u/appcache/application_1_2/container_3/ck", "application_1_2 disappears with"),
        ("s3://bucket/local_disk0/ck", None),
        ("/data/mnt/tmp/ck", None),
        ("/mnt/tmpfs/ck", None),
        ("/tmp/temporary-orders/ck", None),
        ("/tmp/ck", None),
        ("dbfs:/mnt/tmp2/ck", None),
    ],
)
def test_a_path_shows_that_a_place_does_not_last(place: str, why: str | None) -> None:
    checkpoint = ckpt.open_checkpoint(str(SAMPLES / "stateless-4.2"))
    object.__setattr__(checkpoint, "uri", place)
    assert [bool(why and why in finding.detail) for finding in find_passing_place(checkpoint)] == [True] * (
        why is not None
    )


def test_the_folder_of_a_run_is_found_and_a_copy_of_it_is_in_order(tmp_path: Path) -> None:
    run, copy = tmp_path / _RUN, tmp_path / "orders"
    shutil.copytree(SAMPLES / "aggregation-hdfs-4.2", run)
    (finding,) = (rated for rated in ckpt.preflight(str(run)).warnings if rated.code == "CKPT512")
    assert finding.advice is not None
    assert "copy" in str(finding.advice.steps[0].do)
    ckpt.copy(str(run), str(copy))
    assert (codes(str(run)), codes(str(copy))) == ({"CKPT512"}, set())


def test_a_recorded_path_shows_where_a_copy_was_written(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "tws-changelog-4.0", tmp_path / "orders")
    metadata = max((tmp_path / "orders").glob("state/0/_metadata/v2/[0-9]*"))
    rewrite(metadata, lambda text: re.sub(r'"[^"]+(?=/state/0/_stateSchema)', f'"file:/tmp/{_RUN}', text))
    assert codes(str(tmp_path / "orders")) == {"CKPT512"}


def test_partitions_that_other_hosts_wrote_are_not_a_batch_that_was_never_computed(tmp_path: Path) -> None:
    """The driver of a cluster has the logs and the schemas alone; with what the hosts have, nothing is missing."""
    driver = tmp_path / "driver"
    shutil.copytree(SAMPLES / "aggregation-hdfs-4.2", driver)
    for path in sorted(driver.glob("state/0/[0-9]*")):
        for file in (file for file in path.iterdir() if file.name != "_metadata"):
            file.unlink()
        if not any(path.iterdir()):
            path.rmdir()
    inspection = ckpt.inspect(str(driver))
    assert codes(str(driver)) == {"CKPT513"}
    (lost,) = (rated for rated in inspection.findings if rated.code == "CKPT428")
    assert lost.advice is not None
    assert "every host" in str(lost.advice.steps[0].what)
    shutil.copytree(SAMPLES / "aggregation-hdfs-4.2" / "state", driver / "state", dirs_exist_ok=True)
    assert codes(str(driver)) == set()


@pytest.mark.parametrize(("master", "found"), [("yarn", True), ("k8s://https://a:443", True), ("local[4]", False)])
def test_a_session_on_a_cluster_and_a_local_path_do_not_fit(master: str, found: bool) -> None:
    ready = ckpt.preflight(str(SAMPLES / "stateless-4.2"), conf={"spark.master": master})
    assert ("CKPT514" in {rated.code for rated in ready.warnings}) is found
    assert ready.go


@pytest.mark.spark
def test_a_run_without_a_location_is_copied_while_it_runs_and_every_row_is_there_once(
    spark: Any, tmp_path: Path
) -> None:
    """A stop without an error deletes the folder that Spark made, so the copy comes first."""
    rows, given = tmp_path / "rows", []
    rows.mkdir()
    of_java = spark._jvm.java.lang.System
    usual = of_java.setProperty("java.io.tmpdir", str(tmp_path))

    def put(*numbers: int) -> None:
        (rows / f"{numbers[0]}.json").write_text("".join(json.dumps({"n": number}) + "\n" for number in numbers))

    def keep(batch: Any, _: int) -> None:
        given.extend(sorted((row.even, row["count"]) for row in batch.collect()))

    def start(**options: str) -> Any:
        numbers = spark.readStream.schema("n long").json(str(rows)).selectExpr("n % 2 = 0 AS even")
        writer = numbers.groupBy("even").count().writeStream.outputMode("update").foreachBatch(keep)
        return writer.options(**options).start()

    try:
        put(1, 2, 3)
        query = start()
    finally:
        of_java.setProperty("java.io.tmpdir", usual)
    query.processAllAvailable()
    (run,) = tmp_path.glob("temporary-*")
    (finding,) = (rated for rated in ckpt.inspect(str(run)).findings if rated.code == "CKPT512")
    assert "deletes" in str(finding.meaning)
    ckpt.copy(str(run), str(tmp_path / "kept"))
    query.stop()
    assert not run.exists()
    put(4, 5)
    query = start(checkpointLocation=str(tmp_path / "kept"))
    query.processAllAvailable()
    query.stop()
    assert given == [(False, 2), (True, 1), (False, 3), (True, 2)]
