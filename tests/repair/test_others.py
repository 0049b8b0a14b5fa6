"""Somebody else writes to the checkpoint: another ckpt, or a query that was started after all."""

import fcntl
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ckpt.change import activity
from ckpt.repair import plan_repair
from ckpt.storage import open_storage
from tests.conftest import Ckpt, CopyOf
from tests.repair.doing import GAP, NOW, apply, facts, refused


def test_two_at_once(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    before = facts(tmp_path)
    handle = os.open(checkpoint, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        run = ckpt("repair-async", checkpoint, *NOW, "-o", "json")
        assert "is being changed by another ckpt" in refused(run)
        assert facts(tmp_path) == before
    finally:
        os.close(handle)
    assert ckpt("repair-async", checkpoint, *NOW).exit_code == 0


def test_a_query_that_writes_between_the_two_looks(
    ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of(GAP)
    for file in checkpoint.rglob("*"):
        os.utime(file, (1, 1_600_000_000))
    monkeypatch.setattr(activity, "LOOKS_APART_S", 0.5)

    def write() -> None:
        time.sleep(0.2)
        (checkpoint / "commits" / ".32.tmp").write_bytes(b"v1")
        os.utime(checkpoint / "commits" / ".32.tmp", (1, 1_600_000_000))

    query = threading.Thread(target=write)
    query.start()
    run = ckpt("repair-async", checkpoint, "--apply", "--quiet", "-o", "json")
    query.join()
    assert "changed while ckpt was checking" in refused(run)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize("path", ["offsets/30", "offsets/32"])
def test_a_query_that_starts_between_the_plan_and_its_apply(path: str, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    plan = plan_repair(open_storage(str(checkpoint)))
    (checkpoint / path).write_bytes((checkpoint / "offsets" / "31").read_bytes())
    before = facts(checkpoint)
    receipt = apply(plan, checkpoint, tmp_path / "backup")
    assert path in str(receipt.problem)
    assert not receipt.applied
    assert facts(checkpoint) == before
    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize("at", ["create", "check"])
def test_a_query_that_starts_while_it_is_repaired(
    at: str, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of(GAP)
    plan = plan_repair(open_storage(str(checkpoint)))
    before = facts(checkpoint)
    theirs = "offsets/30" if at == "create" else "offsets/32"
    link = os.link

    def interfering(*args: Any, **kwargs: Any) -> None:
        if args[1] == ("30" if at == "create" else ".30.crc"):
            (checkpoint / theirs).write_bytes(b"v1\n{}\n{}")
        link(*args, **kwargs)

    monkeypatch.setattr(os, "link", interfering)
    receipt = apply(plan, checkpoint, tmp_path / "backup")
    assert receipt.problem
    assert not receipt.applied
    left = facts(checkpoint)
    assert left.pop(theirs)[-1] == b"v1\n{}\n{}", "what they wrote is theirs"
    assert left == before
