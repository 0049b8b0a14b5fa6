"""``ckpt copy CHECKPOINT FLOW`` gives a flow of a pipeline that has not run the checkpoint of an ordinary query."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckpt
from ckpt.errors import CkptError
from tests.conftest import Ckpt
from tests.support.pipelines import STATEFUL, build_storage, flow_of
from tests.support.places import SAMPLES


@pytest.mark.parametrize("there", ["nothing", "table", "flow"])
def test_a_flow_that_has_not_run_takes_it_as_version_0(there: str, tmp_path: Path) -> None:
    storage, flow = tmp_path / "storage", flow_of(tmp_path / "storage", "keys/keys")
    {"nothing": storage, "table": flow.parent, "flow": flow}[there].mkdir(parents=True)

    planned = ckpt.copy(SAMPLES / STATEFUL, str(flow), plan=True)
    copied = ckpt.copy(SAMPLES / STATEFUL, str(flow))

    assert planned.to == copied.to == str(flow / "0")
    assert ckpt.inspect(str(flow)).checkpoint.query_id == ckpt.inspect(SAMPLES / STATEFUL).checkpoint.query_id
    assert copied.inspection.sound


@pytest.mark.parametrize(("has", "takes"), [("2=", ""), ("1", "0"), ("1", "2")])
def test_one_that_has_run_takes_none(has: str, takes: str, tmp_path: Path) -> None:
    flow = flow_of(build_storage(tmp_path / "storage", f"keys/keys/{has}"), "keys/keys")
    with pytest.raises(CkptError, match=rf"keys of spark_catalog\.default\.keys has version {has[0]}, so it has run"):
        ckpt.copy(SAMPLES / STATEFUL, str(flow / takes))
    assert [path.name for path in flow.iterdir()] == [has[0]]
    empty = flow_of(build_storage(tmp_path / "storage", "empty/f/3="), "empty/f")
    assert ckpt.copy(SAMPLES / STATEFUL, str(empty / "3")).inspection.sound


def test_what_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "storage").mkdir()
    flow = flow_of(tmp_path / "storage", "keys/keys")

    def fail(*_: object, **__: object) -> None:
        raise CkptError("no")

    monkeypatch.setattr("ckpt.new.copy.copy._copy_files", fail)
    with pytest.raises(CkptError, match="no"):
        ckpt.copy(SAMPLES / STATEFUL, str(flow))
    assert [*(tmp_path / "storage").iterdir()] == []


def test_the_page_says_what_comes_next(tmp_path: Path, run_ckpt: Ckpt) -> None:
    (tmp_path / "storage").mkdir()
    flow = flow_of(tmp_path / "storage", "keys/keys")

    planned = run_ckpt("copy", str(SAMPLES / STATEFUL), str(flow), "--plan")
    said = run_ckpt("copy", str(SAMPLES / STATEFUL), str(flow))

    assert "Stop the query for good, then let the flow take over its checkpoint" in " ".join(planned.stdout.split())
    assert "Never start the query of the original again" in " ".join(said.stdout.split())
    assert (planned.exit_code, said.exit_code) == (0, 0)
