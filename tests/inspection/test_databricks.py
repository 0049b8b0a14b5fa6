"""A checkpoint of Auto Loader was written by Databricks, and no Spark of Apache continues it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ckpt as library
from ckpt.restart.findings import Outcome
from commands.inspected import read_evidence
from tests.conftest import Ckpt
from tests.support.auto_loader import build
from tests.support.files import edit_metadata, rewrite

RUNTIME = "18.0.x-aarch64-photon-scala2.13"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CLASS = "com.databricks.sql.streaming.state.RocksDBStateStoreProvider"


def record(checkpoint: Path, source: dict[str, object] | None, **conf: str) -> None:
    """Rewrite the newest offsets with more settings, and another source."""
    file = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    edit_metadata(file, lambda metadata: metadata["conf"].update(conf))
    if source is not None:
        rewrite(file, lambda text: text.rpartition("\n")[0] + f"\n{json.dumps(source)}")


@pytest.mark.parametrize(
    ("conf", "source", "written_by"),
    [
        ({"sparkVersion": RUNTIME, PROVIDER: CLASS}, None, "Databricks Runtime 18.0"),
        ({PROVIDER: CLASS}, {"orders": {"0": 5}}, "Databricks"),
        ({}, None, "Databricks"),
        ({"sparkVersion": "another"}, {"orders": {"0": 5}}, ""),
    ],
)
def test_who_wrote_it(conf: dict[str, str], source: dict[str, object] | None, written_by: str, tmp_path: Path) -> None:
    checkpoint = build(tmp_path / "checkpoint")
    record(checkpoint, source, **conf)

    inspection = library.inspect(str(checkpoint))

    if written_by:
        assert inspection.written_by.versions == written_by
        assert inspection.written_by.at_least is None
        assert f"written by {written_by}" in str(inspection)
        saved = tmp_path / "saved.json"
        saved.write_text(json.dumps(inspection.to_dict()))
        assert read_evidence(str(saved))[0].written_by == inspection.written_by
        assert read_evidence(str(saved))[1].written_by.platform == written_by
    else:
        assert inspection.written_by.platform is None
    assert inspection.written_by.evidence


def test_no_spark_of_apache_continues_auto_loader(tmp_path: Path, ckpt: Ckpt) -> None:
    checkpoint = build(tmp_path / "checkpoint")

    inspection = library.inspect(str(checkpoint))

    assert {forecast.outcome for forecast in inspection.forecasts} == {Outcome.UNKNOWN}
    assert [rated.code for rated in inspection.troubles] == ["CKPT262"]
    assert "Auto Loader, which exists only on Databricks" in inspection.verdict
    held = ckpt("preflight", checkpoint)
    assert (held.exit_code, held.stdout[:5]) == (1, "HOLD:")
    for words in (["repair"], ["rewind", "--to-batch", "3"], ["prune"]):
        assert "A PLAN" not in ckpt(words[0], checkpoint, *words[1:]).stdout
    assert "would fail" not in ckpt("rewind", checkpoint, "--to-batch", "3").stdout
