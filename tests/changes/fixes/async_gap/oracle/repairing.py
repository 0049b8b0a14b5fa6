"""Damage a copy of a sample as a case says, and repair it with ckpt."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ckpt.changes.fixes.repair_async import AsyncRepairPlan, Strategy, plan_repair, repair_async
from ckpt.changes.steps import FileContent
from ckpt.storage import open_storage
from tests.restart.oracle import answers as oracle
from tests.restart.oracle.cases import SAMPLES, Case
from tests.support.spark import mutations

STRATEGIES = (Strategy.FILL, Strategy.REWIND)


def damaged(case: Case, folder: Path) -> Path:
    """The damaged checkpoint, at `folder / "ck"`."""
    folder.mkdir(parents=True, exist_ok=True)
    return mutations.copy_of(SAMPLES / case.sample, folder / "ck", case.mutations)


def planned(checkpoint: Path, strategy: Strategy) -> AsyncRepairPlan:
    """What ckpt would do."""
    return plan_repair(open_storage(str(checkpoint)), strategy)


def repaired(checkpoint: Path, strategy: Strategy) -> AsyncRepairPlan:
    """Apply the plan of a strategy, which must have steps."""
    backup = str(checkpoint.with_name("backup"))
    plan, receipt = repair_async(
        str(checkpoint), strategy=strategy, apply=True, backup=backup, accept_replay=True, accept_skip=True, grace=0
    )
    assert receipt.applied, receipt.problem
    return plan


def fingerprint(case: Case, plan: AsyncRepairPlan) -> str:
    """What an answer is an answer to: the damaged sample, the bytes that the repair leaves, and the query."""
    after = {step.path: FileContent.of(step.after) for step in plan.steps}
    left = {path: None if content is None else content.sha256 for path, content in after.items()}
    told: list[Any] = [oracle.fingerprint(case), left]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
