"""What a change is not told is not taken for something else: an argument that is misspelt is refused."""

from collections.abc import Callable
from typing import Any

import pytest

import ckpt
from tests.conftest import CopyOf

CHANGES: dict[str, Callable[..., Any]] = {
    "repair": ckpt.repair,
    "repair_async": ckpt.repair_async,
    "rewind": lambda path, **how: ckpt.rewind(path, to_batch=2, **how),
    "skip": ckpt.skip,
    "relocate": ckpt.relocate,
    "prune": ckpt.prune,
    "offsets_set": lambda path, **how: ckpt.offsets_set(path, shift=["orders/0=+1"], **how),
    "offsets_import": lambda path, **how: ckpt.offsets_import(path, ckpt.offsets_export(path).document, **how),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("argument", ["aply", "back_up", "graze", "grace_s"])
def test_a_misspelt_argument_is_refused_and_nothing_is_changed(name: str, argument: str, copy_of: CopyOf) -> None:
    checkpoint = copy_of("kafka-4.2")
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    with pytest.raises(TypeError, match=f"'{argument}': a change takes apply, backup, undo, grace"):
        CHANGES[name](str(checkpoint), apply=True, **{argument: True})
    assert {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()} == before
    assert [path.name for path in checkpoint.parent.iterdir()] == [checkpoint.name]
